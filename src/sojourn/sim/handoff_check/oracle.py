"""What each client should have got, told from what was published and wanted alone.

The oracle knows nothing of brokers. It asks `Filter.matches` of every publication against the interests that
were in force, and compares with what the client's own eyes saw:

- all events published after an interest was in force must come. Where events are flooded, that is when the
  client knows that a broker took it in; where they are routed by content, when all messages about interests
  that were under way then, and all that they led to, have been handled (the world counts them);
- where events are flooded, once an event came that only this interest lets in, all later ones of that source
  that it matches must come, in force or not;
- nothing comes twice, out of its source's order, or that was never wanted.
"""

import itertools
from dataclasses import dataclass, field
from math import inf

from sojourn.interest.events import Event
from sojourn.interest.filters import Filter


@dataclass(slots=True)
class Wanted:
    """One interest of a client, from when it asked for it until it asked for it no more."""

    interest: int
    is_taken: bool = False
    """Whether the client knows that a broker has taken it in."""
    force_s: float = inf
    """Since when it is in force everywhere."""
    ended: bool = False
    again: bool = False
    """It was wanted before: then what comes at first may still be due to that."""


@dataclass(slots=True)
class Witness:
    """What one client wanted and saw."""

    client: int
    wanted: list[Wanted] = field(default_factory=list)
    seen: dict[str, list[int]] = field(default_factory=dict)
    """By source: the sequence numbers, in the order they came."""
    is_gone: bool = False
    """It died or said goodbye, and what it had not seen by then it need not see."""

    def wants(self, interests: tuple[int, ...]) -> None:
        """From now on the client wants exactly these."""
        held = {one.interest for one in self.wanted if not one.ended}
        for one in self.wanted:
            one.ended = one.ended or one.interest not in interests
        ever = {one.interest for one in self.wanted}
        self.wanted.extend(
            Wanted(interest, again=interest in ever) for interest in interests if interest not in held
        )

    def taken(self, interests: tuple[int, ...]) -> list[Wanted]:
        """A broker took in a connection with these interests; say which of them are new to all brokers."""
        new = [one for one in self.wanted if not (one.ended or one.is_taken) and one.interest in interests]
        for one in new:
            one.is_taken = True
        return new


class Routing:
    """The messages about interests that are under way, by what set them off.

    A broker does not pass an interest on that it has passed on for somebody else. It is in force then when
    that one is, which may be under way, and may in turn end at a broker where another one is under way
    already. So an interest counts as in force when all that was under way has been handled, as many times
    over as there are brokers that it may pass.
    """

    def __init__(self, hops: int) -> None:
        self._hops = hops
        self._pending: dict[int, int] = {}
        self._watched: list[tuple[set[int], int, Wanted]] = []
        self._causes = 0

    def new_cause(self) -> int:
        """A number for what sets messages off; the one after it tears down."""
        self._causes += 2
        return self._causes

    def sent(self, cause: int) -> None:
        """A message is under way."""
        self._pending[cause] = self._pending.get(cause, 0) + 1

    def handled(self, cause: int, now: float) -> None:
        """A message has been handled, and what it led to was sent."""
        left = self._pending[cause] - 1
        if left:
            self._pending[cause] = left
            return
        del self._pending[cause]
        watched, self._watched = self._watched, []
        for causes, hops, wanted in watched:
            causes.discard(cause)
            if causes:
                self._watched.append((causes, hops, wanted))
            else:
                self._watch(wanted, hops - 1, now)

    def watch(self, wanted: Wanted, now: float) -> None:
        """A broker has taken an interest in."""
        self._watch(wanted, self._hops, now)

    def _watch(self, wanted: Wanted, hops: int, now: float) -> None:
        if self._pending and hops:
            self._watched.append((set(self._pending), hops, wanted))
        else:
            wanted.force_s = now


class Oracle:
    """All publications, and the judgement on a client."""

    def __init__(self, filters: list[Filter], *, is_flooded: bool) -> None:
        self._filters = filters
        self._is_flooded = is_flooded
        self._published: dict[str, list[tuple[float, Event, tuple[int, ...]]]] = {}

    def publish(self, event: Event, now: float) -> None:
        """Note an event, in the order of its source."""
        matching = tuple(place for place, one in enumerate(self._filters) if one.matches(event))
        self._published.setdefault(event.source, []).append((now, event, matching))

    def judge(self, witness: Witness) -> str | None:
        """What is wrong with what a client saw, or None."""
        for source, numbers in witness.seen.items():
            for before, after in itertools.pairwise(numbers):
                if after == before or after in numbers[: numbers.index(before)]:
                    return f"client {witness.client} got event {after} of {source} twice"
                if after < before:
                    return f"client {witness.client} got event {after} of {source} after event {before}"
        ever = {one.interest for one in witness.wanted}
        for source, published in self._published.items():
            seen = set(witness.seen.get(source, ()))
            problem = self._unwanted(witness, source, published, ever, seen)
            if problem is None:
                problem = self._missing(witness, source, published, ever, seen)
            if problem is not None:
                return problem
        return None

    def _unwanted(
        self,
        witness: Witness,
        source: str,
        published: list[tuple[float, Event, tuple[int, ...]]],
        ever: set[int],
        seen: set[int],
    ) -> str | None:
        for _, event, matching in published:
            if event.sequence in seen and not ever.intersection(matching):
                return (
                    f"client {witness.client} got event {event.sequence} of {source}, which it never wanted"
                )
        return None

    def _missing(
        self,
        witness: Witness,
        source: str,
        published: list[tuple[float, Event, tuple[int, ...]]],
        ever: set[int],
        seen: set[int],
    ) -> str | None:
        last = max(seen, default=-1) if witness.is_gone else len(published)
        for wanted in witness.wanted:
            if wanted.ended:
                continue
            is_telling = self._is_flooded and not wanted.again
            others = ever - {wanted.interest}
            is_in_force = False
            for time_s, event, matching in published:
                if event.sequence > last or wanted.interest not in matching:
                    continue
                is_in_force = is_in_force or time_s > wanted.force_s
                if event.sequence in seen:
                    is_in_force = is_in_force or (is_telling and not others.intersection(matching))
                elif is_in_force:
                    return f"client {witness.client} never got event {event.sequence} of {source}"
        return None
