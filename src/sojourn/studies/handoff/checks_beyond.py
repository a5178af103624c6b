"""Judges the races that paper 001 describes, by enumeration, and what it leaves to future work."""

from functools import cache

from sojourn.sim.handoff_check.races import RaceFound, follow_all_races
from sojourn.studies.cited import ENUMERATED, stated
from sojourn.studies.claims import Claim, Number, Verdict, judge
from sojourn.studies.means import Table

Measured = dict[str, Number]

COMPARED = (
    "throughput",
    "loss_percent",
    "handoff p50",
    "duplicates_percent",
    "utilisation_max",
    "present_max",
)


@cache
def _every_interleaving() -> list[RaceFound]:
    return follow_all_races()


def races(claim: Claim, _table: Table) -> Verdict:
    """Every interleaving of the four races, followed on the broker cores themselves."""
    found = _every_interleaving()
    failures = [f"{race.name}: {race.failure}" for race in found if race.failure is not None]
    counts = {f"{race.name}: interleavings": race.interleavings for race in found}
    counts |= {f"{race.name}: states": race.states for race in found}
    total = sum(race.interleavings for race in found)
    return judge(
        claim,
        holds=not failures,
        measured={name: stated(count, ENUMERATED) for name, count in counts.items()},
        evidence=f"{total:,} interleavings of {len(found)} races ("
        + ", ".join(f"{race.name} {race.interleavings:,}" for race in found)
        + "): "
        + (
            "; ".join(failures)
            if failures
            else "each ends with the copies that the text demands, none unclaimed"
        )
        + ".",
    )


def future_load(claim: Claim, table: Table) -> Verdict:
    """Load-aware placement, and both sides moving."""
    measured: Measured = {}
    own, load = _line(table, "placement", "own", "NBR"), _line(table, "placement", "load", "NBR")
    both = {
        (series, routing): _line(table, "both", series, routing)
        for routing in ("flooding", "content")
        for series in ("still", "moving")
    }
    for name, line in {
        "placed where they are": own,
        "placed by load": load,
        **{f"publisher {series}, {routing}": line for (series, routing), line in both.items()},
    }.items():
        measured |= {f"{name}: {measure}": value for measure, value in line.items()}
    works = all(
        line["throughput"] > 0 and line["duplicates_percent"] == 0 for line in (own, load, *both.values())
    )
    return judge(
        claim,
        holds=works and load["present_max"] < own["present_max"],
        measured=measured,
        evidence="Placement by load at 200 subscribers, neighbour mobility: the fullest broker has "
        f"{load['present_max']:.1f} instead of {own['present_max']:.1f} subscribers, throughput is "
        f"{load['throughput']:.0f} instead of {own['throughput']:.0f} msgs/s, loss "
        f"{load['loss_percent']:.2f} instead of {own['loss_percent']:.2f}%, the median hand-off "
        f"{load['handoff p50']:.0f} instead of {own['handoff p50']:.0f} ms. A publisher that roams as well, "
        "100 subscribers: over flooding "
        + _compared(both["still", "flooding"], both["moving", "flooding"])
        + "; over content routing "
        + _compared(both["still", "content"], both["moving", "content"])
        + ". No message was doubled in any of these runs.",
    )


def _line(table: Table, experiment: str, series: str, variant: str) -> dict[str, float]:
    found = {}
    for measure in COMPARED:
        points = table.points(experiment, series, variant, measure)
        found[measure] = points[max(points)]
    return found


def _compared(still: dict[str, float], moving: dict[str, float]) -> str:
    return (
        f"{moving['throughput']:.0f} msgs/s (still: {still['throughput']:.0f}), loss "
        f"{moving['loss_percent']:.2f}% ({still['loss_percent']:.2f}), median hand-off "
        f"{moving['handoff p50']:.0f} ms ({still['handoff p50']:.0f})"
    )
