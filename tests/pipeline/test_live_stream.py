"""The stream of live events as Spark's engine asks for it: idle, in bursts, over deaths and restarts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from sojourn.live.client.client import Client
from sojourn.pipeline.events.options import SourceError
from tests.live.raw_client import running_broker
from tests.pipeline.micro_batches import Checkpoint, Engine, KilledError

LIMIT_S = 60.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A broker."""
    with running_broker() as broker:
        yield f"mqtt://127.0.0.1:{broker.port}"


def publish(url: str, numbers: range, *, topic: str = "cars/7", qos: int = 1, **more: object) -> None:
    """Publish numbered events."""

    async def all_of_them() -> None:
        async with Client(url, session_expiry_s=0) as client:
            await asyncio.gather(*(client.publish(topic, {"n": n, **more}, qos=qos) for n in numbers))

    asyncio.run(all_of_them())


def numbers(checkpoint: Checkpoint) -> list[int]:
    """Which events are in the sink."""
    return sorted(json.loads(row["payload"])["n"] for row in checkpoint.rows)


def read_until(engine: Engine, count: int) -> None:
    """Trigger until so many rows are in the sink."""
    until = time.monotonic() + LIMIT_S
    while len(engine.kept.rows) < count and time.monotonic() < until:
        engine.trigger()


def die_with_a_batch(engine: Engine, where: str) -> None:
    """Trigger until there is a batch with rows, and die in it."""
    until = time.monotonic() + LIMIT_S
    with suppress(KilledError):
        while time.monotonic() < until:
            engine.trigger(dies=where)
    assert len(engine.kept.offsets) > engine.kept.committed, "it died too late"
    engine.die()


def test_an_idle_stream_goes_on(url: str) -> None:
    """Its empty first batch takes the session from nobody, and what comes later is read."""
    checkpoint = Checkpoint()
    engine = Engine(checkpoint, url=url, clientId="idle")
    assert [engine.trigger() for _ in range(3)] == [0, 0, 0]
    publish(url, range(5))
    read_until(engine, 5)
    assert numbers(checkpoint) == list(range(5))
    engine.reader.stop()


def test_a_stream_goes_on_after_full_batches(url: str) -> None:
    """Batches are acknowledged although Spark commits them only when it has a further one."""
    checkpoint = Checkpoint()
    engine = Engine(checkpoint, url=url, clientId="full", batchMax="50")
    engine.trigger()
    publish(url, range(220))
    read_until(engine, 220)
    assert numbers(checkpoint) == list(range(220))
    assert max(map(len, checkpoint.table.values())) <= 50
    engine.reader.stop()


def test_available_now_reads_what_is_there_and_ends(url: str) -> None:
    """In as many batches as it takes; what is published meanwhile is for the next run."""
    checkpoint = Checkpoint()
    Engine(checkpoint, url=url, clientId="now", batchMax="50").trigger()
    for last in (120, 200):
        publish(url, range(last - 80 if last == 200 else 0, last))
        engine = Engine(checkpoint, url=url, clientId="now", batchMax="50").available_now()
        publish(url, range(1000, 1010))  # after it began
        while engine.trigger():
            pass
        engine.reader.stop()
    later = list(range(1000, 1010))
    assert [n for n in numbers(checkpoint) if n < 1000] == list(range(200))
    assert [n for n in numbers(checkpoint) if n >= 1000] == later  # of the first run, in the second


@pytest.mark.parametrize("dies", ["planned", "written"])
def test_a_killed_stream_reads_the_same_batch_again(url: str, dies: str) -> None:
    """Exactly the rows that were planned, although more have come, and from other sources before them."""
    checkpoint = Checkpoint()
    name = f"killed-{dies}"
    first = Engine(checkpoint, url=url, clientId=name, topic=f"{name}/#")
    first.trigger()
    publish(url, range(30), topic=f"{name}/a")
    die_with_a_batch(first, dies)
    planned = json.loads(checkpoint.offsets[-1])["count"]
    before = checkpoint.table.get(1)
    publish(url, range(30, 60), topic=f"{name}/b")
    second = Engine(checkpoint, url=url, clientId=name, topic=f"{name}/#")
    assert second.trigger() == planned
    assert before is None or checkpoint.table[1] == before, "to the last column"
    read_until(second, 60)
    assert numbers(checkpoint) == list(range(60))
    second.reader.stop()


