"""What a client says when it has no connection, has one already, or is told to make several at once."""

from __future__ import annotations

import asyncio

import mqtt5
import pytest

from sojourn import Client, ClientError, UnreachableError
from tests.live.raw_client import BrokerProcess

LONG_S = 60
NOWHERE = "mqtt://127.0.0.1:1"


def url(broker: BrokerProcess) -> str:
    """Where the shared broker is."""
    return f"mqtt://127.0.0.1:{broker.port}"


def test_every_call_after_a_takeover_says_what_happened(broker: BrokerProcess) -> None:
    """None waits for a connection that will not come; `connect` takes the session back."""

    async def scenario() -> None:
        first = Client(url(broker), client_id="twice")
        await first.connect()
        async with Client(url(broker), client_id="twice"):
            for call in (first.next, lambda: first.publish("x"), lambda: first.subscribe(topic="x")):
                with pytest.raises(ClientError, match="took over the client id 'twice'"):
                    await asyncio.wait_for(call(), LONG_S)
        await first.connect()
        await first.subscribe(topic="x")
        await first.publish("x", "1")
        assert (await first.next(LONG_S)).payload == b"1"
        await first.close()

    asyncio.run(asyncio.wait_for(scenario(), 4 * LONG_S))


def test_a_connected_client_that_connects_stays_as_it_is(broker: BrokerProcess) -> None:
    """It does not take its own session from itself, whether one call follows the other or not."""

    async def scenario() -> None:
        client = Client(url(broker))
        await asyncio.gather(client.connect(), client.connect())
        await client.connect()
        await client.publish("x")
        assert [line.ended for line in client.connections] == [""]
        await client.close()

    asyncio.run(asyncio.wait_for(scenario(), 2 * LONG_S))


def test_a_client_without_a_connection_says_so_when_its_patience_ends(broker: BrokerProcess) -> None:
    """After a move to where nobody is; the way back stays open."""

    async def scenario() -> None:
        client = Client(url(broker), patience_s=0.2)
        await client.connect()
        with pytest.raises(UnreachableError):
            await client.move_to(NOWHERE)
        for call in (client.publish("x"), client.subscribe(topic="x"), client.unsubscribe(topic="x")):
            with pytest.raises(UnreachableError, match=f"no connection for 0.2 s, last tried at {NOWHERE}"):
                await asyncio.wait_for(call, LONG_S)
        await client.move_to(url(broker))
        await client.close()

    asyncio.run(asyncio.wait_for(scenario(), 4 * LONG_S))


class Silent(asyncio.Protocol):
    """A broker that answers CONNECT, and then nothing."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP
        """Begin."""
        self.transport, self.greeted = transport, False

    def data_received(self, _data: bytes) -> None:
        """Answer once."""
        if not self.greeted:
            self.greeted = True
            self.transport.write(mqtt5.ConnAckPacket(reason_code=mqtt5.ConnAckReasonCode.SUCCESS).write())


def test_what_waits_when_a_move_fails_is_told_when_patience_ends() -> None:
    """A publish and a subscription that had no answer yet, and a reader, wait no longer than later calls."""

    async def scenario() -> None:
        server = await asyncio.get_running_loop().create_server(Silent, "127.0.0.1", 0)
        client = Client(f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}", patience_s=0.2)
        await client.connect()
        calls = (client.publish("x"), client.subscribe(topic="x"), client.next())
        waiting = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0.05)
        with pytest.raises(UnreachableError):
            await client.move_to(NOWHERE)
        await client.advertise("topic = 'x'")  # is told to the next broker
        for told in await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), LONG_S):
            assert isinstance(told, UnreachableError)
            assert f"no connection for 0.2 s, last tried at {NOWHERE}" in str(told)
        await client.close()
        server.close()

    asyncio.run(asyncio.wait_for(scenario(), 4 * LONG_S))


def test_reading_before_connecting_says_what_is_missing(broker: BrokerProcess) -> None:
    """Where a connection is being made, it waits."""

    async def scenario() -> None:
        client = Client(url(broker))
        with pytest.raises(ClientError, match=r"connect\(\)` comes first"):
            await client.next(LONG_S)
        connecting = asyncio.create_task(client.connect())
        await asyncio.sleep(0)
        reading = asyncio.create_task(client.next(LONG_S))
        await connecting
        await client.subscribe(topic="before")
        await client.publish("before", "1")
        assert (await reading).payload == b"1"
        await client.close()

    asyncio.run(asyncio.wait_for(scenario(), 2 * LONG_S))


def test_moves_at_once_are_made_one_after_the_other(broker: BrokerProcess) -> None:
    """The client ends with one connection, that of the last move, and can still be used."""

    async def scenario() -> None:
        async with Client(url(broker)) as client:
            await client.subscribe(topic="at-once")
            await asyncio.gather(*(client.move_to(url(broker)) for _ in range(4)))
            assert [line.ended for line in client.connections] == ["moved"] * 4 + [""]
            await client.publish("at-once", "1")
            assert (await client.next(LONG_S)).payload == b"1"

    asyncio.run(asyncio.wait_for(scenario(), 4 * LONG_S))


def test_a_closed_client_that_connects_again_reads_again(broker: BrokerProcess) -> None:
    """As the sentence of a closed client promises."""

    async def scenario() -> None:
        client = Client(url(broker))
        await client.connect()
        await client.close()
        await client.connect()
        await client.subscribe(topic="again")
        reading = asyncio.create_task(client.next(LONG_S))
        await asyncio.sleep(0)
        await client.publish("again", "1")
        assert (await reading).payload == b"1"
        await client.close()

    asyncio.run(asyncio.wait_for(scenario(), 2 * LONG_S))
