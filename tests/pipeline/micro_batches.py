"""What Spark's engine asks of a stream's source, call by call, without Spark.

`Engine` is a double of `MicroBatchExecution`: it notes offsets before a batch and commits after it, plans the
same batch again when it died in between, tells the source of a commit only when the next batch is planned,
has an empty first batch, and reads partitions in another instance of the reader, as a task does.
"""

from __future__ import annotations

import json
import pickle
from typing import Any, Self

from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper, _streamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

from sojourn.pipeline.events_source import EventsSource
from sojourn.pipeline.schemas import LIVE_EVENTS

Row = dict[str, Any]


class Checkpoint:
    """What outlives a query."""

    def __init__(self) -> None:
        self.offsets: list[str] = []
        """By batch: where it ends."""
        self.committed = 0
        """Batches that are done."""
        self.table: dict[int, list[Row]] = {}
        """By batch: its rows, as a sink that replaces a repeated batch keeps them."""

    @property
    def rows(self) -> list[Row]:
        """All rows of the sink."""
        return [row for batch in self.table.values() for row in batch]


class KilledError(Exception):
    """The query dies here."""


class Engine:
    """One run of a query."""

    def __init__(self, checkpoint: Checkpoint, **options: str) -> None:
        self.kept = checkpoint
        self.source = EventsSource(options)
        self.reader = _streamReader(self.source, LIVE_EVENTS)

    def available_now(self) -> Self:
        """Begin as the trigger of that name does."""
        if isinstance(self.reader, SupportsTriggerAvailableNow):
            self.reader.prepareForTriggerAvailableNow()
        return self

    def trigger(self, *, dies: str = "") -> int:
        """Do what one trigger does; return how many rows it read. `dies`: "planned", "written"."""
        kept = self.kept
        number = kept.committed
        start = json.loads(kept.offsets[number - 1]) if number else self.reader.initialOffset()
        if len(kept.offsets) == number:
            end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
            if number and end == start:
                return 0
            kept.offsets.append(json.dumps(end))
            if number:
                self.reader.commit(start)
        if dies == "planned":
            raise KilledError
        rows = self._read(start, json.loads(kept.offsets[number]))
        kept.table[number] = rows
        if dies == "written":
            raise KilledError
        kept.committed = number + 1
        return len(rows)

    def _read(self, start: Any, end: Any) -> list[Row]:
        partitions = self.reader.partitions(start, end)
        if isinstance(self.reader, _SimpleStreamReaderWrapper):
            cached = self.reader.getCache(start, end)
            if cached is not None:
                return self._rows(cached)
        rows = []
        for partition in pickle.loads(pickle.dumps(list(partitions))):
            rows += self._rows(_streamReader(self.source, LIVE_EVENTS).read(partition))
        return rows

    def _rows(self, records: Any) -> list[Row]:
        batches = records_to_arrow_batches(iter(records), 10_000, LIVE_EVENTS, self.source)
        return [row for batch in batches for row in batch.to_pylist()]

    def die(self) -> None:
        """Be killed: the connection breaks without a word."""
        session = getattr(self.reader, "_session", None)
        if session is not None:
            session.run(_vanish(session.client))


async def _vanish(client: Any) -> None:
    client._closing = True
    client.vanish()
