"""Six brokers of a building on whatever ports are free, in one process or in six."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
import time
from pathlib import Path

from sojourn.broker.settings import MobilityConfig, RoutingConfig
from sojourn.live.addresses import FolderBook
from sojourn.live.config import BrokerConfig, Config, NetworkConfig
from sojourn.live.links.secret import SECRET_NAME, write_secret

ANY_PORT = "127.0.0.1:0"
PATIENCE_S = 60.0
LINKS = [
    ("B1", "B2"), ("B1", "B6"), ("B2", "B3"), ("B2", "B6"),
    ("B3", "B4"), ("B3", "B5"), ("B3", "B6"), ("B4", "B6"),
]  # fmt: skip


def an_address_folder() -> NetworkConfig:
    """A fresh folder where brokers say which ports they have, and a secret; both are gone in the end."""
    folder = tempfile.mkdtemp(prefix="sojourn-addresses-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return NetworkConfig(addresses=folder, secret=a_secret())


@functools.cache
def a_secret() -> str:
    """The file of a secret that all networks of the tests share."""
    folder = tempfile.mkdtemp(prefix="sojourn-secret-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / SECRET_NAME
    write_secret(path)
    return str(path)


def building(scheme: str = "proactive", mode: str = "content", stores: str | None = None) -> Config:
    """The configuration; every broker takes whatever ports are free."""
    return Config(
        brokers=[
            BrokerConfig(
                name=f"B{number + 1}",
                listen=ANY_PORT,
                peers=ANY_PORT,
                store=None if stores is None else f"{stores}/B{number + 1}.db",
            )
            for number in range(6)
        ],
        links=LINKS,
        network=an_address_folder(),
        mobility=MobilityConfig(subscribers=scheme),  # type: ignore[arg-type]  # whatever a case names
        routing=RoutingConfig(mode=mode),  # type: ignore[arg-type]  # whatever a case names
    )


def as_toml(config: Config) -> str:
    """The same as a file that broker processes read."""
    links = ", ".join(f'["{one}", "{other}"]' for one, other in config.links)
    lines = [f"links = [{links}]", "[mobility]", f'subscribers = "{config.mobility.subscribers}"']
    lines += ["[routing]", f'mode = "{config.routing.mode}"']
    lines += ["[network]"]
    lines += [f'addresses = "{config.network.addresses}"'] if config.network.addresses else []
    lines += [f'secret = "{config.network.secret}"'] if config.network.secret else []
    for broker in config.brokers:
        lines += ["[[brokers]]", f'name = "{broker.name}"', f'listen = "{broker.listen}"']
        lines += [f'peers = "{broker.peers}"'] if broker.peers else []
        lines += [f'store = "{broker.store}"'] if broker.store else []
    return "\n".join(lines) + "\n"


def address(config: Config, number: int, of: str = "clients") -> str:
    """Where the broker with that number (from 0) listens for its `clients`, `tls`, `peers` or `page`."""
    broker = config.brokers[number]
    assert config.network.addresses is not None
    book = FolderBook(config.network.addresses)
    until = time.monotonic() + PATIENCE_S
    while (found := book.find(broker.name)) is None:
        assert time.monotonic() < until, f"{broker.name} never said where it listens"
        time.sleep(0.01)  # its process is starting
    said = getattr(found, of)
    assert isinstance(said, str), f"{broker.name} does not serve {of}"
    return said


def url(config: Config, number: int) -> str:
    """Where clients of the broker with that number (from 0) connect."""
    listen = config.brokers[number].listen
    return f"mqtt://{listen if not listen.endswith(':0') else address(config, number)}"
