"""`sojourn bench`: the measurements behind the figures we state."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sojourn.cli.heartbeat import working
from sojourn.cli.machine import machine, sentence
from sojourn.cli.workshop import require
from sojourn.errors import SojournError

BENCHMARKS = {
    "match": ("sojourn.cli.bench_match:run", "matching events against up to a million filters"),
    "simulate": ("sojourn.cli.bench_simulate:run", "simulated message hops a second, and a large network"),
    "calibrate": (
        "sojourn.cli.bench_simulate:calibrate",
        "what routing takes by table size, for simulations",
    ),
    "manet": ("sojourn.cli.bench_manet:run", "mobile networks of 60 to 1,000 nodes, packet by packet"),
    "predictions": (
        "sojourn.cli.bench_predictions:run",
        "copies that wait where clients are likely to go: bytes saved against late hand-offs",
    ),
    "interests": (
        "sojourn.cli.bench_interests:run",
        "one more subscription at brokers that know many, beside Mosquitto",
    ),
    "floods": (
        "sojourn.cli.bench_floods:run",
        "what others wait, and how long a loop is held, while a broker is flooded",
    ),
    "audit": ("sojourn.cli.bench_audit:run", "auditing up to 50 million deliveries on Spark"),
    "network": (
        "sojourn.cli.bench_network:run",
        "events that cross one, three and five links, beside bridged Mosquittos",
    ),
    "filters": (
        "sojourn.cli.bench_filters:run",
        "many content filters at work, beside Mosquitto with filtering in clients",
    ),
    "roam": ("sojourn.cli.bench_roam:run", "how long clients that move wait for what was stored for them"),
    "crowd": (
        "sojourn.cli.bench_crowd:run",
        "ten thousand connected sessions a broker, a thousand of them moving each minute",
    ),
    "start": ("sojourn.cli.bench_start:run", "how long brokers take to listen, and what they take at rest"),
    "live": ("sojourn.cli.bench_live:run", "a live broker beside Mosquitto: deliveries, latency, memory"),
}
"""Each benchmark: the function that measures it, and what it measures."""

SHORT = {"sim": "simulate"}
"""Other names of benchmarks."""

BORDER = 3
"""Characters that a column of a table takes beside its text."""


class UnknownBenchmarkError(SojournError):
    """There is no benchmark of that name."""


class BenchmarksFailedError(SojournError):
    """Of several benchmarks some did not come to an end."""


def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(BENCHMARKS)}, all.")],
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per benchmark, nothing else.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="The file that calibrate writes, for `computations = measured`.")
    ] = Path("calibration.json"),
    size: Annotated[
        list[int] | None,
        typer.Option(min=1, metavar="COUNT", help="Deliveries that audit is measured with; may be repeated."),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What audit is measured with: plain, outage, skew or a number of filters; may be repeated.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Measure interests, or filters, with 100,000 of each kind.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(help="A checkout of Sojourn whose brokers floods measures too.")
    ] = None,
    only: Annotated[
        str, typer.Option(help="A part of the name of the floods, or of the network's rows, to measure.")
    ] = "",
) -> None:
    """Measure how fast the system is on this machine, beside peers in the same run.

    Figures are ratios worth comparing within one run; on a busy machine all of them fall together.
    """
    names = list(BENCHMARKS) if name == "all" else [SHORT.get(name, name)]
    if names[0] not in BENCHMARKS:
        raise UnknownBenchmarkError(
            f"There is no benchmark {name!r}; there are {', '.join(BENCHMARKS)} and all."
        )
    if size and name != "audit":
        raise UnknownBenchmarkError(f"--size is for audit alone, not {name!r}; leave it out.")
    if full and name not in ("interests", "filters"):
        raise UnknownBenchmarkError(f"--full is for interests and filters, not {name!r}; leave it out.")
    if shape and name != "audit":
        raise UnknownBenchmarkError(f"--shape is for audit alone, not {name!r}; leave it out.")
    if against is not None and name != "floods":
        raise UnknownBenchmarkError(f"--against is for floods alone, not {name!r}; leave it out.")
    if only and name not in ("floods", "network"):
        raise UnknownBenchmarkError(f"--only is for floods and network, not {name!r}; leave it out.")
    given: dict[str, object] = {"sizes": size} if size else {}
    given |= {"shapes": shape} if shape else {}
    given |= {"full": True} if full else {}
    given |= {"against": against} if against is not None else {}
    given |= {"only": only} if only else {}
    _run(names, given, out, as_json=as_json)


def _run(names: list[str], given: dict[str, object], out: Path, *, as_json: bool) -> None:
    """Run benchmarks and print each when it has ended; of several one that fails does not end the others."""
    on, is_told = machine(), False
    failed: dict[str, SojournError] = {}
    for number, each in enumerate(names, 1):
        title = f"bench {each}" + (f" ({number} of {len(names)})" if len(names) > 1 else "")
        try:
            rows = _measure(each, title, given | ({"path": out} if each == "calibrate" else {}))
        except SojournError as error:
            if len(names) == 1:
                raise
            failed[each] = error
            continue
        if as_json:
            typer.echo(json.dumps({"benchmark": each, "machine": on, "rows": rows}))
        else:
            if not is_told:
                Console().print(sentence(on), style="italic", highlight=False)
                is_told = True
            _show(each, rows)
    if failed:
        why = " ".join(f"{each}: {error}" for each, error in failed.items())
        raise BenchmarksFailedError(f"All others are above; these could not be measured: {why}")


def _measure(name: str, title: str, given: dict[str, object]) -> list[dict[str, object]]:
    module, function = BENCHMARKS[name][0].split(":")
    require(module, f"bench {name}")
    run: Callable[..., list[dict[str, object]]] = getattr(importlib.import_module(module), function)
    with working(Console(stderr=True), title) as tell:
        tell(BENCHMARKS[name][1])
        return run(progress=tell, **given)


def _show(name: str, rows: list[Mapping[str, object]] | list[dict[str, object]]) -> None:
    """Print tables turned round, one column for each row, as there are more figures than rows."""
    console = Console()
    console.print(f"bench {name}: {BENCHMARKS[name][1]}", style="italic", highlight=False)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    columns = [[_cell(row.get(key)) for key in keys] for row in rows]
    left = console.width - max(map(len, keys)) - BORDER
    while columns:
        widths = itertools.accumulate(max(map(len, column)) + BORDER for column in columns)
        fitting = max(1, sum(width <= left for width in widths))
        table = Table(show_header=False)
        for _ in range(fitting + 1):
            table.add_column(justify="right")
        for key, *cells in zip(keys, *columns[:fitting], strict=True):
            if any(cells):
                table.add_row(key, *cells)
        console.print(table)
        columns = columns[fitting:]


def _cell(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, list):
        return ", ".join(_cell(each) for each in value)
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
