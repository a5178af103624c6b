"""`sojourn reload`, `kick`, `ban`, `unban` and `bans`: speak to running brokers on this machine."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli.logs import one_line
from sojourn.errors import SojournError
from sojourn.live.brokers.control import Answer, ControlError, ask
from sojourn.live.brokers.source import reload_of
from sojourn.live.config import Config, load_config
from sojourn.mqtt.bans import SCOPES, network_of

File = Annotated[Path, typer.Argument(metavar="FILE", help="The brokers' configuration.")]
Broker = Annotated[str | None, typer.Option(help="Which broker to speak to; any, if none is named.")]
Whom = Annotated[
    str,
    typer.Argument(
        metavar="WHOM",
        help="client:ID, user:NAME or address:IP. Without such a word an IP address is taken for an address, "
        "anything else for a client.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value, nothing else.")]

_NUMBERS = re.compile(r"[\d.]*\.[\d.]*(/\d*)?")
"""What is meant for an address of IPv4, or a part of one."""


class WhomError(SojournError):
    """It is not clear who is meant."""


def reload(file: File, broker: Broker = None, *, as_json: AsJson = False) -> None:
    """Let running brokers read users, permissions, tokens, certificates and what was learnt anew.

    The same as SIGHUP, and says what was done. Example: sojourn reload building.toml
    """
    _ask_all(load_config(file), broker, reload_of(file), as_json=as_json)


def kick(whom: Whom, file: File, broker: Broker = None, *, as_json: AsJson = False) -> None:
    """End the connection of a client, at whichever broker of the network it is; it may come back.

    Example: sojourn kick phone-7 building.toml
    """
    _ask_one(load_config(file), broker, {"command": "kick", **_named(whom)}, as_json=as_json)


def ban(whom: Whom, file: File, broker: Broker = None, *, as_json: AsJson = False) -> None:
    """Let a client, a user or an address come in no more, at any broker of the network.

    Example: sojourn ban user:mallory building.toml
    """
    _ask_one(load_config(file), broker, {"command": "ban", **_named(whom)}, as_json=as_json)


def unban(whom: Whom, file: File, broker: Broker = None, *, as_json: AsJson = False) -> None:
    """Let somebody who was banned come in again.

    Example: sojourn unban user:mallory building.toml
    """
    _ask_one(load_config(file), broker, {"command": "unban", **_named(whom)}, as_json=as_json)


def bans(file: File, broker: Broker = None, *, as_json: AsJson = False) -> None:
    """Print who is banned."""
    _ask_one(load_config(file), broker, {"command": "bans"}, as_json=as_json)


def _named(whom: str) -> dict[str, str]:
    """Who is meant; what could be a slip of the hand is refused, not taken for a client of that name."""
    if network_of(whom) is not None:
        return {"scope": "address", "whom": whom}
    scope, colon, rest = whom.partition(":")
    if not colon:
        scope, rest = "client", whom
    choices = ", ".join(f"{one}:{what}" for one, what in zip(SCOPES, ("ID", "NAME", "IP"), strict=True))
    if scope not in SCOPES:
        like = difflib.get_close_matches(scope, SCOPES, 1)
        meant = f" (perhaps {like[0] + ':' + rest!r} was meant)" if like else ""
        raise WhomError(
            f"{whom!r} names nobody{meant}: there are {choices}; "
            f"a client of that identifier is client:{whom}."
        )
    if not rest:
        raise WhomError(f"{whom!r} names nobody: there are {choices}.")
    if scope == "address" and network_of(rest) is None:
        raise WhomError(f"{rest!r} is neither an address nor a network such as 10.0.0.0/8.")
    if not colon and _NUMBERS.fullmatch(whom):
        raise WhomError(
            f"{whom!r} is neither an address nor a network such as 10.0.0.0/8; "
            f"a client of that identifier is client:{whom}."
        )
    return {"scope": scope, "whom": rest}


def _names(config: Config, broker: str | None) -> list[str]:
    return [config.broker(broker).name] if broker is not None else [one.name for one in config.brokers]


def _ask_all(config: Config, broker: str | None, what: Mapping[str, object], *, as_json: bool) -> None:
    """Ask every broker that runs here; it is an error if none does, or if one refuses."""
    failures: list[ControlError] = []
    answers: list[Answer] = []
    names = _names(config, broker)
    for name in names:
        try:
            answers.append(ask(str(config.network.control), name, what))
        except ControlError as error:
            failures.append(error)
        else:
            if not as_json:
                _tell(answers[-1].said)
    if as_json and answers:
        typer.echo(json.dumps([answer.found for answer in answers], ensure_ascii=False))
    failures.sort(key=lambda failure: failure.is_absent)
    if failures and (not failures[0].is_absent or len(failures) == len(names)):
        raise failures[0]


def _ask_one(config: Config, broker: str | None, what: dict[str, object], *, as_json: bool) -> None:
    """Ask one broker that runs here, which tells all others."""
    missing: ControlError | None = None
    for name in _names(config, broker):
        try:
            answer = ask(str(config.network.control), name, what)
        except ControlError as error:
            if not error.is_absent:
                raise
            missing = missing or error
        else:
            if as_json:
                typer.echo(json.dumps(answer.found, ensure_ascii=False))
            else:
                _tell(answer.said)
            return
    assert missing is not None, "a configuration has a broker"
    raise missing


def _tell(said: str) -> None:
    for line in said.split("\n") if said else []:
        typer.echo(one_line(line))
