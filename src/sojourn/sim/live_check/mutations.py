"""Brokers broken on purpose, one small mistake each: a check that finds none of them would be worth nothing.

`sojourn check live --broken NAME` runs the worlds with one of them; `broken(name)` puts it in for a while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sojourn.broker import channel, facts
from sojourn.broker.channel import Channel
from sojourn.broker.confirming import Confirming
from sojourn.broker.event_routing import EventRouting
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.membership import Membership
from sojourn.broker.sharing import Shares
from sojourn.errors import SojournError
from sojourn.mobility.epochs import EPOCHS_A_SECOND, EpochClock
from sojourn.mobility.giving import Giving
from sojourn.mobility.holdings import Holding
from sojourn.mobility.trails import Trail
from sojourn.mqtt import handshake
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.retained import Retained
from sojourn.mqtt.session import Session
from sojourn.routing.router import Router
from sojourn.sim.live_check.process import Process


class UnknownMutationError(SojournError):
    """There is no mistake of that name."""


Patch = tuple[Any, str, Callable[[Any], Any]]
"""A class or module, the name of a function there, and what makes the wrong one of the right one."""


def _drop_facts(note: Any) -> Any:
    def wrong(self: LiveBroker, fact: facts.Remembered, now: float) -> None:
        if not (isinstance(fact, facts.FrameTaken) and fact.number % 7 == 0):
            note(self, fact, now)

    return wrong


def _commit_late(commit: Any) -> Any:
    def wrong(self: Process, broker: LiveBroker, turn: Any) -> None:
        held = getattr(self, "held_entries", [])
        self.held_entries, turn.entries = list(turn.entries), held  # type: ignore[attr-defined]  # put there by the mistake
        commit(self, broker, turn)

    return wrong


def _nothing(_right: Any) -> Any:
    return lambda *_args, **_options: None


def _never(_right: Any) -> Any:
    return lambda *_args, **_options: False


def _by_date_alone(_right: Any) -> Any:
    return lambda self, now, after=0: int(now * EPOCHS_A_SECOND)  # noqa: ARG005 - as the right one


def _answer_at_once(_right: Any) -> Any:
    return lambda self, answer: self.confirmed.append(answer)


def _forget_received(export: Any) -> Any:
    def wrong(*args: Any, **options: Any) -> Any:
        import msgspec  # noqa: PLC0415 - only a broken broker needs it

        return msgspec.structs.replace(export(*args, **options), received=())

    return wrong


def _lose_last(give: Any) -> Any:
    def wrong(self: Giving, holding: Holding, *rest: Any) -> None:
        last = holding.queue.pop() if holding.queue else None
        give(self, holding, *rest)
        if last is not None:
            holding.queue.append(last)

    return wrong


def _say_nothing(_right: Any) -> Any:
    def wrong(self: Membership, _now: float) -> None:
        self.reports.clear()

    return wrong


def _overtake(hand: Any) -> Any:
    def wrong(self: Deliverer, session: Session, *rest: Any, **options: Any) -> bool:
        unsent, session.unsent = session.unsent, deque()
        is_wanted: bool = hand(self, session, *rest, **options)
        session.unsent = unsent
        return is_wanted

    return wrong


MUTATIONS: dict[str, Patch] = {
    "drop-a-journal-fact": (LiveBroker, "_note", _drop_facts),
    "acknowledge-early": (Process, "_commit", _commit_late),
    "forget-an-epoch": (EpochClock, "next", _by_date_alone),
    "resume-without-looking": (channel, "is_broken", _never),
    "give-an-empty-session": (Trail, "missing", lambda _right: lambda *_args: frozenset()),
    "forget-marks": (Holding, "note_marks", _nothing),
    "suback-at-once": (Confirming, "ask", _answer_at_once),
    "tell-no-subscriptions-anew": (Router, "out_subs", lambda _right: lambda _self: []),
    "forget-half-received": (handshake, "session_state", _forget_received),
    "keep-any-retained": (Retained, "is_news", lambda _right: lambda *_args: True),
    "take-repetitions": (EventRouting, "came_before", _never),
    "lose-the-last-stored-event": (Giving, "give", _lose_last),
    "send-new-ones-first": (Deliverer, "hand", _overtake),
    "say-nothing-of-shared-events": (Membership, "flush", _say_nothing),
    "leave-what-a-member-left": (Shares, "_pick_again", lambda _right: lambda *_args, **_options: iter(())),
}

HARMLESS: dict[str, Patch] = {
    # Both sides keep from repeating frames: a hello says how far its broker has come, and the other side
    # begins after that. In 1.2 million frames of 90 worlds not one came that had been taken before.
    "repeat-what-was-taken": (Channel, "_is_new", lambda _right: lambda _self, _position: True),
}
"""Mistakes that nobody can notice, since something else prevents what would follow from them."""


@contextmanager
def broken(name: str | None) -> Iterator[None]:
    """Break brokers for a while; None leaves them whole."""
    if name is None:
        yield
        return
    mistakes = MUTATIONS | HARMLESS
    if name not in mistakes:
        raise UnknownMutationError(f"There is no mistake {name!r}; there are {', '.join(mistakes)}.")
    where, what, spoil = mistakes[name]
    right = getattr(where, what)
    setattr(where, what, spoil(right))
    try:
        yield
    finally:
        setattr(where, what, right)
