"""The studies that can be reproduced, each as one row: what runs it and what shows it.

A new study is a package with the same parts and a row here; `sojourn reproduce` knows nothing else of it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sojourn.studies.adhoc_tree import parameters as adhoc_parameters
from sojourn.studies.adhoc_tree import presentation as adhoc_presentation
from sojourn.studies.adhoc_tree import runs as adhoc_runs
from sojourn.studies.adhoc_tree import study as adhoc_study
from sojourn.studies.architectures import parameters as architectures_parameters
from sojourn.studies.architectures import presentation as architectures_presentation
from sojourn.studies.architectures import runs as architectures_runs
from sojourn.studies.architectures import study as architectures_study
from sojourn.studies.base import Average, Sweep, write_results
from sojourn.studies.handoff import measures as handoff_measures
from sojourn.studies.handoff import parameters as handoff_parameters
from sojourn.studies.handoff import presentation as handoff_presentation
from sojourn.studies.handoff import study as handoff_study
from sojourn.studies.manet import parameters as manet_parameters
from sojourn.studies.manet import presentation as manet_presentation
from sojourn.studies.manet import runs as manet_runs
from sojourn.studies.manet import study as manet_study
from sojourn.studies.publisher_mobility import figures, measures, parameters, presentation, study
from sojourn.studies.runner import Simulate
from sojourn.studies.wording import numbered


class Study(NamedTuple):
    """One study's parts. A scale and an outcome are the study's own business, so they are not typed here."""

    name: str
    title: str
    scale_named: Callable[[str], Any]
    what_is_run: Callable[[Any, int | None], str]
    """From a scale and the seeds asked for to half a sentence."""
    simulate: Simulate
    run: Callable[[Any, int | None, Sweep, Average | None], Any]
    charts: Callable[[Any], list[tuple[Any, Any]]]
    summary: Callable[[Any], str]
    facts: Callable[[Any], list[tuple[str, str]]]
    figures: Sequence[Any]
    """Every figure of the study, whether an outcome has points for it or not."""
    record: str
    """Where the function is that records facts, as module:name; imported only when it is wanted."""
    measuring: str
    """Which module says how measures follow from those facts."""
    write_results: Callable[[Any, Path, str], list[Path]] = write_results
    record_traced: str | None = None
    """Where the function is that keeps whole traces too, as module:name."""
    tables: Callable[[Any], list[Any]] = lambda _outcome: []
    """The report's tables, beyond claims and figures."""
    over: str = "seeds"
    """What intervals are over."""


STUDIES = {
    study.NAME: Study(
        name=study.NAME,
        title=presentation.TITLE,
        scale_named=parameters.scale_named,
        what_is_run=lambda scale, seeds: (
            f"{numbered('seeds', seeds or scale.seeds)}, {scale.warmup_s:g} s warm-up, "
            f"{scale.duration_s:g} s measured"
        ),
        simulate=measures.simulate,
        run=study.run,
        charts=presentation.charts,
        summary=presentation.summary,
        facts=presentation.facts,
        figures=figures.FIGURES,
        record="sojourn.studies.publisher_mobility.recording:record",
        measuring="sojourn.studies.publisher_mobility.measuring",
        record_traced="sojourn.studies.publisher_mobility.recording:record_traced",
    ),
    handoff_study.NAME: Study(
        name=handoff_study.NAME,
        title=handoff_presentation.TITLE,
        scale_named=handoff_parameters.scale_named,
        what_is_run=lambda scale, seeds: (
            f"{numbered('seeds', seeds or scale.seeds)}, {scale.warmup_s:g} s warm-up, "
            f"{scale.duration_s:g} s measured"
        ),
        simulate=handoff_measures.simulate,
        run=handoff_study.run,
        charts=handoff_presentation.charts,
        summary=handoff_presentation.summary,
        facts=handoff_presentation.facts,
        figures=handoff_presentation.FIGURES,
        record="sojourn.studies.handoff.recording:record",
        measuring="sojourn.studies.handoff.measuring",
        record_traced="sojourn.studies.handoff.recording:record_traced",
    ),
    adhoc_study.NAME: Study(
        name=adhoc_study.NAME,
        title=adhoc_presentation.TITLE,
        scale_named=adhoc_parameters.scale_named,
        what_is_run=lambda scale, seeds: (
            f"{numbered('layouts', seeds or scale.seeds)} a point, {adhoc_parameters.ORDERS} orders of turns "
            "each"
        ),
        simulate=adhoc_runs.simulate,
        run=adhoc_study.run,
        charts=adhoc_presentation.charts,
        summary=adhoc_presentation.summary,
        facts=adhoc_presentation.facts,
        figures=adhoc_presentation.FIGURES,
        record="sojourn.studies.adhoc_tree.recording:record",
        measuring="sojourn.studies.adhoc_tree.measuring",
        over="layouts",
    ),
    architectures_study.NAME: Study(
        name=architectures_study.NAME,
        title=architectures_presentation.TITLE,
        scale_named=architectures_parameters.scale_named,
        what_is_run=lambda scale, seeds: (
            f"{numbered('seeds', seeds or scale.seeds)} a point, {scale.heals} histories of partitions"
        ),
        simulate=architectures_runs.simulate,
        run=architectures_study.run,
        charts=architectures_presentation.charts,
        summary=architectures_presentation.summary,
        facts=architectures_presentation.facts,
        figures=architectures_presentation.FIGURES,
        record="sojourn.studies.architectures.recording:record",
        measuring="sojourn.studies.architectures.measuring",
        record_traced="sojourn.studies.architectures.recording:record_traced",
        tables=architectures_presentation.tables,
    ),
    manet_study.NAME: Study(
        name=manet_study.NAME,
        title=manet_presentation.TITLE,
        scale_named=manet_parameters.scale_named,
        what_is_run=lambda scale, seeds: (
            f"{numbered('seeds', seeds or scale.seeds)}, {scale.duration_s:g} s a run"
        ),
        simulate=manet_runs.simulate,
        run=manet_study.run,
        charts=manet_presentation.charts,
        summary=manet_presentation.summary,
        facts=manet_presentation.facts,
        figures=manet_presentation.FIGURES,
        record="sojourn.studies.manet.recording:record",
        measuring="sojourn.studies.manet.measuring",
        record_traced="sojourn.studies.manet.recording:record_traced",
    ),
}
"""Every study by name, in the order in which they are run."""
