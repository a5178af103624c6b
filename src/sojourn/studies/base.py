"""What every study shares: its scales, the way from a scale to verdicts and files, and how claims are judged.

A study is a package with its own parameters, grid, table, checks and figures. Its `study.py` puts them
together:

    NAME = "handoff"
    Outcome = base.Outcome[Scale, Table]

    def run(scale, seeds, sweep, average=None):
        return base.run(
            scale, seeds, sweep,
            grid=grid,                                     # (scale, seeds) -> run specifications
            tabulate=partial(means.tabulate, measures=MEASURES, average=average),
            judge=lambda table: base.judge_all(NAME, CHECKS, table, scale, needs_no_runs=…),
        )

and a row in `registry.py` makes `sojourn reproduce` know it. Who executes the grid is an argument, so that no
study cares. Not here: any paper's numbers, and means over seeds (`means.py`).
"""

import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
import pandas as pd

import sojourn
from sojourn.errors import SojournError
from sojourn.studies.claims import TIED, Claim, Verdict, claims_of, judge, write_verdicts
from sojourn.studies.reproduction import About, processors
from sojourn.studies.runner import Row, RunSpec
from sojourn.studies.wording import many, one, verdicts_in_words

KEYS = ["experiment", "series", "computations", "axis", "x"]
"""The labels of a run that say which point of which line it belongs to."""

Sweep = Callable[[list[RunSpec]], list[Row]]
"""Whatever turns run specifications into rows of measures."""

Average = Callable[[pd.DataFrame, list[str], list[str]], pd.DataFrame]
"""From one row per run, keys and measures to means with intervals; where it is None, the study does it."""


class UnknownScaleError(SojournError):
    """A scale was asked for that the study does not have."""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a study is run; a study adds what it varies."""

    name: str
    seeds: int
    """Seeds a configuration."""
    judges: bool
    """Whether verdicts may be drawn from it."""


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


def scale_named(scales: Mapping[str, ScaleT], name: str) -> ScaleT:
    """The scale of that name."""
    if name not in scales:
        raise UnknownScaleError(f"scale may be {', '.join(scales)}, not {name!r}.")
    return scales[name]


def run(
    scale: ScaleT,
    seeds: int | None,
    sweep: Sweep,
    *,
    grid: Callable[[ScaleT, int | None], list[RunSpec]],
    tabulate: Callable[[list[RunSpec], list[Row]], TableT],
    judge: Callable[[TableT], list[Verdict]],
) -> Outcome[ScaleT, TableT]:
    """Carry out the grid at a scale and judge every claim; `seeds` overrides the scale's own."""
    started = time.perf_counter()
    specs = grid(scale, seeds)
    rows = sweep(specs)
    table = tabulate(specs, rows)
    verdicts = judge(table)
    runs = runs_table(specs, rows)
    return Outcome(scale, seeds or scale.seeds, specs, runs, table, verdicts, time.perf_counter() - started)


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


def judge_all(
    study: str,
    checks: Mapping[str, Check[TableT]],
    table: TableT,
    scale: Scale,
    needs_no_runs: Collection[str] = (),
) -> list[Verdict]:
    """A verdict on every claim of a study, in the ledger's order.

    A scale that judges nothing leaves all claims open but those in `needs_no_runs`.
    """
    return [
        _judge_one(claim, checks[claim.id], table, scale, decided=claim.id in needs_no_runs)
        for claim in claims_of(study).values()
    ]


def _judge_one(claim: Claim, check: Check[TableT], table: TableT, scale: Scale, *, decided: bool) -> Verdict:
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


Finding = Callable[[TableT], str]
"""What a study found, in a sentence with its main numbers; KeyError where they were not measured."""


def summary(
    outcome: Outcome[ScaleT, TableT],
    finding: Finding[TableT],
    runs: str = "simulated runs",
    over: str = "seeds",
) -> str:
    """The paragraph that opens a report: what was found, what holds, what was run, and what the bars are."""
    try:
        found = finding(outcome.table) + " "
    except (KeyError, ValueError, ZeroDivisionError):
        found = ""  # its runs failed, or are not part of this scale
    return found + tally(outcome, runs, over)


def tally(outcome: Outcome[ScaleT, TableT], runs: str = "simulated runs", over: str = "seeds") -> str:
    """What holds, what was run, and what the bars are if there are any."""
    differing = [verdict.id for verdict in outcome.verdicts if verdict.verdict == "differs"]
    holds = sum(verdict.verdict == "holds" for verdict in outcome.verdicts)
    judged = verdicts_in_words(holds, differing, len(outcome.verdicts) - holds - len(differing))
    several = f"Bars are 95% Student-t intervals over {over}."
    alone = f"With one {one(over)} a point nothing can be said about intervals, so there are none."
    return (
        f"{judged} {many(outcome.distinct_runs, runs)}, {outcome.failed or 'none'} failed. "
        f"{several if outcome.seeds > 1 else alone}"
    )
