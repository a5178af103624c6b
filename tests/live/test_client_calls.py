"""What a client does when a call is cancelled, comes from another thread, or asks for something twice."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sojourn import Client, ClientError, ReplicaClient, SojournError, UnreachableError
from tests.live.raw_client import BrokerProcess

LONG_S = 60


def url(broker: BrokerProcess) -> str:
    """Where the shared broker is."""
    return f"mqtt://127.0.0.1:{broker.port}"


@pytest.mark.parametrize("kind", [Client, ReplicaClient])
def test_a_second_filter_does_not_silently_replace_the_first(
    broker: BrokerProcess, kind: type[Client | ReplicaClient]
) -> None:
    """It is refused with the ways out, the first goes on; `replace` says that it is meant."""

    async def scenario() -> None:
        async with kind(url(broker) if kind is Client else [url(broker)]) as client:  # type: ignore[arg-type]  # parametrised
            await client.subscribe("n = 1")
            await client.subscribe("n = 1")  # the same again is no other
            with pytest.raises(ClientError, match="replace=True"):
                await client.subscribe("n = 2")
            await client.publish("a", {"n": 2})
            await client.publish("b", {"n": 1})
            assert (await client.next(LONG_S)).topic == "b"
            await client.subscribe("n = 2", replace=True)
            await client.publish("c", {"n": 1})
            await client.publish("d", {"n": 2})
            assert (await client.next(LONG_S)).topic == "d"
            await client.unsubscribe()
            await client.subscribe("n = 3")

    asyncio.run(asyncio.wait_for(scenario(), 4 * LONG_S))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"payload": [1, 2]}, "The payload of an event is bytes, a text or a mapping, not list"),
        ({"payload": None}, "not NoneType"),
        ({"topic": 7}, "The topic of an event is a text, not int"),
        ({"topic": "a\ud800"}, "no UTF-8"),
        ({"payload": "a\ud800"}, "no UTF-8"),
        ({"attributes": {"road": "\ud800"}}, "half a surrogate pair"),
        ({"policy": "role = '\ud800'"}, "no UTF-8"),
        ({"qos": "1"}, "qos is 0, 1 or 2, not '1'"),
        ({"expires_s": "soon"}, "cannot be published"),
    ],
)
def test_what_can_be_no_event_is_refused_in_a_sentence(
    broker: BrokerProcess, wrong: dict[str, object], sentence: str
) -> None:
    """Whatever is wrong with it; the client goes on."""

    async def scenario() -> None:
        async with Client(url(broker)) as client:
            asked: dict[str, object] = {"topic": "a", "payload": b"b", **wrong}
            with pytest.raises(SojournError, match=sentence):
                await client.publish(**asked)  # type: ignore[arg-type]  # whatever a case names
            await client.publish("a", b"b")

    asyncio.run(asyncio.wait_for(scenario(), 2 * LONG_S))


def test_a_replica_client_keeps_its_subscription_when_another_is_refused(broker: BrokerProcess) -> None:
    """What cannot be asked for changes nothing."""

    async def scenario() -> None:
        async with ReplicaClient([url(broker)]) as client:
            await client.subscribe("n = 1")
            with pytest.raises(ClientError):
                await client.subscribe("n = 2", qos=7, replace=True)
            await client.publish("b", {"n": 1})
            assert (await client.next(LONG_S)).topic == "b"

    asyncio.run(asyncio.wait_for(scenario(), 2 * LONG_S))


def test_a_cancelled_read_takes_no_event(broker: BrokerProcess) -> None:
    """The next reader gets what came meanwhile; none is lost."""

    async def scenario() -> None:
        async with Client(url(broker)) as client:
            await client.subscribe(topic="cancelled")
            with pytest.raises(TimeoutError):
                await client.next(timeout_s=0.05)
            reading = asyncio.create_task(client.next())
            await asyncio.sleep(0)
            reading.cancel()
            await client.publish("cancelled", "1")
            assert (await client.next(LONG_S)).payload == b"1"

    asyncio.run(asyncio.wait_for(scenario(), 2 * LONG_S))


def test_a_cancelled_connect_can_be_made_again(broker: BrokerProcess) -> None:
    """One that waits for an answer which does not come leaves nothing behind."""

    async def scenario() -> None:
        gone = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(1_000):
                pass
            gone.set()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        client = Client(f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await client.connect()
        await asyncio.wait_for(gone.wait(), LONG_S)
        assert not client.connected
        await client.move_to(url(broker))
        await client.publish("x")
        await client.close()
        server.close()

    asyncio.run(asyncio.wait_for(scenario(), 2 * LONG_S))


def test_other_threads_publish_through_the_loop(broker: BrokerProcess) -> None:
    """By `run_coroutine_threadsafe`, as the documentation says."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with Client(url(broker)) as client:
            await client.subscribe(topic="thread")

            def elsewhere() -> None:
                asyncio.run_coroutine_threadsafe(client.publish("thread", "hello"), loop).result(LONG_S)

            thread = threading.Thread(target=elsewhere)
            thread.start()
            assert (await client.next(LONG_S)).payload == b"hello"
            await asyncio.to_thread(thread.join)

    asyncio.run(asyncio.wait_for(scenario(), 2 * LONG_S))


def test_moving_to_a_dead_broker_says_so_and_the_way_back_is_open(broker: BrokerProcess) -> None:
    """It is an error of ours, and of the system's family; the client moves on from there."""

    async def scenario() -> None:
        async with Client(url(broker)) as client:
            await client.subscribe(topic="back")
            with pytest.raises(UnreachableError, match="cannot be reached") as raised:
                await client.move_to("mqtt://127.0.0.1:1")  # where nobody is
            assert isinstance(raised.value, ConnectionError)
            await client.move_to(url(broker))
            await client.publish("back", "again")
            assert (await client.next(LONG_S)).payload == b"again"

    asyncio.run(asyncio.wait_for(scenario(), 2 * LONG_S))
