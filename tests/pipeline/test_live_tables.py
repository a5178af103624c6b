"""Rows to live events and back, with a broker and without Spark: each once, however often it is tried."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import Row

from sojourn.live.client.client import Client
from sojourn.live.client.inbox import Received
from sojourn.pipeline.events import writing
from sojourn.pipeline.events.options import Options, SourceError
from sojourn.pipeline.events.rows import outgoing
from sojourn.pipeline.events.writing import EventsStreamWriter, EventsWriter, Made
from sojourn.pipeline.events_source import EventsSource
from sojourn.pipeline.schemas import LIVE_EVENTS
from tests.live.raw_client import running_broker


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A broker."""
    with running_broker() as broker:
        yield f"mqtt://127.0.0.1:{broker.port}"


def table(**options: str) -> list[dict[str, Any]]:
    """Read a bounded table as a task does."""
    reader = EventsSource(options).reader(LIVE_EVENTS)
    (partition,) = reader.partitions()
    return [row for batch in reader.read(partition) for row in batch.to_pylist()]


def subscribed(url: str, client_id: str, topic: str) -> None:
    """Make a session that stores events."""

    async def make() -> None:
        async with Client(url, client_id=client_id) as client:
            await client.subscribe(topic=topic)

    asyncio.run(make())


def stored(url: str, client_id: str, count: int) -> list[Received]:
    """Take the events of a session: so many, and no more."""

    async def take() -> list[Received]:
        async with Client(url, client_id=client_id) as client:
            events = [await client.next(60) for _ in range(count)]
            await client.publish(events[0].topic, b"the end")
            last = await client.next(60)
            assert last.payload == b"the end", last
            return events

    return asyncio.run(take())


def made(*rows: dict[str, Any], query: str = "q") -> Made:
    """What a task makes of rows."""
    return Made(query, [outgoing(dict(row), "", "time") for row in rows])


def test_a_batch_that_is_published_again_doubles_nothing(url: str) -> None:
    """However Spark cut it the second time; a batch with the next number and another query are new."""
    subscribed(url, "once", "once/#")
    writer = EventsStreamWriter(Options({"url": url}))
    rows = [{"topic": "once/a", "n": n} for n in range(20)]
    writing.publish(
        Options({"url": url}), "spark-q", sorted(made(*rows).events)[:7], 4_000_000_000
    )  # and died
    writer.commit([made(*rows[10:]), None, made(*rows[:10])], 3)
    writer.commit([made(*rows)], 3)
    writer.abort([None], 4)
    writer.commit([made(*rows[:2])], 5)
    writer.commit([made(*rows[:3], query="other")], 0)
    writer.commit([], 6)
    numbers = [json.loads(event.payload)["n"] for event in stored(url, "once", 25)]
    assert sorted(numbers[:20]) == list(range(20))
    assert numbers[20:] == [0, 1, 0, 1, 2]


def test_a_task_that_is_tried_again_doubles_nothing(url: str) -> None:
    """Though its rows come in another order; a second write of the same rows is another one."""
    subscribed(url, "tried", "tried")
    rows = [Row(n=n, payload=str(n)) for n in range(10)]
    writer = EventsWriter(Options({"url": url, "topic": "tried"}))
    writer.write(iter(rows))
    writer.write(reversed(rows))
    EventsWriter(Options({"url": url, "topic": "tried"})).write(iter(rows[:1]))
    payloads = [event.payload for event in stored(url, "tried", 11)]
    assert payloads == [b"%d" % n for n in [*range(10), 0]]


def test_a_stream_without_a_query_is_refused(url: str) -> None:
    """Its events would have numbers of nobody."""
    with pytest.raises(SourceError, match="which query this is"):
        EventsStreamWriter(Options({"url": url})).write(iter([Row(topic="t")]))


def test_a_table_is_what_brokers_retain(url: str) -> None:
    """The last event of each topic, whoever published it, if it matches; live ones are none of it."""
    writer = EventsWriter(Options({"url": url, "retain": "true"}))
    writer.write(iter([Row(topic=f"rooms/{n % 3}", n=n, time=n) for n in range(6)]))
    rows = table(url=url, topic="rooms/+", filter="n >= 4")
    assert sorted((row["topic"], json.loads(row["payload"])["n"]) for row in rows) == [
        ("rooms/1", 4),
        ("rooms/2", 5),
    ]
    assert not table(url=url, topic="nowhere/#")


def test_a_table_of_a_session_is_what_waits_for_it_and_stays(url: str) -> None:
    """Reading it twice gives it twice."""
    subscribed(url, "waiting", "waits")
    EventsWriter(Options({"url": url, "topic": "waits"})).write(iter(Row(n=n) for n in range(30)))
    for _ in range(2):
        rows = table(url=url, clientId="waiting")
        assert sorted(json.loads(row["payload"])["n"] for row in rows) == list(range(30))
    assert len(stored(url, "waiting", 30)) == 30


def test_a_table_of_nobodys_session_is_refused_and_makes_none(url: str) -> None:
    """In a sentence that tells the way out, also the second time."""
    for _ in range(2):
        with pytest.raises(SourceError, match="know no session 'nobody'"):
            table(url=url, clientId="nobody")
