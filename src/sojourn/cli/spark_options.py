"""The options of all commands on Spark: which cluster, which settings, its page, what is sent along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from sojourn.errors import SojournError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Master = Annotated[
    str | None, typer.Option(help="A Spark master, such as spark://host:7077; none means this machine.")
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", metavar="KEY=VALUE", help="A setting of Spark's; wins over ours, may be repeated."
    ),
]
Ui = Annotated[
    bool, typer.Option("--ui", help="Serve Spark's own page while the command runs, and say where.")
]
Ship = Annotated[
    bool,
    typer.Option(
        "--ship", help="Send numpy, pyarrow and all else that tasks need to executors without them."
    ),
]


class SparkOptionError(SojournError):
    """An option for Spark means nothing."""


def settings_of(conf: list[str] | None) -> dict[str, str]:
    """Return the settings that were given as KEY=VALUE."""
    found = {}
    for text in conf or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip().startswith("spark."):
            raise SparkOptionError(
                f"--conf is KEY=VALUE with a key of Spark's, as in spark.executor.memory=4g, not {text!r}."
            )
        found[key.strip()] = value
    return found


def session(
    master: str | None = None, conf: list[str] | None = None, *, ui: bool = False, ship: bool = False
) -> SparkSession:
    """Return the session that was asked for; with `ui`, say where its page is."""
    from pyspark.sql.utils import is_remote

    from sojourn.pipeline.session import spark_session
    from sojourn.pipeline.shipping import shipped

    settings = settings_of(conf)
    if ui:
        settings = {"spark.ui.enabled": "true", "spark.ui.port": "0", **settings}
    if ship:
        settings = {**shipped(), **settings}
    found = spark_session(master, settings=settings)
    if ui and not is_remote():
        where = found.sparkContext.uiWebUrl
        Console(stderr=True, highlight=False).print(f"Spark's page is at {where}.", soft_wrap=True)
    return found
