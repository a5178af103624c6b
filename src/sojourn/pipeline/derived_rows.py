"""The tables that follow from a trace, declared as `trace/rows.py` declares what is recorded.

Three layers: what was recorded, what follows from it row by row, and what is concluded. `derived.py` makes
the latter two, `sojourn tables` explains every column of all three from these classes.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from sojourn.trace.rows import TABLES, columns_of

RECORDED, FOLLOWS, CONCLUDED = "recorded", "follows", "concluded"


class Outcome(NamedTuple):
    """What became of an event for a client that expected it, might get it, or got it."""

    client: Annotated[str, "for whom"]
    source: Annotated[str, "who published the event"]
    sequence: Annotated[int, "its number"]
    outcome: Annotated[
        str,
        "delivered; lost; allowed (between asking for an interest and its being in force); unauthorised; or "
        "unrecorded, where a broker ended without sealing what it had noted and nobody can tell",
    ]
    published_s: Annotated[
        float | None, "when it was published; null where nobody knows, or it is unauthorised"
    ]
    first_s: Annotated[float | None, "when its first copy was delivered; null where none was seen"]
    latency_s: Annotated[
        float | None,
        "from one to the other, where it was expected; 0 where clocks differ by up to 0.1 s, null beyond",
    ]
    copies: Annotated[int, "how often it was delivered"]
    out_of_order: Annotated[bool, "whether a later event of its source had come before it"]
    broker: Annotated[str | None, "which broker delivered it first, lost it, or may have delivered it"]
    reason: Annotated[str | None, "why it was lost"]


class HandoffPhases(NamedTuple):
    """A hand-off, how long its phases took, and the messages that it set off."""

    client: Annotated[str, "who moved"]
    from_broker: Annotated[str | None, "from where"]
    to_broker: Annotated[str | None, "where to"]
    cause: Annotated[str | None, "the move's name"]
    left_s: Annotated[float | None, "when it left"]
    away_s: Annotated[float | None, "from leaving to arriving"]
    wait_s: Annotated[float | None, "from arriving to having everything"]
    rebuild_s: Annotated[float | None, "from leaving to having everything"]
    hops: Annotated[int | None, "messages between brokers that it set off; null where they were not recorded"]
    hop_bytes: Annotated[int | None, "their size"]


class Measure(NamedTuple):
    """A number of a run."""

    measure: Annotated[str, "what is measured; times end in _s, shares in _share"]
    value: Annotated[float | None, "the number; null where there is nothing to measure"]


class Mean(NamedTuple):
    """A measure of all runs that differ in their seed alone."""

    study: Annotated[str | None, "the study that the runs are part of"]
    configuration: Annotated[str | None, "what was run, as JSON without the seed"]
    measure: Annotated[str, "what is measured"]
    mean: Annotated[float | None, "its mean over runs"]
    interval: Annotated[float | None, "half the width of the mean's 95% interval; null for a single run"]
    runs: Annotated[int, "how many runs"]


class Neighbour(NamedTuple):
    """An edge of the neighbour graph: clients that left one broker came to another next."""

    at: Annotated[str, "the broker they left"]
    to: Annotated[str, "the broker they came to next"]
    crossings: Annotated[int, "how often"]
    probability: Annotated[float, "of all who left that broker, the share that went there"]
    last_s: Annotated[float | None, "when somebody last left it for there"]


class Occupied(NamedTuple):
    """How many clients were at a broker, and how busy it was."""

    broker: Annotated[str, "which broker"]
    clients_mean: Annotated[float | None, "clients that were there, on average over the run"]
    handled: Annotated[int | None, "messages that it worked off"]
    busy_share: Annotated[float | None, "the share of the run that it was busy"]
    deliveries: Annotated[int | None, "events that it delivered"]


class Described(NamedTuple):
    """A table and where it stands."""

    layer: str
    row: type[Any]
    by_run: bool = True
    """Whether it has a part for each run; else it is over all of them."""


DERIVED: dict[str, Described] = {
    "outcomes": Described(FOLLOWS, Outcome),
    "handoff_phases": Described(FOLLOWS, HandoffPhases),
    "measures": Described(CONCLUDED, Measure),
    "neighbours": Described(CONCLUDED, Neighbour),
    "occupancy": Described(CONCLUDED, Occupied),
    "means": Described(CONCLUDED, Mean, by_run=False),
}
"""In the order in which they are made."""

ALL: dict[str, Described] = {
    **{name: Described(RECORDED, table.row) for name, table in TABLES.items()},
    **DERIVED,
}


def described(table: str) -> dict[str, Any]:
    """Return what there is to say of a table, for people and for the catalogue."""
    about = ALL[table]
    columns = [
        {"column": one.name, "type": one.kind.__name__, "null": one.may_lack, "means": one.meaning}
        for one in columns_of(about.row)
    ]
    run = [{"column": "run_id", "type": "str", "null": False, "means": "the run"}] if about.by_run else []
    first_line = str(about.row.__doc__).strip().splitlines()[0]
    return {"table": table, "layer": about.layer, "is": first_line, "columns": run + columns}
