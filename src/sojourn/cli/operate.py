"""`sojourn reload`, `kick`, `ban`, `unban` and `bans`: speak to running brokers on this machine."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn.cli.logs import one_line
from sojourn.live.brokers.control import ControlError, ask
from sojourn.live.config import Config, load_config
from sojourn.mqtt.bans import SCOPES

File = Annotated[Path, typer.Argument(metavar="FILE", help="The brokers' configuration.")]
Broker = Annotated[str | None, typer.Option(help="Which broker to speak to; any, if none is named.")]
Whom = Annotated[
    str,
    typer.Argument(
        metavar="WHOM",
        help="client:ID, user:NAME or address:IP; an address is known as one, the rest is a client.",
    ),
]


def reload(file: File, broker: Broker = None) -> None:
    """Let running brokers read users, permissions, tokens and certificates anew.

    The same as SIGHUP, and says what was done. Example: sojourn reload building.toml
    """
    _ask_all(load_config(file), broker, {"command": "reload"})


def kick(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The identifier of a client.")],
    file: File,
    broker: Broker = None,
) -> None:
    """End the connection of a client, at whichever broker of the network it is; it may come back.

    Example: sojourn kick phone-7 building.toml
    """
    _ask_one(load_config(file), broker, {"command": "kick", "scope": "client", "whom": client})


def ban(whom: Whom, file: File, broker: Broker = None) -> None:
    """Let a client, a user or an address come in no more, at any broker of the network.

    Example: sojourn ban user:mallory building.toml
    """
    _ask_one(load_config(file), broker, {"command": "ban", **_named(whom)})


def unban(whom: Whom, file: File, broker: Broker = None) -> None:
    """Let somebody who was banned come in again.

    Example: sojourn unban user:mallory building.toml
    """
    _ask_one(load_config(file), broker, {"command": "unban", **_named(whom)})


def bans(file: File, broker: Broker = None) -> None:
    """Print who is banned."""
    _ask_one(load_config(file), broker, {"command": "bans"})


def _named(whom: str) -> dict[str, str]:
    scope, colon, rest = whom.partition(":")
    if colon and scope in SCOPES and rest:
        return {"scope": scope, "whom": rest}
    try:
        ipaddress.ip_network(whom, strict=False)
    except ValueError:
        return {"scope": "client", "whom": whom}
    return {"scope": "address", "whom": whom}


def _names(config: Config, broker: str | None) -> list[str]:
    return [config.broker(broker).name] if broker is not None else [one.name for one in config.brokers]


def _ask_all(config: Config, broker: str | None, what: dict[str, Any]) -> None:
    """Ask every broker that runs here; it is an error if none does, or if one refuses."""
    failures: list[ControlError] = []
    names = _names(config, broker)
    for name in names:
        try:
            _tell(ask(str(config.network.control), name, what))
        except ControlError as error:
            failures.append(error)
    failures.sort(key=lambda failure: failure.is_absent)
    if failures and (not failures[0].is_absent or len(failures) == len(names)):
        raise failures[0]


def _ask_one(config: Config, broker: str | None, what: dict[str, Any]) -> None:
    """Ask one broker that runs here, which tells all others."""
    missing: ControlError | None = None
    for name in _names(config, broker):
        try:
            _tell(ask(str(config.network.control), name, what))
        except ControlError as error:
            if not error.is_absent:
                raise
            missing = missing or error
        else:
            return
    assert missing is not None, "a configuration has a broker"
    raise missing


def _tell(said: str) -> None:
    for line in said.split("\n") if said else []:
        typer.echo(one_line(line))
