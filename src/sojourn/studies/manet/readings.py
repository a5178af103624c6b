"""What paper 004 leaves open, as named readings that stand beside each other.

The study's own reading follows the text where it settles something: section 3.1 drops a packet that has
walked round its void, section 3.5 adds nodes in the proximity of a place to the nearest one. Everything else
here is open. A reading changes some schemes and leaves the others as they are; each claim is judged under
every reading by the same conditions as under ours, at the speeds that a reading was run at.
"""

from typing import Any, NamedTuple

from sojourn.sim.manet.scenario import SCHEMES
from sojourn.studies.manet.parameters import READINGS, SIX
from sojourn.studies.manet.table import Points, Table

OURS = ""
"""The key of the reading that the study is judged by."""


class Lines(NamedTuple):
    """All schemes under one reading."""

    table: Table
    reading: str

    def named(self, scenario: str, scheme: str) -> str:
        """The experiment that has a scheme's runs under this reading."""
        touched = self.reading and scheme in READINGS[self.reading].schemes
        return scenario + self.reading if touched else scenario

    def lines(self, scenario: str, measure: str) -> dict[str, Points]:
        """A measure over speed, of each of the six schemes, at the speeds that all of them have."""
        found = {scheme: self.table.line(self.named(scenario, scheme), scheme, measure) for scheme in SIX}
        if not self.reading:
            return found
        common = set.intersection(*(set(points) for points in found.values()))
        return {scheme: {x: y for x, y in points.items() if x in common} for scheme, points in found.items()}

    def seeds(self, scenario: str, scheme: str, measure: str, x: float) -> dict[int, float]:
        """One point, seed by seed."""
        return self.table.by_seed(self.named(scenario, scheme), scheme, measure, x)

    def mean(self, scenario: str, scheme: str, measure: str) -> float:
        """The mean of a line over the speeds that are compared."""
        points = self.lines(scenario, measure)[scheme]
        return sum(points.values()) / len(points)

    def mean_seeds(self, scenario: str, scheme: str, measure: str) -> dict[int, float]:
        """The same, seed by seed."""
        rows = [self.seeds(scenario, scheme, measure, x) for x in self.lines(scenario, measure)[scheme]]
        common = set.intersection(*(set(row) for row in rows))
        return {seed: sum(row[seed] for row in rows) / len(rows) for seed in sorted(common)}


def names() -> dict[str, str]:
    """Each other reading's key and what it says."""
    return {key: reading.title for key, reading in READINGS.items()}


def changes_of(reading: str, scenario: dict[str, Any]) -> dict[str, Any]:
    """What a reading sets, where it depends on the scenario."""
    changes = dict(READINGS[reading].changes)
    if changes.get("message_bytes") == "event":
        changes["message_bytes"] = scenario["event_bytes"]
    return changes


def paired(over: dict[int, float], under: dict[int, float]) -> list[float]:
    """One number divided by another, seed by seed."""
    return [over[seed] / under[seed] for seed in sorted(over.keys() & under.keys()) if under[seed]]


def apart(one: dict[int, float], other: dict[int, float]) -> list[float]:
    """One number less another, seed by seed."""
    return [one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())]


AODV = tuple(name for name in SIX if not SCHEMES[name].geographic)
GPSR = tuple(name for name in SIX if SCHEMES[name].geographic)
NO_MAP = ("r-gpsr", "b-gpsr")
