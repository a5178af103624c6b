"""Reading: a session as a stream, and what is retained or stored as a bounded table.

The driver alone is connected, in the process that Spark keeps for a stream's source. A batch is what had
come when Spark asked, and travels to the tasks inside the partitions, so that a task that is tried again
reads the same rows, and none takes the session away from the driver. How the calls of Spark are met:

- `latestOffset(start, …)`: Spark has committed everything up to `start`, so that is acknowledged; then what
  is there is taken. `commit` says the same later, when there is a further batch, and a source that waited
  for it would wait for ever: the brokers send nothing more to who has acknowledged nothing.
- `partitions(start, end)`: the batch just taken; after a restart one that was planned and not committed,
  which the brokers send again, since it was not acknowledged.
- An empty range is asked for too, before anything was ever read. It touches nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from sojourn.live.client.answers import PACKET_IDS
from sojourn.pipeline.events import offsets
from sojourn.pipeline.events.offsets import Between, Offset
from sojourn.pipeline.events.options import BATCH_MAX, WEEK_S, Options, SourceError
from sojourn.pipeline.events.rows import Arrived, batch
from sojourn.pipeline.events.session import Session

FIRST_EVENT_S = 0.5
"""How long a batch waits for its first event."""
RECOVERY_S = 60.0
"""How long brokers may send nothing of a batch that is read again."""
FOREIGN_NOW_S = 10.0
"""Events without a date, from other brokers, are available "now" so long after a query began."""
PARTITION_ROWS, PARTITION_BYTES = 5_000, 8 << 20
"""Rows and payload of a task's partition, beside one row of any size."""


