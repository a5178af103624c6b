"""What all studies are made of: scales, outcomes, how one claim is judged, and the files of results.

`study.py` puts the parts of a study together. Not here: any paper's numbers, means over seeds (`means.py`),
and what figures share (`drawing.py`).
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
import pandas as pd

import sojourn
from sojourn.studies.claims import TIED, Claim, Verdict, judge, write_verdicts
from sojourn.studies.reproduction import About, processors
from sojourn.studies.runner import Row, RunSpec
from sojourn.studies.wording import numbered

KEYS = ["experiment", "series", "computations", "axis", "x"]
"""The labels of a run that say which point of which line it belongs to."""

Sweep = Callable[[list[RunSpec]], list[Row]]
"""Whatever turns run specifications into rows of measures."""

Average = Callable[[pd.DataFrame, list[str], list[str]], pd.DataFrame]
"""From one row per run, keys and measures to means with intervals; where it is None, the study does it."""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a study is run; a study adds what it varies."""

    name: str
    seeds: int
    """Seeds per configuration."""
    judges: bool
    """Whether verdicts may be drawn from it."""


class TimedScale(Scale, frozen=True, kw_only=True):
    """The scale of a study whose runs discard a warm-up and measure what follows."""

    warmup_s: float
    duration_s: float

    def what_is_run(self, seeds: int | None) -> str:
        """Half a sentence: seeds, its own if no others are asked for, and times."""
        seeds_said = numbered("seeds", seeds or self.seeds)
        return f"{seeds_said}, {self.warmup_s:g} s warm-up, {self.duration_s:g} s measured"

    @property
    def time(self) -> tuple[str, str]:
        """The same as a fact for the report."""
        return (
            "time",
            f"{self.warmup_s:g} s of warm-up discarded, then {self.duration_s:g} s measured, then drained",
        )


class Table(Protocol):
    """A study's measures in whatever form its checks want them; the means are written to a file."""

    @property
    def means(self) -> pd.DataFrame:
        """One row per configuration and measure."""
        ...


ScaleT = TypeVar("ScaleT", bound=Scale)
TableT = TypeVar("TableT", bound=Table)

Check = Callable[[Claim, TableT], Verdict]
"""Judges one claim from a study's table."""


class Outcome(NamedTuple, Generic[ScaleT, TableT]):
    """What a study found."""

    scale: ScaleT
    seeds: int
    specs: list[RunSpec]
    runs: pd.DataFrame
    """One row per run and experiment: the labels of the grid beside what the run returned."""
    table: TableT
    verdicts: list[Verdict]
    seconds: float

    @property
    def failed(self) -> int:
        """How many distinct runs ended in an error."""
        return int(self.runs[self.runs["error"].notna()]["run_id"].nunique())

    @property
    def distinct_runs(self) -> int:
        """How many runs were carried out."""
        return int(self.runs["run_id"].nunique())


def runs_table(specs: list[RunSpec], rows: list[Row]) -> pd.DataFrame:
    """One row per run and experiment: the labels of the grid beside the run's measures."""
    labels = pd.DataFrame(
        [
            {"run_id": spec.run_id, **{key: getattr(spec, key) for key in KEYS}, "seed": spec.seed}
            for spec in specs
        ]
    )
    measured = pd.DataFrame(rows).drop(columns="seed")
    return labels.merge(measured, on="run_id", how="left", validate="many_to_one")


def judge_one(claim: Claim, check: Check[TableT], table: TableT, scale: Scale, *, decided: bool) -> Verdict:
    """The verdict on a claim; it is open where runs are missing, or at a scale that judges nothing.

    At such a scale only what is `decided` without runs is judged.
    """
    try:
        verdict = check(claim, table)
    except (KeyError, ValueError, ZeroDivisionError) as error:
        # Failed runs leave holes in the table; a claim that needs them is open, the others are not.
        return judge(claim, holds=None, measured={}, evidence=_missing(error, scale))
    if scale.judges or decided:
        return verdict
    note = f"Measured at the {scale.name} scale, which judges nothing. "
    unjudged = judge(
        claim,
        holds=None,
        measured=verdict.measured,
        evidence=note + verdict.evidence.removesuffix(TIED),
        margin=verdict.margin,
        readings=verdict.readings,
    )
    return msgspec.structs.replace(unjudged, queries=verdict.queries, unmeasured=verdict.unmeasured)


def _missing(error: Exception, scale: Scale) -> str:
    """Why a claim is open, in words: which point of the grid has no run."""
    said = error.args[0] if isinstance(error, KeyError) and error.args else None
    if isinstance(said, float | int):
        said = f"the point {said:g}"
    elif isinstance(said, tuple):
        said = ", ".join(str(part) for part in said)
    which = f" (nothing for {said})" if said not in (None, "") else ""
    return f"Runs that this claim needs failed, or are not part of the {scale.name} scale{which}."


def write_results(outcome: Outcome[ScaleT, TableT], out: Path, study: str = "") -> list[Path]:
    """Write runs, means, verdicts and how they came about into a directory and name the files."""
    out.mkdir(parents=True, exist_ok=True)
    runs, metrics, claims = out / "runs.parquet", out / "metrics.parquet", out / "claims.json"
    outcome.runs.to_parquet(runs, index=False)
    outcome.table.means.to_parquet(metrics, index=False)
    write_verdicts(outcome.verdicts, claims)
    about = out / "study.json"
    about.write_bytes(msgspec.json.format(msgspec.json.encode(_about(outcome, study)), indent=2) + b"\n")
    return [runs, metrics, claims, about]


def _about(outcome: Outcome[ScaleT, TableT], study: str) -> About:
    work = outcome.runs.drop_duplicates("run_id")
    return About(
        study=study,
        scale=outcome.scale.name,
        seeds=outcome.seeds,
        runs=outcome.distinct_runs,
        failed=outcome.failed,
        processor_s=round(float(work["wall_s"].sum()), 1) if "wall_s" in work else 0.0,
        wall_s=round(outcome.seconds, 1),
        processors=processors(),
        code=code_digest(),
    )


def code_digest() -> str:
    """A digest of all code and data of the package: two results with the same one ran on the same code."""
    root = Path(sojourn.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
