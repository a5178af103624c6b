"""`sojourn check`: run a protocol's properties over many seeds, and show what fails as short as it gets.

What a check needs is imported when it runs: those of live brokers need nothing beside what brokers do.
"""

from typing import Annotated

import typer

from sojourn.cli.check_election import election
from sojourn.cli.check_fuzz import fuzz
from sojourn.cli.check_live import live
from sojourn.cli.check_properties import properties
from sojourn.cli.check_replay import replay_stores
from sojourn.cli.check_replicas import replicas

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


@app.callback()
def about() -> None:
    """Check that protocols keep their promises, over many seeds."""


app.command()(election)
app.command()(fuzz)
app.command()(live)
app.command()(properties)
app.command("replay")(replay_stores)
app.command()(replicas)


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
