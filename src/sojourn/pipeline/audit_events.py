"""Publications' attributes, from JSON text to the columns that the index matches.

The quick way reads a whole batch with Arrow's JSON reader. It is left where that reader would see something
else than we do: text that looks like a date, lists, integers beyond 2**53, attributes of mixed kinds or rows
that are not JSON. Then every row is read by itself, and one that cannot be an event is an event without
attributes that also has no topic; which these are is told.
"""

from __future__ import annotations

import io
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from sojourn.errors import SojournError
from sojourn.interest import Event
from sojourn.interest.events import TOPIC, Attributes
from sojourn.interest.values import INTEGER_MAX

_DECODER = msgspec.json.Decoder(dict[str, Any])


def attributes_of(text: str | None) -> Attributes:
    """Return attributes from their JSON; none from a text that is not an object in JSON."""
    return _decoded(text) or {}


def is_readable(text: str | None) -> bool:
    """Whether a text is attributes, or nothing at all."""
    attributes = _decoded(text)
    try:
        return attributes is not None and Event(attributes) is not None
    except SojournError:
        return False


def _decoded(text: str | None) -> Attributes | None:
    try:
        attributes: Attributes = _DECODER.decode(text or "{}")
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return attributes


def event_columns(publications: pa.Table) -> tuple[dict[str, Any], npt.NDArray[np.bool_]]:
    """Return the attributes of publications by path and their topic, and which could not be read."""
    texts = publications.column("attributes_json").combine_chunks()
    topics = publications.column("topic").combine_chunks()
    columns = _read_together(texts)
    if columns is None or (topics.null_count < len(topics) and TOPIC in columns):
        return _read_one_by_one(texts.to_pylist(), topics.to_pylist())
    if topics.null_count < len(topics):
        columns[TOPIC] = topics
    # An index has to learn the number of events even when none has an attribute.
    return columns or {TOPIC: pa.nulls(len(texts), pa.string())}, np.zeros(len(texts), np.bool_)


def _read_together(texts: pa.Array) -> dict[str, Any] | None:
    """Return the columns of a batch of JSON objects, or None when the quick reader will not do."""
    if texts.null_count or not len(texts):
        return None
    # The array's bytes, one row a line: a newline cannot stand unescaped within a JSON string.
    lines = "\n".join(texts.to_pylist())
    try:
        table = pj.read_json(
            io.BytesIO(lines.encode()),
            read_options=pj.ReadOptions(use_threads=False, block_size=max(1 << 20, 2 * len(lines))),
            parse_options=pj.ParseOptions(newlines_in_values=False),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(texts) or not all(_is_plain(field.type) for field in table.schema):
        return None
    columns = dict(zip(table.column_names, table.columns, strict=True))
    if any("." in name or not name for name in columns):
        return None
    if any(pa.types.is_integer(c.type) and _beyond_exact(c) for c in columns.values()):
        return None
    return columns


def _is_plain(kind: pa.DataType) -> bool:
    # Objects in objects are rare enough to be read one by one, with all the checks an event has.
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    )


def _beyond_exact(column: pa.ChunkedArray) -> bool:
    values = column.drop_null().to_numpy()
    return bool(values.size) and max(-int(values.min()), int(values.max())) > INTEGER_MAX


def _read_one_by_one(
    texts: list[str | None], topics: list[str | None]
) -> tuple[dict[str, Any], npt.NDArray[np.bool_]]:
    rows: list[dict[str, Any]] = []
    unreadable = np.zeros(len(texts), np.bool_)
    for place, (text, topic) in enumerate(zip(texts, topics, strict=True)):
        try:
            event = Event(_DECODER.decode(text or "{}"), topic=topic)
            rows.append(dict(event.flat))
        except (msgspec.MsgspecError, UnicodeError, SojournError):
            rows.append({})
            unreadable[place] = True
    paths = dict.fromkeys(path for row in rows for path in row)
    columns: dict[str, Any] = {path: _objects([row.get(path) for row in rows]) for path in paths}
    return columns or {TOPIC: pa.nulls(len(rows), pa.string())}, unreadable


def _objects(values: list[Any]) -> Any:
    column = np.empty(len(values), object)
    column[:] = values
    return column
