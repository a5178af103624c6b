"""Links that are dead or slow: publishers whose events meet them wait, others do not, and nothing is lost."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from mqtt5 import PingReqPacket

from sojourn.broker.pressure import SLOW_S
from sojourn.live.client.client import Client
from sojourn.live.config import Config
from tests.live.building import building, url
from tests.live.hall import Hall, Visitor, line
from tests.live.test_quenching import until
from tests.live.test_roaming import started, stop

FILLING = b"x" * 1_000
QUEUE_BYTES = 10_000


def pair() -> Config:
    """Two brokers of the building."""
    config = building()
    return msgspec.structs.replace(config, brokers=config.brokers[:2], links=[("B1", "B2")])


def hall_of(count: int) -> Hall:
    """Brokers in a line whose links are full with ten events."""
    hall = Hall(line(count))
    for desk in hall.desks:
        for channel in desk.network.links.channels.values():
            channel.window_bytes, channel.queue_bytes = QUEUE_BYTES // 2, QUEUE_BYTES
    return hall


def guest(hall: Hall, broker: int, name: str, wants: str = "", keep_alive: int = 0) -> Visitor:
    """A client, which may want a topic."""
    visitor = hall.visit(broker, name, keep_alive=keep_alive)
    hall.settle()
    if wants:
        visitor.subscribe(wants)
        hall.settle()
    return visitor


def is_held(visitor: Visitor) -> bool:
    """Whether a client is not read at present."""
    return visitor.number in visitor.desk.held


def publish_until_held(visitor: Visitor, topic: str, settle: bool = False) -> int:
    """Publish until that is no longer read; return how often."""
    for number in range(1, 200):
        visitor.publish(topic, b"%d " % number + FILLING)
        if settle:
            visitor.desk.hall.settle()
        if is_held(visitor):
            return number
    raise AssertionError("nobody ever asks the publisher to wait")


def numbers(visitor: Visitor) -> list[int]:
    """Which events a client got."""
    return [int(payload.split()[0]) for payload in visitor.got]


def test_who_publishes_to_a_dead_link_waits_and_others_do_not() -> None:
    """Two publishers of one broker: only one of them has subscribers on the far side."""
    hall = hall_of(3)
    far, near = guest(hall, 2, "far reader", "far"), guest(hall, 0, "near reader", "near")
    slowed, free = guest(hall, 1, "slowed"), guest(hall, 1, "free")
    hall.unlink("B3")
    count = publish_until_held(slowed, "far")
    assert count < 20
    for number in range(40):
        free.publish("near", b"%d " % number + FILLING)
        hall.settle()
    assert not is_held(free)
    assert numbers(near) == list(range(40))
    hall.relink()
    hall.settle()
    assert not is_held(slowed), "there is room again"
    assert numbers(far) == list(range(1, count + 1))


def test_the_broker_of_a_publisher_is_asked_to_slow_it_down() -> None:
    """The dead link is two hops away; a publisher of the same broker whose events go elsewhere goes on."""
    hall = hall_of(4)
    far = guest(hall, 3, "far reader", "far")
    guest(hall, 2, "near reader", "near")
    slowed, free = guest(hall, 0, "slowed"), guest(hall, 0, "free")
    hall.unlink("B4")
    count = publish_until_held(slowed, "far", settle=True)
    free.publish("near", b"1 " + FILLING)
    hall.settle()
    assert not is_held(free)
    hall.wait(SLOW_S + 0.1)
    assert not is_held(slowed), "it is asked again only if it goes on"
    slowed.publish("far", b"%d " % (count + 1) + FILLING)
    hall.settle()
    assert is_held(slowed)
    hall.relink()
    hall.wait(SLOW_S + 0.1)
    assert not is_held(slowed)
    assert numbers(far) == list(range(1, count + 2))


def test_queues_stay_bounded_though_publishers_are_many() -> None:
    """Brokers further away keep what they have while the next one has twice as much as it should."""
    hall = hall_of(3)
    reader = guest(hall, 2, "reader", "news")
    writers = [guest(hall, 0, f"writer {number}") for number in range(60)]
    hall.unlink("B3")
    for number, writer in enumerate(writers):
        writer.publish("news", b"%d " % number + FILLING)
    hall.settle()
    first, second = (hall.desks[number].network.links.channels for number in (0, 1))
    one_event = len(FILLING) + 500
    assert 2 * QUEUE_BYTES <= second["B3"].queued < 2 * QUEUE_BYTES + one_event
    assert first["B2"].queued > 2 * QUEUE_BYTES, "the rest waits where it came from"
    hall.relink()
    hall.settle()
    assert numbers(reader) == list(range(60))
    assert not first["B2"].queued
    assert not second["B3"].queued


def test_what_waits_comes_again_after_a_broken_connection() -> None:
    """Frames that were held back were not acknowledged, and are not taken in twice."""
    hall = hall_of(3)
    reader = guest(hall, 2, "reader", "news")
    writers = [guest(hall, 0, f"writer {number}") for number in range(60)]
    hall.unlink("B3")
    for number, writer in enumerate(writers):
        writer.publish("news", b"%d " % number + FILLING)
    hall.settle()
    hall.unlink("B2")
    hall.relink()
    hall.settle()
    assert numbers(reader) == list(range(60))


def test_a_client_that_is_not_read_is_not_taken_for_silent() -> None:
    """It cannot be heard, though it pings; once it is read again its silence counts as usual."""
    hall = hall_of(2)
    guest(hall, 1, "reader", "news")
    writer = guest(hall, 0, "writer", keep_alive=3)
    hall.unlink("B2")
    publish_until_held(writer, "news")
    hall.wait(100.0)
    assert not writer.is_over
    hall.relink()
    hall.settle()
    assert not is_held(writer)
    hall.wait(4.0)
    writer.send(PingReqPacket())
    assert not writer.is_over
    hall.wait(5.0)
    assert writer.is_over


def test_a_publisher_that_leaves_while_it_waits_leaves_nothing_behind() -> None:
    """Nobody is asked to read it again."""
    hall = hall_of(2)
    guest(hall, 1, "reader", "news")
    writer = guest(hall, 0, "writer")
    hall.unlink("B2")
    publish_until_held(writer, "news")
    writer.lose()
    assert not hall.desks[0].network.pressure.held
    hall.relink()
    hall.settle()
    assert not hall.desks[0].network.pressure.held


@pytest.mark.parametrize("qos", [0, 1])
def test_over_sockets_a_publisher_waits_until_the_far_side_takes_events_in(qos: int) -> None:
    """B2 does not read its neighbour: B1's queue fills, the publisher waits; afterwards all arrives."""

    async def scenario() -> None:
        config = pair()
        servers = await started(config)
        nodes = [server.node for server in servers if server.node is not None]
        network = nodes[0].network
        assert network is not None
        assert nodes[1].links is not None
        channel = network.links.channels["B2"]
        channel.window_bytes, channel.queue_bytes = 20_000, 40_000
        async with (
            Client(url(config, 1), client_id="reader") as reader,
            Client(url(config, 0), client_id="source") as source,
        ):
            await reader.subscribe()
            (connection,) = nodes[1].links.connections.values()
            assert connection._transport is not None
            connection._transport.pause_reading()

            async def publish() -> None:
                for n in range(300):
                    await source.publish("news", {"n": n, "filling": "x" * 1_000}, qos=qos)

            publishing = asyncio.create_task(publish())
            await until(lambda: bool(network.pressure.held))
            assert channel.queued < 200_000
            connection._transport.resume_reading()
            await publishing
            if qos:
                assert [(await reader.next(10)).attributes["n"] for _ in range(300)] == list(range(300))
            await until(lambda: not network.pressure.held)
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 60))
