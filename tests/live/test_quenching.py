"""Publishers that are told what is wanted, by one broker and by two, and keep back the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from sojourn import Client
from sojourn.broker.quenching import INTERESTS_MAX
from sojourn.broker.settings import RoutingConfig
from sojourn.edge.quench import QuenchFilter, QuenchUpdate
from sojourn.interest import Event
from sojourn.live.brokers.server import Server
from sojourn.live.client.quench import BUFFER_EVENTS_MAX
from sojourn.live.config import BrokerConfig, Config
from sojourn.mqtt.conventions import QUENCH, QUENCH_TOPIC
from tests.live.building import ANY_PORT, an_address_folder, url
from tests.live.raw_client import Raw
from tests.live.test_roaming import started, stop


def pair(mode: str = "content", count: int = 2) -> Config:
    """Brokers in a row."""
    return Config(
        brokers=[
            BrokerConfig(
                name=f"B{at + 1}",
                listen=ANY_PORT,
                peers=ANY_PORT if count > 1 else None,
            )
            for at in range(count)
        ],
        links=[(f"B{at}", f"B{at + 1}") for at in range(1, count)],
        network=an_address_folder(),
        routing=RoutingConfig(mode=mode),  # type: ignore[arg-type]  # whatever a case names
    )


async def until(done: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for something to be true."""
    async with asyncio.timeout(seconds):
        while not done():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.01)


def received(server: Server) -> int:
    """How many events clients have published at a broker."""
    assert server.node is not None
    return server.node.core.state.counters.received


def version(client: Client) -> int:
    """Which version of the interest a publisher knows."""
    assert client.quench is not None
    return client.quench.version


def test_a_broker_tells_the_whole_first_and_then_differences(port: int) -> None:
    """As JSON on a reserved topic, to those who asked for it, and it says so on CONNACK."""
    with Raw(port) as source, Raw(port) as plain, Raw(port) as reader:
        plain.connect("plain")
        reader.connect("reader")
        reader.subscribe("cars/#")
        answer = source.connect("source", user_properties=[(QUENCH, "1")])
        assert (QUENCH, "1") in answer.user_properties
        known = QuenchFilter()

        def update() -> QuenchUpdate:
            packet = source.message()
            assert packet.topic == QUENCH_TOPIC
            fields = msgspec.json.decode(packet.payload or b"")
            step = QuenchUpdate(
                fields["version"], fields["base"], tuple(fields["dropped"]), tuple(fields["added"])
            )
            assert known.apply(step)
            return step

        assert update().base == -1
        assert known.wants(Event({"topic": "cars/1"}))
        assert not known.wants(Event({"topic": "room/1"}))
        reader.subscribe("room/+", user_properties=[("filter", "celsius > 30")])
        assert update().base >= 0
        assert known.wants(Event({"topic": "room/1", "celsius": 31}))
        assert not known.wants(Event({"topic": "room/1", "celsius": 29}))
        reader.subscribe("cars/7")  # others want it already: there is nothing to tell
        source.expect_nothing()
        plain.expect_nothing()
        assert plain.publish(QUENCH_TOPIC, b"{}", qos=1) == 0x87


