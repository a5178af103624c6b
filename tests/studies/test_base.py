"""What studies share: judging with holes in the table, scales, and the way from a grid to files."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sojourn.studies import base, means
from sojourn.studies.claims import Claim, Verdict, claims_of, judge
from sojourn.studies.reproduction import read_found
from sojourn.studies.runner import Row, RunSpec, run_grid

STUDY = "adhoc-tree"
IDS = list(claims_of(STUDY))
PAPER = base.Scale(name="paper", seeds=2, judges=True)
SMOKE = base.Scale(name="smoke", seeds=1, judges=False)


EMPTY = means.Table(pd.DataFrame())


def _yes(claim: Claim, table: means.Table) -> Verdict:
    del table
    return judge(claim, holds=True, measured={"it": 1}, evidence="Seen.")


def _hole(claim: Claim, table: means.Table) -> Verdict:
    del claim, table
    raise KeyError("fig9")


def test_holes_and_scales_leave_claims_open() -> None:
    """A check without its runs is open at any scale; a scale that judges nothing leaves the rest open too."""
    checks = dict.fromkeys(IDS, _yes) | {IDS[1]: _hole}
    judged = {v.id: v.verdict for v in base.judge_all(STUDY, checks, EMPTY, PAPER)}
    assert list(judged) == IDS
    assert judged == dict.fromkeys(IDS, "holds") | {IDS[1]: "not yet"}
    smoke = {v.id: v for v in base.judge_all(STUDY, checks, EMPTY, SMOKE, needs_no_runs={IDS[0]})}
    assert [name for name, v in smoke.items() if v.verdict != "not yet"] == [IDS[0]]
    assert smoke[IDS[2]].evidence == "Measured at the smoke scale, which judges nothing. Seen."


def test_a_hole_is_told_in_words() -> None:
    """An open claim says which point is missing; no reader meets a KeyError."""

    def hole(error: Exception) -> base.Check[Any]:
        def check(_claim: Claim, _table: Any) -> Verdict:
            raise error

        return check

    for error, words in [
        (KeyError(("tables", "proactive", "RND")), "nothing for tables, proactive, RND"),
        (KeyError(200.0), "nothing for the point 200"),
        (ValueError("min() arg is an empty sequence"), "part of the smoke scale."),
    ]:
        checks = dict.fromkeys(IDS, _yes) | {IDS[0]: hole(error)}
        evidence = base.judge_all(STUDY, checks, EMPTY, SMOKE)[0].evidence
        assert words in evidence
        assert "Error" not in evidence
        assert "min()" not in evidence


def _no_finding(_table: Any) -> str:
    raise KeyError("not run")


def _grid(scale: base.Scale, seeds: int | None) -> list[RunSpec]:
    labels = {"experiment": "e", "series": "s", "computations": "none", "axis": "x"}
    return [
        RunSpec(run_id=f"{x} {seed}", **labels, x=x, seed=seed, cost=1.0, spec_json=f"{x + seed}")
        for x in (1.0, 2.0)
        for seed in range(1, (seeds or scale.seeds) + 1)
    ]


def _simulate(text: str) -> Row:
    if text == "4.0":
        raise RuntimeError("this one fails")
    return {"seconds": float(text)}


def test_from_a_grid_to_files(tmp_path: Path) -> None:
    """Every run has a row, failed ones are counted and take no part in means, and three files are written."""
    outcome = base.run(
        PAPER,
        None,
        lambda specs: run_grid(specs, _simulate, workers=1),
        grid=_grid,
        tabulate=lambda specs, rows: means.tabulate(specs, rows, ["seconds", "never measured"]),
        judge=lambda table: base.judge_all(STUDY, dict.fromkeys(IDS, _yes), table, PAPER),
    )
    assert (outcome.distinct_runs, outcome.failed, outcome.seeds) == (4, 1, 2)
    assert outcome.table.points("e", "s", "none", "seconds") == {1.0: 2.5, 2.0: 3.0}
    assert base.tally(outcome).startswith(f"Of {len(IDS)} claims {len(IDS)} hold and none differs. ")
    assert "4 simulated runs, 1 failed. Bars are 95% Student-t intervals over seeds." in base.tally(outcome)
    alone = base.tally(outcome._replace(seeds=1))
    assert "95%" not in alone, "one seed has no interval"
    assert "With one layout a point" in base.tally(outcome._replace(seeds=1), over="layouts")
    assert base.summary(outcome, lambda _: "Found it.").startswith("Found it. Of ")
    assert base.summary(outcome, _no_finding).startswith("Of "), "what was not measured is not said"
    assert [path.name for path in base.write_results(outcome, tmp_path / "out")] == [
        "runs.parquet",
        "metrics.parquet",
        "claims.json",
        "study.json",
    ]
    about = read_found(tmp_path / "out").about
    assert (about.runs, about.failed, about.seeds, about.scale) == (4, 1, 2, PAPER.name)
    assert about.code == base.code_digest()
    assert len(pd.read_parquet(tmp_path / "out" / "runs.parquet")) == 4


def test_unknown_scales_are_named() -> None:
    """A scale that a study lacks is told in a sentence with those it has."""
    with pytest.raises(base.UnknownScaleError, match="scale may be smoke, paper, not 'huge'"):
        base.scale_named({"smoke": SMOKE, "paper": PAPER}, "huge")
