"""The tables of a trace, declared once: a class a table, a field a column, with what it means.

Everything else that knows columns follows from here: the files' Arrow types (`columns.py`), Spark's schemas
(`pipeline/schemas.py`), what simulated runs record (`sim/recorder.py`) and the pages of `sojourn tables`.
`FACTS` are what runs of studies record for their measures, many of them and small; traces on disk have none.

Rules for all tables:
- Times are seconds since the run's start, by one clock a run; only `runs.started_at` is a moment.
- Clients, sources, brokers and interests go by name.
- A *cause* is the move that set something off: `move-N` in a simulated run, CLIENT@SECONDS (who came, and
  when) in a live one; empty where no move did.
- A field that may be None says so by its type; one with a default is younger than some traces, which are read
  as if they had it.
- `run_id` is in the path of a file and in no file, so that one run can be read alone.

The order of tables is part of the contract with whoever reads along: what a delivery is judged by (clients,
interests, publications) is sealed before it, and `runs` comes last, so that a reader who sees the end of a
run sees everything of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints


class Client(NamedTuple):
    """Somebody who publishes or subscribes."""

    client: Annotated[str, "its name"]
    attributes_json: Annotated[str | None, "what it says of itself, as JSON; policies of events go by it"]


class Interest(NamedTuple):
    """What a client wants, and when; of rows that differ in `from_s` or `to_s` alone the later one counts."""

    client: Annotated[str, "who wants it"]
    interest: Annotated[str | None, "its name among the client's interests"]
    filter: Annotated[str, "which events, as a filter"]
    from_s: Annotated[float, "when it came into force: what is published from then on must be delivered"]
    to_s: Annotated[float | None, "when it ended; null while in force"]
    asked_s: Annotated[
        float | None,
        "when it was asked for: until it is in force, a delivery may come and need not; null: just then",
    ] = None


class Sojourn(NamedTuple):
    """A client's stay at one broker; of a live run it may be told again when it ends."""

    client: Annotated[str, "who stays"]
    broker: Annotated[str | None, "where"]
    from_s: Annotated[float, "when the stay began"]
    to_s: Annotated[float | None, "when it ended; null while it lasts"]


class Publication(NamedTuple):
    """An event, as the broker took it that it was published at."""

    source: Annotated[str, "who published it"]
    sequence: Annotated[int, "its number among the source's events, ascending"]
    time_s: Annotated[float, "when it was published"]
    broker: Annotated[str | None, "where"]
    topic: Annotated[str | None, "its topic, if it has one"]
    attributes_json: Annotated[str | None, "its attributes, as JSON"]
    policy: Annotated[str | None, "who may get it, as a filter over clients' attributes; null: everybody"]
    bytes: Annotated[int | None, "its size"]


class Delivery(NamedTuple):
    """An event that a client got; a second copy is a second row."""

    client: Annotated[str, "who got it"]
    source: Annotated[str, "who had published it"]
    sequence: Annotated[int, "its number"]
    time_s: Annotated[float, "when it arrived, or was acknowledged"]
    broker: Annotated[str | None, "the broker it came from"]


class Drop(NamedTuple):
    """An event that a broker gave up for a client."""

    client: Annotated[str, "who will not get it; empty where a whole store was lost"]
    source: Annotated[str, "who had published it; the broker, where a whole store was lost"]
    sequence: Annotated[int, "its number; how many events waited, where a whole store was lost"]
    time_s: Annotated[float, "when it was given up"]
    broker: Annotated[str | None, "by whom"]
    reason: Annotated[str | None, "queue_full, expired, store_lost, forgotten or another word"]


class Handoff(NamedTuple):
    """A client's move from one broker to another."""

    client: Annotated[str, "who moved"]
    from_broker: Annotated[str | None, "from where"]
    to_broker: Annotated[str | None, "where to"]
    left_s: Annotated[float | None, "when it left"]
    arrived_s: Annotated[float | None, "when it arrived"]
    ready_s: Annotated[float | None, "when all was rebuilt or handed over; null if that was not seen"]
    cause: Annotated[str | None, "this move's name, under which other tables tell of it"]
    how: Annotated[str | None, "in a live run, how it was handed over"] = None