class Rows(InputPartition):
    """Some rows of a batch, as Arrow's bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(None)
        self.data = data

    @classmethod
    def of(cls, arrived: Sequence[Arrived], time_attribute: str) -> Rows:
        """Pack events."""
        rows = batch(arrived, time_attribute)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_batch(rows)
        return cls(sink.getvalue().to_pybytes())

    def unpacked(self) -> Iterator[pa.RecordBatch]:
        """The rows."""
        with pa.ipc.open_stream(self.data) as stream:
            yield from stream


class EventsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads one session's events as a stream."""

    def __init__(self, options: Options) -> None:
        self._options = options
        options.needed("url"), options.needed("clientId")
        self._batch_max = options.count("batchMax", BATCH_MAX)
        self._session: Session | None = None
        self._taken: list[Arrived] = []
        """The batch that was read last, from `_from` to `_to`."""
        self._from: Offset | None = None
        self._to: Offset | None = None
        self._unsettled: deque[tuple[int, Arrived]] = deque()
        """What was read and is not acknowledged, by its number among the kept."""
        self._until_us: int | None = None
        """Of `availableNow`: when the query began."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to a task without the connection: it only unpacks."""
        return EventsReader, (self._options,)

    # What Spark asks -------------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the offset of a query that begins."""
        return offsets.initial()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return how much a batch has at most."""
        return ReadMaxRows(self._batch_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Note the moment: what brokers accept later is left for the next run."""
        self._until_us = time.time_ns() // 1000

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Take what is there, and return how far that goes."""
        session = self._connected(start)
        self._settle(offsets.kept(start))
        if self._taken and start == self._from and self._to is not None:
            return self._to  # Spark asks again for what it has made no batch of yet
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else PACKET_IDS
        if not isinstance(limit, ReadMaxRows | ReadAllAvailable):
            most = self._batch_max
        if self._until_us is None:
            self._hold(start, session.take(most, FIRST_EVENT_S))
        else:
            self._hold(start, self._available_now(session, most))
        assert self._to is not None
        return self._to

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Pack a batch: the last one, or one that was planned before a restart."""
        if start["count"] == end["count"]:
            return []
        if (start, end) != (self._from, self._to):
            self._hold(start, self._again(self._connected(start), Between(start, end)), end)
        named = self._options.text("timeAttribute")
        return [Rows.of(piece, named) for piece in _pieces(self._taken)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Unpack a part of a batch; this runs in a task."""
        assert isinstance(partition, Rows)
        return partition.unpacked()

    def commit(self, end: Offset) -> None:
        """Acknowledge everything up to an offset."""
        self._settle(offsets.kept(end))

    def stop(self) -> None:
        """Leave; the brokers keep the session."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    # How it is done --------------------------------------------------------------------------------------

    def _connected(self, start: Offset) -> Session:
        if self._session is None:
            options = self._options
            client = options.client(
                client_id=options.needed("clientId"),
                session_expiry_s=options.count("sessionExpiry", WEEK_S),
                inbox=min(2 * self._batch_max, PACKET_IDS),
            )
            session = Session(client)
            known = session.connect(start["marks"])
            if start["count"] and not known and options.flag("failOnDataLoss", default=True):
                session.close()
                raise SourceError(
                    f"The brokers do not know the session {client.client_id!r} any more, so what was "
                    "published since the query ended is lost; go on without it by "
                    ".option('failOnDataLoss', 'false')."
                )
            session.run(client.subscribe(options.text("filter"), topic=options.text("topic", "#")))
            self._session = session
        return self._session

    def _hold(self, start: Offset, taken: list[Arrived], end: Offset | None = None) -> None:
        """Keep a batch until the next one, and its acknowledgements until it is committed."""
        number = offsets.kept(start)
        for arrived in taken:
            if arrived.event.qos:
                number += 1
                self._unsettled.append((number, arrived))
        self._taken, self._from = taken, start
        self._to = end or offsets.advanced(start, (arrived.event for arrived in taken))

    def _settle(self, kept: int) -> None:
        while self._session is not None and self._unsettled and self._unsettled[0][0] <= kept:
            self._session.settle(self._unsettled.popleft()[1])

    def _available_now(self, session: Session, most: int) -> list[Arrived]:
        """What brokers had accepted when the query began; nothing means that no more of it will come."""
        assert self._until_us is not None
        early: list[Arrived] = []
        late: list[Arrived] = []
        for taken in session.all_there_is(most):
            for arrived in taken:
                (early if _is_early(arrived, self._until_us) else late).append(arrived)
            if early or len(late) >= self._batch_max:
                break
        session.put_back(late)
        return early

    def _again(self, session: Session, between: Between) -> list[Arrived]:
        """Read a batch again that was planned and not committed: the brokers have its events still."""
        found: list[Arrived] = []
        others: list[Arrived] = []
        until = time.monotonic() + RECOVERY_S
        while not between.complete and time.monotonic() < until:
            for arrived in session.take(PACKET_IDS, FIRST_EVENT_S):
                mine = between.takes(arrived.event)
                (found if mine else others).append(arrived)
                until = time.monotonic() + RECOVERY_S if mine else until
        session.put_back(others)
        if not between.complete and self._options.flag("failOnDataLoss", default=True):
            raise SourceError(
                f"Of {between.wanted} events that were read before, the brokers sent {between.found} within "
                f"{RECOVERY_S:.0f} s: the session {self._options.text('clientId')!r} may have expired, or "
                "its filter changed; go on without them by .option('failOnDataLoss', 'false')."
            )
        return found


class TableReader(DataSourceReader):
    """Reads what brokers have at present: retained events, or what a session has stored.

    Without `clientId` these are the retained events that match. With it, what waits for that session;
    nothing is acknowledged, so it stays there and reading it twice gives it twice.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        options.needed("url")

    def partitions(self) -> Sequence[InputPartition]:
        """One task reads all, as one client."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - Spark's
        """Connect, take everything, leave; this runs in a task."""
        client_id = self._options.text("clientId")
        session = self._open_stored(client_id) if client_id else self._open_retained()
        named = self._options.text("timeAttribute")
        try:
            for taken in session.all_there_is(PARTITION_ROWS, retained=True):
                if client_id:
                    yield batch(taken, named)
                    continue
                for arrived in taken:
                    session.settle(arrived)
                copies = [arrived for arrived in taken if arrived.event.retained]
                if copies:
                    yield batch(copies, named)
        finally:
            session.close()

    def _open_retained(self) -> Session:
        options = self._options
        session = Session(options.client(client_id="", session_expiry_s=0, inbox=PACKET_IDS))
        session.connect({})
        session.run(session.client.subscribe(options.text("filter"), topic=options.text("topic", "#")))
        return session

    def _open_stored(self, client_id: str) -> Session:
        expiry_s = self._options.count("sessionExpiry", WEEK_S)
        session = Session(
            self._options.client(client_id=client_id, session_expiry_s=expiry_s, inbox=PACKET_IDS)
        )
        if session.connect({}):
            return session
        session.close()
        made = Session(self._options.client(client_id=client_id, session_expiry_s=0))
        made.connect({})  # so that the session which the question made ends at once
        made.close()
        raise SourceError(
            f"The brokers know no session {client_id!r}; a stream makes one, with spark.readStream and this "
            "clientId. Without clientId the events that brokers retain are read."
        )


def _is_early(arrived: Arrived, until_us: int) -> bool:
    event = arrived.event
    if event.source:
        return event.sequence <= until_us
    return arrived.came_us <= until_us + FOREIGN_NOW_S * 1e6


def _pieces(arrived: Sequence[Arrived]) -> Iterator[Sequence[Arrived]]:
    """Cut a batch into partitions, the same ones each time."""
    start, size = 0, 0
    for place, one in enumerate(arrived):
        if place > start and (place - start >= PARTITION_ROWS or size >= PARTITION_BYTES):
            yield arrived[start:place]
            start, size = place, 0
        size += len(one.event.payload)
    if start < len(arrived):
        yield arrived[start:]
