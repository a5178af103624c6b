"""`sojourn simulate`: one run of a scenario, as a table, as JSON, or watched.

The options are the fields of `Scenario`, made from that structure, so that a factor has its name, unit and
default in one place. A TOML file gives values, options on the command line override it.
"""

import inspect
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from sojourn.cli.watch import watch_run
from sojourn.errors import SojournError
from sojourn.sim.scenario import Factor, Scenario, factors, load_values, scenario_from
from sojourn.sim.world import World
from sojourn.studies.publisher_mobility import measures

WORLDS = ("publisher-mobility",)


class SimulateError(SojournError):
    """A run cannot be made as asked."""


def _simulate(
    world: str | None,
    scenario_file: Path | None,
    options: Mapping[str, Any],
    *,
    list_factors: bool,
    as_json: bool,
    watch: bool,
    pace: float,
) -> None:
    if list_factors:
        _show_factors(as_json=as_json)
        return
    if world not in WORLDS:
        asked = "nothing" if world is None else repr(world)
        raise SimulateError(
            f"world may be {', '.join(WORLDS)}, not {asked}; --list explains every parameter."
        )
    scenario = scenario_from(_merged(scenario_file, options))
    if not as_json:
        Console(stderr=True).print(_repeat(world, scenario), soft_wrap=True, highlight=False)
    started = time.perf_counter()
    result = watch_run(scenario, pace=pace) if watch else World(scenario).run()
    row = {**measures.measure(result, scenario), "wall_s": time.perf_counter() - started}
    if as_json:
        sys.stdout.write(json.dumps({"seed": scenario.seed, **row}, indent=2) + "\n")
    else:
        _show_row(row)


def _merged(scenario_file: Path | None, options: Mapping[str, Any]) -> dict[str, Any]:
    values = load_values(scenario_file) if scenario_file is not None else {}
    for name, value in options.items():
        if value is None:
            continue
        values[name] = _numbers(name, value) if name == "speeds_kmh" else value
    return values


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SimulateError(f"{name} must be numbers separated by commas, not {text!r}.") from None


def _repeat(world: str, scenario: Scenario) -> str:
    """The command that repeats this run: the seed, and whatever is not the default."""
    changed = []
    for factor in factors():
        value = getattr(scenario, factor.name)
        if factor.name == "seed" or value != factor.default:
            changed.append(_option(factor, value))
    return " ".join(["sojourn simulate", world, *changed])


def _option(factor: Factor, value: Any) -> str:
    flag = factor.name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {','.join(f'{v:g}' for v in value) if isinstance(value, tuple) else value}"


def _show_factors(*, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps([factor._asdict() for factor in factors()], indent=2) + "\n")
        return
    table = Table("parameter", "unit", "default", "what it is", title="What a scenario is made of")
    group = ""
    for factor in factors():
        if factor.group != group:
            group = factor.group
            table.add_section()
            table.add_row(f"[bold]{group.upper()}[/bold]", "", "", "")
        table.add_row(factor.name, factor.unit, _default(factor.default), factor.explanation)
    Console().print(table)


def _default(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{part:g}" for part in value)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _show_row(row: Mapping[str, Any]) -> None:
    table = Table("measure", "value")
    for name, value in row.items():
        if value is None:
            continue  # nothing of the kind happened in this run
        table.add_row(name.replace("_", " "), f"{value:,.4g}" if isinstance(value, float) else str(value))
    Console().print(table)


def _option_parameter(factor: Factor) -> inspect.Parameter:
    default = " ".join(filter(None, (_default(factor.default), factor.unit))) or "none"
    help_text = f"{factor.explanation} Default: {default}."
    kind: Any = str if isinstance(factor.default, tuple) else type(factor.default)
    flag = "--" + factor.name.replace("_", "-")
    declared = f"{flag}/--no-{flag[2:]}" if kind is bool else flag
    annotation = Annotated[
        kind | None, typer.Option(declared, help=help_text, show_default=False, rich_help_panel=factor.group)
    ]
    return inspect.Parameter(factor.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_OWN_PARAMETERS = (
    (
        "world",
        None,
        Annotated[
            str | None, typer.Argument(metavar="WORLD", help=f"What to simulate: {', '.join(WORLDS)}.")
        ],
    ),
    (
        "scenario",
        None,
        Annotated[
            Path | None, typer.Option("--scenario", help="TOML file of parameters; options override it.")
        ],
    ),
    (
        "list_factors",
        False,
        Annotated[bool, typer.Option("--list", help="Explain every parameter and stop.")],
    ),
    ("as_json", False, Annotated[bool, typer.Option("--json", help="Write the measures as JSON.")]),
    ("watch", False, Annotated[bool, typer.Option("--watch", help="Show the city while it runs.")]),
    (
        "pace",
        20.0,
        Annotated[
            float, typer.Option("--pace", min=0, help="Simulated seconds a second with --watch; 0: no pause.")
        ],
    ),
)


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a function the command line of a scenario: typer reads its signature."""
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, default, annotation in _OWN_PARAMETERS
    ]
    every = [*own, *(_option_parameter(factor) for factor in factors())]
    function.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return function


@_with_options
def simulate(**given: Any) -> None:
    """Run one scenario of moving publishers and show what it cost."""
    own = {name: given.pop(name) for name, _, _ in _OWN_PARAMETERS}
    _simulate(
        own["world"],
        own["scenario"],
        given,
        list_factors=own["list_factors"],
        as_json=own["as_json"],
        watch=own["watch"],
        pace=own["pace"],
    )
