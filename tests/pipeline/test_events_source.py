"""The data source in Spark itself: a filter in, rows out, exactly once over restarts; and rows as events.

`test_live_stream.py` and `test_live_tables.py` try every call of Spark's without Spark, and quickly.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from sojourn.live.client.client import Client
from sojourn.pipeline.events_source import EventsSource
from tests.live.raw_client import running_broker


async def publish(url: str, numbers: range) -> None:
    """Publish numbered events."""
    async with Client(url, session_expiry_s=0) as client:
        for n in numbers:
            await client.publish("cars/7", {"n": n, "speed": 60 + n % 50})


def run_once(spark: SparkSession, url: str, folder: Path, *, breaks: bool = False) -> None:
    """Read what is there into Parquet; `breaks` fails in the middle of the first batch with rows."""
    events = (
        spark.readStream.format("sojourn")
        .option("url", url)
        .option("clientId", "spark-reader")
        .option("filter", "speed >= 80")
        .option("batchMax", "40")
        .load()
    )

    def keep(batch: Any, number: int) -> None:
        numbers = batch.selectExpr("get_json_object(cast(payload as string), '$.n') n", "source")
        numbers.write.mode("overwrite").parquet(str(folder / f"out/batch={number}"))
        if breaks and not numbers.isEmpty():
            raise RuntimeError("the query breaks here")

    query = (
        events.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def test_a_stream_reads_each_event_once_over_a_crash_and_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The session keeps what is published while no query runs; offsets survive; nothing doubles."""
    spark.dataSource.register(EventsSource)
    with running_broker() as broker:
        url = f"mqtt://127.0.0.1:{broker.port}"
        run_once(spark, url, tmp_path)  # makes the session
        asyncio.run(publish(url, range(100)))
        with pytest.raises(StreamingQueryException, match="the query breaks here"):
            run_once(spark, url, tmp_path, breaks=True)
        asyncio.run(publish(url, range(100, 150)))
        run_once(spark, url, tmp_path)  # the broken batch, and all that waits, in batches of 40
        rows = spark.read.parquet(str(tmp_path / "out")).collect()
        wanted = [n for n in range(150) if 60 + n % 50 >= 80]
        assert sorted(int(row["n"]) for row in rows) == wanted
    shutil.rmtree(tmp_path)


def test_rows_become_events(spark: SparkSession) -> None:
    """With a topic of their own, as JSON, each once."""
    spark.dataSource.register(EventsSource)
    with running_broker() as broker:
        url = f"mqtt://127.0.0.1:{broker.port}"

        async def read(count: int) -> list[Any]:
            async with Client(url, client_id="reader") as reader:
                await reader.subscribe("n >= 5", topic="rows/+")
                return [await reader.next(10) for _ in range(count)]

        asyncio.run(read(0))  # from now on its session waits for events
        frame = spark.range(10).selectExpr("concat('rows/', id) topic", "id n", "id * 2 twice")
        frame.write.format("sojourn").mode("append").option("url", url).save()
        got = asyncio.run(read(5))
        assert sorted((event.topic, event.attributes["twice"]) for event in got) == [
            (f"rows/{n}", 2 * n) for n in range(5, 10)
        ]


def test_a_batch_of_a_stream_that_is_repeated_doubles_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """A query that died between publishing and noting so publishes again, under the same numbers."""
    spark.dataSource.register(EventsSource)
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "some.json").write_text("".join(f'{{"n": {n}}}\n' for n in range(20)))
    with running_broker() as broker:
        url = f"mqtt://127.0.0.1:{broker.port}"
        asyncio.run(taken(url, 0))
        for partitions in (2, 3):
            stream = spark.readStream.schema("n long").json(str(rows)).repartition(partitions)
            query = stream.writeStream.format("sojourn").option("url", url).option("topic", "sink")
            query = query.option("checkpointLocation", str(tmp_path / "sink")).trigger(availableNow=True)
            query.start().awaitTermination()
            for note in (tmp_path / "sink/commits").iterdir():
                note.unlink()
        assert asyncio.run(taken(url, 20)) == list(range(20))


async def taken(url: str, count: int) -> list[int]:
    """What a session has stored: so many events, and then the end."""
    async with Client(url, client_id="taker") as taker:
        await taker.subscribe(topic="sink")
        events = [await taker.next(60) for _ in range(count)]
        await taker.publish("sink", {"n": -1})
        assert (await taker.next(60)).attributes["n"] == -1
        return sorted(event.attributes["n"] for event in events)