class Hop(NamedTuple):
    """A message on one link; written only where single hops are asked for."""

    time_s: Annotated[float, "when it was sent"]
    sender: Annotated[str, "the broker that sent it"]
    receiver: Annotated[str, "the broker it was sent to"]
    kind: Annotated[str, "what it says"]
    bytes: Annotated[int | None, "its size"]
    cause: Annotated[str | None, "the move that set it off; empty where none did"]
    phase: Annotated[str | None, "build or teardown, where a tree is rebuilt"] = None


class HopCount(NamedTuple):
    """Messages on links between brokers, summed up."""

    kind: Annotated[str, "what they say"]
    cause: Annotated[str | None, "the move that set them off; empty where none did"]
    hops: Annotated[int, "messages, once for every link they took"]
    bytes: Annotated[int | None, "their size, likewise"]
    phase: Annotated[str | None, "build or teardown, where a tree is rebuilt"] = None


class Load(NamedTuple):
    """How busy a broker was; in a live run for a while, and all rows of a broker add up."""

    broker: Annotated[str, "which broker"]
    handled: Annotated[int | None, "messages that it worked off"]
    busy_s: Annotated[float | None, "how long that took it"]
    queue_max: Annotated[int | None, "the most messages that waited at once"]
    queue_mean: Annotated[float | None, "messages that waited, on average over time"]


class Run(NamedTuple):
    """The run itself; sealed when it has ended."""

    world: Annotated[str | None, "sim or live"]
    study: Annotated[str | None, "the study that it is part of"]
    seed: Annotated[int | None, "what its chance came from"]
    spec_json: Annotated[str | None, "what was run, as JSON"]
    started_at: Annotated[datetime | None, "the moment that a live run's times count from"]
    duration_s: Annotated[float | None, "how long it was; null while it goes on"]
    warmup_s: Annotated[
        float | None, "how much of its begin the run itself did not measure; tables made from it do"
    ]
    error: Annotated[str | None, "why it failed, if it did"]


class Rebuilding(NamedTuple):
    """A publisher's move within the measured time of a simulated run, and what rebuilding its trees took."""

    cause: Annotated[str, "the move's name, as in handoffs"]
    client: Annotated[str, "who moved"]
    from_broker: Annotated[str, "from where"]
    to_broker: Annotated[str, "where to"]
    left_s: Annotated[float, "when it left"]
    arrived_s: Annotated[float, "when it arrived"]
    to_own_proxy: Annotated[bool, "whether it came to a proxy of its own, where no tree is built"]
    rebuild_s: Annotated[float, "from the new broker's first act until the tree stood; 0 without work"]
    visible_wait_s: Annotated[float, "from arriving until the tree stood; 0 if it stood by then"]
    teardown_s: Annotated[float, "how long the old tree was being taken down"]
    finished: Annotated[bool, "whether all that was over when the run ended; else times are lower bounds"]
    advertise: Annotated[int, "advertisements that it set off, once for every link they took"]
    unadvertise: Annotated[int, "withdrawals of advertisements, likewise"]
    subscribe: Annotated[int, "subscriptions, likewise"]
    unsubscribe: Annotated[int, "withdrawals of subscriptions, likewise"]
    prefetch: Annotated[int, "notices to the next broker, likewise"]


class Arrived(NamedTuple):
    """A subscriber that asked another broker to serve it in the measured time of a simulated run."""

    client: Annotated[str, "who moved"]
    from_broker: Annotated[str | None, "its broker before; null where it came back and was sent on"]
    to_broker: Annotated[str, "whom it asked"]
    left_s: Annotated[float | None, "when it had left"]
    arrived_s: Annotated[float, "when it asked"]
    first_s: Annotated[float | None, "when its first event came, after it had moved; null: none came"]
    ready_s: Annotated[float | None, "when everything had been handed over; null: that was not seen"]
    how: Annotated[str | None, "where from: copy (an active one waited) or fetched from the old broker"]
    cause: Annotated[str | None, "this move's name, as in handoffs"]


