"""The study's judgement, held against made-up measures that do or do not behave as the paper says."""

import json
from pathlib import Path

import msgspec
import pytest

from sojourn.sim.scenario import Scenario
from sojourn.studies.base import write_results
from sojourn.studies.claims import Verdict
from sojourn.studies.publisher_mobility.figures import FIGURES
from sojourn.studies.publisher_mobility.grid import experiments, grid
from sojourn.studies.publisher_mobility.measures import simulate
from sojourn.studies.publisher_mobility.parameters import (
    LIGHT_PUBLISHERS,
    PROXIES,
    SCALES,
    TERRITORY,
)
from sojourn.studies.publisher_mobility.study import STUDY
from sojourn.studies.runner import Row, RunSpec, run_grid
from sojourn.studies.study import UnknownScaleError

COST_A_MOVE = {
    "standard": 200.0,
    "prefetching": 203.0,
    "proxy": 15.0,
    "delayed": 10.0,
    "prefetch-delayed": 10.5,
    "proxy+delayed": 9.0,
}
TIME_MS = {
    "standard": 24.0,
    "prefetching": 24.0,
    "proxy": 9.0,
    "delayed": 6.0,
    "prefetch-delayed": 6.0,
    "proxy+delayed": 5.0,
}
MODEL = {"none": 1.0, "fast": 6.0, "complex": 60.0}


def _as_the_paper_says(text: str) -> Row:
    """Measures of a world in which every claim holds."""
    scenario = msgspec.json.decode(text, type=Scenario)
    protocol, model = scenario.protocol, scenario.computations
    size, speed = scenario.publishers / 50, sum(scenario.speeds_kmh) / len(scenario.speeds_kmh)
    cost, time_ms = COST_A_MOVE[protocol], TIME_MS[protocol] * MODEL[model]
    if protocol == "delayed" and scenario.unadvertise_delay_s < scenario.disconnection_s:
        cost, time_ms = COST_A_MOVE["standard"], TIME_MS["standard"]
    if protocol == "standard" and model == "fast":
        time_ms *= size
    if protocol == "standard" and model == "complex":
        time_ms *= size**4 * speed / 50
    if scenario.movement == "patrol" and protocol in ("proxy", "proxy+delayed"):
        reach = {"none": 3, "fast": 2, "complex": 1}[model]
        time_ms, cost = time_ms * scenario.overshoot / (1.5 * reach), 3.0 * scenario.overshoot
    local = 1 - scenario.publication_locality * (0.95 if protocol in ("proxy", "standard") else 0.3)
    delivered = 1.0 if model == "none" else 0.99 if model == "fast" else 0.9 / size
    messages = cost * local * size * speed
    return {
        "messages_per_min": messages,
        "tree_messages_per_min": messages,
        "rebuild_ms": time_ms * local + scenario.seed * 1e-9,
        "rebuild_all_ms": time_ms * local,
        "teardown_ms": time_ms,
        "rebuilding_share": 1.0,
        "visible_wait_ms": 0.0,
        "utilisation_max": 0.5,
        "worked_off_ratio": 1.0,
        "delivery_ratio": delivered,
        "delivered_in_time_ratio": delivered,
    }


def _as_nobody_says(text: str) -> Row:
    """Measures of a world in which no protocol and no factor makes a difference."""
    del text
    return {
        "messages_per_min": 1.0,
        "tree_messages_per_min": 1.0,
        "rebuild_ms": 1.0,
        "rebuild_all_ms": 1.0,
        "teardown_ms": 1.0,
        "rebuilding_share": 1.0,
        "visible_wait_ms": 1.0,
        "utilisation_max": 0.5,
        "worked_off_ratio": 1.0,
        "delivery_ratio": 0.5,
        "delivered_in_time_ratio": 0.5,
    }


def _verdicts(simulate: object, scale: str = "paper") -> dict[str, Verdict]:
    def sweep(specs: list[RunSpec]) -> list[Row]:
        return run_grid(specs, simulate, workers=1)  # type: ignore[arg-type]  # a function of a test

    outcome = STUDY.run(SCALES[scale], 2, sweep)
    return {verdict.id: verdict for verdict in outcome.verdicts}


def test_every_claim_can_hold() -> None:
    """In a world that behaves as the paper says, every check says so."""
    verdicts = _verdicts(_as_the_paper_says)
    assert {name: v.evidence for name, v in verdicts.items() if v.verdict != "holds"} == {}