def test_events_that_nobody_keeps_do_not_stop_a_restart(url: str) -> None:
    """Those of QoS 0 in a batch that died are gone; the others are read again, and the stream goes on."""
    checkpoint = Checkpoint()
    first = Engine(checkpoint, url=url, clientId="unkept", topic="unkept")
    first.trigger()
    publish(url, range(5), topic="unkept", qos=0)
    publish(url, range(5, 10), topic="unkept")
    die_with_a_batch(first, "planned")
    second = Engine(checkpoint, url=url, clientId="unkept", topic="unkept")
    second.trigger()
    read_until(second, 5)
    assert [n for n in numbers(checkpoint) if n >= 5] == list(range(5, 10))
    second.reader.stop()


def test_retained_copies_are_no_part_of_a_stream(url: str) -> None:
    """Brokers send them at each start; the event itself is read once."""
    checkpoint = Checkpoint()

    async def retain() -> None:
        async with Client(url, session_expiry_s=0) as client:
            await client.publish("kept/1", {"n": 1}, retain=True)

    options = {"url": url, "clientId": "copies", "topic": "kept/#"}
    Engine(checkpoint, **options).available_now().trigger()
    asyncio.run(retain())
    for _ in range(2):
        engine = Engine(checkpoint, **options).available_now()
        while engine.trigger():
            pass
        engine.reader.stop()
    assert numbers(checkpoint) == [1]


def test_rows_have_the_time_of_their_event(url: str) -> None:
    """When the broker accepted it; or what an attribute says, as a number or a date, where it can be read."""
    began = datetime.now(UTC) - timedelta(seconds=5)
    checkpoint = Checkpoint()
    engine = Engine(checkpoint, url=url, clientId="timed", topic="timed", timeAttribute="at")
    engine.trigger()
    for at in (None, 86_400, "1970-01-03T00:00:00", "1970-01-04T02:00:00+02:00", "soon"):
        publish(url, range(1), topic="timed", at=at)
    read_until(engine, 5)
    days = [(row["time"] - datetime.fromtimestamp(0, UTC)).days for row in checkpoint.rows]
    assert days[1:4] == [1, 2, 3]
    for place in (0, 4):
        assert began <= checkpoint.rows[place]["time"] <= datetime.now(UTC) + timedelta(seconds=5)
    assert {row["publisher"][:7] for row in checkpoint.rows} == {"sojourn"}
    engine.reader.stop()


def test_a_session_that_brokers_have_forgotten_is_no_silent_gap(url: str) -> None:
    """The query says so, unless it is told to go on."""
    checkpoint = Checkpoint()
    options = {"url": url, "clientId": "forgotten", "topic": "forgotten"}
    engine = Engine(checkpoint, **options)
    engine.trigger()
    publish(url, range(3), topic="forgotten")
    read_until(engine, 3)
    engine.reader.stop()

    async def end_the_session() -> None:
        async with Client(url, client_id="forgotten", session_expiry_s=0):
            pass

    asyncio.run(end_the_session())
    with pytest.raises(SourceError, match="do not know the session 'forgotten' any more"):
        Engine(checkpoint, **options).trigger()
    asyncio.run(end_the_session())
    engine = Engine(checkpoint, **options, failOnDataLoss="false")
    engine.trigger()
    publish(url, range(3, 5), topic="forgotten")
    read_until(engine, 5)
    assert numbers(checkpoint) == list(range(5))
    engine.reader.stop()
