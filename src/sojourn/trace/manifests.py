"""Manifests: which segments a run has by its writers' word, so that one that is gone looks like no losses.

A writer notes after segments how many it has sealed of each table, and how many rows they hold, in
ROOT/_manifests/run_id=RUN/WRITER.json. A segment itself says in its footer which one it is. Together they
tell a gap from an end, a copy from a segment, and a stranger's file from both. A writer that died between
segments and their note has one segment of a table more than it noted, and that one counts. Runs of other
programs, without manifests, are not judged.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from sojourn.trace.places import Place, below

SEGMENT = re.compile(r"part-(?P<writer>[^-]+)-(?P<number>\d{8})\.parquet")
IDENTITY = b"sojourn-segment"
"""The key in a segment's footer under which it says what it is: TABLE/WRITER/NUMBER."""


class Sealed(NamedTuple):
    """What a writer has sealed of one table."""

    segments: int = 0
    rows: int = 0


Manifest = dict[str, Sealed]
"""By table."""


class SegmentFile(NamedTuple):
    """A file that was found where segments are."""

    table: str
    name: str
    rows: int
    identity: str
    """What it says of itself; nothing if it is of another program, or of an older version."""


def segment_name(writer: str, number: int) -> str:
    """The name of a segment's file."""
    return f"part-{writer}-{number:08d}.parquet"


def identity_of(table: str, writer: str, number: int) -> str:
    """What a segment says of itself."""
    return f"{table}/{writer}/{number}"


def manifest_path(root: Path, run_id: str, writer: str) -> Path:
    """Where a writer's manifest is."""
    return root / "_manifests" / f"run_id={run_id}" / f"{writer}.json"


def write_manifest(path: Path, manifest: Mapping[str, Sealed], mode: int = 0o666) -> None:
    """Replace a manifest in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name("." + path.name)
    noted = {table: sealed._asdict() for table, sealed in manifest.items() if sealed.segments}
    with open(hidden, "w", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        json.dump(noted, file)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)


def read_manifest(path: Place) -> Manifest | None:
    """Read a manifest; None where there is none that can be read."""
    try:
        noted = json.loads(path.read_text())
        return {table: Sealed(int(one["segments"]), int(one["rows"])) for table, one in noted.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def read_manifests(root: Place) -> dict[str, dict[str, Manifest | None]]:
    """By run and writer, every manifest of a trace; None for one that cannot be read."""
    found: dict[str, dict[str, Manifest | None]] = {}
    for path in below(root / "_manifests", "run_id=*/*.json"):
        if not path.name.startswith("."):
            found.setdefault(path.parent.name.removeprefix("run_id="), {})[path.stem] = read_manifest(path)
    return found


def fault_of_run(run_id: str, manifests: Mapping[str, Manifest | None], files: Iterable[SegmentFile]) -> str:
    """Say what is wrong with the files of a run that has manifests; nothing if all is well."""
    found: dict[tuple[str, str], dict[int, SegmentFile]] = {}
    for file in files:
        where = f"{file.table}/run_id={run_id}/{file.name}"
        match = SEGMENT.fullmatch(file.name)
        if match is None:
            return f"{where} is no segment that a writer of this run sealed; move it elsewhere."
        writer, number = match["writer"], int(match["number"])
        if file.identity and file.identity != identity_of(file.table, writer, number):
            return f"{where} is a copy of another segment ({file.identity}); remove it, or rename it back."
        found.setdefault((writer, file.table), {})[number] = file
    for writer, manifest in manifests.items():
        if manifest is None:
            return (
                f"_manifests/run_id={run_id}/{writer}.json is no manifest that can be read; restore it, or "
                "remove it to judge what is there."
            )
        for table in manifest.keys() | {table for name, table in found if name == writer}:
            there = found.get((writer, table), {})
            fault = _fault_of_table(f"{table}/run_id={run_id}", writer, manifest.get(table, Sealed()), there)
            if fault:
                return fault
    return ""


def _fault_of_table(folder: str, writer: str, sealed: Sealed, there: Mapping[int, SegmentFile]) -> str:
    missing = [number for number in range(sealed.segments) if number not in there]
    if missing:
        first = f"{folder}/{segment_name(writer, missing[0])}"
        others = f" and {len(missing) - 1} more of {sealed.segments} are" if missing[1:] else " is"
        return (
            f"{first}{others} missing, which would look like losses; restore what is gone, or remove "
            f"_manifests/{folder.rpartition('/')[2]}/{writer}.json to judge what is left."
        )
    beyond = [number for number in sorted(there) if number > sealed.segments]
    if beyond:
        where = f"{folder}/{segment_name(writer, beyond[0])}"
        return f"{where} was sealed by no writer of this run; move it elsewhere."
    rows = sum(file.rows for number, file in there.items() if number < sealed.segments)
    if rows != sealed.rows:
        return (
            f"the segments of {writer} in {folder} have {rows} rows and were sealed with {sealed.rows}; "
            "restore them."
        )
    return ""
