"""The architectures study: its grid, its tasks, and checks held against tables that do and do not agree."""

import json
import math
from typing import Any

import msgspec
import pandas as pd
import pytest

from sojourn.edge.queues import Queued, QueuePolicy
from sojourn.errors import SojournError
from sojourn.interest.events import Event
from sojourn.sim.edge.roaming import EdgeRoaming
from sojourn.sim.edge.workload import Workload
from sojourn.sim.election.history import History
from sojourn.studies import means
from sojourn.studies.architectures import advice, checks, recording
from sojourn.studies.architectures.grid import PLAIN, grid
from sojourn.studies.architectures.parameters import SCALES
from sojourn.studies.architectures.quenching import break_even
from sojourn.studies.architectures.queue_oracle import oracle_choice
from sojourn.studies.architectures.runs import KINDS, Seen, simulate
from sojourn.studies.architectures.situations import ARCHITECTURES, SITUATIONS
from sojourn.studies.architectures.spec import Run
from sojourn.studies.architectures.study import STUDY
from sojourn.studies.architectures.table import Table
from sojourn.studies.claims import claims_of
from sojourn.studies.runner import Row, RunSpec, run_grid

SMALL = {
    "table1": Run(kind="table1", events_max=2),
    "replicas": Run(kind="replicas", brokers=2, sources=2, events=40, loss=0.2, workload=Workload(width=900)),
    "quench": Run(kind="quench", quench=True, subscriptions=8, sources=2, events=10, churn=0.5),
    "offline": Run(kind="offline", quench=True, subscriptions=5, events=30, buffer_events=10, new_share=0.4),
    "scaling": Run(kind="scaling", architecture="multicast", brokers=4, subscriptions=10, events=10),
    "roam": Run(kind="roam", block=1, roaming=EdgeRoaming(duration_s=20.0)),
    "queues": Run(kind="queues", policy="last per key", events=40, streams=2),
    "heal": Run(kind="heal", block=1, history=History(partitions=1)),
    "advice": Run(
        kind="advice", architecture="multicast", quench=True, brokers=4, subscriptions=8, sources=2,
        events=10, churn=0.5, moves=0.5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_task_gives_the_same_twice(kind: str) -> None:
    """A specification's text is all that a task depends on, and its row is flat."""
    text = msgspec.json.encode(SMALL[kind]).decode()
    first = simulate(text)
    assert first == simulate(text)
    assert all(isinstance(value, str | float | int) for value in first.values())


def test_only_replicas_leave_a_trace() -> None:
    """Every task records facts; those of replicas also what was published and shown."""
    traced = {
        kind: set(recording.record_traced(msgspec.json.encode(SMALL[kind]).decode()).tables)
        for kind in ("replicas", "queues")
    }
    assert traced["queues"] == {"observations", "runs"}
    assert traced["replicas"] > {"observations", "runs", "publications", "deliveries"}


def test_histories_that_did_not_heal_have_no_times() -> None:
    """Times are of histories that ended with one broker that has everything; a task may have none."""
    ends: dict[str, list[float]] = {
        "healed_s": [2.0, 3.0, math.nan, 4.0], "delivered_s": [5.0, math.nan, math.nan, 6.0],
        "brokers": [1, 1, 2, 1], "missing": [0, 0, 0, 1], "brokers_before": [2, 1, 2, 2],
    }  # fmt: skip
    facts = [
        (what, "", at, float(value))
        for what in recording.HEALED
        for at, value in enumerate(ends.get(what, [0.0] * 4))
    ]
    row = KINDS["heal"](SMALL["heal"], Seen(facts))
    assert (row["histories"], row["one_broker"]) == (4, 2)
    assert (row["healed_s"], row["delivered_s"]) == ("[2.0]", "[5.0]")
    assert "healed_s" not in KINDS["heal"](SMALL["heal"], Seen([fact for fact in facts if fact[2] == 2]))
    table = _table({("refresh", "", 1.0): {"healed_s": "[2.0]"}, ("refresh", "", 2.0): {"lost": 0}})
    assert [len(table.listed("healed_s", "refresh", "", x).given) for x in (1.0, 2.0)] == [1, 0]


def test_grid_asks_for_what_the_issue_names() -> None:
    """A thousand histories, five events enumerated, each run named once."""
    specs = grid(SCALES["paper"])
    runs = {spec.run_id: msgspec.json.decode(spec.spec_json, type=Run) for spec in specs}
    assert sum(run.block for run in runs.values() if run.kind == "heal") >= 1000
    assert [run.events_max for run in runs.values() if run.kind == "table1"] == [5]
    assert {spec.experiment.split()[0] for spec in specs} == {
        "table1", "quench", "offline", "brokers", "selectivity", "queues", "replicas", "advice", "roam",
        "heal", "refresh",
    }  # fmt: skip


def _table(rows: dict[tuple[str, str, float], Row]) -> Table:
    specs, found = [], []
    for (experiment, series, x), row in rows.items():
        run_id = f"{experiment} {series} {x}"
        labels = {"run_id": run_id, "experiment": experiment, "series": series, "computations": "none"}
        specs.append(RunSpec(**labels, axis="x", x=x, seed=1, cost=1.0, spec_json="{}"))
        found.append({"run_id": run_id, "error": None, **row})
    long: list[dict[str, Any]] = [
        {
            "experiment": key[0], "series": key[1], "computations": "none", "x": key[2], "measure": name,
            "mean": float(value), "interval": 0.0,
        }
        for key, row in rows.items() for name, value in row.items() if isinstance(value, int | float)
    ]  # fmt: skip
    return Table(means.Table(pd.DataFrame(long)), specs, found)


def _verdict(claim: str, table: Table) -> str:
    return STUDY.checks[claim](claims_of("architectures")[claim], table).verdict


def _cells(**turned: bool) -> Row:
    row: Row = {"stories": json.dumps({f"{name} {each}": "A story." for name, each in checks.TABLE_1})}
    broken = {
        f"broken {name} {each}": int(not turned.get(f"{name}_{each}", tick))
        for (name, each), tick in checks.TABLE_1.items()
    }
    return row | broken


@pytest.mark.parametrize(
    ("turned", "broken", "verdict"),
    [
        ({}, {}, "holds"),
        ({"ordered_complete": True}, {}, "differs"),
        ({"duplicates_complete": False}, {}, "differs"),
        ({}, {"ordered not ordered": 1}, "differs"),
        ({}, {"none not ordered": 9}, "holds"),
    ],
)
def test_table_1_needs_every_cell(turned: dict[str, bool], broken: dict[str, int], verdict: str) -> None:
    """A cell that comes out otherwise, or a tick that breaks at random, and the claim differs."""
    counts: Row = {f"{name} not {each}": 0 for name, each in checks.TABLE_1}
    row: Row = {**counts, **broken, "clients": 3}
    table = _table(
        {
            ("table1", "", 5.0): _cells(**turned) | {"runs": 10},
            ("replicas", "2 brokers", 0.1): row,
            ("replicas", "3 brokers", 0.1): {**counts, "clients": 3},
        }
    )
    assert _verdict("D-table1", table) == verdict


def _quench(bytes_: dict[tuple[float, float], float]) -> Table:
    rows: dict[tuple[str, str, float], Row] = {}
    for (churn, share), value in bytes_.items():
        for series in (PLAIN, "eager", "lazy", "four alternatives"):
            rows[f"quench {churn:g}", series, share] = {
                "bytes_per_event": 100.0 if series == PLAIN else value,
                "comparisons_per_event": 5.0,
                "unmatched_share": share,
                "alternatives": 10.0,
            }
    return _table(rows)


def test_quenching_must_both_save_and_cost() -> None:
    """Cheaper with much unwanted, dearer with churn and little unwanted; a line between that rises."""
    good = {(0.0, 0.1): 90.0, (0.0, 0.9): 10.0, (3.0, 0.1): 130.0, (3.0, 0.9): 50.0}
    assert _verdict("D-quench-tradeoff", _quench(good)) == "holds"
    assert _verdict("D-quench-tradeoff", _quench({**good, (3.0, 0.1): 80.0})) == "differs"
    assert _verdict("D-quench-tradeoff", _quench({**good, (0.0, 0.9): 110.0})) == "differs"
    assert break_even([(0.1, 1.2), (0.5, 0.8)]) == pytest.approx(0.3)
    assert break_even([(0.1, 0.9), (0.5, 0.5)]) == pytest.approx(0.0)
    assert break_even([(0.1, 1.5), (0.9, 1.1)]) == float("inf")


@pytest.mark.parametrize(
    ("quench", "enough", "verdict"), [(5, 0, "holds"), (20, 0, "differs"), (5, 1, "differs")]
)
def test_offline_is_judged_point_by_point(quench: int, enough: int, verdict: str) -> None:
    """One buffer at which quench-first is no better, or a loss with room for all, and the claim differs."""
    rows: dict[tuple[str, str, float], Row] = {
        ("offline", "0% new", 30.0): {"lost_oldest": 20, "lost_quench": quench, "interesting": 40},
        ("offline", "0% new", 300.0): {"lost_oldest": 0, "lost_quench": enough, "interesting": 40},
    }
    assert _verdict("D-quench-offline", _table(rows)) == verdict


def test_missing_runs_leave_every_claim_open() -> None:
    """Without runs nothing is judged, and nothing is drawn."""
    verdicts = STUDY.judge_all(_table({("x", "", 0.0): {"lost": 1}}), SCALES["paper"])
    assert {verdict.verdict for verdict in verdicts} == {"not yet"}
    assert [verdict.id for verdict in verdicts] == list(claims_of("architectures"))


def test_advice_follows_the_numbers() -> None:
    """The cheaper one is advised: quenched or not, broadcast or multicast."""
    base: Row = {"unmatched_share": 0.5, "match_share": 0.1, "busiest_compared": 5, "entries_max": 5}
    rows: dict[tuple[str, str, float], Row] = {
        ("advice", name, 0.0): {**base, "source_bytes": 100 + 50 * ("quenched" in name), "broker_bytes": cost}
        for name, cost in zip(ARCHITECTURES, (0, 0, 500, 700, 700), strict=True)
    }
    (found,) = advice.measured_situations(_table(rows))
    assert found.situation == SITUATIONS[0]
    assert (advice.one_server(found), advice.several_servers(found)) == ("central", "broadcast")
    rows["advice", "multicast", 0.0] = {**base, "source_bytes": 100, "broker_bytes": 100}
    rows["advice", "multicast, quenched", 0.0] = {**base, "source_bytes": 50, "broker_bytes": 100}
    (found,) = advice.measured_situations(_table(rows))
    assert advice.several_servers(found) == "multicast, quenched"
    assert len(advice.rows(_table(rows))[0]) == len(advice.COLUMNS)
    rows["advice", "broadcast", 0.0] = {**base, "source_bytes": 100, "broker_bytes": 103}
    (found,) = advice.measured_situations(_table(rows))
    assert advice.several_servers(found) == "broadcast or multicast"


def test_an_informed_reader_reads_the_policy() -> None:
    """Expiry, last per key, extreme and budget by hand."""
    items = [
        Queued(Event({"area": area, "value": value}, sequence=n), float(n), 100)
        for n, (area, value) in enumerate([("a", 5), ("b", 9), ("a", 7), ("b", 1)])
    ]

    def kept(policy: QueuePolicy) -> list[int]:
        return [item.event.sequence for item in oracle_choice(policy, items, 3.0)]

    assert kept(QueuePolicy(expiry_s=1.5)) == [2, 3]
    assert kept(QueuePolicy(keep="last", key="area")) == [2, 3]
    assert kept(QueuePolicy(keep="highest", value="value")) == [1]
    assert kept(QueuePolicy(keep="lowest", value="value", key="area")) == [0, 3]
    assert kept(QueuePolicy(reconnect_bytes_max=250)) == [2, 3]


@pytest.mark.slow
def test_the_smoke_study_end_to_end() -> None:
    """The smallest scale runs, judges nothing, and draws and tabulates everything."""
    outcome = STUDY.run(SCALES["smoke"], None, lambda specs: run_grid(specs, simulate, workers=1))
    assert outcome.failed == 0
    assert {verdict.verdict for verdict in outcome.verdicts} == {"not yet"}
    assert all(verdict.evidence.startswith("Measured at") for verdict in outcome.verdicts)
    assert len(STUDY.charts(outcome)) == len(STUDY.figures)
    assert [table.anchor for table in STUDY.tables(outcome)] == ["table-1", "which-when"]
    assert "hold" in STUDY.summary(outcome)
    assert dict(STUDY.facts(outcome))["scale"].startswith("smoke")


def test_unknown_scale_is_one_sentence() -> None:
    """A scale the study does not have is named."""
    with pytest.raises(SojournError, match="scale may be smoke, quick, paper, not 'huge'"):
        STUDY.scale_named("huge")
