"""`sojourn serve`: run a broker, or all brokers of a configuration."""

from __future__ import annotations

import logging
import os
import stat
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from sojourn.cli.brought_along import brought_along
from sojourn.cli.logs import LogFormat, set_up_logs
from sojourn.cli.voice import Voice
from sojourn.errors import SojournError
from sojourn.live.addresses import Listening
from sojourn.live.config import Address, Config, load_config, single_broker
from sojourn.live.page.status import Report

PIPE_ATOM = 4_096
"""A pipe takes so many bytes whole or not at all."""

_log = logging.getLogger("sojourn.serve")


class ServeError(SojournError):
    """The options of `sojourn serve` do not fit together."""


def serve(  # noqa: PLR0913 - each is an option of the command
    config: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A configuration, as `sojourn init` writes one."),
    ] = None,
    *,
    broker: Annotated[
        str | None, typer.Option(help="Which broker of the configuration this process is.")
    ] = None,
    all_brokers: Annotated[
        bool, typer.Option("--all", help="Run every broker of the configuration, each as a process.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="Without a configuration: where to listen.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Without a configuration: the port.", min=0, max=65535)
    ] = None,
    log: Annotated[
        LogFormat, typer.Option(help="Log lines for a person, or one JSON object a line.")
    ] = LogFormat.TEXT,
    logs: Annotated[Path, typer.Option(help="With --all: the folder for the brokers' logs.")] = Path(
        "sojourn-logs"
    ),
    addresses: Annotated[
        Path | None,
        typer.Option(help="The folder where brokers say which ports they have, instead of the file's."),
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="Print how the broker is doing every second, as a line of JSON.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log more.")] = False,
) -> None:
    """Run a broker that any MQTT client can use, of version 3.1.1 or 5, until it is interrupted.

    Without a configuration it is a single broker on 127.0.0.1:1883. Examples:

    sojourn serve --port 1883

    sojourn init building building.toml && sojourn serve building.toml --all
    """
    if all_brokers:
        from sojourn.cli.serve_all import serve_all

        if config is None or broker is not None or host is not None or port is not None or status:
            raise ServeError("--all runs every broker of a file: give FILE and none of the other choices.")
        serve_all(config, placed(load_config(config), addresses), logs, log=log, verbose=verbose)
        return
    from sojourn.live.brokers.server import serve as run_broker

    settings, name = _settings(config, broker, host, port)
    settings = placed(settings, addresses)
    set_up_logs(log, verbose=verbose)
    say = Voice(Console(stderr=True, highlight=False))

    def announce(found: Listening) -> None:
        if log is LogFormat.JSON:
            where = {"broker": name, "address": found.clients, "page": found.page}
            _log.info("%s listens on mqtt://%s", name, found.clients, extra=where)
            for text in brought_along([found]):
                _log.warning("%s", text)
            return
        for text in sentences(found):
            say(text)

    reread = None if config is None else (lambda: placed(load_config(config), addresses))
    run_broker(settings, name, announce, StatusLines() if status else None, reread, config)


def sentences(found: Listening) -> list[str]:
    """Say where a broker is to be found."""
    said = [f"broker {found.broker} listens on mqtt://{found.clients} (Ctrl-C stops it)"]
    ways = (("mqtts", found.tls), ("ws", found.ws), ("wss", found.wss))
    said += [f"and on {scheme}://{place}" for scheme, place in ways if place is not None]
    if found.page is not None:
        said.append(f"its page is http://{found.page}/")
    if found.metrics is not None:
        said.append(f"its metrics are at http://{found.metrics}/metrics")
    return said + brought_along([found])


def placed(config: Config, addresses: Path | None) -> Config:
    """Return a configuration whose brokers say in this folder where they listen, if one is given."""
    if addresses is None:
        return config
    network = msgspec.structs.replace(config.network, addresses=str(addresses.absolute()))
    return msgspec.structs.replace(config, network=network)


class StatusLines:
    """Reports as lines on standard output; a reader that has gone ends the broker, a full disk does not."""

    def __init__(self) -> None:
        self._out = sys.stdout.fileno()
        self._is_told = False
        """Whether it was said that reports cannot be written."""
        self._is_pipe = stat.S_ISFIFO(os.fstat(self._out).st_mode)
        if self._is_pipe:
            os.set_blocking(self._out, False)  # a reader that sleeps must not hold up the broker

    def __call__(self, report: Report) -> bool:
        """Write a report; False if nobody reads any more."""
        short = msgspec.structs.replace(report, moves=[], present=[])
        line = msgspec.json.encode(short) + b"\n"
        if self._is_pipe and len(line) > PIPE_ATOM:
            line = (
                msgspec.json.encode(msgspec.structs.replace(short, links={}, dropped={}, refused={})) + b"\n"
            )
        try:
            os.write(self._out, line)
        except BlockingIOError:
            pass  # the next one says more
        except BrokenPipeError:
            return False
        except OSError as error:
            if not self._is_told:
                self._is_told = True
                _log.warning("Reports cannot be written to standard output: %s", error.strerror)
        return True


def _settings(
    path: Path | None, broker: str | None, host: str | None, port: int | None
) -> tuple[Config, str]:
    if path is None:
        if broker is not None:
            raise ServeError("--broker names a broker of a configuration; give its file too.")
        config = single_broker(Address(host or "127.0.0.1", 1883 if port is None else port))
        return config, config.brokers[0].name
    if host is not None or port is not None:
        raise ServeError("--host and --port are for a broker without a configuration; the file has them.")
    config = load_config(path)
    if broker is None:
        if len(config.brokers) > 1:
            names = ", ".join(each.name for each in config.brokers)
            raise ServeError(f"{path} has several brokers; say which with --broker, or --all: {names}.")
        broker = config.brokers[0].name
    return config, config.broker(broker).name
