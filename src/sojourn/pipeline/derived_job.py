"""Makes the tables that follow from a trace, run by run, and keeps a catalogue of them.

    FOLDER/catalogue.json          where the trace is, which runs are in here, what every column means
    FOLDER/<table>/run_id=<id>/    a table's part for a run; `means` is over all runs

A run is done again only if its files are others than they were, or this code is: the catalogue has a digest
of both. A run's parts replace what was there, so that a job which is killed can be started again. Runs whose
rows cannot be what happened (`data_checks.py`) are refused, all of them named, and nothing of them is made.
Of runs whose brokers ended without sealing what they had noted, that is said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from sojourn.errors import SojournError
from sojourn.pipeline import derived
from sojourn.pipeline.audit_job import build_outcomes, missing_rows, run_durations, told_missing
from sojourn.pipeline.data_checks import Fault, faults
from sojourn.pipeline.derived_rows import ALL, DERIVED, described
from sojourn.pipeline.places import NoTraceError
from sojourn.pipeline.schemas import PARTITION, rows_schema
from sojourn.pipeline.sweep import code_version
from sojourn.pipeline.tables import Trace, open_trace, read_table

CATALOGUE = "catalogue.json"
Tell = Callable[[str], None]


class DataError(SojournError):
    """Rows of a trace cannot be what happened."""


class Made(NamedTuple):
    """What a job did."""

    new: list[str]
    """The runs that were made."""
    kept: list[str]
    """Those that were there as they are."""
    faults: list[Fault]
    refused: dict[str, str]
    """Runs whose files cannot be read, and why."""
    missing: dict[str, list[str]]
    """By run that has tables now, which brokers ended without sealing what they had noted."""


def make_tables(
    spark: SparkSession, root: str, folder: Path, tell: Tell = lambda _what: None, *, anyway: bool = False
) -> Made:
    """Make what is new of all tables; with `anyway`, of runs with faults too."""
    trace = open_trace(root)
    known = _runs_of(folder)
    digests = _digests(trace)
    new = [run_id for run_id, digest in digests.items() if known.get(run_id, {}).get("digest") != digest]
    refused = {problem.run_id: problem.sentence for problem in trace.problems if problem.refused}
    found: list[Fault] = []
    if new:
        tell("looking at the data")
        chosen = trace.only(new)
        gaps = missing_rows(chosen, run_durations(chosen))
        found = faults(lambda table: read_table(spark, chosen, table, keyless=True), gaps)
        bad = {fault.run_id for fault in found}
        new = new if anyway else [run_id for run_id in new if run_id not in bad]
    if new:
        _write(spark, trace.only(new), folder, tell)
        known |= {run_id: {"digest": digests[run_id]} for run_id in new}
        _note(folder, trace, known)
        tell("means")
        runs = read_table(spark, trace.only(known), "runs")
        _over_all(spark, folder, known, runs)
    missing: dict[str, list[str]] = {}
    for problem in told_missing(trace.only(new)) if new else []:
        missing.setdefault(problem.run_id, []).append(problem.sentence)
    kept = sorted(set(digests) - set(new) - {fault.run_id for fault in found})
    return Made(new, kept, found, refused, missing)


def _write(spark: SparkSession, trace: Trace, folder: Path, tell: Tell) -> None:
    """Write the parts of some runs, each table from those before it."""

    def recorded(table: str) -> DataFrame:
        return read_table(spark, trace, table)

    def written(table: str) -> DataFrame:
        rows = spark.read.schema(rows_schema(DERIVED[table].row)).parquet(str(folder / table))
        return rows.where(rows[PARTITION].isin(trace.runs))

    makers: dict[str, Callable[[], DataFrame]] = {
        "outcomes": lambda: build_outcomes(spark, trace),
        "handoff_phases": lambda: derived.handoff_phases(recorded("handoffs"), recorded("message_counts")),
        "neighbours": lambda: derived.neighbours(recorded("sojourns")),
        "occupancy": lambda: derived.occupancy(
            recorded("sojourns"), recorded("broker_load"), recorded("deliveries"), recorded("runs")
        ),
        "measures": lambda: derived.measures(
            written("outcomes"), written("handoff_phases"), written("occupancy"), recorded("runs")
        ),
    }
    for table, make in makers.items():
        tell(table)
        schema = rows_schema(DERIVED[table].row)
        rows = make().select(*schema.names)
        (folder / table).mkdir(parents=True, exist_ok=True)
        for run_id in trace.runs:
            _emptied(folder / table / f"{PARTITION}={run_id}")
        rows.repartition(PARTITION).write.mode("append").partitionBy(PARTITION).parquet(str(folder / table))


def _emptied(part: Path) -> None:
    for file in part.glob("*") if part.is_dir() else ():
        file.unlink()


def _over_all(spark: SparkSession, folder: Path, known: dict[str, Any], runs: DataFrame) -> None:
    measures = spark.read.schema(rows_schema(DERIVED["measures"].row)).parquet(str(folder / "measures"))
    chosen = measures.where(measures[PARTITION].isin(list(known)))
    made = derived.means(chosen, runs).coalesce(1)
    made.write.mode("overwrite").parquet(str(folder / "means"))


def _digests(trace: Trace) -> dict[str, str]:
    """By run, a digest of its files by their names, sizes and rows, of its gaps, and of this code."""
    code = code_version(make_tables)
    parts: dict[str, list[str]] = {run_id: [code] for run_id in trace.runs}
    for run_id, missing in missing_rows(trace, run_durations(trace)).items():
        parts[run_id] += map(str, missing)
    for table, files in trace.files.items():
        for file in files:
            size = file.path.stat().st_size
            parts[file.run_id].append(f"{table}/{file.path.name} {size} {sum(file.group_rows)}")
    return {
        run_id: hashlib.sha256("\n".join(sorted(told)).encode()).hexdigest()[:16]
        for run_id, told in parts.items()
    }


def _runs_of(folder: Path) -> dict[str, Any]:
    catalogue = read_catalogue(folder)
    return {} if catalogue is None else dict(catalogue["runs"])


def read_catalogue(folder: Path) -> dict[str, Any] | None:
    """Return the catalogue of a folder; None where there is none."""
    path = folder / CATALOGUE
    if not path.is_file():
        if folder.is_dir() and any(folder.iterdir()):
            raise NoTraceError(f"{folder} has files and no {CATALOGUE}; name a folder that is empty or new.")
        return None
    try:
        catalogue: dict[str, Any] = json.loads(path.read_text())
        assert isinstance(catalogue["runs"], dict)
    except (ValueError, KeyError, TypeError, AssertionError):
        raise NoTraceError(f"{path} is no catalogue of tables; remove the folder, or name another.") from None
    return catalogue


def _note(folder: Path, trace: Trace, runs: dict[str, Any]) -> None:
    """Write the catalogue, in one step."""
    told = {
        "trace": str(trace.root),
        "runs": dict(sorted(runs.items())),
        "tables": {table: described(table) for table in ALL},
    }
    hidden = folder / f".{CATALOGUE}"
    hidden.write_text(json.dumps(told, indent=1) + "\n")
    hidden.replace(folder / CATALOGUE)
