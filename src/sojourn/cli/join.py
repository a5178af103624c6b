"""`sojourn join` and `sojourn leave`: brokers come and go while the others, and their clients, go on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from sojourn.cli.logs import one_line
from sojourn.errors import SojournError
from sojourn.live.brokers.control import Answer, ControlError, ask
from sojourn.live.config import Address, BrokerConfig, Config, ConfigError, load_config, parse_address
from sojourn.live.rewriting import with_broker, without_broker, write

File = Annotated[Path, typer.Argument(metavar="FILE", help="The brokers' configuration.")]
LOOK_S = 0.3
SAY_S = 5.0
"""How often it is said what is waited for."""


class JoinError(SojournError):
    """A broker cannot join or leave."""


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
    config = load_config(file)
    row = next(row for row in config.settings(name).joined if row[0] == name)
    if {*link} != {*row[1:]}:
        raise JoinError(
            f"{file} has {name} already, linked to {', '.join(row[1:])} and not to {', '.join(link)}; if it "
            f"was never started, `sojourn leave {file} {name} --dead` takes it back."
        )
    to = _joins_by(config, name)
    try:
        _say(ask(str(config.network.control), to, {"command": "reload"}).said)
    except ControlError as error:
        if not error.is_absent:
            raise
        typer.echo(
            f"{to} does not run on this machine: copy {file} to where it does and `sojourn reload` it; "
            f"if it is not running, start it there with this file."
        )
    typer.echo(f"Start the broker: sojourn serve {file} --broker {name}")


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
    for key in ("listen", "peers", "seats", "page", "metrics"):
        if key in written:
            _check_free(parse_address(written[key], f"--{key}"), config, f"--{key}")
    try:
        broker = msgspec.convert(written, BrokerConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"The new broker cannot be written: {error}.") from None
    return with_broker(file.read_text(encoding="utf-8"), broker, links, written)


def _check_free(place: Address, config: Config, option: str) -> None:
    """Refuse an address that another broker of the file listens at."""
    for broker in config.brokers:
        for taken in (broker.listen, broker.peers, broker.seats, broker.page, broker.metrics):
            if taken is not None and place.port and parse_address(taken, "an address") == place:
                raise JoinError(f"{option} {place} is an address of {broker.name}: choose another port.")


def leave(
    file: File,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The broker that leaves.")],
    *,
    dead: Annotated[
        bool,
        typer.Option(
            "--dead",
            help="Its process is gone for good. With copies it leaves from where another process plays it, "
            "and nothing is lost; without, what only it had is.",
        ),
    ] = False,
    wait: Annotated[
        float, typer.Option(help="How many seconds it may take to give away what it has.")
    ] = 600.0,
) -> None:
    """Take a broker out of a network that runs: its sessions go to its neighbour, then it stops.

    It must be at the end of a branch: no other brokers reach each other by it. With copies it stops when
    others have those that it kept, which a majority of the brokers' processes decides. May be run again after
    whatever went wrong. Example: sojourn leave line.toml B4
    """
    config = load_config(file)
    copies = config.mobility.copies
    if copies and len(config.brokers) - 1 <= copies and name not in config.network.left:
        raise JoinError(
            f"{name} cannot leave: with copies = {copies} in [mobility] there are at least {copies + 1} "
            "brokers."
        )
    folder = str(config.network.control)
    if name in config.network.left:
        _stop(folder, name)
        typer.echo(f"{file} says that {name} has left; there is nothing to do.")
        return
    config.broker(name)
    if dead and _never_came(config, name):
        _take_back(file, config, name)
        return
    until_s = time.monotonic() + wait
    if not _has_left(config, name):
        player = _player(config, name) if dead else name
        if player is None:
            _ask_another(config, name, {"command": "roll", "dead": name})
        else:
            guest = {"guest": name} if player != name else {}
            _empty(folder, name, until_s, player, guest)
            _say(ask(folder, player, {"command": "farewell", **guest}).said)
    if copies:
        _wait_for_votes(config, name, until_s)
    write(file, without_broker(file.read_text(encoding="utf-8"), name))
    _stop(folder, name)
    typer.echo(f"{file} is without {name} now; copy it to the other machines, if there are any.")


def _joins_by(config: Config, name: str) -> str:
    """Return the broker by whose link one joins that the file names."""
    settings = config.settings(name)
    row = next(row for row in settings.joined if row[0] == name)
    return min(row[1:], key=settings.brokers.index)


def _never_came(config: Config, name: str) -> bool:
    """Whether a broker was written into the file and never started, as the one knows that it would call."""
    if name not in config.network.joined:
        return False
    try:
        found = ask(str(config.network.control), _joins_by(config, name), {"command": "roll"}).found
    except ControlError as error:
        if not error.is_absent:
            raise
        return False
    return name not in found["joined"]


def _take_back(file: Path, config: Config, name: str) -> None:
    """Take a broker out of the file that never came, and let it be expected no more."""
    folder, to = str(config.network.control), _joins_by(config, name)
    before = file.read_text(encoding="utf-8")
    write(file, without_broker(before, name))
    _say(ask(folder, to, {"command": "reload"}).said)
    if not _never_came(config, name):
        write(file, before)
        raise JoinError(f"{name} has just joined by {to}: let it leave without --dead, or stop it first.")
    typer.echo(f"{name} never came; {file} is without it now. Its name is not given again.")


def _player(config: Config, name: str) -> str | None:
    """Return the process on this machine that plays a broker whose own is gone; None if nobody does."""
    if not config.mobility.copies:
        return None
    for broker in config.brokers:
        if broker.name != name:
            try:
                found = ask(str(config.network.control), broker.name, {"command": "roll"}).found
            except ControlError as error:
                if not error.is_absent:
                    raise
            else:
                if name in found.get("plays", ()):
                    return broker.name
    return None


def _wait_for_votes(config: Config, name: str, until_s: float) -> None:
    """Wait until the process of a broker that has left is not needed for copies any more."""
    say_s = 0.0
    while True:
        found = _ask_another(config, name, {"command": "roll", "of": name}, is_quiet=True).found
        if name not in found.get("voters", ()):
            return
        why = f"the process of {name} is still needed: {found.get('why', 'its broker has not left')}"
        if time.monotonic() > until_s:
            raise JoinError(f"{name} has left the network, but {why}. Run this again to go on.")
        if time.monotonic() >= say_s:
            say_s = time.monotonic() + SAY_S
            _say(f"waiting: {why}")
        time.sleep(LOOK_S)


def _empty(folder: str, name: str, until_s: float, player: str, guest: dict[str, str]) -> None:
    """Let a broker give away all that it has, where it is played."""
    say_s = 0.0
    while True:
        try:
            answer = ask(folder, player, {"command": "leave", **guest})
        except ControlError as error:
            if not error.is_absent:
                raise
            raise JoinError(
                f"{name} does not run on this machine: start it, so that it can give away all it has, and "
                "run this where it runs; or, if it is gone for good, with --dead."
            ) from None
        if not answer.found["left"]:
            return
        if time.monotonic() > until_s:
            raise JoinError(f"{answer.said}, and --wait has passed; run this again to go on.")
        if time.monotonic() >= say_s:
            say_s = time.monotonic() + SAY_S
            _say(answer.said)
        time.sleep(LOOK_S)


def _has_left(config: Config, name: str) -> bool:
    """Whether a broker that is interrupted after its farewell is known by others to have left."""
    try:
        answer = _ask_another(config, name, {"command": "roll"}, is_quiet=True)
    except JoinError:
        return False
    return name in answer.found["left"]


def _ask_another(config: Config, name: str, what: dict[str, Any], *, is_quiet: bool = False) -> Answer:
    """Ask any broker of this machine but one."""
    for broker in config.brokers:
        if broker.name == name:
            continue
        try:
            answer = ask(str(config.network.control), broker.name, what)
        except ControlError as error:
            if not error.is_absent:
                raise
        else:
            if not is_quiet:
                _say(answer.said)
            return answer
    raise JoinError(f"No other broker than {name} runs on this machine: run this where one does.")


def _stop(folder: str, name: str) -> None:
    try:
        ask(folder, name, {"command": "stop"})
    except ControlError as error:
        if not error.is_absent:
            raise


def _say(said: str) -> None:
    for line in said.split("\n") if said else []:
        typer.echo(one_line(line))
