"""A neighbour that takes nothing in: publishers wait, memory stays bounded, and nothing is lost."""

from __future__ import annotations

import asyncio

import msgspec

from sojourn.live.client.client import Client
from sojourn.live.config import Config
from tests.live.building import building, url
from tests.live.test_roaming import started, stop


def line() -> Config:
    """Three brokers in a row."""
    config = building()
    return msgspec.structs.replace(config, brokers=config.brokers[:3], links=[("B1", "B2"), ("B2", "B3")])


def test_publishers_wait_for_a_neighbour_that_takes_nothing_in() -> None:
    """B3 stands still: B2's queue fills, then B1's, then the publisher waits; afterwards all arrives."""

    async def scenario() -> None:
        config = line()
        servers = await started(config)
        nodes = [server.node for server in servers]
        first, second, third = (
            node.network for node in nodes if node is not None and node.network is not None
        )
        for network in (first, second):
            for channel in network.channels.values():
                channel.window_bytes, channel.queue_bytes = 20_000, 40_000
        reader = Client(url(config, 2), client_id="reader")
        await reader.connect()
        await reader.subscribe()
        await asyncio.sleep(0.2)
        assert nodes[2] is not None
        taken = nodes[2]._take_frame
        frozen: list[tuple[str, object, bytes]] = []
        nodes[2]._take_frame = lambda peer, position, body: frozen.append((peer, position, body))  # type: ignore[method-assign]

        async def publish() -> None:
            async with Client(url(config, 0), client_id="source") as source:
                for n in range(300):
                    await source.publish("news", {"n": n, "filling": "x" * 1_000}, qos=1)

        publishing = asyncio.create_task(publish())
        await asyncio.sleep(1.0)
        assert not publishing.done(), "the publisher did not wait"
        assert second.channels["B3"].queued < 70_000
        assert first.channels["B2"].queued < 70_000
        nodes[2]._take_frame = taken  # type: ignore[method-assign]
        for peer, position, body in frozen:
            taken(peer, position, body)  # type: ignore[arg-type]
        await publishing
        got = [(await reader.next(10)).attributes["n"] for _ in range(300)]
        assert got == list(range(300))
        assert third.drops == {}
        await reader.close()
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 60))
