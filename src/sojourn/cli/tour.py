"""`sojourn tour`: the parts of the system at work, in about a minute.

Three scenes, all computed while you watch: who gets an event and why; how many events a second a large index
of subscriptions takes; and what it costs a city's broker network that its publishers move, by protocol.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, TypeVar

import numpy as np
import typer
from rich.console import Console
from rich.rule import Rule
from rich.table import Table

from sojourn.cli.bench_match import make_events, make_filters
from sojourn.cli.heartbeat import working
from sojourn.interest import Event, Filter, Policy, covers, may_receive, merge
from sojourn.interest.index import FilterIndex
from sojourn.sim.publishers.world import World
from sojourn.sim.scenario import Scenario

BATCH_EVENTS = 1_000
PROTOCOLS = ("standard", "proxy", "delayed", "prefetch-delayed")

SUBSCRIBERS = {
    "dispatcher": ("topic LIKE 'city/+/accident' AND severity >= 2", {"role": "police"}),
    "medic": ("topic LIKE 'city/#' AND severity >= 3", {"role": "medic"}),
    "east desk": ("district = 'east' AND severity > 0", {"role": "police"}),
    "insurer": ("topic LIKE 'city/+/accident' AND vehicles >= 2", {"role": "insurer"}),
    "weather": ("topic LIKE 'city/+/weather'", {"role": "public"}),
}

Result = TypeVar("Result")


def tour(
    filters: Annotated[int, typer.Option(min=1_000, help="Subscriptions in the second scene.")] = 200_000,
    publishers: Annotated[int, typer.Option(min=1, help="Moving publishers in the third scene.")] = 50,
) -> None:
    """Show the system at work: matching by content, a large index, and moving publishers."""
    console = Console(highlight=False)
    console.print(Rule("1 · Who gets an event", align="left"))
    _show_matching(console)
    console.print(Rule(f"2 · {filters:,} subscriptions on one core", align="left"))
    _show_index(console, filters)
    console.print(Rule(f"3 · {publishers} publishers drive through a city of 64 brokers", align="left"))
    _show_movement(console, publishers)
    console.print(
        "\nNext: [bold]sojourn simulate publisher-mobility --protocol delayed --publishers 20 --watch[/bold] "
        "shows the city; [bold]sojourn reproduce publisher-mobility --scale quick[/bold] runs the study."
    )


def _show_matching(console: Console) -> None:
    event = Event(
        {"severity": 3, "vehicles": 2, "district": "east"}, topic="city/ring/accident", source="car-17"
    )
    policy = Policy.parse("role IN ('police', 'medic')")
    console.print(f"event   {dict(event.flat)}\npolicy  {policy}")
    table = Table(
        "subscriber", "filter", "matches", "policy permits", "receives", box=None, header_style="dim"
    )
    parsed = {name: Filter.parse(text) for name, (text, _) in SUBSCRIBERS.items()}
    for name, (_, attributes) in SUBSCRIBERS.items():
        wanted, who = parsed[name], Event(attributes)
        table.add_row(
            name,
            str(wanted),
            _tick(wanted.matches(event)),
            _tick(policy.permits(who)),
            _tick(may_receive(event, policy, wanted, who)),
        )
    console.print(table)
    wide, narrow = Filter.parse("severity > 0"), parsed["east desk"]
    if covers(wide, narrow):
        console.print(f"A broker that has asked for  {wide}  need not ask for  {narrow}  too.")
    console.print(f"All of them together ask for  {merge(parsed.values())}", soft_wrap=True)


def _show_index(console: Console, count: int) -> None:
    random = np.random.default_rng(1)
    drawn = make_filters("W1", count, random)
    index = FilterIndex()
    seconds, _ = _timed(console, "building the index", lambda: index.add_columns(drawn))
    events = make_events("W1", 20 * BATCH_EVENTS, random)
    batches = [events.columns(i * BATCH_EVENTS, (i + 1) * BATCH_EVENTS) for i in range(20)]
    index.match_batch(batches[0])  # the first call loads the compiled kernels
    took, matches = _timed(
        console, "matching", lambda: sum(len(index.match_batch(batch).keys) for batch in batches)
    )
    total = len(batches) * BATCH_EVENTS
    console.print(
        f"built in {seconds:.1f} s, {index.nbytes / count:.0f} bytes a filter; "
        f"{total:,} events matched at {total / took:,.0f} a second, {matches / total:,.0f} subscribers each"
    )


def _show_movement(console: Console, publishers: int) -> None:
    table = Table(
        "protocol",
        "moves",
        "messages per move",
        "rebuilt in, ms",
        "publisher waits, ms",
        box=None,
        header_style="dim",
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for protocol in PROTOCOLS:
        scenario = Scenario(protocol=protocol, publishers=publishers, warmup_s=30, duration_s=120, seed=1)
        _, result = _timed(console, f"two minutes of {protocol}", lambda s=scenario: World(s).run())  # type: ignore[misc]  # mypy infers no default of a lambda
        moves = max(1, len(result.moves))
        table.add_row(
            protocol,
            f"{len(result.moves):,}",
            f"{sum(result.moves.hops) / moves:,.0f}",
            f"{result.rebuild_mean_s * 1e3:,.1f}",
            f"{result.visible_wait_mean_s * 1e3:,.1f}",
        )
    console.print(table)


def _timed(console: Console, what: str, act: Callable[[], Result]) -> tuple[float, Result]:
    started = time.perf_counter()
    with working(console, what):
        result = act()
    return time.perf_counter() - started, result


def _tick(yes: bool) -> str:  # noqa: FBT001 - its one argument
    return "[green]yes[/green]" if yes else "[dim]no[/dim]"
