"""The client library against a broker that we did not write."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.errors import SojournError
from sojourn.live.client.client import Client
from tests.live.mosquitto import MOSQUITTO, Mosquitto


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A running Mosquitto."""
    if MOSQUITTO is None:
        pytest.skip("Mosquitto is not installed here; scripts/setup does it")
    broker = Mosquitto(tmp_path, "max_queued_messages 0\n")
    yield broker
    broker.kill()


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_events_come_with_their_attributes_in_order(mosquitto: Mosquitto, qos: int) -> None:
    """User properties and JSON fields become attributes; every QoS arrives once and in order."""

    async def scenario() -> None:
        async with Client(mosquitto.url) as reader, Client(mosquitto.url) as writer:
            await reader.subscribe(topic="cars/+", qos=2)
            for number in range(50):
                await writer.publish(
                    "cars/7", {"speed": number}, attributes={"road": "A2", "wet": True}, qos=qos
                )
            got = [await reader.next(5) for _ in range(50)]
            assert [event.attributes["speed"] for event in got] == list(range(50))
            assert got[0].attributes["road"] == "A2"
            assert got[0].attributes["wet"] is True
            assert got[0].topic == "cars/7"

    asyncio.run(scenario())


def test_a_lost_connection_is_made_again_and_nothing_published_is_lost(mosquitto: Mosquitto) -> None:
    """Subscriptions are carried along; what had no answer is published again."""

    async def scenario() -> None:
        async with (
            Client(mosquitto.url, patience_s=20) as reader,
            Client(mosquitto.url, patience_s=20) as writer,
        ):
            await reader.subscribe(topic="t")
            await writer.publish("t", b"0")
            assert (await reader.next(5)).payload == b"0"
            mosquitto.kill()
            publishing = asyncio.create_task(writer.publish("t", b"1"))
            await asyncio.sleep(0.3)
            assert not publishing.done()
            mosquitto.start()
            await publishing
            await reader.subscribe(topic="u")  # returns once the reader is connected again
            # The reader may have come back after the event went through an empty broker: then it is gone.
            await writer.publish("t", b"2")
            seen = (await reader.next(5)).payload
            assert seen in (b"1", b"2")
            assert len(reader.connections) == 2
            assert reader.connections[0].ended
            assert writer.connections[-1].until is None

    asyncio.run(scenario())


def test_what_the_application_does_not_take_stays_at_the_broker(mosquitto: Mosquitto) -> None:
    """No more than `inbox` events are ever under way to a slow application."""

    async def scenario() -> None:
        async with Client(mosquitto.url, inbox=5) as reader, Client(mosquitto.url) as writer:
            await reader.subscribe(topic="t")
            for number in range(40):
                await writer.publish("t", b"%d" % number)
            await asyncio.sleep(0.2)
            assert len(reader._inbox) == 5
            assert [int((await reader.next(5)).payload) for _ in range(40)] == list(range(40))

    asyncio.run(scenario())


def test_trouble_is_told_in_one_sentence(mosquitto: Mosquitto) -> None:
    """A filter that does not parse; and two clients of one id do not fight without pause."""

    async def scenario() -> None:
        async with Client(mosquitto.url, client_id="one") as first:
            with pytest.raises(SojournError, match="The filter ends"):
                await first.subscribe("speed >")
            async with Client(mosquitto.url, client_id="one"):
                await asyncio.sleep(0.5)
                assert 2 <= len(first.connections) <= 6

    asyncio.run(scenario())
