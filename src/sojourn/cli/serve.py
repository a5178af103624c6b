"""`sojourn serve`: run a broker."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sojourn.errors import SojournError
from sojourn.live.config import Address, Config, load_config, single_broker
from sojourn.live.server import serve as run_broker


class ServeError(SojournError):
    """The options of `sojourn serve` do not fit together."""


def serve(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A configuration, as `sojourn init` writes one."),
    ] = None,
    *,
    broker: Annotated[
        str | None, typer.Option(help="Which broker of the configuration this process is.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Without a configuration: where to listen.")] = None,
    port: Annotated[
        int | None, typer.Option(help="Without a configuration: the port.", min=0, max=65535)
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log more.")] = False,
) -> None:
    """Run a broker that any MQTT 5 client can use, until it is interrupted.

    Without a configuration it is a single broker on 127.0.0.1:1883. Examples:

    sojourn serve --port 1883

    sojourn init building > building.toml && sojourn serve building.toml --broker B1
    """
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    settings, name = _settings(config, broker, host, port)
    console = Console(stderr=True, highlight=False)

    def announce(address: Address) -> None:
        console.print(f"sojourn: broker {name} listens on mqtt://{address} (Ctrl-C stops it)", soft_wrap=True)

    run_broker(settings, name, announce)


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
            raise ServeError(f"{path} has several brokers; say which with --broker: {names}.")
        broker = config.brokers[0].name
    return config, config.broker(broker).name
