"""`sojourn sql`: questions in SQL to a trace, to the tables made from one, or to a study's results.

Example: sojourn sql "select count(*) from deliveries" --from traces
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from sqlglot import tokenize
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from sojourn.cli.heartbeat import heartbeat
from sojourn.cli.spark_options import Conf, Master, Ship, Ui, session
from sojourn.errors import SojournError
from sojourn.pipeline.places import is_address, require_trace, wanted_folder

_CHANGES = {TokenType.INSERT, TokenType.DELETE, TokenType.UPDATE, TokenType.MERGE}
_ASKS = ("select", "with", "describe", "explain", "show", "from", "values", "(")


class SqlError(SojournError):
    """A question cannot be answered."""


def sql(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="The question, in Spark's SQL; tables go by their names.")
    ],
    folder: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="A trace (or s3://…), a folder that `sojourn tables` made, or one of a study's results.",
        ),
    ],
    rows_max: Annotated[int, typer.Option("--rows", help="How many rows to print at the most.")] = 100,
    master: Master = None,
    conf: Conf = None,
    *,
    ui: Ui = False,
    ship: Ship = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print an object of JSON a row.")] = False,
) -> None:
    """Ask a trace, the tables made from one, or a study's results a question in SQL.

    Example: sojourn sql "select count(*) from deliveries" --from traces
    """
    require_question(query)
    _require_tables(folder)
    with heartbeat(Console(stderr=True, highlight=False)) as beat:
        beat.tell("starting Spark")
        from pyspark.errors import PySparkException

        from sojourn.pipeline.views import views

        spark = session(master, conf, ui=ui, ship=ship)
        beat.tell("looking at files")
        known = views(spark, folder)
        for name, rows in known.items():
            rows.createOrReplaceTempView(name)
        beat.tell("asking")
        try:
            answer = spark.sql(query).limit(rows_max + 1).toArrow().to_pylist()
        except PySparkException as error:
            raise SqlError(f"{_first_line(error)} Tables: {', '.join(sorted(known))}.") from None
    if as_json:
        for row in answer[:rows_max]:
            typer.echo(json.dumps(row, default=str))
    else:
        _show(answer[:rows_max])
    if len(answer) > rows_max:
        Console(stderr=True).print(f"There are more than {rows_max} rows; --rows prints more.")


def require_question(query: str) -> None:
    """Refuse what would change something: also a WITH or FROM that ends in an INSERT."""
    if not query.strip().lower().startswith(_ASKS):
        raise SqlError(
            f"The question must begin with SELECT or WITH; nothing is changed here: {query[:60]!r}."
        )
    try:
        words = tokenize(query, read="spark")
    except TokenError as error:
        raise SqlError(f"The question cannot be read: {_first_line(error)}") from None
    changing = next((word.text for word in words if word.token_type in _CHANGES), None)
    if changing is not None:
        raise SqlError(
            f"The question has the word {changing}; nothing is changed here. A column of that name stands "
            "between backticks."
        )


def _require_tables(named: str) -> None:
    """Refuse a folder that nothing can be asked of, before Spark is loaded for it."""
    if not is_address(named):
        folder = wanted_folder(named, "sql")
        if not any((folder / mark).is_file() for mark in ("catalogue.json", "runs.parquet")):
            require_trace(named)


def _show(rows: list[dict[str, Any]]) -> None:
    console = Console(highlight=False)
    if not rows:
        console.print("no rows")
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    console.print(table)


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return text if text.endswith(".") else text + "."
