"""`sojourn audit --follow`: the audit of a run while it goes on, by the minute.

A streaming query judges what brokers seal (`pipeline/streaming.py`); every few seconds its sums are read and
shown: a table on a terminal, otherwise a JSON object a line for each window that changed. It ends when the
run does, or when it is interrupted; started again with the same checkpoint it goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from pyspark.sql import SparkSession
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sojourn.cli.following import FollowError, first_line, interrupts, rest
from sojourn.cli.heartbeat import working
from sojourn.errors import typed
from sojourn.pipeline.audit_job import JOB_FAILURES
from sojourn.pipeline.audit_losses import REASONS
from sojourn.pipeline.audit_options import LiveOptions
from sojourn.pipeline.streaming import CHECKPOINT, by_window, read_findings, sized, start_live_audit
from sojourn.trace import COLUMNS, segment_folder
from sojourn.trace.lives import missing_of, read_lives, said_of

WINDOWS_SHOWN = 15
NOTE = "options.json"
"""In the folder of a checkpoint, how it was begun."""
_SHOWN = {
    "window_s": "minute from, s",
    "expected": "expected",
    "lost": "lost",
    "why": "because of",
    "duplicated": "doubled",
    "out_of_order": "out of order",
    "unauthorised": "leaked",
    "unrecorded": "not known",
    "latency_p50_s": "latency p50",
    "latency_p99_s": "p99",
    "handoffs": "hand-offs",
    "handoff_ready_p50_s": "ready p50",
    "handoff_ready_p99_s": "p99",
    "late": "came late",
}
_LATE = ("late_publications", "late_deliveries", "late_interests")
_UNRECORDED = ("unrecorded_deliveries", "unrecorded_publications")

Rows = list[dict[str, Any]]


def follow(
    root: Path,
    *,
    run_id: str | None,
    out: Path | None,
    start: Callable[[], SparkSession],
    options: LiveOptions,
    as_json: bool,
) -> None:
    """Audit a run until it ends or we are interrupted."""
    run = run_id or _only_run(root)
    folder = out or root / "_audit" / run
    options = _as_begun(folder, run, options)
    console = Console(stderr=True, highlight=False)
    with working(console, "starting Spark"):
        spark = start()
    options = sized(options, spark)
    _note_options(folder, run, options)
    query = start_live_audit(spark, root, run, folder, options)
    rows: Rows = []
    with _view(run, as_json=as_json) as show, interrupts() as interrupted:
        try:
            while True:
                over = has_ended(root, run)
                if over:
                    query.processAllAvailable()
                rows = by_window(read_findings(spark, folder)).toArrow().to_pylist()
                show(rows)
                if over or interrupted.is_set():
                    break
                rest(query, options.trigger_s, interrupted)
        except JOB_FAILURES as error:
            raise FollowError(first_line(error)) from error
        finally:
            query.stop()
    _say_late(console, rows)
    for sentence in said_missing(root, run):
        console.print(sentence, markup=False, soft_wrap=True)
    console.print(
        f"Interrupted; the same command goes on where it stopped, by its checkpoint in {folder}."
        if interrupted.is_set()
        else f"The run {run} has ended; `sojourn audit {typed(root)}` looks at it as a whole.",
        markup=False,
        soft_wrap=True,
    )


def has_ended(root: Path, run_id: str) -> bool:
    """Whether the end of a run has been sealed."""
    return _duration_s(root, run_id) is not None


def _duration_s(root: Path, run_id: str) -> float | None:
    """Return how long a run was; None while it goes on."""
    found: list[float] = []
    for path in segment_folder(root, "runs", run_id).glob("part-*.parquet"):
        try:
            durations = pq.ParquetFile(path).read(["duration_s"]).column("duration_s")
        except (pa.ArrowException, OSError):
            continue  # the query complains of it
        found += durations.drop_null().to_pylist()
    return max(found, default=None)


def said_missing(root: Path, run_id: str) -> list[str]:
    """Return a sentence for each broker that ended without sealing what it had noted."""
    duration_s = _duration_s(root, run_id)
    missing = missing_of(read_lives(root, run_id).get(run_id, {}), duration_s)
    return said_of([gap for gap in missing if not gap.may_go_on], duration_s)


def _only_run(root: Path) -> str:
    runs = sorted(
        {path.name.removeprefix("run_id=") for t in COLUMNS for path in (root / t).glob("run_id=*")}
    )
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise FollowError(f"{root} has no run yet; name the one to wait for with --run.")
    raise FollowError(f"{root} has {len(runs)} runs ({', '.join(runs[:3])}, …); choose one with --run.")


def _as_begun(folder: Path, run_id: str, options: LiveOptions) -> LiveOptions:
    """Return options with the buckets of a checkpoint; refuse one that was begun differently."""
    note = folder / NOTE
    if note.is_file():
        begun = json.loads(note.read_text())
        options = replace(options, buckets=options.buckets or begun.get("buckets"))
        asked = _asked(run_id, options)
        wrong = [name for name, value in asked.items() if begun.get(name) != value]
        if wrong:
            raise FollowError(
                f"The checkpoint {folder} was begun with {wrong[0]} {begun.get(wrong[0])}, not "
                f"{asked[wrong[0]]}; name another with --checkpoint."
            )
        return options
    if (folder / CHECKPOINT).exists():
        raise FollowError(f"{folder} has a checkpoint of something else; name another with --checkpoint.")
    return options


def _note_options(folder: Path, run_id: str, options: LiveOptions) -> None:
    """Note how a checkpoint is begun."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NOTE).write_text(json.dumps(_asked(run_id, options)))


