"""What every study is: parts put together, and the way from a scale to verdicts and what a person is shown.

    STUDY = Study(
        "handoff", TITLE, "handoff",
        scales=SCALES,                      # by name: smoke, quick, paper
        grid=grid,                          # (scale, seeds) -> run specifications
        simulate=simulate,                  # a scenario's JSON -> one row of measures, in its own process
        tabulate=tabulate,                  # specifications and rows -> means over seeds
        checks=CHECKS,                      # by claim: (claim, table) -> verdict
        figures=FIGURES, finding=finding, constants=constants, ...
    )

A study's `study.py` has this, and a name in `registry.py` makes `sojourn reproduce` know it. Who executes the
grid is an argument of `run`, so that no study cares.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Generic, Protocol, TypeVar

import plotly.graph_objects as go

from sojourn.errors import SojournError
from sojourn.report.page import DataTable
from sojourn.studies.base import (
    Average,
    Check,
    Outcome,
    ScaleT,
    Sweep,
    TableT,
    judge_one,
    runs_table,
    write_results,
)
from sojourn.studies.claims import Verdict, claims_of
from sojourn.studies.runner import Row, RunSpec, Simulate
from sojourn.studies.wording import many, one, verdicts_in_words

TableT_contra = TypeVar("TableT_contra", contravariant=True)


class UnknownScaleError(SojournError):
    """A scale was asked for that the study does not have."""


class Drawable(Protocol[TableT_contra]):
    """A figure of a study."""

    @property
    def number(self) -> str:
        """What it is called in file names and captions."""
        ...

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims that it bears on."""
        ...

    @property
    def draw(self) -> Callable[[TableT_contra], go.Figure]:
        """Draws it from the study's table; raises KeyError or ValueError where that has no points for it."""
        ...


@dataclass(frozen=True)
class Study(Generic[ScaleT, TableT]):
    """One study's parts, and what all studies do with them alike."""

    name: str
    title: str
    package: str
    """Below `sojourn.studies`; its `recording.py` and `measuring.py` are imported only when wanted."""
    _: KW_ONLY
    scales: Mapping[str, ScaleT]
    what_is_run: Callable[[ScaleT, int | None], str]
    """From a scale and the seeds asked for to half a sentence."""
    grid: Callable[[ScaleT, int | None], list[RunSpec]]
    simulate: Simulate
    tabulate: Callable[[list[RunSpec], list[Row], Average | None], TableT]
    checks: Mapping[str, Check[TableT]]
    """One check per claim, in the ledger's order."""
    needs_no_runs: Collection[str] = ()
    """Claims that are judged at every scale."""
    figures: Sequence[Drawable[TableT]]
    """Every figure of the study, whether an outcome has points for it or not."""
    finding: Callable[[TableT], str]
    """What was found, in a sentence with its main numbers; KeyError where they were not measured."""
    constants: Callable[[Outcome[ScaleT, TableT]], list[tuple[str, str]]]
    """What the study fixes and what the paper leaves open, each with a name, for the report."""
    tables: Callable[[Outcome[ScaleT, TableT]], list[DataTable]] = lambda _outcome: []
    """The report's tables, beyond claims and figures."""
    keeps_traces: bool = True
    """Whether its runs can record whole traces too."""
    counted: str = "simulated runs"
    """What runs are called."""
    over: str = "seeds"
    """What intervals are over."""

    @property
    def measuring(self) -> str:
        """The module that says how measures follow from the facts that runs record."""
        return f"sojourn.studies.{self.package}.measuring"

    @property
    def record(self) -> str:
        """Where the function is that records facts, as module:name."""
        return f"sojourn.studies.{self.package}.recording:record"

    @property
    def record_traced(self) -> str | None:
        """Where the function is that records whole traces too, as module:name."""
        return f"{self.record}_traced" if self.keeps_traces else None

    def scale_named(self, name: str) -> ScaleT:
        """The scale of that name."""
        if name not in self.scales:
            raise UnknownScaleError(f"scale may be {', '.join(self.scales)}, not {name!r}.")
        return self.scales[name]

    def run(
        self, scale: ScaleT, seeds: int | None, sweep: Sweep, average: Average | None = None
    ) -> Outcome[ScaleT, TableT]:
        """Carry out the grid at a scale and judge every claim; `seeds` overrides the scale's own."""
        started = time.perf_counter()
        specs = self.grid(scale, seeds)
        rows = sweep(specs)
        table = self.tabulate(specs, rows, average)
        verdicts = self.judge_all(table, scale)
        seconds = time.perf_counter() - started
        return Outcome(scale, seeds or scale.seeds, specs, runs_table(specs, rows), table, verdicts, seconds)

    def judge_all(self, table: TableT, scale: ScaleT) -> list[Verdict]:
        """A verdict on every claim, in the ledger's order.

        A scale that judges nothing leaves all claims open but those that need no runs.
        """
        return [
            judge_one(claim, self.checks[claim.id], table, scale, decided=claim.id in self.needs_no_runs)
            for claim in claims_of(self.name).values()
        ]

    def charts(self, outcome: Outcome[ScaleT, TableT]) -> list[tuple[Drawable[TableT], go.Figure]]:
        """Every figure that the outcome has points for."""
        found = []
        for figure in self.figures:
            try:
                found.append((figure, figure.draw(outcome.table)))
            except (KeyError, ValueError):
                continue  # not run at this scale, or its runs failed; the claims that need them say so
        return found

    def facts(self, outcome: Outcome[ScaleT, TableT]) -> list[tuple[str, str]]:
        """The scale, the constants of the study, and how long it took."""
        return [*self.constants(outcome), ("wall time", f"{outcome.seconds:.0f} s")]

    def summary(self, outcome: Outcome[ScaleT, TableT]) -> str:
        """The paragraph that opens a report: what was found, what holds, what was run, what the bars are."""
        try:
            found = self.finding(outcome.table) + " "
        except (KeyError, ValueError, ZeroDivisionError):
            found = ""  # its runs failed, or are not part of this scale
        return found + self.tally(outcome)

    def tally(self, outcome: Outcome[ScaleT, TableT]) -> str:
        """What holds, what was run, and what the bars are if there are any."""
        differing = [verdict.id for verdict in outcome.verdicts if verdict.verdict == "differs"]
        holds = sum(verdict.verdict == "holds" for verdict in outcome.verdicts)
        judged = verdicts_in_words(holds, differing, len(outcome.verdicts) - holds - len(differing))
        several = f"Bars are 95% Student-t intervals over {self.over}."
        alone = f"With one {one(self.over)} per point nothing can be said about intervals, so there are none."
        return (
            f"{judged} {many(outcome.distinct_runs, self.counted)}, {outcome.failed or 'none'} failed. "
            f"{several if outcome.seeds > 1 else alone}"
        )

    write_results = staticmethod(write_results)
