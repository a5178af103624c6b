"""Rooms measure, Spark counts: live events as a stream and as a table, and rows as live events.

sojourn serve
python examples/spark_rooms.py mqtt://127.0.0.1:1883
"""

from __future__ import annotations

import asyncio
import sys
import tempfile

from pyspark.sql import DataFrame
from pyspark.sql.functions import avg, col, concat, lit, window

from sojourn import Client
from sojourn.pipeline.events_source import EventsSource
from sojourn.pipeline.session import spark_session

DEGREES = {"kitchen": (18, 21, 35), "office": (19, 41, 24)}


async def measure(url: str) -> None:
    """Publish what the rooms measure, as anybody may."""
    async with Client(url) as sensor:
        for room, degrees in DEGREES.items():
            for each in degrees:
                await sensor.publish(f"rooms/{room}", {"degrees": each, "room": room})


def averages(events: DataFrame) -> DataFrame:
    """The mean of each room and hour, as events of their own."""
    by_hour = events.withWatermark("time", "10 seconds").groupBy(window("time", "1 hour"), "attributes.room")
    means = by_hour.agg(avg(col("attributes.degrees").cast("double")).alias("mean"))
    return means.select(concat(lit("means/"), col("room")).alias("topic"), "room", "mean")


def main(url: str) -> None:
    """Read a stream, write another, and read what brokers retain of it."""
    spark = spark_session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    spark.dataSource.register(EventsSource)
    stream = spark.readStream.format("sojourn").option("url", url).option("clientId", "spark-rooms")
    warm = stream.option("filter", "degrees > 20").option("topic", "rooms/+").load()

    with tempfile.TemporaryDirectory() as checkpoint:
        for publishes in (False, True):  # the session begins with the first query
            if publishes:
                asyncio.run(measure(url))
            sink = averages(warm).writeStream.format("sojourn").option("url", url).option("retain", "true")
            query = sink.outputMode("complete").option("checkpointLocation", checkpoint)
            query.trigger(availableNow=True).start().awaitTermination()

    table = spark.read.format("sojourn").option("url", url).option("topic", "means/+").load()
    for row in table.selectExpr("attributes.room", "attributes.mean").orderBy("room").collect():
        print(f"{row.room}: {row.mean}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "mqtt://127.0.0.1:1883")
