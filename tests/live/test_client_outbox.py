"""Publishing from several tasks at once, over a connection that breaks."""

from __future__ import annotations

import asyncio

from sojourn import Client


def test_what_waited_for_a_connection_leaves_before_what_is_published_then(port: int) -> None:
    """Events leave in the order of their numbers; out of it, a broker would take them for repeated."""

    async def scenario() -> None:
        address = f"mqtt://127.0.0.1:{port}"
        async with Client(address) as reader, Client(address) as writer:
            await reader.subscribe(topic="outbox")
            writer.vanish()
            waiting = [asyncio.create_task(writer.publish("outbox", {"n": n})) for n in range(20)]
            await asyncio.sleep(0.05)
            await writer.connect()
            await writer.publish("outbox", {"n": 20})  # the others have not been woken yet
            await asyncio.gather(*waiting)
            assert [(await reader.next(5)).attributes["n"] for _ in range(21)] == list(range(21))

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_more_than_the_broker_allows_at_once_survive_a_lost_connection(port: int) -> None:
    """Those that had no room yet find it on the next connection."""

    async def scenario() -> None:
        address = f"mqtt://127.0.0.1:{port}"
        async with Client(address, inbox=5_000) as reader, Client(address) as writer:
            await reader.subscribe(topic="much")
            sending = [asyncio.create_task(writer.publish("much", {"n": n})) for n in range(2_500)]
            await asyncio.sleep(0.01)
            writer.vanish()
            await asyncio.sleep(0.05)
            await writer.connect()
            await asyncio.gather(*sending)
            assert [(await reader.next(5)).attributes["n"] for _ in range(2_500)] == list(range(2_500))

    asyncio.run(asyncio.wait_for(scenario(), 60))
