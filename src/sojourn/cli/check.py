"""`sojourn check`: run a protocol's properties over many seeds, and show what fails as short as it gets.

What a check needs is imported when it runs: those of live brokers need nothing beside what brokers do. Those
that break whole brokers are in the sources alone (`workshop.py`).
"""

import importlib
from typing import Annotated

import typer

from sojourn.cli.check_election import election
from sojourn.cli.check_properties import properties
from sojourn.cli.workshop import is_here, require

IN_THE_SOURCES = {
    "fuzz": (
        "sojourn.cli.check_fuzz:fuzz",
        "Let strangers connect, subscribe, publish, take over and break off in every wrong way.",
    ),
    "live": (
        "sojourn.cli.check_live:live",
        (
            "Let clients publish, subscribe and roam over brokers that are killed, cut off, and lose what "
            "they know."
        ),
    ),
    "replay": (
        "sojourn.cli.check_replay:replay_stores",
        "Tell brokers again what live ones recorded, and look whether it leads to the same.",
    ),
    "replicas": (
        "sojourn.cli.check_replicas:replicas",
        "Kill one of two live replicas in the middle of a stream, and look for every event.",
    ),
}
"""By name: where a check is that needs worlds of whole brokers, and what to say of it where it is not."""

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


@app.callback()
def about() -> None:
    """Check that protocols keep their promises, over many seeds."""


def _add(name: str) -> None:
    """Add a check of the workshop, or a command that says where it is to be had."""
    where, summary = IN_THE_SOURCES[name]
    module, function = where.split(":")
    if is_here(module):
        app.command(name)(getattr(importlib.import_module(module), function))
        return

    def elsewhere() -> None:
        require(module, f"check {name}")

    app.command(
        name,
        help=f"{summary} Part of the sources alone.",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(elsewhere)


app.command()(election)
_add("fuzz")
_add("live")
app.command()(properties)
_add("replay")
_add("replicas")


@app.command()
def handoff(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 1000,
    first_seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    scheme: Annotated[str | None, typer.Option(help="reactive or proactive; both if left out.")] = None,
    routing: Annotated[str | None, typer.Option(help="flooding or content; both if left out.")] = None,
    seconds: Annotated[float, typer.Option(help="Simulated seconds in which clients move.")] = 60.0,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")] = False,
) -> None:
    """Let subscribers move, die and change their minds while messages cross, repeat and wait.

    With room enough nothing may be lost, doubled or out of its source's order, and no copy left behind.
    Each seed is the history of one small world, lived through under both schemes and both ways of routing
    unless they are given. A thousand seeds are more than 100,000 hand-offs.
    """
    from sojourn.cli.check_handoff import check_handoffs

    check_handoffs(seeds, first_seed, scheme, routing, seconds, as_json=as_json)
