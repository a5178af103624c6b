"""What studies share: judging with holes in the table, scales, and the way from a grid to files."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sojourn.studies import base, means
from sojourn.studies.claims import Claim, Verdict, claims_of, judge
from sojourn.studies.reproduction import read_found
from sojourn.studies.runner import Row, RunSpec, run_grid
from sojourn.studies.study import Study, UnknownScaleError

NAME = "adhoc-tree"
IDS = list(claims_of(NAME))
PAPER = base.Scale(name="paper", seeds=2, judges=True)
SMOKE = base.Scale(name="smoke", seeds=1, judges=False)


EMPTY = means.Table(pd.DataFrame())


def _yes(claim: Claim, table: means.Table) -> Verdict:
    del table
    return judge(claim, holds=True, measured={"it": 1}, evidence="Seen.")


def _hole(claim: Claim, table: means.Table) -> Verdict:
    del claim, table
    raise KeyError("fig9")


def _study(
    checks: Mapping[str, base.Check[means.Table]] | None = None, **parts: Any
) -> Study[Any, means.Table]:
    """A study of the ledger's claims with as few parts as a test needs."""
    given: dict[str, Any] = {
        "scales": {"smoke": SMOKE, "paper": PAPER},
        "what_is_run": lambda _scale, _seeds: "",
        "grid": _grid,
        "simulate": _simulate,
        "tabulate": partial(means.tabulate, measures=["seconds", "never measured"]),
        "checks": checks or dict.fromkeys(IDS, _yes),
        "figures": (),
        "finding": lambda _: "Found it.",
        "constants": lambda _: [],
    }
    return Study(NAME, "A study", "", **given | parts)


def test_holes_and_scales_leave_claims_open() -> None:
    """A check without its runs is open at any scale; a scale that judges nothing leaves the rest open too."""
    checks = dict.fromkeys(IDS, _yes) | {IDS[1]: _hole}
    judged = {v.id: v.verdict for v in _study(checks).judge_all(EMPTY, PAPER)}
    assert list(judged) == IDS
    assert judged == dict.fromkeys(IDS, "holds") | {IDS[1]: "not yet"}
    smoke = {v.id: v for v in _study(checks, needs_no_runs={IDS[0]}).judge_all(EMPTY, SMOKE)}
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
        evidence = _study(checks).judge_all(EMPTY, SMOKE)[0].evidence
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
    study = _study()
    outcome = study.run(PAPER, None, lambda specs: run_grid(specs, _simulate, workers=1))
    assert (outcome.distinct_runs, outcome.failed, outcome.seeds) == (4, 1, 2)
    assert outcome.table.points("e", "s", "none", "seconds") == {1.0: 2.5, 2.0: 3.0}
    assert study.tally(outcome).startswith(f"Of {len(IDS)} claims {len(IDS)} hold and none differs. ")
    assert "4 simulated runs, 1 failed. Bars are 95% Student-t intervals over seeds." in study.tally(outcome)
    alone = study.tally(outcome._replace(seeds=1))
    assert "95%" not in alone, "one seed has no interval"
    assert "With one layout per point" in _study(over="layouts").tally(outcome._replace(seeds=1))
    assert study.summary(outcome).startswith("Found it. Of ")
    assert _study(finding=_no_finding).summary(outcome).startswith("Of "), "what was not measured is not said"
    assert [path.name for path in study.write_results(outcome, tmp_path / "out")] == [
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
    with pytest.raises(UnknownScaleError, match="scale may be smoke, paper, not 'huge'"):
        _study().scale_named("huge")