def test_a_publisher_keeps_back_what_nobody_wants() -> None:
    """Also for a subscriber that is away, and not what is retained for later ones."""

    async def scenario() -> None:
        config = pair(count=1)
        server = Server(config, "B1")
        await server.start()
        source = Client(url(config, 0), client_id="source", quench=True)
        reader = Client(url(config, 0), client_id="reader")
        await reader.connect()
        await reader.subscribe("n >= 10", topic="news/#")
        await reader.close()
        await source.connect()
        for n in range(20):
            await source.publish("news/today", {"n": n})
        assert source.quenched == 10
        assert received(server) == 10
        await source.publish("other", b"state", retain=True)
        assert received(server) == 11
        before = version(source)
        async with Client(url(config, 0)) as late:
            await late.subscribe(topic="other")
            assert (await late.next(5)).payload == b"state"
            await until(lambda: version(source) > before)
            await source.publish("other", b"live")
            assert (await late.next(5)).payload == b"live"
        await source.close()
        async with Client(url(config, 0), client_id="reader") as back:
            assert [(await back.next(5)).attributes["n"] for _ in range(10)] == list(range(10, 20))
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_neighbour_s_subscribers_count_too() -> None:
    """What only somebody at the other broker wants is sent; what nobody anywhere wants is not."""

    async def scenario() -> None:
        config = pair()
        servers = await started(config)
        async with (
            Client(url(config, 0), client_id="source", quench=True) as source,
            Client(url(config, 1), client_id="reader") as reader,
        ):
            await until(lambda: version(source) >= 0)
            await source.publish("news", {"n": 1})
            assert (source.quenched, received(servers[0])) == (1, 0)
            before = version(source)
            await reader.subscribe("n > 1", topic="news")
            await until(lambda: version(source) > before)
            for n in range(5):
                await source.publish("news", {"n": n})
            assert [(await reader.next(5)).attributes["n"] for _ in range(3)] == [2, 3, 4]
            assert (source.quenched, received(servers[0])) == (3, 3)
            await source.move_to(url(config, 1))
            await source.publish("news", {"n": 5})
            assert (await reader.next(5)).attributes["n"] == 5
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize(("topics", "is_exact"), [(INTERESTS_MAX + 1, False), (70, True)])
def test_where_there_are_too_many_interests_everything_is_sent(topics: int, *, is_exact: bool) -> None:
    """Beyond the limit; with fewer, also if they are patterns, what nobody wants stays where it is."""

    async def scenario() -> None:
        config = pair(count=1)
        server = Server(config, "B1")
        await server.start()
        async with (
            Client(url(config, 0), quench=True) as source,
            Client(url(config, 0), session_expiry_s=0) as reader,
        ):
            await until(lambda: version(source) >= 0)
            suffix = "/#" if topics < INTERESTS_MAX else ""
            await asyncio.gather(*(reader.subscribe(topic=f"t/{n}{suffix}") for n in range(topics)))
            await source.publish(f"t/{topics - 1}", b"")
            await reader.next(5)
            before = source.quenched
            await source.publish("nobody", b"")
            assert (source.quenched > before) is is_exact
            before = source.quenched
            await asyncio.gather(*(reader.unsubscribe(topic=f"t/{n}{suffix}") for n in range(10, topics)))
            await source.publish("nobody", b"", qos=0)
            await until(lambda: version(source) >= 0)
            await source.publish("t/3", b"")
            await reader.next(5)
            await source.publish("nobody", b"")
            assert source.quenched > before
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_where_events_are_flooded_nobody_is_quenched() -> None:
    """A broker that does not know what others want does not answer, and nothing waits for it."""

    async def scenario() -> None:
        config = pair("flooding")
        servers = await started(config)
        async with Client(url(config, 0), quench=True) as source, Client(url(config, 1)) as reader:
            await reader.subscribe(topic="news")
            await source.publish("news", b"1")
            assert (await reader.next(2)).payload == b"1"
            await source.publish("nobody", b"")
            assert (source.quenched, received(servers[0])) == (0, 2)
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_what_is_published_while_away_waits_and_is_looked_at_again() -> None:
    """The buffer has a limit; what nobody wanted goes first, and what is wanted by then is sent in order."""

    async def scenario() -> None:
        config = pair(count=1)
        server = Server(config, "B1")
        await server.start()
        async with (
            Client(url(config, 0), client_id="source", quench=True) as source,
            Client(url(config, 0), inbox=2_000) as reader,
        ):
            await reader.subscribe("n >= 0", topic="news")
            await until(lambda: version(source) >= 0)
            assert source.quench is not None
            await source.publish("news", {"n": -1})
            source.vanish()
            wanted = BUFFER_EVENTS_MAX - 100
            for n in range(wanted):
                await source.publish("news", {"n": n})
            for n in range(200):
                await source.publish("olds", {"n": n})
            assert source.quench.buffered == BUFFER_EVENTS_MAX
            assert source.quench.discarded == 100
            await reader.subscribe("n >= 150", topic="olds")
            await source.connect()
            await source.publish("news", {"n": wanted})
            got = [await reader.next(5) for _ in range(wanted + 51)]
            assert [event.attributes["n"] for event in got if event.topic == "news"] == list(
                range(wanted + 1)
            )
            assert [event.attributes["n"] for event in got if event.topic == "olds"] == list(range(150, 200))
            assert source.quench.buffered == 0
            assert source.quenched == 1 + 50
            assert source.quench.discarded == 100
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 30))
