"""The ad-hoc tree study: its grid, its tasks, and checks held against tables that do and do not agree."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from sojourn.errors import SojournError
from sojourn.sim.adhoc.layout import Layout, draw_interests, draw_positions
from sojourn.sim.adhoc.mobility import Roaming
from sojourn.studies.adhoc_tree import differences
from sojourn.studies.adhoc_tree.examples import examples
from sojourn.studies.adhoc_tree.grid import grid
from sojourn.studies.adhoc_tree.parameters import SCALES
from sojourn.studies.adhoc_tree.runs import Run, simulate
from sojourn.studies.adhoc_tree.study import STUDY
from sojourn.studies.adhoc_tree.table import Table
from sojourn.studies.adhoc_tree.trials import Trials
from sojourn.studies.cited import Told
from sojourn.studies.claims import claims_of
from sojourn.studies.runner import Row, RunSpec, run_grid


def _json(run: Run) -> str:
    return msgspec.json.encode(run).decode()


def test_examples_are_the_papers() -> None:
    """Every worked number comes out exactly."""
    assert all(example.paper == example.ours for example in examples())


def test_grid_names_every_task_once_a_point() -> None:
    """Each scale has all experiments, blocks cover all seeds, and equal specifications are one run."""
    experiments = {spec.experiment for spec in grid(SCALES["paper"])}
    assert {"fig8", "fig9", "fig10", "fig11", "fig12", "fig13", "exact", "move", "roam"} <= experiments
    fig8 = [spec for spec in grid(SCALES["paper"]) if (spec.experiment, spec.x) == ("fig8", 25.0)]
    runs = [msgspec.json.decode(spec.spec_json, type=Run) for spec in fig8]
    seeds = [run.layout.seed + further for run in runs for further in range(run.layouts)]
    assert seeds == list(range(1, 201))
    assert len([spec for spec in grid(SCALES["paper"], 10) if spec.experiment == "fig13"]) == 10


def _layout_of(model: Any) -> Layout:
    return Layout(seed=8, model=model, offset_sigma=30)


def test_layouts_do_not_depend_on_range_length_or_model() -> None:
    """Nodes stand in the same places whatever else changes; interval lengths are those of all submodels."""
    places = draw_positions(Layout(seed=8))
    assert np.array_equal(places, draw_positions(Layout(seed=8, range_m=140, length=50, model="ni-x")))
    lengths = [
        [float(each.measure()) for each in draw_interests(_layout_of(model), places)]
        for model in ("ni-r", "ni-x", "ni-xmod")
    ]
    assert np.allclose(lengths[0], lengths[1], atol=1e-4)
    assert np.allclose(lengths[0], lengths[2], atol=1e-4)


@pytest.mark.parametrize("kind", ["lines", "exact", "large", "move", "roam", "shared"])
def test_every_task_gives_the_same_twice(kind: Any) -> None:
    """A specification's text is all that a task depends on."""
    layout = Layout(
        seed=3, nodes_per_cluster=4, cluster_distance_m=60, node_distance_m=50, range_m=70, connected_at_m=60
    )
    run = Run(
        kind=kind,
        layout=layout,
        layouts=2,
        metrics=("nhop", "combo", "cool"),
        roaming=Roaming(speed_m_s=2, warmup_s=5, duration_s=3),
        picture=True,
    )
    first = simulate(_json(run))
    assert first == simulate(_json(run))
    assert all(isinstance(value, str | float | int) for value in first.values())
    if kind == "exact":
        assert first["proved"] == 2
        excess = json.loads(str(first["values"]))
        assert all(value >= -1e-9 for values in excess.values() for value in values)


def test_small_systems_are_enumerated_and_solved_alike() -> None:
    """The task that compares both reports no difference."""
    layout = Layout(
        nodes_per_cluster=3, cluster_distance_m=200, node_distance_m=160, radius_spread_m=40,
        range_m=180, connected_at_m=180,
    )  # fmt: skip
    row = simulate(_json(Run(kind="small", layout=layout, layouts=5)))
    assert float(str(row["apart_max"])) < 1e-6
    assert min(json.loads(str(row["excess"]))) >= 0


def _table(rows: dict[tuple[str, str, float], Row]) -> Table:
    specs, found = [], []
    for (experiment, series, x), row in rows.items():
        run_id = f"{experiment} {series} {x}"
        labels = {"run_id": run_id, "experiment": experiment, "series": series, "computations": "none"}
        specs.append(RunSpec(**labels, axis="x", x=x, seed=1, cost=1.0, spec_json="{}"))
        found.append({"run_id": run_id, "error": None, **row})
    return Table(specs, found)


