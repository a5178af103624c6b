"""What a client does when a broker cannot serve it now, or is not there."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import mqtt5
import pytest

from sojourn import Client, ClientError
from sojourn.live.brokers.server import Server
from sojourn.live.client.link import RefusedError
from sojourn.live.config import Address, single_broker


class Reluctant:
    """A broker that answers CONNECT with one code after another."""

    def __init__(self, codes: list[int]) -> None:
        self.codes: Iterator[int] = iter(codes)
        self.asked = 0
        self.url = ""

    async def start(self) -> asyncio.Server:
        """Listen."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1_000)
        self.asked += 1
        code = mqtt5.ConnAckReasonCode(next(self.codes))
        reason = "your session may be at B3, which is out of reach; try again"
        text = reason if int(code) >= 0x80 else None
        writer.write(mqtt5.ConnAckPacket(reason_code=code, reason_str=text).write())
        await writer.drain()
        if int(code) < 0x80:
            await reader.read()
        writer.close()


def test_a_broker_that_cannot_serve_now_is_asked_again() -> None:
    """0x88, 0x89 and 0x97 are no errors while there is patience, when connecting and when moving."""

    async def scenario() -> None:
        broker = Reluctant([0x88, 0x89, 0x97, 0, 0x88, 0])
        server = await broker.start()
        client = Client(broker.url, patience_s=30)
        told: list[str] = []
        client.on_wait = told.append
        await client.connect()
        assert broker.asked == 4
        assert len(told) == 1, "once, however often it asks"
        assert "your session may be at B3, which is out of reach" in told[0]
        await client.move_to(broker.url)
        assert broker.asked == 6
        await client.close()
        server.close()

    asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.parametrize(("code", "patience_s"), [(0x88, 0.5), (0x87, 30.0)])
def test_a_refusal_is_raised_when_patience_ends_or_there_is_no_hope(code: int, patience_s: float) -> None:
    """The broker's own words are in it; a refusal for good is raised at once."""

    async def scenario() -> None:
        broker = Reluctant([code] * 100)
        server = await broker.start()
        began = time.monotonic()
        with pytest.raises(RefusedError, match="at B3, which is out of reach") as refused:
            await Client(broker.url, patience_s=patience_s).connect()
        assert refused.value.code == code
        assert time.monotonic() - began < 20
        assert broker.asked > 1 if code == 0x88 else broker.asked == 1
        server.close()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_moving_to_a_dead_broker_is_one_sentence_and_the_way_back_is_open() -> None:
    """The error is the library's own and names the address; the client can then move elsewhere."""

    async def scenario() -> None:
        server = Server(single_broker(Address("127.0.0.1", 0)), "B1")
        address = await server.start()
        with socket.create_server(("127.0.0.1", 0)) as soon_gone:
            dead = f"mqtt://127.0.0.1:{soon_gone.getsockname()[1]}"
        client = Client(f"mqtt://{address}")
        await client.connect()
        with pytest.raises(ClientError, match=rf"^{dead} cannot be reached \(connection refused\)\.$"):
            await client.move_to(dead)
        await client.move_to(f"mqtt://{address}")
        assert client.connected
        await client.close()
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))
