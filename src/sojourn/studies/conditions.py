"""What a claim's check asks for, as conditions: a number, its limit, and the same number seed by seed.

A claim holds where all its conditions do; the verdict's margin is that of the condition which decides. The
number is what the ledger compares, mostly a mean or a ratio of means over seeds; the seeds' own numbers give
its interval. Seed n is the same world in every configuration, so what is compared is compared seed by seed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from sojourn.studies.claims import (
    Claim,
    Margin,
    Measured,
    Reading,
    Verdict,
    closest,
    judge,
    margin_of,
    named,
)


class Condition(NamedTuple):
    """One thing that must be so."""

    what: str
    """In words, for whoever reads that it is not so."""
    value: float
    limit: float
    seeds: Sequence[float] = ()
    """The value in each seed."""
    above: bool = True
    """Whether the value must be above the limit, or below."""
    equal: bool = False
    """Whether it may be the limit."""

    @property
    def holds(self) -> bool:
        """Whether it is so, by the number that the ledger compares."""
        if self.value == self.limit:
            return self.equal
        return self.value > self.limit if self.above else self.value < self.limit

    @property
    def exact(self) -> bool:
        """Whether it may be the limit, and is in every seed: that is no tie, but as it should be."""
        return self.equal and self.value == self.limit and all(seed == self.limit for seed in self.seeds)

    @property
    def margin(self) -> Margin:
        """How far the number lies from the limit."""
        return margin_of(self.seeds, self.limit, self.what, above=self.above, at=self.value)


def broken(conditions: Iterable[Condition]) -> list[str]:
    """What is not so, in words."""
    return [condition.what for condition in conditions if not condition.holds]


def deciding(conditions: Iterable[Condition]) -> Margin | None:
    """The margin of the condition that decides; what is exactly as it should be decides nothing."""
    return closest(condition.margin for condition in conditions if not condition.exact)


def judge_by(
    claim: Claim,
    conditions: Sequence[Condition],
    *,
    measured: Measured,
    evidence: str,
    readings: Iterable[Reading] = (),
    cause: str = "",
    also: bool = True,
) -> Verdict:
    """A claim holds where all its conditions do, and what else is asked for that has no margin (`also`)."""
    return judge(
        claim,
        holds=not broken(conditions) and also,
        margin=deciding(conditions),
        measured=measured,
        evidence=evidence,
        readings=readings,
        cause=cause,
    )


def read_otherwise(
    readings: Mapping[str, str], judged: Callable[[str], Sequence[Condition] | None]
) -> list[Reading]:
    """The verdict under each reading that was run, by its name; `judged` gives None where it has no part."""
    found = []
    for key, name in readings.items():
        try:
            conditions = judged(key)
        except (KeyError, ValueError, ZeroDivisionError):
            continue  # its runs failed, or are not part of this scale
        if conditions is not None:
            found.append(read_as(name, conditions))
    return found


def read_as(name: str, conditions: Sequence[Condition]) -> Reading:
    """The verdict under one reading, with what breaks it and whether it is a tie."""
    not_so = broken(conditions)
    margin = deciding(conditions)
    shown = "; ".join(not_so[:3]) + (f"; and {len(not_so) - 3} more" if len(not_so) > 3 else "")
    tie = "a tie" if margin is not None and margin.within else ""
    return Reading(
        name=name, verdict=named(holds=not not_so), note=", ".join(part for part in (shown, tie) if part)
    )