def _values(**values: float) -> Row:
    return {"values": json.dumps({name: [value, value * 1.1] for name, value in values.items()})}


def _verdict(claim: str, table: Table) -> str:
    return STUDY.checks[claim](claims_of("adhoc-tree")[claim], table).verdict


@pytest.mark.parametrize(
    ("at_80", "free", "widest", "verdict"),
    [
        (1.30, 1.23, 1.5, "holds"),
        (1.05, 1.02, 1.5, "differs"),
        (1.30, 1.35, 1.5, "differs"),
        (1.30, 1.23, 1.2, "holds"),
        (1.30, 1.23, 1.0, "holds"),
    ],
)
def test_fig9_is_judged_by_its_numbers(at_80: float, free: float, widest: float, verdict: str) -> None:
    """The ratio at 80, the one without the cost of receiving, and an inner maximum decide."""
    rows = {}
    for series, line in (("r=1", {60.0: 1.1, 80.0: at_80, 100.0: widest, 180.0: 1.0}), ("r=0", {80.0: free})):
        for x, ratio in line.items():
            rows["fig9", series, x] = _values(nhop=ratio, ovhd=1.05, combo=1.0)
    assert _verdict("C-fig9", _table(rows)) == verdict


def test_fig8_notices_a_broken_order() -> None:
    """One point at which SP-OVHD costs more than SP-NHOP is enough to differ."""
    good = {("fig8", "", x): _values(random=4, nhop=2 + x / 9, ovhd=1.5, combo=1) for x in (1.0, 2.0, 3.0)}
    assert _verdict("C-fig8", _table(good)) == "holds"
    good["fig8", "", 2.0] = _values(random=4, nhop=1.4, ovhd=1.5, combo=1)
    assert _verdict("C-fig8", _table(good)) == "differs"


@pytest.mark.parametrize(
    ("worst", "disagreed", "verdict"),
    [(0.05, 0, "holds"), (0.2, 0, "differs"), (0.05, 1, "not yet"), (0.2, 1, "not yet")],
)
def test_fig10_tells_of_every_size(worst: float, disagreed: int, verdict: str) -> None:
    """All sizes are in the evidence; the nine nodes decide, but only if both ways to their optimum agree."""
    excess = {name: [0.02, 0.04] for name in ("combo", "cool")}
    solved: Row = {
        "values": json.dumps(excess),
        "worst": json.dumps(excess),
        "optima": "[10.0, 20.0]",
        "gaps": "[0.0, 0.01]",
        "bounds": "[0.9, 0.8]",
        "proved": 2,
    }
    small: Row = {
        "excess": json.dumps([0.01, worst]),
        "worst": "[0.1, 0.1]",
        "compared": 2,
        "proved": 2,
        "disagreed": disagreed,
        "apart_max": 70.0 * disagreed,
    }
    table = _table(
        {
            ("fig10", "", 25.0): small,
            ("exact", "R=80 l=25", 0.0): solved,
            ("sixty", "", 0.0): solved,
            ("large", "", 0.0): _values(combo=2.0, cool=1.8),
        }
    )
    found = STUDY.checks["C-fig10"](claims_of("adhoc-tree")["C-fig10"], table)
    assert found.verdict == verdict
    assert "2 of 2 systems" in found.evidence
    assert f"disagree in {disagreed} of 2 systems" in found.evidence
    assert "Sixty nodes (2 systems" in found.evidence
    assert "300 nodes SP-COMBO stands at 11.1%" in found.evidence
    assert len(table.means)


def test_reasons_are_measured() -> None:
    """Each measurement of a reason reads its own runs and names its numbers; without runs it says nothing."""
    rows: dict[tuple[str, str, float], Row] = {}
    for x, degree in ((60.0, 5.2), (80.0, 8.0), (140.0, 21.3)):
        # Of two layouts the first has the paper's neighbours.
        rows["fig9", "r=1", x] = _values(nhop=1.1, combo=1.0) | {"degrees": json.dumps([degree, 2 * degree])}
    for series in ("r=1", "r=0"):
        rows["wide", series, 80.0] = {"values": json.dumps({"nhop": [1.3, 9.0], "combo": [1.0, 1.0]})}
    rows["exact", "R=80 l=25", 0.0] = _values(nhop=0.2)
    found, sentence = differences.densities(_table(rows))
    count = found["layouts with the paper's neighbours"]
    assert isinstance(count, Told)
    assert (count.value, found["on those, l = 50"]) == (1, 1.3)
    assert "on those 1.300" in sentence
    assert differences.densities(_table({})) == differences.NOTHING
    assert differences.correlation(_table({}), ["ni-x"], 50.0) == differences.NOTHING


