"""`sojourn filter`: what a filter means, and how two filters relate."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sojourn.interest import Event, Filter, common_example, covers, example, intersects, merge
from sojourn.interest.render import constraint_text

app = typer.Typer(
    help="Explain filters, the SQL conditions that subscriptions are written in.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")]
Text = Annotated[str, typer.Argument(metavar="FILTER", help='An SQL condition, such as "price <= 1600".')]


@app.command()
def explain(text: Text, *, as_json: AsJson = False) -> None:
    """Show a filter's normal form, an event that matches it, and the same condition for Spark SQL.

    Example: sojourn filter explain "price <= 1600 AND brand = 'IBM'"
    """
    console = Console(highlight=False)
    parsed = Filter.parse(text)
    if as_json:
        typer.echo(json.dumps(_explained(parsed), ensure_ascii=False))
        return
    console.print(f"[bold]normal form[/bold]   {_plain(str(parsed))}", soft_wrap=True)
    if parsed.spark_sql().replace("(", "").replace(")", "") != str(parsed).replace("(", "").replace(")", ""):
        console.print(f"[bold]in Spark SQL[/bold]  {_plain(parsed.spark_sql())}", soft_wrap=True)
    found = example(parsed)
    if found is None:
        console.print("[bold]matches[/bold]       nothing: no event can satisfy it")
        return
    console.print(f"[bold]matches[/bold]       {_plain(_event(found))}, for instance", soft_wrap=True)
    if not parsed.conjunctions[0].constraints:
        console.print("[bold]alternatives[/bold]  1, without any constraint: it matches every event")
        return
    console.print(f"[bold]alternatives[/bold]  {len(parsed.conjunctions)}; one must hold")
    table = Table("alternative", "attribute", "must satisfy", box=None, header_style="dim")
    for number, conjunction in enumerate(parsed.conjunctions, 1):
        for path, allowed in conjunction.constraints:
            table.add_row(str(number), _plain(path), _plain(constraint_text(path, allowed)[0]))
    console.print(table)


@app.command("covers")
def covers_command(
    wide: Annotated[str, typer.Argument(metavar="A", help="The filter that may be the wider one.")],
    narrow: Annotated[str, typer.Argument(metavar="B", help="The other filter.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Tell whether every event that matches B matches A, and the other way round.

    Example: sojourn filter covers "price <= 1600" "price <= 1500 AND brand = 'IBM'"
    """
    console = Console(highlight=False)
    one, other = Filter.parse(wide), Filter.parse(narrow)
    forth, back = covers(one, other), covers(other, one)
    if as_json:
        shared = common_example(one, other)
        found = {
            "covers": forth,
            "covered": back,
            "both_match": None if shared is None else dict(shared.flat),
        }
        typer.echo(json.dumps({**found, "merged": str(merge([one, other]))}, ensure_ascii=False))
        return
    if forth and back:
        console.print("A and B match the same events.")
    elif forth:
        console.print("[green]A covers B[/green]: whatever matches B matches A.")
    elif back:
        console.print("[yellow]B covers A[/yellow], A does not cover B.")
    else:
        console.print("Neither covers the other.")
    if not intersects(one, other):
        console.print("No event matches both.")
    elif not (forth and back):
        shared = common_example(one, other)
        assert shared is not None
        console.print(f"Both match {_plain(_event(shared))}, for instance.", soft_wrap=True)
    console.print(f"Together they ask for  {_plain(str(merge([one, other])))}", soft_wrap=True)


def _explained(parsed: Filter) -> dict[str, object]:
    """What there is to say of a filter, for programs."""
    found = example(parsed)
    return {
        "normal_form": str(parsed),
        "spark_sql": parsed.spark_sql(),
        "example": None if found is None else dict(found.flat),
        "alternatives": [
            {path: constraint_text(path, allowed)[0] for path, allowed in conjunction.constraints}
            for conjunction in parsed.conjunctions
        ],
    }


def _event(event: Event) -> str:
    return json.dumps(dict(event.flat), ensure_ascii=False) if event.flat else "an event without attributes"


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
