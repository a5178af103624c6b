"""Live events as a Spark stream, and a stream's rows as live events.

    spark.dataSource.register(EventsSource)
    events = (spark.readStream.format("sojourn").option("url", "mqtt://127.0.0.1:1883")
              .option("clientId", "spark-speeders").option("filter", "speed > 80").load())
    rows.writeStream.format("sojourn").option("url", "mqtt://127.0.0.1:1883").start()

Reading: a filter in, rows out. The stream is one durable session at the brokers, named by `clientId`, so what
is published while no query runs is there when it starts again. An event is acknowledged when its batch was
committed. The offset is what was consumed, by source; a query restarted from its checkpoint tells the
brokers, which then send neither what was committed nor anything twice. (A broker that does not number events
gets by on their count and its own acknowledgements, and may then repeat the last batch.)

Writing: a row becomes an event of QoS 1. A `topic` column or the option `topic` says where it goes; a column
`payload` is its payload, and without one the row is sent as JSON. Each partition waits until the broker has
promised to keep all its events. A batch that Spark repeats after a failure is published again.

Both take `username` and `password`, and for `mqtts://` and `wss://` PEM files that are on every machine of
the cluster: `caFile` for the authority to believe, `certificate` and `key` for what to show.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamWriter,
    DataSourceWriter,
    SimpleDataSourceStreamReader,
    WriterCommitMessage,
)
from pyspark.sql.types import Row, StructType

from sojourn.errors import SojournError
from sojourn.live.client.client import Client
from sojourn.live.client.inbox import Received
from sojourn.live.client.trust import trusting
from sojourn.pipeline.schemas import LIVE_EVENTS

BATCH_MAX = 10_000
"""Events of a batch by default; they are held at the broker until it is committed."""
FIRST_EVENT_S, NEXT_EVENT_S = 0.5, 0.05
"""How long a batch waits for its first event, and for one more."""
RECOVERY_S = 60.0
UNDER_WAY = 500

Result = TypeVar("Result")


class SourceError(SojournError):
    """The source or sink cannot do what its options ask."""


class EventsSource(DataSource):
    """The data source `sojourn`."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` takes."""
        return "sojourn"

    def schema(self) -> StructType:
        """Return the columns of an event."""
        return LIVE_EVENTS

    def simpleStreamReader(self, schema: StructType) -> EventsReader:  # noqa: ARG002, N802 - Spark's names
        """Return the reader of a streaming query."""
        return EventsReader(self.options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> EventsStreamWriter:  # noqa: ARG002, FBT001, N802
        """Return the writer of a streaming query."""
        return EventsStreamWriter(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> EventsWriter:  # noqa: ARG002, FBT001
        """Return the writer of a batch."""
        return EventsWriter(self.options)


class _Loop:
    """An event loop in a thread of its own: Spark calls from a thread that must not wait for one."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, what: Coroutine[Any, Any, Result]) -> Result:
        """Wait for a coroutine."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    def call(self, what: Callable[[], None]) -> None:
        """Let the loop do something soon."""
        self._loop.call_soon_threadsafe(what)


class EventsReader(SimpleDataSourceStreamReader):
    """Reads one session's events; the offset is what was consumed by source, and how many in all."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        options = self._options
        _option(options, "url"), _option(options, "clientId")
        self._batch_max = int(options.get("batchmax", BATCH_MAX))
        self._loop = _Loop()
        self._client: Client | None = None
        self._count = 0
        self._uncommitted: deque[tuple[int, Callable[[], None]]] = deque()

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without the connection: a task that reads a planned batch again makes its own."""
        return EventsReader, (dict(self._options),)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset of a query that begins."""
        return {"count": 0, "marks": {}}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        """Read what is there after an offset."""
        events = self._loop.run(self._take(start, self._batch_max, FIRST_EVENT_S))
        end = {"count": start["count"] + len(events), "marks": dict(start["marks"])}
        for event in events:
            if event.source:
                end["marks"][event.source] = event.sequence
        return iter([_row(event) for event in events]), end  # Spark copies the iterator: no generator

    def readBetweenOffsets(  # noqa: N802 - Spark's name
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> Iterator[tuple[Any, ...]]:
        """Read a batch again that was planned and not committed: the broker still has its events."""
        wanted = end["count"] - start["count"]
        events = self._loop.run(self._take(start, wanted, RECOVERY_S))
        if len(events) < wanted:
            raise SourceError(
                f"Of {wanted} events that were read before, the brokers sent {len(events)} within "
                f"{RECOVERY_S:.0f} s; the session {self._options['clientid']!r} may have expired."
            )
        return iter([_row(event) for event in events])

    def commit(self, end: dict[str, Any]) -> None:
        """Acknowledge everything up to an offset."""
        while self._uncommitted and self._uncommitted[0][0] <= end["count"]:
            _, acknowledge = self._uncommitted.popleft()
            self._loop.call(acknowledge)

    async def _take(self, start: dict[str, Any], most: int, first_s: float) -> list[Received]:
        client = await self._connected(start)
        events: list[Received] = []
        wait_s = first_s
        while len(events) < most:
            try:
                event, acknowledge = await client.take(wait_s)
            except TimeoutError:
                break
            events.append(event)
            self._count += 1
            self._uncommitted.append((self._count, acknowledge))
            wait_s = NEXT_EVENT_S if first_s == FIRST_EVENT_S else first_s
        return events

    async def _connected(self, start: dict[str, Any]) -> Client:
        if self._client is None:
            options = self._options
            self._client = Client(
                options["url"],
                client_id=options["clientid"],
                session_expiry_s=int(options.get("sessionexpiry", 7 * 86_400)),
                inbox=self._batch_max,
                **_credentials(options),
            )
            self._client.seen(start["marks"])
            self._count = start["count"]
            await self._client.connect()
            await self._client.subscribe(options.get("filter", ""), topic=options.get("topic", "#"))
        return self._client


class _Publisher:
    """Publishes the rows of one partition; what a task needs travels with it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        _option(options, "url")

    def publish(self, rows: Iterator[Row]) -> int:
        """Publish rows and wait until the broker keeps them; return how many there were."""
        return asyncio.run(self._publish(rows))

    async def _publish(self, rows: Iterator[Row]) -> int:
        options, count = self._options, 0
        async with Client(
            options["url"],
            session_expiry_s=0,
            **_credentials(options),
        ) as client:
            under_way: set[asyncio.Task[None]] = set()
            for row in rows:
                topic, payload = _event(row, options.get("topic"))
                under_way.add(asyncio.create_task(client.publish(topic, payload)))
                count += 1
                if len(under_way) >= UNDER_WAY:
                    done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
            if under_way:
                await asyncio.gather(*under_way)
        return count


class EventsWriter(DataSourceWriter):
    """Publishes the rows of a DataFrame."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._publisher = _Publisher(options)

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Publish one partition."""
        self._publisher.publish(iterator)
        return WriterCommitMessage()


class EventsStreamWriter(DataSourceStreamWriter):
    """Publishes the rows of a stream, batch by batch."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._publisher = _Publisher(options)

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Publish one partition of a batch."""
        self._publisher.publish(iterator)
        return WriterCommitMessage()


def _row(event: Received) -> tuple[Any, ...]:
    attributes = {name: _text(value) for name, value in event.attributes.items() if value is not None}
    return (event.topic, event.payload, attributes, event.source, event.sequence)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _event(row: Row, topic: str | None) -> tuple[str, bytes | str | dict[str, Any]]:
    fields = row.asDict(recursive=True)
    where = fields.pop("topic", None) or topic
    if not where:
        raise SourceError("A row goes to no topic; add a column topic, or the option topic.")
    if "payload" in fields:
        payload = fields["payload"]
        return where, bytes(payload) if isinstance(payload, bytes | bytearray) else str(payload)
    return where, json.dumps(fields, default=str)


def _credentials(options: Mapping[str, str]) -> dict[str, Any]:
    """Who this is and whom it believes, as a `Client` wants to know it."""
    given = {name.lower(): value for name, value in options.items()}
    files = [given.get(name) for name in ("cafile", "certificate", "key")]
    return {
        "username": given.get("username"),
        "password": given.get("password"),
        "tls": trusting(*files) if any(files) else None,
    }


def _option(options: Mapping[str, str], name: str) -> str:
    value = options.get(name) or options.get(name.lower())  # Spark's options do not care about case
    if not value:
        raise SourceError(f"The option {name} is missing; add .option({name!r}, …) to the stream.")
    return value
