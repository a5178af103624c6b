"""Live events as Spark's tables and streams, and rows as live events: the data source `sojourn`.

    spark.dataSource.register(EventsSource)
    events = (spark.readStream.format("sojourn").option("url", "mqtt://127.0.0.1:1883")
              .option("clientId", "spark-speeders").option("filter", "speed > 80").load())
    counts = events.withWatermark("time", "10 seconds").groupBy(window("time", "1 minute")).count()
    latest = spark.read.format("sojourn").option("url", "mqtt://127.0.0.1:1883").load()
    (rows.writeStream.format("sojourn").option("url", "mqtt://127.0.0.1:1883")
         .option("checkpointLocation", "checkpoint").start())

**A stream** (`events/reading.py`) is one durable session at the brokers, named by `clientId`: a filter in,
rows out. What is published while no query runs is there when it starts again. An event is acknowledged when
Spark has committed its batch, so that each is in one committed batch and in one only, whatever is killed
meanwhile. A broker that is no Sojourn does not number events, and may repeat the last batch after a restart.
Triggers: `processingTime` and none at all; `availableNow`, which reads what brokers had accepted when it
began, in as many batches as it takes; `once`, one batch. Spark has no `continuous` trigger for sources in
Python. With `asyncProgressTrackingEnabled` Spark asks for more before it has noted what is done, and a
restart may then lose what was under way.

**A bounded read**: the retained events that match; or with `clientId` what is stored for that session, which
it leaves there, as much as its broker sends to who acknowledges nothing (`inflight_max`). A running stream
of that `clientId` would lose its connection to it, so stop that first.

**Writing** (`events/writing.py`): each row is published once, however often Spark tries. A column or the
option `topic` says where it goes; a column `payload` is its payload, and without one the row is sent as
JSON. A batch of a stream goes through the driver. `retain` = `true` lets brokers keep the last event of each
topic.

Options of the stream: `batchMax` (rows of a batch, 10,000), `topic` (a topic filter), `timeAttribute` (what
gives rows their `time`, see `events/rows.py`), `failOnDataLoss` (`false`: go on without what brokers have
forgotten). All: `sessionExpiry` (seconds that brokers keep a session which nobody is connected to, a week),
`username` and `password`, and for `mqtts://` and `wss://` PEM files that are on every machine of the
cluster: `caFile` for the authority to believe, `certificate` and `key` for what to show.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from sojourn.pipeline.events.options import Options
from sojourn.pipeline.events.reading import EventsReader, TableReader
from sojourn.pipeline.events.writing import EventsStreamWriter, EventsWriter
from sojourn.pipeline.schemas import LIVE_EVENTS


class EventsSource(DataSource):
    """The data source `sojourn`."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` takes."""
        return "sojourn"

    def schema(self) -> StructType:
        """Return the columns of an event."""
        return LIVE_EVENTS

    def reader(self, schema: StructType) -> TableReader:  # noqa: ARG002 - Spark's
        """Return the reader of a bounded table."""
        return TableReader(Options(self.options))

    def streamReader(self, schema: StructType) -> EventsReader:  # noqa: ARG002, N802 - Spark's name
        """Return the reader of a stream."""
        return EventsReader(Options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> EventsWriter:  # noqa: ARG002, FBT001 - Spark's
        """Return the writer of a DataFrame."""
        return EventsWriter(Options(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> EventsStreamWriter:  # noqa: ARG002, FBT001, N802 - Spark's
        """Return the writer of a stream."""
        return EventsStreamWriter(Options(self.options))
