"""Messages and notes as bytes; what cannot be read is a `CodecError`, whoever sent it.

Both are written as a kind and its fields, which `msgspec` reads by their declared types; a message with the
kind and fields of what it carries. Filters are written as texts.
"""

from typing import Any, NamedTuple, TypeVar

import msgspec

from sojourn.adhoc.election import messages
from sojourn.adhoc.election.messages import (
    Entry,
    EventId,
    Flood,
    Handover,
    Kept,
    Message,
    Note,
    Refresh,
    Routed,
    Wants,
)
from sojourn.errors import SojournError
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter

_FLOODED = (messages.Search, messages.Candidacy, messages.Beacon)
_ROUTED = (
    messages.Refresh,
    messages.Refreshed,
    messages.Publish,
    messages.Stored,
    messages.Deliver,
    messages.Handover,
    messages.HandedOver,
)
_NOTES = (
    messages.Began,
    messages.Wants,
    messages.Owes,
    messages.Paid,
    messages.Elected,
    messages.Took,
    messages.SeenTo,
    messages.GaveAway,
    messages.Showing,
    messages.Saw,
    messages.Knows,
)
_KINDS: dict[str, type[tuple[object, ...]]] = {kind.__name__: kind for kind in (*_FLOODED, *_ROUTED, *_NOTES)}
_FLOOD, _SENT = "flood", "routed"
_T = TypeVar("_T")


class _Refresh(NamedTuple):
    number: int
    wanted: str
    since_s: float
    seen: tuple[EventId, ...]
    whole: bool


class _Entry(NamedTuple):
    displayer: int
    wanted: str
    since_s: float
    refreshed_s: float
    seen: frozenset[EventId]


class _Handover(NamedTuple):
    number: int
    entries: tuple[_Entry, ...]
    events: tuple[Kept, ...]


class _Wants(NamedTuple):
    wanted: str
    since_s: float


_WRITTEN: dict[type, type] = {Refresh: _Refresh, Handover: _Handover, Wants: _Wants}
"""What is written otherwise than it is."""


class CodecError(SojournError):
    """Bytes are no message or no note."""


def encode_message(message: Message) -> bytes:
    """A message as bytes."""
    *outer, what = message
    how = _FLOOD if isinstance(message, Flood) else _SENT
    return _encode([how, outer, type(what).__name__, _written(what)])


def decode_message(data: bytes) -> Message:
    """The message that bytes are."""
    how, outer, kind, fields = _decode(data, 4)
    is_flood = how == _FLOOD
    if how not in (_FLOOD, _SENT) or _KINDS.get(str(kind)) not in (_FLOODED if is_flood else _ROUTED):
        raise CodecError(f"Nobody says a {kind!r} so.")
    what = _read_kind(fields, _KINDS[str(kind)])
    if is_flood:
        sender, origin, number = _read(outer, tuple[int, int, int])
        return Flood(sender, origin, number, what)
    sender, to, origin, destination, hops_left = _read(outer, tuple[int, int, int, int, int])
    return Routed(sender, to, origin, destination, hops_left, what)


def encode_note(note: Note) -> bytes:
    """A note as bytes."""
    return _encode([type(note).__name__, _written(note)])


def decode_note(data: bytes) -> Note:
    """The note that bytes are."""
    kind, fields = _decode(data, 2)
    if _KINDS.get(str(kind)) not in _NOTES:
        raise CodecError(f"Nobody notes a {kind!r}.")
    note: Note = _read_kind(fields, _KINDS[str(kind)])
    return note


def _written(value: object) -> object:
    match value:
        case Refresh() | Wants() | Entry():
            return value._replace(wanted=str(value.wanted))  # type: ignore[arg-type]  # a text on the wire, a filter inside
        case Handover(number, entries, events):
            return number, [_written(entry) for entry in entries], events
        case _:
            return value


def _read_kind(fields: object, kind: Any) -> Any:
    found = _read(fields, _WRITTEN.get(kind, kind))
    try:
        match found:
            case _Refresh() | _Wants():
                return kind(*found._replace(wanted=_filter(found.wanted)))  # type: ignore[arg-type]  # a text on the wire, a filter inside
            case _Handover(number, entries, events):
                read = (Entry(*entry._replace(wanted=_filter(entry.wanted))) for entry in entries)  # type: ignore[arg-type]  # a text on the wire, a filter inside
                return Handover(number, tuple(read), events)
            case _:
                return found
    except SojournError as error:
        raise CodecError(f"A {kind.__name__} has a filter that cannot be read: {error}") from None


def _filter(text: str) -> Filter:
    return Filter.parse(text, limited=False)


def _decode(data: bytes, length: int) -> list[object]:
    try:
        found = msgspec.msgpack.decode(data, type=list[object])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CodecError(f"These bytes cannot be read: {error}.") from None
    if len(found) != length:
        raise CodecError(f"There are {len(found)} parts where {length} belong.")
    return found


def _read(fields: object, kind: type[_T]) -> _T:
    try:
        return msgspec.convert(fields, kind, dec_hook=_decode_own)
    except (msgspec.MsgspecError, SojournError, ValueError, RecursionError) as error:
        raise CodecError(f"A {getattr(kind, '__name__', 'message')} is not written so: {error}") from None


def _encode_own(value: object) -> object:
    assert isinstance(value, Event)
    return [dict(value.flat), value.source, value.sequence]


def _decode_own(kind: type, value: object) -> Event:
    assert kind is Event
    flat, source, sequence = msgspec.convert(value, tuple[dict[str, str | int | float | bool], str, int])
    nested: dict[str, Any] = {}  # as deep as its paths are
    for path, given in flat.items():
        *above, name = path.split(".")
        place = nested
        for part in above:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise CodecError(f"{part!r} is a value and has others below it.")
        place[name] = given
    return Event(nested, source=source, sequence=sequence)


_encode = msgspec.msgpack.Encoder(enc_hook=_encode_own).encode