def _asked(run_id: str, options: LiveOptions) -> dict[str, Any]:
    return {"run": run_id, "window_s": options.window_s, "buckets": options.buckets}


@contextmanager
def _view(run_id: str, *, as_json: bool) -> Iterator[Callable[[Rows], None]]:
    """Yield what shows the windows so far: a table that changes, or lines of JSON."""
    console = Console(highlight=False)
    if as_json or not console.is_terminal:
        told: dict[float, dict[str, Any]] = {}

        def tell(rows: Rows) -> None:
            for row in rows:
                if told.get(row["window_s"]) != row:
                    typer.echo(json.dumps(row))
                    told[row["window_s"]] = row

        yield tell
        return
    with Live(console=console, auto_refresh=False) as live:
        live.update(
            Text(f"{run_id}: nothing judged yet; events are when their patience is over."), refresh=True
        )

        def draw(rows: Rows) -> None:
            if rows:
                live.update(Group(_table(run_id, rows)), refresh=True)

        yield draw


def _table(run_id: str, rows: Rows) -> Table:
    """Make a table of the latest windows above the sums of all."""
    table = Table(title=f"{run_id}, judged so far", title_justify="left", show_footer=True)
    for name, title in _SHOWN.items():
        sums = (
            "all"
            if name == "window_s"
            else ""
            if name.endswith("_s") or name == "why"
            else f"{_sum(rows, name):,}"
        )
        table.add_column(title, sums, justify="right")
    for row in rows[-WINDOWS_SHOWN:]:
        table.add_row(*(_cell(_value(row, name)) for name in _SHOWN))
    return table


def _value(row: dict[str, Any], name: str) -> Any:
    if name == "why":
        given = {reason: row[f"lost_{reason}"] for reason in REASONS}
        return ", ".join(f"{reason.replace('_', ' ')} {count:,}" for reason, count in given.items() if count)
    if name == "unrecorded":
        return sum(row[count] for count in _UNRECORDED)
    return sum(row[late] for late in _LATE) if name == "late" else row[name]


def _sum(rows: Rows, name: str) -> int:
    return int(sum(_value(row, name) for row in rows))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"


def _say_late(console: Console, rows: Rows) -> None:
    publications, deliveries, interests = (_sum(rows, name) for name in _LATE)
    if publications:
        console.print(f"{publications} publications came late and were judged all the same.")
    if deliveries:
        console.print(
            f"{deliveries} deliveries came after their event was judged, and changed nothing; --patience-s "
            "says how long is waited.",
            soft_wrap=True,
        )
    if interests:
        console.print(f"{interests} interests came late and held only from then on.")
