"""Writing: rows become events of QoS 1, each once, however often Spark tries.

A publisher of Sojourn's numbers its events, and a broker takes a number from it only if it is greater than
the last. So it is enough that the same row has the same number at each try:

- **A stream** has one publisher, named by the query's id, which its checkpoint keeps. The tasks make the
  events; when all of them are made, the driver puts them in order and publishes them, the batch's id giving
  the numbers their beginning. Of a batch that failed nothing is published. One that is repeated, because the
  query died between publishing and noting so, is recognised number by number. The order does not depend on
  how Spark cut the batch into partitions: the column `time`, or the one that `orderBy` names, then topic and
  payload.
- **A batch** has a publisher for each partition, named by the write; a task that is tried again has the
  same. A write that is called twice writes twice.

The brokers remember a publisher's last number for as long as its session (`sessionExpiry`), also over their
own restarts and when the next try is made at another broker.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import Row

from sojourn.live.client.client import Client
from sojourn.pipeline.events.options import WEEK_S, Options, SourceError
from sojourn.pipeline.events.rows import Outgoing, outgoing

UNDER_WAY = 500
"""Events that wait for the broker's answer at a time."""
BATCH_ROWS_MAX = 1_000_000_000
"""Numbers that a batch of a stream has for its rows; a publisher's number has at most 18 digits."""
QUERY_ID = "sql.streaming.queryId"
"""The property by which Spark tells tasks which query they are of; the same after a restart."""


@dataclass
class Made(WriterCommitMessage):
    """The events of one partition of a stream's batch."""

    query: str
    events: list[Outgoing] = field(default_factory=list)


class EventsStreamWriter(DataSourceStreamWriter):
    """Publishes the rows of a stream, batch by batch."""

    def __init__(self, options: Options) -> None:
        self._options = options
        options.needed("url")

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Make the events of one partition; this runs in a task."""
        context = TaskContext.get()
        query = context.getLocalProperty(QUERY_ID) if context is not None else None
        if not query:
            raise SourceError(
                "Spark does not say which query this is; write the batch with df.write instead."
            )
        return Made(query, _events(self._options, iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish a batch; this runs on the driver, and again if nobody learnt that it was done."""
        made = [message for message in messages if isinstance(message, Made)]
        events = sorted(event for message in made for event in message.events)
        if not events:
            return
        if len(events) >= BATCH_ROWS_MAX:
            raise SourceError(f"A batch has {len(events):,} rows and may have {BATCH_ROWS_MAX:,}.")
        publisher = f"{self._options.text('clientId', 'spark')}-{made[0].query}"
        publish(self._options, publisher, events, (batchId + 1) * BATCH_ROWS_MAX)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Do nothing: of a batch that failed, nothing was published."""


class EventsWriter(DataSourceWriter):
    """Publishes the rows of a DataFrame."""

    def __init__(self, options: Options) -> None:
        self._options = options
        options.needed("url")
        self._name = f"{options.text('clientId', 'spark')}-{uuid.uuid4()}"

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Publish one partition; this runs in a task."""
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        events = sorted(_events(self._options, iterator))
        if events:
            publish(self._options, f"{self._name}-{partition}", events, 1)
        return WriterCommitMessage()


def _events(options: Options, rows: Iterable[Row]) -> list[Outgoing]:
    topic, order_by = options.text("topic"), options.text("orderBy", "time")
    return [outgoing(row.asDict(recursive=True), topic, order_by) for row in rows]


def publish(options: Options, publisher: str, events: Sequence[Outgoing], first: int) -> None:
    """Publish events in their order under numbers from `first` on, and wait until the broker keeps all."""
    asyncio.run(_publish(options, publisher, events, first))


async def _publish(options: Options, publisher: str, events: Sequence[Outgoing], first: int) -> None:
    retain = options.flag("retain", default=False)
    client = options.client(client_id=publisher, session_expiry_s=options.count("sessionExpiry", WEEK_S))
    async with client:
        under_way: set[asyncio.Task[None]] = set()
        for number, event in enumerate(events, first):
            under_way.add(asyncio.create_task(_send(client, event, number, retain=retain)))
            if len(under_way) >= UNDER_WAY:
                done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        await asyncio.gather(*under_way)


async def _send(client: Client, event: Outgoing, number: int, *, retain: bool) -> None:
    await client.publish(event.topic, event.payload, retain=retain, number=number)
