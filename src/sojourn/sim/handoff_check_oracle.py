"""What each client should have got, told from what was published and wanted alone.

The oracle knows nothing of brokers. It asks `Filter.matches` of every publication against the interests that
were in force, and compares with what the client's own eyes saw. Where events are routed by content, an
interest comes into force when the last broker has heard of it, and nobody knows the instant; so for every
interest there is one rule that needs no clock and one that does:

- once an event came that only this interest lets in, all later ones of that source that it matches must come;
- all events published a good while after a broker took the interest in must come, whatever came before.
"""

import itertools
from dataclasses import dataclass, field

from sojourn.interest.events import Event
from sojourn.interest.filters import Filter

SETTLED_S = 30.0
"""After so long an interest is in force everywhere; no broker stalls and no link delays for that long."""


@dataclass(slots=True)
class Wanted:
    """One interest of a client, from when it asked for it until it asked for it no more."""

    interest: int
    taken_s: float | None = None
    """When a broker first took it in."""
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

    def taken(self, interests: tuple[int, ...], now: float) -> None:
        """A broker took in a connection with these interests."""
        for one in self.wanted:
            if not one.ended and one.taken_s is None and one.interest in interests:
                one.taken_s = now


class Oracle:
    """All publications, and the judgement on a client."""

    def __init__(self, filters: list[Filter]) -> None:
        self._filters = filters
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
            if wanted.ended or wanted.taken_s is None:
                continue
            others = ever - {wanted.interest}
            is_in_force = False
            for time_s, event, matching in published:
                if event.sequence > last or wanted.interest not in matching:
                    continue
                is_in_force = is_in_force or time_s > wanted.taken_s + SETTLED_S
                if event.sequence in seen:
                    is_in_force = is_in_force or not (wanted.again or others.intersection(matching))
                elif is_in_force:
                    return f"client {witness.client} never got event {event.sequence} of {source}"
        return None
