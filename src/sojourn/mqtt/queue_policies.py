"""What a subscription wants of the events its client missed, and the queue thinned by it (paper 003, 4.3).

A SUBSCRIBE may say so in user properties (`conventions.py`); the rules are those of `edge/queues.py`. Where
they act: on what waits for a client that is away and was never sent to it, when the client is back; before
that, whenever twice as much waits as the last time, so that a queue is not filled by what would be dropped.
The budget counts at the return only. What was sent and not acknowledged is sent again in any case.

In a network the brokers' mobility cores store for clients that are away, in full, and the rules act where the
client arrives, as what was stored for it is given to its session (`thinning.py`).

An event that matches several subscriptions stays if one of them keeps it; one without a policy keeps all.
So does the whole of more than `FITTING_MAX` of one client for an event's topic, which are not asked one by
one: otherwise a thousand of them, and as many events, would be a million questions at once.
Age counts from when the event was published, which its sequence tells (`State.number`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from sojourn.edge.queues import Dropped, PolicyQueue, Queued, QueuePolicy, QueuePolicyError
from sojourn.interest import Event
from sojourn.mqtt.content import ContentError, event_of, property_values
from sojourn.mqtt.conventions import BUDGET, EXPIRY, KEEP
from sojourn.mqtt.message import Message
from sojourn.mqtt.session import Delivery, Subscription

UNLIMITED = 1 << 62
"""The session's queue has its own limits."""
FITTING_MAX = 16
"""Subscriptions of a client for one topic that are asked what they keep; if there are more, all is kept."""
ATTRIBUTE_CHARS_MAX = 1_024
"""The longest name of an attribute that what is kept goes by; every subscription has its own."""
THIN_AT = 100
"""Messages that wait for a client with such a subscription before they are first thinned."""


def read_policy(pairs: Sequence[tuple[str, str]]) -> QueuePolicy | None:
    """Return what a SUBSCRIBE's user properties say, None for nothing, or raise a `ContentError`."""
    keep, expiry, budget = (_only(pairs, name) for name in (KEEP, EXPIRY, BUDGET))
    if keep is None and expiry is None and budget is None:
        return None
    policy = QueuePolicy(events_max=UNLIMITED, bytes_max=UNLIMITED)
    if keep is not None:
        rule, colon, attribute = keep.partition(":")
        if rule not in ("last", "highest", "lowest") or not colon or not attribute:
            raise ContentError(
                f"{KEEP} reads last:KEY, highest:ATTRIBUTE or lowest:ATTRIBUTE, not {keep[:80]!r}."
            )
        if len(attribute) > ATTRIBUTE_CHARS_MAX:
            raise ContentError(f"The attribute of {KEEP} has at most {ATTRIBUTE_CHARS_MAX} characters.")
        if rule == "last":
            policy = policy._replace(keep="last", key=attribute)
        else:
            policy = policy._replace(keep="highest" if rule == "highest" else "lowest", value=attribute)
    if expiry is not None:
        policy = policy._replace(expiry_s=_number(EXPIRY, expiry, "seconds above 0"))
    if budget is not None:
        bytes_max = min(int(_number(BUDGET, budget, "bytes, at least 1")), UNLIMITED)
        policy = policy._replace(reconnect_bytes_max=bytes_max)
    try:
        return policy.checked()
    except QueuePolicyError as error:
        raise ContentError(str(error)) from None


class _Waiting:
    """A delivery, and how many subscriptions keep it."""

    __slots__ = ("delivery", "keepers")

    def __init__(self, delivery: Delivery, keepers: int) -> None:
        self.delivery, self.keepers = delivery, keepers


class Thinner:
    """What subscriptions keep of a queue, looked at one delivery after the other."""

    __slots__ = ("_queues", "_waiting", "gone")

    def __init__(self) -> None:
        self._queues: dict[str, PolicyQueue] = {}
        """By subscription."""
        self._waiting: dict[int, tuple[Queued, _Waiting]] = {}
        """By identity of what is in the queues; kept here so that no two have the same."""
        self.gone: list[tuple[Delivery, str]] = []
        """What none keeps any more, and why."""

    def add(self, delivery: Delivery, subscriptions: Sequence[Subscription], now: float | None) -> None:
        """Look at one more, given those that it fits; without a time nothing is too old before `end`."""
        # One that no subscription fits any more is not ours to drop.
        waiting = _Waiting(delivery, max(1, len(subscriptions)))
        if len(subscriptions) > FITTING_MAX:
            return
        for one in subscriptions:
            if one.policy is None:
                continue
            item = _queued(delivery.message, one.policy)
            self._waiting[id(item)] = item, waiting
            queue = self._queues.get(one.text)
            if queue is None:
                queue = self._queues[one.text] = PolicyQueue(one.policy)
            self._drop(queue.add(item, item.generated_s if now is None else now))

    def end(self, now: float) -> None:
        """The client is sent the rest now."""
        for queue in self._queues.values():
            self._drop(queue.drain(now)[1])

    def _drop(self, dropped: Iterable[Dropped]) -> None:
        for one in dropped:
            _, waiting = self._waiting.pop(id(one.item))
            waiting.keepers -= 1
            if not waiting.keepers:
                self.gone.append((waiting.delivery, one.reason.replace("_", " ")))


def _queued(message: Message, policy: QueuePolicy) -> Queued:
    """What a policy has to know of a message; the rest of what was read of it is let go."""
    event = event_of(message)
    known = {
        path: value for path in (policy.key, policy.value) if path and (value := event.get(path)) is not None
    }
    slim = Event.of_checked(known, frozenset(), "", 0)
    return Queued(slim, _published_s(message), len(message.frame))


def _published_s(message: Message) -> float:
    """When a message was published, as the broker it was published at saw it."""
    return min(message.arrived_s, message.sequence / 1e6) if message.sequence else message.arrived_s


def _only(pairs: Sequence[tuple[str, str]], name: str) -> str | None:
    texts = property_values(pairs, name)
    if len(texts) > 1:
        raise ContentError(f"A SUBSCRIBE has one {name} at the most.")
    return texts[0] if texts else None


def _number(name: str, text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise ContentError(f"{name} is a number of {what}, not {text[:80]!r}.")
    return number
