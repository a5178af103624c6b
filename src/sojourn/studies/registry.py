"""The studies that can be reproduced, each as one row: what runs it and what shows it.

A new study is a package with the same parts and a row here; `sojourn reproduce` knows nothing else of it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from sojourn.studies.adhoc_tree import parameters as adhoc_parameters
from sojourn.studies.adhoc_tree import presentation as adhoc_presentation
from sojourn.studies.adhoc_tree import runs as adhoc_runs
from sojourn.studies.adhoc_tree import study as adhoc_study
from sojourn.studies.publisher_mobility import measures, parameters, presentation, study
from sojourn.studies.publisher_mobility.table import KEYS, MEASURES
from sojourn.studies.publisher_mobility.table import Table as Means
from sojourn.studies.runner import Row, RunSpec, Simulate

Sweep = Callable[[list[RunSpec]], list[Row]]
Average = Callable[[pd.DataFrame, list[str], list[str]], pd.DataFrame]
"""From one row a run, keys and measures to means with intervals; None leaves it to the study."""


class Study(NamedTuple):
    """One study's parts. A scale and an outcome are the study's own business, so they are not typed here."""

    name: str
    title: str
    scale_named: Callable[[str], Any]
    what_is_run: Callable[[Any, int | None], str]
    """From a scale and the seeds asked for to half a sentence."""
    simulate: Simulate
    run: Callable[[Any, int | None, Sweep, Average | None], Any]
    write_results: Callable[[Any, Path], list[Path]]
    charts: Callable[[Any], list[tuple[Any, Any]]]
    summary: Callable[[Any], str]
    facts: Callable[[Any], list[tuple[str, str]]]
    simulate_traced: str | None = None
    """Where the function is that keeps traces, as module:name; imported only when it is wanted."""


def _run_publisher_mobility(
    scale: parameters.Scale, seeds: int | None, sweep: Sweep, average: Average | None
) -> study.Outcome:
    if average is None:
        return study.run(scale, sweep=sweep, seeds=seeds)
    return study.run(
        scale,
        sweep=sweep,
        seeds=seeds,
        summarise=lambda runs: Means(average(runs[runs["error"].isna()], KEYS, MEASURES)),
    )


def _run_adhoc_tree(
    scale: adhoc_parameters.Scale, seeds: int | None, sweep: Sweep, _average: Average | None
) -> adhoc_study.Outcome:
    # A task returns a block of layouts; its means need the values inside, which the study joins itself.
    return adhoc_study.run(scale, sweep=sweep, seeds=seeds)


STUDIES = {
    study.NAME: Study(
        name=study.NAME,
        title=presentation.TITLE,
        scale_named=parameters.scale_named,
        what_is_run=lambda scale, seeds: (
            f"seeds 1 to {seeds or scale.seeds}, {scale.warmup_s:g} s warm-up, "
            f"{scale.duration_s:g} s measured"
        ),
        simulate=measures.simulate,
        run=_run_publisher_mobility,
        write_results=study.write_results,
        charts=presentation.charts,
        summary=presentation.summary,
        facts=presentation.facts,
        simulate_traced="sojourn.studies.publisher_mobility.traced:simulate_traced",
    ),
    adhoc_study.NAME: Study(
        name=adhoc_study.NAME,
        title=adhoc_presentation.TITLE,
        scale_named=adhoc_parameters.scale_named,
        what_is_run=lambda scale, seeds: (
            f"layouts 1 to {seeds or scale.seeds} a point, {adhoc_parameters.ORDERS} orders of turns each"
        ),
        simulate=adhoc_runs.simulate,
        run=_run_adhoc_tree,
        write_results=adhoc_study.write_results,
        charts=adhoc_presentation.charts,
        summary=adhoc_presentation.summary,
        facts=adhoc_presentation.facts,
    ),
}
"""Every study by name, in the order in which they are run."""
