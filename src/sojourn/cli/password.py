"""`sojourn password`: hash a password for a configuration."""

from __future__ import annotations

import sys

import typer

from sojourn.errors import SojournError
from sojourn.live.brokers.admission import hash_password


class NoPasswordError(SojournError):
    """Nothing is no password."""


def password() -> None:
    """Ask for a password and print what belongs into a [[users]] table.

    From a pipe the first line is taken: echo secret | sojourn password
    """
    if sys.stdin.isatty():
        text: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        text = sys.stdin.readline().rstrip("\r\n")
    if not text:
        raise NoPasswordError("There is no password: the first line of the input is empty.")
    typer.echo(hash_password(text))
