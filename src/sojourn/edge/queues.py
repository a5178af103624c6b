"""The queue a broker keeps for an absent displayer, thinned by what the subscription means (section 4.3).

A `QueuePolicy` is part of a subscription and says what a reader who comes back wants of what it missed:

- `expiry_s`: nothing older than that (time-sensitive subscriptions);
- `keep="last"`: of each value of the attribute `key` only the newest event;
- `keep="highest"` or `"lowest"`: of each value of `key`, or in all where `key` is None, only the event with
  the extreme of the attribute `value`, the first of equals; events without a number there are not kept.
  With `expiry_s` it is the extreme of what is still fresh when the reader comes back: so what may outlive
  the present extreme is kept beside it, and no more;
- `reconnect_bytes_max`: at reconnection no more than so many bytes, the newest events first.

Whatever the policy, a queue holds at most `events_max` events and `bytes_max` bytes; beyond it the oldest
goes. Every event that will not be delivered is named with the reason. Queues keep events in the order they
came and hand them out in it. An event's age counts from when it was generated.
"""

from bisect import bisect_left, insort
from collections import OrderedDict
from typing import Literal, NamedTuple

from sojourn.errors import SojournError
from sojourn.interest.events import Event
from sojourn.interest.values import Scalar

Keep = Literal["all", "last", "highest", "lowest"]
Reason = Literal["expired", "superseded", "queue_full", "over_budget"]


class QueuePolicyError(SojournError):
    """A queue policy contradicts itself."""


class QueuePolicy(NamedTuple):
    """What a subscription wants of the events missed."""

    keep: Keep = "all"
    key: str | None = None
    """The attribute by whose values events are told apart; None takes all together."""
    value: str | None = None
    """The attribute whose extreme is kept."""
    expiry_s: float | None = None
    events_max: int = 10_000
    bytes_max: int = 16 << 20
    reconnect_bytes_max: int | None = None

    def checked(self) -> "QueuePolicy":
        """The same policy, or a sentence on what is wrong with it."""
        if self.keep not in ("all", "last", "highest", "lowest"):
            raise QueuePolicyError(f"keep may be all, last, highest or lowest, not {self.keep!r}.")
        if self.keep in ("highest", "lowest") and self.value is None:
            raise QueuePolicyError(f"keep={self.keep} needs value, the attribute whose extreme is kept.")
        if self.keep == "last" and self.key is None:
            raise QueuePolicyError("keep=last needs key, the attribute of which each value's last is kept.")
        if self.expiry_s is not None and not self.expiry_s > 0:
            raise QueuePolicyError(f"expiry_s must be above 0, not {self.expiry_s:g}.")
        for name in ("events_max", "bytes_max", "reconnect_bytes_max"):
            limit = getattr(self, name)
            if limit is not None and limit < 1:
                raise QueuePolicyError(f"{name} must be at least 1, not {limit}.")
        return self


class Queued(NamedTuple):
    """An event that waits."""

    event: Event
    generated_s: float
    size_bytes: int


class Dropped(NamedTuple):
    """An event that will not be delivered, and why."""

    item: Queued
    reason: Reason


