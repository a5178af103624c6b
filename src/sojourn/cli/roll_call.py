"""Who has come and who has left, as the brokers know it that run on this machine: for `join` and `leave`.

A file names brokers that may never have come, so the word of one counts once another knows that it has come:
those that were there from the start are asked first, then who joined, in that order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from sojourn.broker.roll import by_whom
from sojourn.cli.logs import one_line
from sojourn.errors import SojournError
from sojourn.live.brokers.control import ControlError, ask
from sojourn.live.config import Config

File = Annotated[Path, typer.Argument(metavar="FILE", help="The brokers' configuration.")]


class JoinError(SojournError):
    """A broker cannot join or leave."""


class Known(NamedTuple):
    """What those that run here know."""

    founders: frozenset[str]
    joined: frozenset[str]
    left: frozenset[str]
    rolls: dict[str, dict[str, Any]]
    """What each of them says; empty if none runs here."""

    def has(self, name: str) -> bool:
        """Whether a broker is, or was, in the network."""
        return name in self.founders or name in self.joined

    def is_out_of_reach(self, name: str) -> bool:
        """Whether nobody here reaches a broker."""
        return all(name in roll.get("out_of_reach", ()) for roll in self.rolls.values())


def who_came(config: Config, trusted: str | None = None) -> Known:
    """Ask all brokers that run here and have come, and one that is believed anyhow."""
    order = config.settings(config.brokers[0].name).brokers
    founders = {name for name in order if name not in config.network.joined}
    joined: set[str] = set()
    left: set[str] = set()
    rolls: dict[str, dict[str, Any]] = {}
    for name in order:
        if name in config.network.left or not (name in founders or name in joined or name == trusted):
            continue
        try:
            found = rolls[name] = ask(str(config.network.control), name, {"command": "roll"}).found
        except ControlError as error:
            if not error.is_absent:
                raise
        else:
            joined.update(found["joined"])
            left.update(found["left"])
    return Known(frozenset(founders), frozenset(joined), frozenset(left), rolls)


def runs_here(config: Config, name: str) -> bool:
    """Whether the process of a broker answers on this machine."""
    try:
        ask(str(config.network.control), name, {"command": "roll"})
    except ControlError as error:
        if not error.is_absent:
            raise
        return False
    return True


def never_came(config: Config, name: str) -> bool:
    """Whether a broker was written into the file and never joined, as far as can be known here.

    The broker by whose link it would join knows; where that one is gone, or never came itself, any other.
    """
    if name not in config.network.joined:
        return False
    known, by = who_came(config), by_whom(config.settings(name), name)
    assert by is not None, "it is among those that joined"
    if known.has(name) or not known.rolls:
        return False
    is_heard = by in known.rolls or any(by in roll.get("plays", ()) for roll in known.rolls.values())
    if is_heard or not known.has(by) or by in known.left or known.is_out_of_reach(by):
        return True
    raise JoinError(
        f"Whether {name} has joined is known by {by}, which does not run on this machine: run this where it "
        "does."
    )


def say(said: str) -> None:
    """Print what a broker answers."""
    for line in said.split("\n") if said else []:
        typer.echo(one_line(line))
