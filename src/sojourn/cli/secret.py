"""`sojourn secret`: write the secret by which the brokers of a network know one another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sojourn.live.links.secret import SECRET_NAME, SecretError, write_secret


def secret(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = Path(SECRET_NAME),
) -> None:
    """Write a fresh secret into a file that only you can read.

    Every broker of the network needs the same one; its path is `secret` in [network].
    """
    if not write_secret(path):
        raise SecretError(f"There is a file {path} already; move it away if the network is to have another.")
    typer.echo(f"Wrote {path}; copy it to the machines of all brokers of the network.", err=True)
