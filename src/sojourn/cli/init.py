"""`sojourn init`: write a configuration to begin with, and the secret of its network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sojourn.live.links.secret import SECRET_NAME, write_secret
from sojourn.live.templates import TEMPLATES, TemplateError, template


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(TEMPLATES)}.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Where to; without it, standard output.")
    ] = None,
    copies: Annotated[
        int | None,
        typer.Option(help="How many other brokers hold a copy of each one; 1 in a network, without it."),
    ] = None,
) -> None:
    """Write a commented configuration of brokers, and beside it the secret by which they know one another.

    Example: sojourn init building building.toml
    """
    text = template(name, copies)
    folder = Path() if file is None else file.parent
    if file is None:
        typer.echo(text, nl=False)
    else:
        try:
            # For you alone: users and their hashed passwords will stand in it.
            with open(file, "x", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
                out.write(text)
        except FileExistsError:
            raise TemplateError(f"There is a file {file} already; choose another name.") from None
        except OSError as error:
            raise TemplateError(f"Cannot write {file}: {error.strerror}.") from None
    if TEMPLATES[name].links:
        path = folder / SECRET_NAME
        if write_secret(path):
            typer.echo(f"sojourn: wrote the secret of the network to {path}, for you alone", err=True)
