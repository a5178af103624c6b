"""Which architecture when: one row per situation, every cell measured, the advice a comparison of the cells.

The rule behind the advice. One broker sends nothing between brokers, so where one server can bear the load
(its comparisons for each event) it is the cheapest; quenching pays there if it lowers the bytes on sources'
links. Where it cannot, several brokers share the load, and the one that sends fewer bytes between them,
interests and hand-overs included, is advised. Where two differ by less than `NEAR`, either will do.
"""

from typing import NamedTuple

from sojourn.studies.architectures.situations import ARCHITECTURES, SITUATIONS, Situation
from sojourn.studies.architectures.table import Table

NEAR = 0.05

COLUMNS = (
    "situation",
    "if one server bears the load",
    "if it does not",
    "brokers",
    "subscriptions",
    "an event matches, of them",
    "matches nobody",
    "changes an event",
    "moves an event",
    "one broker: comparisons an event",
    "bytes at sources: plain / quenched",
    "bytes between brokers: broadcast / multicast",
    "busiest broker's comparisons: broadcast / multicast",
    "most subscriptions known: broadcast / multicast",
)


class Measured(NamedTuple):
    """What each architecture cost in a situation, by measure."""

    situation: Situation
    values: dict[str, dict[str, float]]

    def of(self, architecture: str, measure: str) -> float:
        """One number."""
        return self.values[architecture][measure]


def measured_situations(table: Table) -> list[Measured]:
    """All situations, each under every architecture; KeyError where runs are missing."""
    measures = (
        "source_bytes",
        "broker_bytes",
        "busiest_compared",
        "entries_max",
        "unmatched_share",
        "match_share",
    )
    lines = {
        (name, measure): table.line("advice", name, measure) for name in ARCHITECTURES for measure in measures
    }
    return [
        Measured(
            situation,
            {
                name: {measure: lines[name, measure][float(place)] for measure in measures}
                for name in ARCHITECTURES
            },
        )
        for place, situation in enumerate(SITUATIONS)
        if float(place) in lines["central", "source_bytes"]
    ]


def rows(table: Table) -> list[list[str]]:
    """The table's rows as texts."""
    return [_row(measured) for measured in measured_situations(table)]


def _row(measured: Measured) -> list[str]:
    situation, of = measured.situation, measured.of

    def pair(measure: str, one: str = "broadcast", other: str = "multicast") -> str:
        return f"{of(one, measure):,.0f} / {of(other, measure):,.0f}"

    return [
        situation.name,
        one_server(measured),
        several_servers(measured),
        str(situation.brokers),
        str(situation.subscriptions),
        f"{of('central', 'match_share'):.1%}",
        f"{of('central', 'unmatched_share'):.0%}",
        f"{situation.churn:g}",
        f"{situation.moves:g}",
        f"{of('central', 'busiest_compared'):.0f}",
        pair("source_bytes", "central", "central, quenched"),
        pair("broker_bytes"),
        pair("busiest_compared"),
        pair("entries_max"),
    ]


def one_server(measured: Measured) -> str:
    """Central, with or without quenching."""
    return _cheaper(measured, "source_bytes", "central", "central, quenched", "central, quenched or not")


def several_servers(measured: Measured) -> str:
    """The distributed architecture that sends least between brokers, and whether its sources are quenched."""
    chosen = _cheaper(measured, "broker_bytes", "broadcast", "multicast", "broadcast or multicast")
    if chosen != "multicast":
        return chosen
    return _cheaper(
        measured, "source_bytes", "multicast", "multicast, quenched", "multicast, quenched or not"
    )


def _cheaper(measured: Measured, measure: str, one: str, other: str, either: str) -> str:
    ours, theirs = measured.of(one, measure), measured.of(other, measure)
    if abs(ours - theirs) <= NEAR * max(ours, theirs):
        return either
    return one if ours < theirs else other
