"""`sojourn simulate`: one run of a scenario, as a table, as JSON, watched, or with its trace.

There are three worlds, a sub-command each: publishers that move (paper 000), subscribers that roam (paper
001), and nodes with no infrastructure at all (paper 004, `simulate_manet.py`). The options are the fields of
their scenarios, made from those structures, so that a factor has its name, unit and default in one place. A
TOML file gives values, options on the command line override it.
"""

import hashlib
import inspect
import json
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from typer.core import TyperGroup

from sojourn.cli.heartbeat import heartbeat
from sojourn.cli.simulate_manet import run_manet
from sojourn.cli.watch import watch_run
from sojourn.errors import SojournError, typed
from sojourn.sim.manet.scenario import Manet
from sojourn.sim.publishers.world import World
from sojourn.sim.recorder import Recorder
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.world import RoamingWorld
from sojourn.sim.scenario import Described, Factor, Scenario, described_from, factors, load_values
from sojourn.studies.handoff import measures as handoff_measures
from sojourn.studies.handoff import parameters as handoff
from sojourn.studies.publisher_mobility import measures
from sojourn.trace import write_run

PUBLISHERS, ROAMING, MANET = "publisher-mobility", "roaming", "manet"

KINDS: dict[str, type[Described]] = {PUBLISHERS: Scenario, ROAMING: RoamingScenario, MANET: Manet}
"""By world: what a scenario of it is made of."""

BASES: dict[str, dict[str, object]] = {PUBLISHERS: {}, ROAMING: dict(handoff.TESTBED), MANET: {}}
"""By world: values beside the structure's defaults. Roaming has the costs that the hand-off study fits."""

WORLDS = tuple(KINDS)


class SimulateError(SojournError):
    """A run cannot be made as asked."""


def _simulate(world: str, options: Mapping[str, object], own: Mapping[str, Any]) -> None:
    if own["list_factors"]:
        _show_factors([world], as_json=own["as_json"])
        return
    values = {**BASES[world], **_merged(own["scenario"], options)}
    scenario = described_from(values, KINDS[world])
    if not own["as_json"]:
        Console(stderr=True).print(_repeat(world, scenario), soft_wrap=True, highlight=False)
    run_id = _named(world, scenario)
    recorder = Recorder(run_id, study="simulate") if own["trace"] is not None else None
    started = time.perf_counter()
    row = _run(scenario, recorder, watch=own["watch"], pace=own["pace"])
    row["wall_s"] = time.perf_counter() - started
    if own["as_json"]:
        sys.stdout.write(json.dumps({"seed": values.get("seed", 1), **row}, indent=2) + "\n")
    else:
        _show_row(row)
    if recorder is not None:
        write_run(own["trace"], run_id, recorder.tables)
        Console(stderr=True).print(
            f"Wrote the trace into {own['trace']}: `sojourn audit {typed(own['trace'])}`."
        )


def _named(world: str, scenario: Described) -> str:
    """The name of a run in its trace: another scenario has another, and the same one replaces itself."""
    digest = hashlib.sha256(msgspec.json.encode(scenario, order="sorted")).hexdigest()
    return f"{world}-{digest[:12]}"


def _run(scenario: Described, recorder: Recorder | None, *, watch: bool, pace: float) -> dict[str, object]:
    """The measures of one run."""
    if isinstance(scenario, Manet):
        if watch:
            return run_manet(scenario, recorder, None, pace)
        with share_bar("simulating") as tell:
            return run_manet(scenario, recorder, tell, pace)
    if isinstance(scenario, RoamingScenario):
        if watch:
            raise SimulateError("watch shows moving publishers only; leave --watch out for roaming.")
        with share_bar("simulating") as tell:
            result = RoamingWorld(scenario, recorder=recorder).run(tell)
        return dict(handoff_measures.measure(result, scenario))
    assert isinstance(scenario, Scenario)
    if watch:
        if recorder is not None:
            raise SimulateError("watch and trace exclude each other; leave one of them out.")
        return dict(measures.measure(watch_run(scenario, pace=pace), scenario))
    with share_bar("simulating") as tell:
        found = World(scenario, recorder=recorder).run(tell)
    return dict(measures.measure(found, scenario))