def test_every_simulated_claim_can_differ() -> None:
    """In a world where nothing makes a difference, no claim about a difference holds."""
    indifferent = {
        "A-table1",  # no simulation
        "A-table2",
        "A-fig4a-prefetching",  # equal costs are what these say
        "A-fig4b-flat",
        "A-fig6b-speed-time-flat",
        "A-fig9-overshoot-computed",  # all three cross at once
        "A-delay-too-short",
    }
    verdicts = _verdicts(_as_nobody_says)
    assert {name for name, verdict in verdicts.items() if verdict.verdict == "holds"} == indifferent


def test_smoke_judges_no_simulated_claim() -> None:
    """The smoke scale shows that the parts work; it decides nothing."""
    verdicts = _verdicts(_as_the_paper_says, "smoke")
    assert {name for name, verdict in verdicts.items() if verdict.verdict != "not yet"} == {
        "A-table1",
        "A-table2",
    }


def test_failed_runs_leave_only_their_claims_open() -> None:
    """When the complex runs fail, claims about them are open and the others are judged."""

    def simulate(text: str) -> Row:
        if '"complex"' in text:
            raise RuntimeError("out of time")
        return _as_the_paper_says(text)

    verdicts = _verdicts(simulate)
    assert verdicts["A-fig5b-collapse"].verdict == "not yet"
    assert verdicts["A-fig4a-tenfold"].verdict == "holds"


def test_grid_is_the_papers() -> None:
    """At the paper scale the grid has Table 4's values, five seeds, and the same seeds everywhere."""
    specs = grid(SCALES["paper"])
    scenarios = [json.loads(spec.spec_json) for spec in specs]
    assert {spec.seed for spec in specs} == {1, 2, 3, 4, 5}
    publishers = {scenario["publishers"] for scenario in scenarios}
    assert publishers == {50, 100, 150, 200, 250, *LIGHT_PUBLISHERS}
    assert {scenario["subscribers"] for scenario in scenarios} == {500}
    assert all(scenario["tree_height"] == scenario["tree_degree"] == 4 for scenario in scenarios)
    assert grid(SCALES["paper"]) == specs
    names = {experiment.name for experiment in experiments(SCALES["paper"])}
    assert {figure.experiment for figure in FIGURES} <= names


def test_results_are_written(tmp_path: Path) -> None:
    """Runs, means and verdicts land in the directory; every figure can be drawn from them."""
    outcome = STUDY.run(SCALES["smoke"], None, lambda specs: run_grid(specs, _as_the_paper_says, workers=1))
    written = write_results(outcome, tmp_path)
    assert [path.name for path in written] == [
        "runs.parquet",
        "metrics.parquet",
        "claims.json",
        "study.json",
    ]
    assert all(path.stat().st_size for path in written)
    charts = STUDY.charts(outcome)
    assert len(charts) == len(FIGURES)
    assert all(trace.x for _, chart in charts for trace in chart.data)
    summary = STUDY.summary(outcome)
    assert summary.startswith("With 20 publishers on the move")
    assert f"{outcome.distinct_runs} simulated runs, none failed." in summary
    assert STUDY.facts(outcome)


def test_arrivals_at_own_proxies_have_no_part_in_the_mean() -> None:
    """At a proxy of its own nothing is rebuilt: the mean is over the other arrivals; the rest are zeros."""
    given = Scenario(
        protocol="proxy", movement="patrol", overshoot=2, publishers=10, subscribers=50, warmup_s=10.0,
        duration_s=200.0, speeds_kmh=(100.0,),
    )  # fmt: skip
    row = simulate(msgspec.json.encode(given).decode())
    share, mean, of_all = (
        float(row[name] or 0) for name in ("rebuilding_share", "rebuild_ms", "rebuild_all_ms")
    )
    assert 0 < share < 1
    assert mean > of_all > 0
    assert mean * share == pytest.approx(of_all)
    standard = simulate(msgspec.json.encode(msgspec.structs.replace(given, protocol="standard")).decode())
    assert standard["rebuilding_share"] == 1
    assert standard["rebuild_ms"] == standard["rebuild_all_ms"]


def test_more_proxies_leave_less_to_overshoot() -> None:
    """Runs with other numbers of proxies all go through the same brokers."""
    specs = [spec for spec in grid(SCALES["smoke"]) if spec.experiment == "proxies"]
    scenarios = [msgspec.json.decode(spec.spec_json, type=Scenario) for spec in specs]
    assert {one.proxies + 2 * one.overshoot for one in scenarios} == {TERRITORY}
    assert {one.proxies for one in scenarios} == set(PROXIES)


def test_unknown_scale() -> None:
    """A scale that is not there is told in a sentence with those that are."""
    with pytest.raises(UnknownScaleError, match="scale may be smoke, quick, paper, not 'huge'"):
        STUDY.scale_named("huge")
