"""Six brokers of a building on free ports, in one process or in six."""

from __future__ import annotations

import atexit
import socket

from sojourn.broker.settings import MobilityConfig, RoutingConfig
from sojourn.live.config import BrokerConfig, Config

LINKS = [
    ("B1", "B2"), ("B1", "B6"), ("B2", "B3"), ("B2", "B6"),
    ("B3", "B4"), ("B3", "B5"), ("B3", "B6"), ("B4", "B6"),
]  # fmt: skip


def free_ports(count: int) -> list[int]:
    """Ports that nobody else gets while this process lives, and that brokers of a test can listen on.

    Each stays bound to a socket that does not listen. The system gives such a port to nobody who asks for any
    free one, but lets in who asks for this one and may share addresses, as a server does.
    """
    keepers = [socket.socket() for _ in range(count)]
    for keeper in keepers:
        atexit.register(keeper.close)
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
    return [int(keeper.getsockname()[1]) for keeper in keepers]


def building(scheme: str = "proactive", mode: str = "content", stores: str | None = None) -> Config:
    """The configuration, with ports of its own."""
    ports = free_ports(12)
    return Config(
        brokers=[
            BrokerConfig(
                name=f"B{number + 1}",
                listen=f"127.0.0.1:{ports[number]}",
                peers=f"127.0.0.1:{ports[6 + number]}",
                store=None if stores is None else f"{stores}/B{number + 1}.db",
            )
            for number in range(6)
        ],
        links=LINKS,
        mobility=MobilityConfig(subscribers=scheme),  # type: ignore[arg-type]
        routing=RoutingConfig(mode=mode),  # type: ignore[arg-type]
    )


def as_toml(config: Config) -> str:
    """The same as a file that broker processes read."""
    links = ", ".join(f'["{one}", "{other}"]' for one, other in config.links)
    lines = [f"links = [{links}]", "[mobility]", f'subscribers = "{config.mobility.subscribers}"']
    lines += ["[routing]", f'mode = "{config.routing.mode}"']
    for broker in config.brokers:
        lines += ["[[brokers]]", f'name = "{broker.name}"', f'listen = "{broker.listen}"']
        lines += [f'peers = "{broker.peers}"'] if broker.peers else []
        lines += [f'store = "{broker.store}"'] if broker.store else []
    return "\n".join(lines) + "\n"


def url(config: Config, number: int) -> str:
    """Where clients of the broker with that number (from 0) connect."""
    return f"mqtt://{config.brokers[number].listen}"