class Window(NamedTuple):
    """How often something happened in a while, where single rows would be too many."""

    what: Annotated[str, "what happened; each study's guide to its measures says which there are"]
    of: Annotated[str, "at which broker, by what kind of message or for what reason; empty: not told apart"]
    from_s: Annotated[float, "when the while began"]
    to_s: Annotated[float, "when it ended"]
    times: Annotated[int, "how often"]
    total: Annotated[float | None, "the seconds or bytes of all of them together; null: not told"] = None


class Observation(NamedTuple):
    """A number of a whole thing that was looked at: a layout, a history, a network at one moment."""

    what: Annotated[str, "what the number is; each study's guide to its measures says which there are"]
    of: Annotated[str, "by which algorithm, or at which broker; empty: not told apart"]
    at: Annotated[int, "which layout, history or moment: its number, ascending"]
    value: Annotated[float | None, "the number; null or not a number where it could not be found"]


class Table(NamedTuple):
    """A table of a trace."""

    row: type[Any]
    keys: tuple[str, ...] = ()
    """Columns without which a row says nothing; such rows are left out by readers, and counted."""
    named_by: tuple[str, ...] = ()
    """Columns that name a row within its run; rows with the same are about the same thing."""
    refers_to: Mapping[str, str] = {}
    """By column, the table that has a row of that name; by columns `source, sequence` an event."""


EVENT = "source, sequence"

TABLES: dict[str, Table] = {
    "clients": Table(Client, ("client",), ("client",)),
    "interests": Table(
        Interest,
        ("client", "filter", "from_s"),
        ("client", "interest", "filter", "asked_s"),
        {"client": "clients"},
    ),
    "sojourns": Table(Sojourn, ("client", "from_s"), ("client", "broker", "from_s"), {"client": "clients"}),
    "publications": Table(Publication, ("source", "sequence", "time_s"), ("source", "sequence")),
    "deliveries": Table(
        Delivery,
        ("client", "source", "sequence", "time_s"),
        (),
        {"client": "clients", EVENT: "publications"},
    ),
    "drops": Table(Drop, ("client", "source", "sequence")),
    "handoffs": Table(Handoff, ("client",), (), {"client": "clients"}),
    "messages": Table(Hop),
    "message_counts": Table(HopCount),
    "broker_load": Table(Load),
    "runs": Table(Run),
}


FACTS: dict[str, Table] = {
    "rebuildings": Table(Rebuilding, named_by=("cause",)),
    "arrivals": Table(Arrived),
    "windows": Table(Window),
    "observations": Table(Observation),
}
"""What runs of studies record beside tables of a trace: facts that their measures are computed from."""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: type[Any]
    """str, int, float or datetime."""
    may_lack: bool
    """Whether it may be null."""
    meaning: str
    is_young: bool
    """Whether there are traces without it."""


def columns_of(row: type[Any]) -> tuple[Column, ...]:
    """Return the columns that a class of rows declares."""
    found = []
    for name, hint in get_type_hints(row, include_extras=True).items():
        of, meaning = get_args(hint)
        kinds = get_args(of) or (of,)
        (kind,) = (one for one in kinds if one is not NoneType)
        found.append(Column(name, kind, NoneType in kinds, meaning, name in row._field_defaults))
    return tuple(found)


def names_of(table: str) -> tuple[str, ...]:
    """Return the names of a table's columns, as its files have them."""
    names: tuple[str, ...] = (TABLES | FACTS)[table].row._fields
    return names


def young_columns(table: str) -> frozenset[str]:
    """Return the columns that there are traces without."""
    return frozenset(TABLES[table].row._field_defaults)
