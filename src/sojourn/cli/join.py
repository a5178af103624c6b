"""`sojourn join`: a broker comes while the others, and their clients, go on (`leave.py` is the way back)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from sojourn.broker.roll import by_whom
from sojourn.cli.roll_call import File, JoinError, runs_here, say, who_came
from sojourn.errors import typed
from sojourn.live.apart import why_not_apart
from sojourn.live.brokers.control import ControlError, ask
from sojourn.live.brokers.source import reload_of
from sojourn.live.config import (
    LISTENED,
    BrokerConfig,
    Config,
    ConfigError,
    at_folder,
    load_config,
    parse_address,
    read_config,
)
from sojourn.live.rewriting import with_broker, write


def join(  # noqa: PLR0913, PLR0917 - the options of a command
    file: File,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new broker.")],
    link: Annotated[list[str], typer.Option(help="A broker that it is linked to; may be given again.")],
    listen: Annotated[
        str | None, typer.Option(help="Where its clients connect; without it, at the next port on.")
    ] = None,
    peers: Annotated[
        str | None, typer.Option(help="Where brokers that join later reach it; without it, at the next port.")
    ] = None,
    store: Annotated[str | None, typer.Option(help="Its store; without one it is stores/NAME.")] = None,
    seats: Annotated[
        str | None,
        typer.Option(
            help="With copies, where all others reach it to keep them; without it, at the next port."
        ),
    ] = None,
    page: Annotated[str | None, typer.Option(help="Where its page is; none without it.")] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="Where its metrics are; without it, at the next port if all others have some."),
    ] = None,
) -> None:
    """Add a broker to a network that runs; the others, and their clients, go on.

    It is written into FILE, and the broker that it links to expects it; it joins when it is started. With
    copies, a majority of the brokers' processes has to run then. Example:
    sojourn join line.toml B4 --link B3
    """
    config = load_config(file)
    given = {
        "listen": listen, "peers": peers, "store": store, "seats": seats, "page": page, "metrics": metrics
    }  # fmt: skip
    if name not in {one.name for one in config.brokers}:
        if len(config.brokers) < 2 or not config.links:
            raise JoinError(
                f"{file} has one broker, which has no neighbours yet: stop it, add a broker, its peers and a "
                "link to the file, and start both."
            )
        written = {
            "name": name,
            "listen": listen or _next_port([one.listen for one in config.brokers]),
            "peers": peers or _next_port([one.peers for one in config.brokers if one.peers is not None]),
            "store": store or f"stores/{name}",
        }
        if config.mobility.copies:
            written["seats"] = seats or _next_port(
                [one.seats for one in config.brokers if one.seats is not None]
            )
        metrics = metrics or _next_metrics(config)
        written |= {key: value for key, value in (("page", page), ("metrics", metrics)) if value is not None}
        write(file, _joined(file, config, written, link))
        typer.echo(f"{file} has {name}, linked to {', '.join(link)}.")
    elif name not in config.network.joined:
        raise JoinError(f"{file} has a broker {name} already, which was there from the start.")
    else:
        _check_same(file, config, name, link, given)
    config = load_config(file)
    _expect(file, config, name)
    typer.echo(f"Start the broker: sojourn serve {typed(file)} --broker {typed(name)}")


def _check_same(file: Path, config: Config, name: str, link: list[str], given: dict[str, str | None]) -> None:
    """Refuse to add a broker again otherwise than it stands there; what is not given may be anything."""
    there = config.broker(name)
    linked = next(row[1:] for row in config.settings(name).joined if row[0] == name)
    why = f"linked to {', '.join(linked)} and not to {', '.join(link)}" if {*link} != {*linked} else ""
    for key, value in given.items():
        if value is not None:
            has = getattr(there, key)
            if has != (str(file.parent.absolute() / value) if key == "store" else value):
                why = why or (
                    f"with {key} {has} and not {value}" if has else f"without {key}, not with {value}"
                )
    if why:
        raise JoinError(
            f"{file} has {name} already, {why}; if it was never started, "
            f"`sojourn leave {typed(file)} {typed(name)} --dead` takes it back."
        )


def _expect(file: Path, config: Config, name: str) -> None:
    """Let the broker by whose link one joins read of it."""
    to = by_whom(config.settings(name), name)
    assert to is not None, "it is among those that joined"
    try:
        say(ask(str(config.network.control), to, reload_of(file)).said)
    except ControlError as error:
        if not error.is_absent:
            raise
        typer.echo(
            f"{to} does not run on this machine: copy {file} to where it does and `sojourn reload` it; "
            f"if it is not running, start it there with this file."
        )


def _next_metrics(config: Config) -> str | None:
    """Return an address for metrics if all brokers have one: what is looked at everywhere is there too."""
    found = [one.metrics for one in config.brokers if one.metrics is not None]
    return _next_port(found) if len(found) == len(config.brokers) else None


def _next_port(places: list[str]) -> str:
    """Return an address after all these, where they have ports; else any that is free."""
    found = [parse_address(place, "an address") for place in places]
    last = max(found, key=lambda one: one.port, default=None)
    if last is None or not all(one.port for one in found):
        return "127.0.0.1:0" if last is None else str(last._replace(port=0))
    return str(last._replace(port=min(last.port + 1, 65_535)))


def _joined(file: Path, config: Config, written: dict[str, str], links: list[str]) -> str:
    name = written["name"]
    if name in config.network.left:
        raise JoinError(f"{name} was in this network and has left it: give the new broker another name.")
    for one in links:
        if config.broker(one).peers is None:
            raise JoinError(f"{one} has no `peers` in {file}, where {name} could reach it: link to another.")
    if len({*links}) < len(links):
        raise JoinError("--link names a broker twice.")
    _check_came(file, config, links)
    for key in LISTENED:
        if key in written:
            parse_address(written[key], f"--{key}")
    try:
        broker = msgspec.convert(written, BrokerConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"The new broker cannot be written: {error}.") from None
    text = with_broker(file.read_text(encoding="utf-8"), broker, links, written)
    why = why_not_apart(at_folder(read_config(text, str(file)), file.parent))
    if why:
        raise JoinError(f"{name} cannot join: {why}")
    return text


def _check_came(file: Path, config: Config, links: list[str]) -> None:
    """Refuse links to brokers that have left, or were not even started, as far as those say that run here."""
    known = who_came(config)
    for one in links if known.rolls else []:
        if one in known.left:
            raise JoinError(
                f"{one} has left the network: run `sojourn leave {typed(file)} {typed(one)}` to the end."
            )
        if not known.has(one) and not runs_here(config, one):
            raise JoinError(
                f"{one} has not joined yet, and brokers join one after the other: start it first with "
                f"`sojourn serve {typed(file)} --broker {typed(one)}`, or take it back with "
                f"`sojourn leave {typed(file)} {typed(one)} --dead`."
            )