def test_seconds_a_hop_are_found_beside_the_timeout() -> None:
    """The fit gives back what a made-up protocol takes a hop, whatever the timeouts."""
    stream = np.random.default_rng(1)
    after, timeout = stream.integers(1, 6, 400).astype(float), stream.choice([2.0, 5.0, 12.0], 400)
    seconds = np.where(after > 1, timeout + 0.5 * after, 0.3)
    before = stream.integers(1, 6, 400).astype(float)
    trials = Trials({"hops": before, "hops_after": after, "timeout": timeout, "seconds": seconds}, "")
    assert differences.Hops(trials, "hops_after").per_hop == pytest.approx(0.5)
    assert abs(differences.Hops(trials, "hops").per_hop) < 0.2


def test_moves_with_too_few_distances_leave_the_claim_open_in_words() -> None:
    """Where there is no line to fit, no sentence and no number of the verdict is "nan"."""
    trials = {"stable": [1, 1], "seconds": [2.0, 2.0], "hops": [1, 1], "hops_after": [1, 1], "cost": [1, 1]}
    row: Row = {name: json.dumps(values) for name, values in trials.items()}
    table = _table({("move", series, 2.0): row for series in ("", "beacons")})
    found = STUDY.checks["C-mobility"](claims_of("adhoc-tree")["C-mobility"], table)
    assert found.verdict == "not yet"
    assert "no R2 (too few points: 2) over the timeout" in found.evidence
    assert "what a hop adds cannot be told from so few trials" in found.evidence
    assert "nan" not in json.dumps([found.evidence, found.measured]).lower()


def test_mobility_is_judged_by_single_trials() -> None:
    """Means of three timeouts lie on a line whatever single trials do: those stand as another reading."""
    stream = np.random.default_rng(3)
    blocks: dict[tuple[str, str, float], Row] = {}
    for timeout in (2.0, 5.0, 12.0):
        hops = stream.integers(1, 6, 60)
        seconds = timeout * hops + stream.normal(0, 40, 60)
        trials = {"stable": [1] * 60, "seconds": seconds.tolist(), "hops": hops.tolist(), "cost": [1.0] * 60}
        row: Row = {
            name: json.dumps(values) for name, values in (trials | {"hops_after": hops.tolist()}).items()
        }
        blocks |= {("move", series, timeout): row for series in ("", "beacons")}
    found = STUDY.checks["C-mobility"](claims_of("adhoc-tree")["C-mobility"], _table(blocks))
    assert found.verdict == "differs"
    assert [reading.name.split()[0] for reading in found.readings] == ["a", "one"]
    assert found.cause


def test_missing_runs_leave_a_claim_open() -> None:
    """Without its runs a claim is not judged, and the others are."""
    verdicts = {verdict.id: verdict for verdict in STUDY.judge_all(_table({}), SCALES["paper"])}
    assert verdicts["C-examples"].verdict == "holds"
    assert verdicts["C-fig9"].verdict == "not yet"
    assert list(verdicts) == list(claims_of("adhoc-tree"))


def test_a_tiny_study_end_to_end() -> None:
    """The smallest grid runs, judges and draws everything, the picture of a move included."""
    tiny = msgspec.structs.replace(
        SCALES["smoke"],
        seeds=1,
        lengths=(1.0, 25.0, 50.0),
        exact=1,
        exact_elsewhere=0,
        large=0,
        moves=1,
        shared=0,
    )
    outcome = STUDY.run(tiny, None, lambda specs: run_grid(specs, simulate, workers=1))
    assert outcome.failed == 0
    assert {verdict.verdict for verdict in outcome.verdicts} <= {"holds", "not yet"}
    drawn = {figure.number: chart for figure, chart in STUDY.charts(outcome)}
    assert {"5-before", "5-after", "8", "9", "11", "12", "13", "10", "roaming"} <= set(drawn)
    assert {trace.name: len(trace.x) for trace in drawn["5-before"].data}["nodes"] == 30
    assert len(dict(STUDY.facts(outcome))["roaming"]) > 50


def test_unknown_scale_is_one_sentence() -> None:
    """A scale the study does not have is named."""
    with pytest.raises(SojournError, match="scale may be smoke, quick, paper, not 'huge'"):
        STUDY.scale_named("huge")
    with pytest.raises(SojournError, match="speed_m_s must be at least 0"):
        Roaming(speed_m_s=-1)
