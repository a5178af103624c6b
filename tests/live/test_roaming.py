"""Clients that move between six brokers over real sockets, and lose nothing."""

from __future__ import annotations

import asyncio
import random

import pytest

from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import Config
from tests.live.building import building, url


async def started(config: Config) -> list[Server]:
    """All brokers of a configuration, in this process, linked with one another."""
    servers = [Server(config, broker.name) for broker in config.brokers]
    for server in servers:
        await server.start()
    for _ in range(500):
        nodes = [server.node for server in servers]
        if all(
            node and node.network and all(c.open for c in node.network.links.channels.values())
            for node in nodes
        ):
            return servers
        await asyncio.sleep(0.01)
    raise AssertionError("the brokers did not find one another")


async def stop(servers: list[Server]) -> None:
    """Stop them all."""
    await asyncio.gather(*(server.stop() for server in servers))


@pytest.mark.parametrize("mode", ["content", "flooding"])
@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_roaming_subscribers_get_each_event_once_and_in_order(scheme: str, mode: str) -> None:
    """Twelve subscribers move at random while events are published; two in three want a part of them."""

    async def scenario() -> None:
        config = building(scheme, mode)
        servers = await started(config)
        draw = random.Random(7)
        got: dict[int, list[int]] = {}

        async def roam(number: int, done: asyncio.Event) -> None:
            client = Client(url(config, number % 6), client_id=f"walker-{number}")
            await client.connect()
            await client.subscribe(f"n >= 0 AND kind = {number % 3}" if number % 3 else "")
            got[number] = []

            async def read() -> None:
                async for event in client:
                    got[number].append(event.attributes["n"])

            reading = asyncio.create_task(read())
            ready.release()
            while not done.is_set():
                await asyncio.sleep(draw.uniform(0.02, 0.2))
                await client.move_to(url(config, draw.randrange(6)))
            expected = len([n for n in range(400) if number % 3 == 0 or n % 3 == number % 3])
            for _ in range(300):
                if len(got[number]) >= expected:
                    break
                await asyncio.sleep(0.02)
            await client.close()
            await reading

        done = asyncio.Event()
        ready = asyncio.Semaphore(0)
        walkers = [asyncio.create_task(roam(number, done)) for number in range(12)]
        for _ in walkers:
            await ready.acquire()
        await asyncio.sleep(0.2)  # until the last subscription has reached every broker
        async with Client(url(config, 0), client_id="source") as source:
            for n in range(400):
                await source.publish("news", {"n": n}, attributes={"kind": n % 3}, qos=1)
                await asyncio.sleep(0.004)
        done.set()
        await asyncio.gather(*walkers)
        for number in range(12):
            wanted = [n for n in range(400) if number % 3 == 0 or n % 3 == number % 3]
            assert got[number] == wanted, f"walker {number}"
        nodes = [server.node for server in servers]
        handed = sum(
            node.network.clients.handoff_count for node in nodes if node is not None and node.network
        )
        assert handed > 100
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 240))
