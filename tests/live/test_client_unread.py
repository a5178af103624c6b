"""Events that have come and that the application has not taken: they are the client's, wherever it goes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sojourn import Client
from sojourn.live.config import Config
from tests.live.building import building, url
from tests.live.test_roaming import started, stop

LONG_S = 60
QUIET_S = 0.5
"""How long nothing more must come: too short only hides an event too many."""

Story = Callable[[Config], Awaitable[None]]


def in_a_building(story: Story) -> None:
    """Tell a story in which there are six linked brokers."""

    async def scenario() -> None:
        config = building()
        servers = await started(config)
        try:
            await story(config)
        finally:
            await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 4 * LONG_S))


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition."""
    for _ in range(100 * LONG_S):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to be")


async def filled(reader: Client, config: Config, *, retain: bool = False, qos: int = 1) -> None:
    """Let six events come to a reader at the first broker, which takes none of them."""
    await reader.subscribe(topic="unread/#", qos=2)
    async with Client(url(config, 5)) as writer:
        for number in range(6):
            await writer.publish(f"unread/{number}", {"n": number}, retain=retain, qos=qos)
    await until(lambda: len(reader._inbox) == 6)


async def rest(client: Client, count: int) -> list[int]:
    """The numbers of so many events, and of those that come beyond them."""
    found = [(await client.next(LONG_S)).attributes["n"] for _ in range(count)]
    try:
        while True:
            found.append((await client.next(QUIET_S)).attributes["n"])
    except TimeoutError:
        return found


@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_not_taken_before_the_end_comes_to_the_next_client(qos: int) -> None:
    """Two of six are taken, one before a move and one after it; the next client of that id gets four."""

    async def story(config: Config) -> None:
        first = Client(url(config, 0), client_id="reader")
        await first.connect()
        await filled(first, config, qos=qos)
        assert (await first.next(LONG_S)).attributes["n"] == 0
        await first.move_to(url(config, 2))
        assert (await first.next(LONG_S)).attributes["n"] == 1
        await first.close()
        async with Client(url(config, 1), client_id="reader") as second:
            assert await rest(second, 4) == [2, 3, 4, 5]

    in_a_building(story)


@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_not_taken_survives_a_broken_connection_too(qos: int) -> None:
    """The client comes back to the same broker, takes one more and ends."""

    async def story(config: Config) -> None:
        first = Client(url(config, 0), client_id="reader")
        await first.connect()
        await filled(first, config, qos=qos)
        assert (await first.next(LONG_S)).attributes["n"] == 0
        first.vanish()
        await first.connect()
        await until(lambda: first.repeated == 5)  # all that is unread came again
        assert (await first.next(LONG_S)).attributes["n"] == 1
        await first.close()
        async with Client(url(config, 0), client_id="reader") as second:
            assert await rest(second, 4) == [2, 3, 4, 5]

    in_a_building(story)


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("retain", [False, True])
def test_unread_events_are_read_once_after_a_move(*, retain: bool, qos: int) -> None:
    """Also those that were published to be retained: that they are live is no reason to show them twice."""

    async def story(config: Config) -> None:
        async with Client(url(config, 0), client_id="reader") as reader:
            await filled(reader, config, retain=retain, qos=qos)
            assert [(await reader.next(LONG_S)).attributes["n"] for _ in range(2)] == [0, 1]
            await reader.move_to(url(config, 2))
            assert await rest(reader, 4) == [2, 3, 4, 5]
            await reader.move_to(url(config, 3))
            assert await rest(reader, 0) == []

    in_a_building(story)


def test_an_event_that_is_worked_on_stays_at_the_broker_across_a_move() -> None:
    """It is shown once to this application, and again to the next if this one never said that it is safe."""

    async def story(config: Config) -> None:
        first = Client(url(config, 0), client_id="reader")
        await first.connect()
        await filled(first, config)
        taken = [await first.take(LONG_S) for _ in range(6)]
        taken[0][1]()
        taken[3][1]()
        await first.move_to(url(config, 2))
        assert await rest(first, 0) == []
        taken[1][1]()
        taken[4][1]()
        await first.close()
        async with Client(url(config, 1), client_id="reader") as second:
            assert await rest(second, 2) == [2, 5]

    in_a_building(story)


def test_retained_copies_come_once_for_each_subscription_and_not_once_for_each_move() -> None:
    """A move is no question; a second subscription is."""

    async def story(config: Config) -> None:
        async with Client(url(config, 0)) as writer:
            for number in range(3):
                await writer.publish(f"unread/{number}", {"n": number}, retain=True)
        async with Client(url(config, 0), client_id="reader") as reader:
            await reader.subscribe(topic="unread/#")
            event = await reader.next(LONG_S)
            assert event.retained
            await reader.move_to(url(config, 2))
            assert await rest(reader, 2) == [1, 2]
            await reader.subscribe(topic="unread/#")
            assert await rest(reader, 3) == [0, 1, 2]
            async with Client(url(config, 0)) as writer:
                await writer.publish("unread/3", {"n": 3}, retain=True)
            assert not (await reader.next(LONG_S)).retained

    in_a_building(story)
