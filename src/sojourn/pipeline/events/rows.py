"""An event as a row, and a row as an event. Pure.

Every row has a `time`: when its broker accepted the event, which the event's sequence tells and which is the
same however often the row is read. An attribute of the event takes its place if one is named: a number is
seconds since 1970, a text a date as ISO 8601 writes it (in UTC unless it says otherwise); where an event has
none that can be read, it is the broker's again. An event that no Sojourn broker numbered has the time at
which it came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from sojourn.live.client.inbox import Received
from sojourn.pipeline.events.options import SourceError
from sojourn.pipeline.schemas import LIVE_EVENTS

ARROW = to_arrow_schema(LIVE_EVENTS, timezone="UTC")
YEAR_10000_US = 253_402_300_800_000_000
"""The first moment that no date of Python's and Spark's has a name for."""


class Arrived(NamedTuple):
    """An event that came."""

    event: Received
    came_us: int
    """When, in microseconds since 1970."""
    settle: Callable[[], None] = lambda: None
    """What lets the brokers forget it."""


def batch(arrived: Sequence[Arrived], time_attribute: str = "") -> pa.RecordBatch:
    """Some events as rows of `LIVE_EVENTS`."""
    events = [each.event for each in arrived]
    columns: dict[str, list[Any]] = {
        "topic": [event.topic for event in events],
        "payload": [event.payload for event in events],
        "attributes": [list(_texts(event.attributes).items()) for event in events],
        "source": [event.source for event in events],
        "sequence": [event.sequence for event in events],
        "publisher": [event.publisher for event in events],
        "number": [event.number for event in events],
        "time": [time_us(each, time_attribute) for each in arrived],
    }
    arrays = [pa.array(columns[field.name], type=field.type) for field in ARROW]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def time_us(arrived: Arrived, attribute: str = "") -> int:
    """When an event happened, in microseconds since 1970."""
    event = arrived.event
    told = _moment_us(event.attributes.get(attribute)) if attribute else None
    if told is not None:
        return told
    return event.sequence if event.source and event.sequence < YEAR_10000_US else arrived.came_us


def _moment_us(value: object) -> int | None:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value * 1e6) if abs(value) * 1e6 < YEAR_10000_US else None


def _texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in attributes.items()
        if value is not None
    }


class Outgoing(NamedTuple):
    """An event that a row becomes; they compare in the order in which they are published."""

    order: tuple[Any, ...]
    topic: str
    payload: bytes


def outgoing(fields: dict[str, Any], topic: str, order_by: str) -> Outgoing:
    """The event of a row: its column `payload` as it is, or else all its columns as JSON.

    `order_by` names the column whose values order the events of a batch; one that a row has not orders
    nothing.
    """
    order = _orderly(fields.get(order_by))
    where = fields.pop("topic", None) or topic
    if not where:
        raise SourceError("A row goes to no topic; add a column topic, or the option topic.")
    if "payload" not in fields:
        return Outgoing(order, where, _json(fields, where))
    payload = fields["payload"]
    if payload is None:
        return Outgoing(order, where, b"")
    return Outgoing(order, where, payload.encode() if isinstance(payload, str) else _bytes(payload, where))


def _bytes(payload: object, topic: str) -> bytes:
    if not isinstance(payload, bytes | bytearray):
        kind = type(payload).__name__
        raise SourceError(f"The payload of a row for {topic!r} is a {kind}; make it a string or binary.")
    return bytes(payload)


def _json(fields: dict[str, Any], topic: str) -> bytes:
    try:
        return json.dumps(fields, default=_plain, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        raise SourceError(
            f"A row for {topic!r} has NaN or an infinity, which JSON cannot say; drop or replace it before."
        ) from None


def _plain(value: object) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _orderly(value: object) -> tuple[Any, ...]:
    """What a row is ordered by: nothing comes first, then values of the column's one type."""
    if value is None:
        return ()
    if not isinstance(value, date | int | float | Decimal | str):  # a datetime is a date
        raise SourceError(
            f"Rows cannot be ordered by a {type(value).__name__}; name another column in orderBy."
        )
    return (value,)
