"""`sojourn doctor`: what works on this machine, what does not, and what to do about it.

A finding is `ok`, `missing` (something that only some commands need, and its extra), `note` (it works, but
look at it) or `wrong`. Only what is wrong makes the exit code 1, and what is missing of an extra that was
asked for with --needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import resource
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import typer
from rich.console import Console

from sojourn import __version__
from sojourn.cli.heartbeat import working
from sojourn.errors import LIBRARIES, SojournError
from sojourn.pipeline.java import JAVA_MAJOR_MIN, find_java, java_major

EXTRAS = {
    "index": ("numba", "numpy"),
    "trace": ("pyarrow",),
    "demo": ("numba", "numpy", "pyarrow", "pandas", "plotly", "pyspark"),
    "spark": ("numba", "numpy", "pyarrow", "pandas", "pyspark", "scipy"),
    "studies": ("numba", "numpy", "pyarrow", "pandas", "pyspark", "scipy", "highspy", "plotly"),
    "bench": ("numba", "numpy", "pyarrow", "pandas", "pyspark", "scipy", "highspy", "plotly", "duckdb"),
}
"""What each extra brings, as `pyproject.toml` says."""
NEEDS_JAVA = ("demo", "spark", "studies", "bench")
PORTS = {
    1883: ("a broker", "`listen` in its file, or `serve --port` without a file, takes another"),
    8080: ("a page", "`page` in its broker's file takes another"),
}
"""Whose usual port each is, and how another is taken."""
FILES_MIN = 4_096
"""Connections are files; a broker raises its limit as far as the system lets it."""
ROOM_BYTES_MIN = 1 << 30
CLOCK_UNSYNCHRONISED = 5
"""What Linux answers to adjtimex when nothing keeps its clock right."""
EARLIEST_S = 1_735_689_600.0
"""2025: a clock before that is wrong."""

State = Literal["ok", "missing", "note", "wrong"]


class DoctorError(SojournError):
    """What was asked of the doctor cannot be looked at."""


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    state: State
    text: str


def doctor(
    *,
    needs: Annotated[
        list[str] | None,
        typer.Option(metavar="EXTRA", help=f"Insist on an extra: {', '.join(EXTRAS)}; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Look at what Sojourn needs on this machine: Python, Java, ports, kernels, extras and the clock.

    The exit code is 1 when something is wrong. For example:

    sojourn doctor

    sojourn doctor --needs spark --json
    """
    asked = needs or []
    for extra in asked:
        if extra not in EXTRAS:
            raise DoctorError(f"There is no extra {extra!r}; choose one of {', '.join(EXTRAS)}.")
    findings = list(examine(asked))
    if as_json:
        typer.echo(json.dumps({one.what: {"state": one.state, "text": one.text} for one in findings}))
    else:
        wide = max(len(one.what) for one in findings)
        for one in findings:
            typer.echo(f"{one.state:<8}{one.what:<{wide + 2}}{one.text}")
    if any(one.state == "wrong" for one in findings):
        raise typer.Exit(1)


def examine(needs: list[str]) -> Iterator[Finding]:
    """Look at everything."""
    yield _python()
    for extra, libraries in EXTRAS.items():
        yield _extra(extra, libraries, asked=extra in needs)
    yield _java(asked=any(extra in NEEDS_JAVA for extra in needs))
    yield _kernels()
    for port, (whose, way_out) in PORTS.items():
        yield _port(port, f"the usual port of {whose}", way_out)
    yield _files()
    yield _room()
    yield _clock()


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    state: State = "ok" if sys.version_info >= (3, 11) else "wrong"
    where = Path(__file__).parent.parent
    return Finding("python", state, f"Python {version}; sojourn {__version__} at {where}")


def _extra(extra: str, libraries: tuple[str, ...], *, asked: bool) -> Finding:
    absent = [name for name in libraries if not _is_there(name)]
    if not absent:
        return Finding(f"[{extra}]", "ok", ", ".join(f"{name} {_version(name)}" for name in libraries))
    names = ", ".join(dict.fromkeys(LIBRARIES[name][0] for name in absent))
    return Finding(
        f"[{extra}]", "wrong" if asked else "missing", f"no {names}: pip install 'sojourn[{extra}]'"
    )


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _java(*, asked: bool) -> Finding:
    try:
        home = find_java()
    except SojournError as error:
        return Finding("java", "wrong" if asked else "missing", str(error))
    return Finding(
        "java", "ok", f"Java {java_major(home / 'bin' / 'java')} at {home} (at least {JAVA_MAJOR_MIN})"
    )


def _kernels() -> Finding:
    """Whether the filter index works, which compiles its kernels if nobody has before."""
    if not all(map(_is_there, EXTRAS["index"])):
        return Finding("kernels", "missing", "filters are tried one by one: pip install 'sojourn[index]'")
    from sojourn.interest.index.compiling import cache_folder
    from sojourn.live.brokers.warming import keeps_kernels, load_index_kernels

    since = time.perf_counter()
    with working(Console(stderr=True), "compiling the kernels of the filter index, once"):
        load_index_kernels()
    took = f"loaded in {time.perf_counter() - since:.1f} s"
    if not keeps_kernels():
        return Finding(
            "kernels",
            "note",
            f"{took}, and cannot be kept: every start compiles them; set NUMBA_CACHE_DIR to a folder that "
            "can be written",
        )
    return Finding("kernels", "ok", f"{took}, kept in {cache_folder()}")


def _port(port: int, what: str, way_out: str) -> Finding:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return Finding(f"port {port}", "ok", f"free; {what}")
    return Finding(f"port {port}", "note", f"somebody else has it; {what} ({way_out})")


def _files() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES_MIN:
        return Finding(
            "files", "note", f"at most {hard:,} may be open, so about as many clients; raise `ulimit -Hn`"
        )
    return Finding("files", "ok", f"a broker may have {hard:,} open")


def _room() -> Finding:
    """Whether a store in this folder could grow."""
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    text = f"{free / 1e9:,.1f} GB free in {here}"
    if not os.access(here, os.W_OK):
        return Finding("room", "note", f"{here} cannot be written; give stores and traces another folder")
    return Finding("room", "ok" if free >= ROOM_BYTES_MIN else "note", text)


def _clock() -> Finding:
    now = time.time()
    said = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < EARLIEST_S:
        return Finding("clock", "wrong", f"it says {said}; set it, for sessions and tokens run out by it")
    if _is_unsynchronised():
        return Finding(
            "clock", "note", f"{said}; nothing keeps it right (brokers allow for that, tokens do not)"
        )
    return Finding("clock", "ok", said)


def _is_unsynchronised() -> bool:
    """Whether Linux says that its clock is not kept by anybody; False where it does not say."""
    try:
        adjtimex = ctypes.CDLL(None).adjtimex
    except (AttributeError, OSError):
        return False
    # A struct timex whose modes are 0 asks and sets nothing; it has less than 256 bytes on every Linux.
    return bool(adjtimex(ctypes.create_string_buffer(256)) == CLOCK_UNSYNCHRONISED)
