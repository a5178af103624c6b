"""Stores of another network in the same folder: what went over is said, and how to begin anew."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

from sojourn import Client
from sojourn.cli.brought_along import brought_along
from sojourn.live.addresses import ComeFrom, Listening
from sojourn.live.brokers.server import Server
from sojourn.live.config import Config, read_config
from sojourn.live.links.secret import write_secret

ALONE = (
    "B1 was part of another network when it last ran (B1) and goes on with what its store holds, 1 session; "
    "to begin anew instead, stop it and move its store away"
)
TOGETHER = (
    "B1, B2 were part of another network when they last ran (B1, B2; links B1-B2) and go on with what their "
    "stores hold, 7 sessions and 3 retained messages; to begin anew instead, stop them and move their stores "
    "away"
)


def of(broker: str, network: str | None, sessions: int = 0, retained: int = 0) -> Listening:
    """What a broker says of itself."""
    came = None if network is None else ComeFrom(network=network, sessions=sessions, retained=retained)
    return Listening(broker=broker, pid=1, clients="127.0.0.1:1", came_from=came)


def test_brokers_of_one_network_are_one_sentence() -> None:
    """And those that were where they are say nothing."""
    assert brought_along([of("B1", None)]) == []
    assert brought_along([of("B1", "B1", 1)]) == [ALONE]
    before = "B1, B2; links B1-B2"
    assert brought_along([of("B1", before, 2, 3), of("B2", before, 5, 3), of("B3", None)]) == [TOGETHER]


def test_a_broker_knows_that_its_store_is_of_another_network(tmp_path: Path) -> None:
    """Once, at the start that takes it over, and not if there is nothing in it."""

    def network(*names: str) -> Config:
        links = ", ".join(f'["{one}", "{other}"]' for one, other in pairwise(names))
        text = f'links = [{links}]\nnetwork.secret = "{tmp_path}/network.secret"\n' if links else ""
        for name in names:
            text += f'[[brokers]]\nname = "{name}"\nlisten = "127.0.0.1:0"\npeers = "127.0.0.1:0"\n'
            text += f'store = "{tmp_path / name}"\n'
        return read_config(text)

    async def life(config: Config, *, with_client: bool = False) -> ComeFrom | None:
        server = Server(config, "B1")
        address = await server.start()
        if with_client:
            async with Client(f"mqtt://{address}", client_id="kept"):
                pass
        await server.stop()
        assert server.listening is not None
        return server.listening.came_from

    async def scenario() -> None:
        one, two, three = network("B1"), network("B1", "B2"), network("B1", "B2", "B3")
        assert await life(three) is None
        assert await life(one) is None, "there was nothing to take along"
        assert await life(one, with_client=True) is None
        assert await life(two) == ComeFrom(network="B1", sessions=1, retained=0)
        assert await life(two) is None, "that was said"
        assert await life(three) == ComeFrom(network="B1, B2; links B1-B2", sessions=1, retained=0)

    write_secret(tmp_path / "network.secret")
    asyncio.run(asyncio.wait_for(scenario(), 120))
