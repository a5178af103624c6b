"""What a task of the study records: the facts that `measuring.py` computes its measures from.

| table | rows |
|---|---|
| `observations`, of all runs of replicas that were enumerated | how many `runs` there are, and how many are `broken`, by filter and property |
| of random replicas, `at` a displayer | by filter: events `matching`, `missed`, `doubled`, `dropped`; whether it was `not ordered`, `not consistent`, `not complete` |
| of quenching, situations and brokers that share subscriptions | by event by how many subscriptions it was `wanted` (1 for any of them, of quenching) and how often `shown`; by broker events `handled`, subscriptions `compared` and `compared_own` (those of its own displayers), `entries` of its table; by source `comparisons` and `alternatives`; `hops`, `bytes` and `first_bytes` (when a source came) by kind of message; events `sent` by sources |
| of sources that are away, by event that somebody wants | by what is discarded first, whether it was `missed` |
| of queues, by stream of events | whether it is `wrong`, `kept_bytes` and `missed_bytes` |
| of moving displayers, `at` the seed of a run | `expected`, `lost`, `duplicated`, `unwanted` events, `moves`, those `while_old_down`, `handover_bytes`; by event shown `held_s`, the seconds it took |
| of partitions, `at` the seed of a history | `healed_s` and `delivered_s` (not a number: never), `brokers` and `missing` subscriptions in the end, `brokers_before`, `most_brokers`, `merges`, `said`; events `owed`, `lost`, `duplicated`, `unwanted` |
| `runs` | the task |
"""  # noqa: E501  a table

import json
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import pyarrow as pa

from sojourn.edge.enumeration import story, table_of_properties
from sojourn.pipeline.sweep import Outcome
from sojourn.sim.edge.roaming import roam_edge
from sojourn.sim.election.world import heal
from sojourn.studies.architectures import runs_edge
from sojourn.studies.architectures.replicas import replicas
from sojourn.studies.architectures.spec import Fact, Kind, Run
from sojourn.studies.architectures.traced import trace_of
from sojourn.studies.recorded import from_rows
from sojourn.studies.runner import run_id_of

STUDY = "architectures"


class Observed(NamedTuple):
    """What a task came to."""

    facts: list[Fact]
    texts: dict[str, str]
    """What is told in words and measured by nothing."""


def observe(run: Run) -> Observed:
    """Carry out a task."""
    texts: dict[str, str] = {}
    facts = _table1(run, texts) if run.kind == "table1" else KINDS[run.kind](run)
    return Observed([(what, of, at, float(value)) for what, of, at, value in facts], texts)


def record(spec_json: str) -> Outcome:
    """Carry out the task of a JSON text and record what its measures are made of."""
    run = msgspec.json.decode(spec_json, type=Run)
    observed = observe(run)
    return Outcome(observed.texts, _tables(run, observed, spec_json))


def record_traced(spec_json: str) -> Outcome:
    """The same with what was published, wanted and shown, of replicas; other tasks have no trace."""
    run = msgspec.json.decode(spec_json, type=Run)
    observed = observe(run)
    trace = trace_of(run, spec_json) if run.kind == "replicas" else {}
    return Outcome(observed.texts, _tables(run, observed, spec_json) | trace)


def _tables(run: Run, observed: Observed, spec_json: str) -> dict[str, pa.Table]:
    about = ("sim", STUDY, run.seed, spec_json, None, 0.0, 0.0, None)
    return from_rows(run_id_of(spec_json), {"observations": observed.facts, "runs": [about]})


def _table1(run: Run, texts: dict[str, str]) -> Iterator[Fact]:
    """Table 1 from every small run, with a story for each cell."""
    cells = table_of_properties(run.events_max)
    texts["stories"] = json.dumps({f"{cell.filter} {cell.promise}": story(cell) for cell in cells})
    yield "runs", "", 0, cells[0].runs
    for cell in cells:
        yield "broken", f"{cell.filter} {cell.promise}", 0, cell.broken


def _roam(run: Run) -> Iterator[Fact]:
    """A block of runs with moving displayers."""
    assert run.roaming is not None
    for seed in range(run.seed, run.seed + run.block):
        roamed = roam_edge(msgspec.structs.replace(run.roaming, seed=seed))
        for what in ROAMED:
            yield what, "", seed, getattr(roamed, what)
        for held_s in roamed.held_s:
            yield "held_s", "", seed, held_s


def _heal(run: Run) -> Iterator[Fact]:
    """A block of partition histories."""
    assert run.history is not None
    for seed in range(run.seed, run.seed + run.block):
        healed = heal(msgspec.structs.replace(run.history, seed=seed))
        for what in HEALED:
            value = getattr(healed, what)
            yield what, "", seed, math.nan if value is None else value


ROAMED = ("expected", "lost", "duplicated", "unwanted", "moves", "while_old_down", "handover_bytes")
HEALED = (
    "healed_s", "delivered_s", "brokers", "missing", "brokers_before", "most_brokers", "merges", "said",
    "owed", "lost", "duplicated", "unwanted",
)  # fmt: skip

KINDS: dict[Kind, Callable[[Run], Iterator[Fact]]] = {
    "replicas": replicas,
    "quench": runs_edge.quench,
    "offline": runs_edge.offline,
    "scaling": runs_edge.scaling,
    "roam": _roam,
    "queues": runs_edge.queues,
    "heal": _heal,
    "advice": runs_edge.advice,
}
"""Tasks on one kind of thing each; those on Table 1 have texts too."""