@contextmanager
def share_bar(what: str) -> Iterator[Callable[[float], None]]:
    """A bar that is told the share that is done; lines from time to time where nobody looks."""
    console = Console(stderr=True)
    if not console.is_terminal:
        with heartbeat(console, what) as beat:
            yield lambda share: beat.tell(what, f"{share:.0%}")
        return
    with Progress(*Progress.get_default_columns(), console=console, transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def _merged(scenario_file: Path | None, options: Mapping[str, object]) -> dict[str, object]:
    values = load_values(scenario_file) if scenario_file is not None else {}
    for name, value in options.items():
        if value is None:
            continue
        values[name] = _numbers(name, str(value)) if name == "speeds_kmh" else value
    return values


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SimulateError(f"{name} must be numbers separated by commas, not {text!r}.") from None


def _repeat(world: str, scenario: Described) -> str:
    """The command that repeats this run: the seed, and whatever is not the world's usual value."""
    changed = []
    for factor in _factors(world):
        value = getattr(scenario, factor.name)
        if factor.name == "seed" or value != factor.default:
            changed.append(_option(factor, value))
    return " ".join(["sojourn simulate", world, *changed])


def _factors(world: str) -> list[Factor]:
    """A world's factors, with the defaults that it has here."""
    usual = BASES[world]
    return [
        factor._replace(default=usual.get(factor.name, factor.default)) for factor in factors(KINDS[world])
    ]


def _option(factor: Factor, value: object) -> str:
    flag = factor.name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {','.join(f'{v:g}' for v in value) if isinstance(value, tuple) else value}"


def _show_factors(worlds: list[str], *, as_json: bool) -> None:
    if as_json:
        listed = {world: [factor._asdict() for factor in _factors(world)] for world in worlds}
        found = listed[worlds[0]] if len(worlds) == 1 else listed
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    for world in worlds:
        table = Table(
            "parameter", "unit", "default", "what it is", title=f"What a scenario of {world} is made of"
        )
        group = ""
        for factor in _factors(world):
            if factor.group != group:
                group = factor.group
                table.add_section()
                table.add_row(f"[bold]{group.upper()}[/bold]", "", "", "")
            table.add_row(factor.name, factor.unit, _default(factor.default), factor.explanation)
        Console().print(table)


def _default(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{part:g}" for part in value)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _said_default(factor: Factor) -> str:
    """The default as it stands in a sentence; a share or a probability needs no unit."""
    if isinstance(factor.default, bool):
        return "on" if factor.default else "off"
    unit = "" if factor.unit in ("share", "probability") else factor.unit
    if factor.default == 1:
        unit = unit.removesuffix("s") if len(unit) > 1 else unit
    return " ".join(filter(None, (_default(factor.default), unit))) or "none"


def _show_row(row: Mapping[str, object]) -> None:
    table = Table("measure", "value")
    for name, value in row.items():
        if value is None:
            continue  # nothing of the kind happened in this run
        table.add_row(name.replace("_", " "), f"{value:,.4g}" if isinstance(value, float) else str(value))
    Console().print(table)


# The command line -------------------------------------------------------------------------------------------

TWINS = {"scheme": "protocol", "protocol": "scheme"}
"""What some call the one and some the other: where a world has one of the two, its option has both names."""


def _option_parameter(factor: Factor, known: Collection[str]) -> inspect.Parameter:
    """The option of a factor."""
    default = _said_default(factor)
    kind: Any = str if isinstance(factor.default, tuple) else type(factor.default)
    flag = "--" + factor.name.replace("_", "-")
    flags = [f"{flag}/--no-{flag[2:]}" if kind is bool else flag]
    twin = TWINS.get(factor.name)
    if twin is not None and twin not in known:
        flags.append(f"--{twin}")
    annotation = Annotated[
        kind | None,
        typer.Option(
            *flags,
            help=f"{factor.explanation} Default: {default}.",
            show_default=False,
            rich_help_panel=factor.group.capitalize(),
        ),
    ]
    return inspect.Parameter(factor.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_OWN_PARAMETERS = (
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
    (
        "trace",
        None,
        Annotated[
            Path | None, typer.Option("--trace", help="Directory for the run's trace, for `sojourn audit`.")
        ],
    ),
    (
        "watch",
        False,
        Annotated[bool, typer.Option("--watch", help="Draw the world in the terminal while it runs.")],
    ),
    (
        "pace",
        20.0,
        Annotated[
            float,
            typer.Option("--pace", min=0, help="Simulated seconds per second with --watch; 0: no pause."),
        ],
    ),
)


class _Worlds(TyperGroup):
    """Refuses a world that there is none of with a sentence that names those there are."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a world's command."""
        if args and not args[0].startswith("-") and args[0] not in WORLDS:
            raise _no_world(repr(args[0]))
        return super().resolve_command(ctx, args)


def _no_world(asked: str) -> SimulateError:
    return SimulateError(f"world may be {', '.join(WORLDS)}, not {asked}; --list explains every parameter.")


app = typer.Typer(cls=_Worlds, invoke_without_command=True, rich_markup_mode="rich", add_completion=False)


@app.callback()
def simulate(
    ctx: typer.Context,
    *,
    list_factors: Annotated[
        bool, typer.Option("--list", help="Explain every parameter of every world and stop.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --list: as JSON.")] = False,
) -> None:
    """Run one scenario of moving publishers, roaming subscribers or a mobile network; show what it cost.

    sojourn simulate roaming --help lists the parameters of that world. For example:

    sojourn simulate publisher-mobility --protocol delayed --publishers 20 --watch
    """
    if ctx.invoked_subcommand is not None:
        return
    if not list_factors:
        raise _no_world("nothing")
    _show_factors(list(WORLDS), as_json=as_json)


ABOUT = {
    PUBLISHERS: "Publishers that drive through a city, from broker to broker (paper 000).",
    ROAMING: "Subscribers that walk through a building and lose their connections (paper 001).",
    MANET: "Nodes with radios that move in a city without any infrastructure (paper 004).",
}


def _add(world: str) -> None:
    """Give a world its sub-command: typer reads the signature of the function."""

    def run(**given: object) -> None:
        own = {name: given.pop(name) for name, _, _ in _OWN_PARAMETERS}
        _simulate(world, given, own)

    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, default, annotation in _OWN_PARAMETERS
    ]
    factors_of = _factors(world)
    known = [factor.name for factor in factors_of]
    every = [*own, *(_option_parameter(factor, known) for factor in factors_of)]
    run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    app.command(world, help=ABOUT[world])(run)


for _world in WORLDS:
    _add(_world)
