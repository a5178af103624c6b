"""The study's measures: means over seeds for plain points, and the rows themselves where tasks are blocks."""

import json

import numpy as np

from sojourn.studies import means
from sojourn.studies.base import Average
from sojourn.studies.cited import Cited, mean_of, of_runs, total_of
from sojourn.studies.cited_lists import WHOLE, Sample, sample
from sojourn.studies.means import Points
from sojourn.studies.runner import Row, RunSpec

MEASURES = [
    "unmatched_share",
    "bytes_per_event",
    "update_bytes_per_event",
    "comparisons_per_event",
    "sent_share",
    "alternatives",
    "interesting",
    "lost_oldest",
    "lost_quench",
    "compared_mean",
    "compared_max",
    "event_hops",
    "interest_hops",
    "entries_mean",
    "entries_max",
    "matches_per_event",
    "lost",
    "wrong",
    "streams",
    "bytes_sent",
    "share_sent",
    "source_bytes",
    "broker_bytes",
    "event_bytes",
    "interest_bytes",
    "handover_bytes",
    "busiest_compared",
    "match_share",
    *(
        f"{name} {what}"
        for name in ("none", "duplicates", "ordered")
        for what in ("matching", "missed", "doubled", "dropped")
    ),
]


class Table(means.Table):
    """Means by configuration, and every task's row by experiment, series and x."""

    def __init__(self, averaged: means.Table, specs: list[RunSpec], rows: list[Row]) -> None:
        super().__init__(averaged.means)
        found = {row["run_id"]: row for row in rows}
        self.rows: dict[tuple[str, str, float], list[Row]] = {}
        for spec in sorted(specs, key=lambda spec: (spec.experiment, spec.series, spec.x, spec.seed)):
            row = found.get(spec.run_id)
            if row is not None and row.get("error") is None:
                self.rows.setdefault((spec.experiment, spec.series, spec.x), []).append(row)

    def line(self, experiment: str, series: str, measure: str) -> Points:
        """Means over the points of a line; KeyError where there are none."""
        points = self.points(experiment, series, "none", measure)
        if not points:
            raise KeyError(f"{experiment}, {series}: {measure}")
        return points

    def series(self, experiment: str) -> list[str]:
        """The lines of an experiment."""
        return sorted({key[1] for key in self.rows if key[0] == experiment})

    def xs(self, experiment: str, series: str) -> list[float]:
        """The points of a line."""
        return sorted(key[2] for key in self.rows if key[:2] == (experiment, series))

    def churns(self) -> list[float]:
        """The churns at which quenching was measured; KeyError where it was not."""
        found = {key[0].removeprefix("quench ") for key in self.rows if key[0].startswith("quench ")}
        if not found:
            raise KeyError("quench")
        return sorted(float(each) for each in found)

    def total(self, measure: str, experiment: str, series: str | None = None) -> float:
        """A count summed over all tasks of an experiment, or of one of its lines."""
        value = sum(float(str(row[measure])) for row in self._found(experiment, series))
        return total_of([measure], _labels(experiment, series), value)

    def tasks(self, experiment: str, series: str) -> float:
        """How many tasks a line has."""
        count = len(self._found(experiment, series))
        return Cited(count, of_runs("count(*)", _labels(experiment, series)))

    def mean(self, measure: str, experiment: str, series: str) -> float:
        """The mean over the tasks of a line, each of which counts the same."""
        value = float(np.mean([float(str(row[measure])) for row in self._found(experiment, series)]))
        return mean_of(measure, _labels(experiment, series), value)

    def _found(self, experiment: str, series: str | None) -> list[Row]:
        keys = [key for key in self.rows if key[0] == experiment and series in (None, key[1])]
        if not keys:
            raise KeyError(f"{experiment}, {series}")
        return [row for key in keys for row in self.rows[key]]

    def listed(self, measure: str, experiment: str, series: str, x: float) -> Sample:
        """The measures of single histories of every task of a point, joined; a task may have none."""
        rows = self.rows[experiment, series, x]
        lists = [json.loads(str(row[measure])) for row in rows if row.get(measure) is not None]
        joined = np.array([value for values in lists for value in values], dtype=float)
        return sample(measure, WHOLE, {**_labels(experiment, series), "x": x}, joined)


def _labels(experiment: str, series: str | None) -> dict[str, str | float]:
    """What the runs of an experiment, or of one of its lines, are told by."""
    return {"experiment": experiment, **({} if series is None else {"series": series})}


def tabulate(specs: list[RunSpec], rows: list[Row], average: Average | None = None) -> Table:
    """The study's table; runs that failed take no part."""
    return Table(means.tabulate(specs, rows, average, measures=MEASURES), specs, rows)
