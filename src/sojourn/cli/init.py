"""`sojourn init`: write a configuration to begin with."""

from __future__ import annotations

from typing import Annotated

import typer

from sojourn.live.templates import TEMPLATES, template


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(TEMPLATES)}.")],
) -> None:
    """Write a commented configuration of brokers to standard output.

    Example: sojourn init building > building.toml
    """
    typer.echo(template(name), nl=False)