class PolicyQueue:
    """What waits for one subscription of one displayer."""

    def __init__(self, policy: QueuePolicy | None = None) -> None:
        self.policy = (policy or QueuePolicy()).checked()
        self._items: OrderedDict[int, Queued] = OrderedDict()
        self._next = 0
        self._kept_for: dict[Scalar | None, list[tuple[float, int]]] = {}
        """With `keep`: by value of `key`, when the items that are kept were generated, and their numbers.

        Never more than one, but where extremes expire. There no two are of one moment, and none that is later
        has a larger score: it would have taken the place of the earlier one.
        """
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Queued, now: float) -> list[Dropped]:
        """Put an event in; says which ones that drops, itself perhaps."""
        if self._is_old(item, now):
            return [Dropped(item, "expired")]
        dropped: list[Dropped] = []
        if self.policy.keep != "all":
            losers = self._losers(item)
            if losers is None:
                return [Dropped(item, "superseded")]
            dropped = [Dropped(self._take_out(number), "superseded") for number in losers]
            insort(self._kept_for.setdefault(self._key(item), []), (item.generated_s, self._next))
        self._items[self._next] = item
        self._next += 1
        self.bytes += item.size_bytes
        while len(self._items) > self.policy.events_max or self.bytes > self.policy.bytes_max:
            dropped.append(Dropped(self._take_out(next(iter(self._items))), "queue_full"))
        return dropped

    def drain(self, now: float) -> tuple[list[Queued], list[Dropped]]:
        """Empty the queue for a reader who is back: what it gets, in order, and what it does not."""
        everything = list(self._items.values())
        self._items.clear()
        self._kept_for.clear()
        self.bytes = 0
        fresh = [item for item in everything if not self._is_old(item, now)]
        dropped = [Dropped(item, "expired") for item in everything if self._is_old(item, now)]
        if self.policy.keep in ("highest", "lowest") and self.policy.expiry_s is not None:
            best = {id(item) for item in self._best(fresh)}
            dropped += [Dropped(item, "superseded") for item in fresh if id(item) not in best]
            fresh = [item for item in fresh if id(item) in best]
        budget = self.policy.reconnect_bytes_max
        if budget is None:
            return fresh, dropped
        spent, first = 0, len(fresh)
        while first and spent + fresh[first - 1].size_bytes <= budget:
            first -= 1
            spent += fresh[first].size_bytes
        dropped += [Dropped(item, "over_budget") for item in fresh[:first]]
        return fresh[first:], dropped

    def expire(self, now: float) -> list[Dropped]:
        """Let go what is too old, whoever may come back."""
        old = [number for number, item in self._items.items() if self._is_old(item, now)]
        return [Dropped(self._take_out(number), "expired") for number in old]

    def _is_old(self, item: Queued, now: float) -> bool:
        return self.policy.expiry_s is not None and now - item.generated_s > self.policy.expiry_s

    def _key(self, item: Queued) -> Scalar | None:
        return None if self.policy.key is None else item.event.get(self.policy.key)

    def _losers(self, item: Queued) -> list[int] | None:
        """Which of those kept must make room for a newcomer; None where it is the newcomer that loses."""
        kept = self._kept_for.get(self._key(item), [])
        if self.policy.keep == "last":
            return None if kept and kept[0][0] > item.generated_s else [number for _, number in kept]
        score = self._score(item)
        if score is None:
            return None
        if self.policy.expiry_s is None:
            return None if kept and self._score_of(kept[0]) >= score else [number for _, number in kept]
        end = bisect_left(kept, (item.generated_s, -1))
        if end < len(kept):
            if self._score_of(kept[end]) >= score:  # and it lasts as long
                return None
            end += kept[end][0] == item.generated_s
        first = end
        while first and self._score_of(kept[first - 1]) < score:
            first -= 1
        return sorted(number for _, number in kept[first:end])

    def _best(self, fresh: list[Queued]) -> list[Queued]:
        best: dict[Scalar | None, Queued] = {}
        for item in fresh:
            rival = best.get(self._key(item))
            if rival is None or (self._score(item) or 0.0) > (self._score(rival) or 0.0):
                best[self._key(item)] = item
        return list(best.values())

    def _score(self, item: Queued) -> float | None:
        """The number whose largest is kept."""
        assert self.policy.value is not None
        value = item.event.get(self.policy.value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return -value if self.policy.keep == "lowest" else value

    def _score_of(self, kept: tuple[float, int]) -> float:
        score = self._score(self._items[kept[1]])
        assert score is not None, "what has no value was not kept"
        return score

    def _take_out(self, number: int) -> Queued:
        item = self._items.pop(number)
        self.bytes -= item.size_bytes
        if self.policy.keep != "all":
            kept = self._kept_for[self._key(item)]
            del kept[bisect_left(kept, (item.generated_s, number))]
            if not kept:
                del self._kept_for[self._key(item)]
        return item
