"""How single fields of stored objects become plain data and back.

A `Field` names an attribute and the codec for its value; without one the value is plain: None, a boolean, a
number, a text, bytes, or lists and dictionaries of those. Objects are never inside one another but referred
to by place (`Ref` and its relatives), so that depth of data is never depth of calls, and what is shared stays
shared. A codec packs for a `Writer` and unpacks for a `Reader` (`state_codec.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import astuple

from sojourn.interest import TopicPattern
from sojourn.interest.topics import Prefix
from sojourn.mqtt.message import PLAIN, Properties
from sojourn.mqtt.packets import secret_start


class Writer(Protocol):
    """Who numbers the objects that are referred to."""

    def ref(self, thing: Any, /) -> int | None:
        """Return an object's place, None for None."""


class Reader(Protocol):
    """Who knows the objects by place."""

    def thing(self, place: int | None, /) -> Any:
        """Return the object at a place, None for None."""

    def name(self, text: str, /) -> str:
        """Return the one object that stands for all equal texts."""

    def check(self, field: str, value: Any, /) -> None:
        """Refuse a value of a field that refers to objects of another class than it should."""


class Codec(Protocol):
    """One way to write a value as plain data."""

    def pack(self, value: Any, writer: Writer, /) -> Any:
        """Return a value as plain data."""

    def unpack(self, plain: Any, reader: Reader, /) -> Any:
        """Return the value that plain data stands for."""


class Field(NamedTuple):
    """One stored attribute."""

    name: str
    codec: Codec | None = None


def fields(names: str, **codecs: Codec) -> tuple[Field, ...]:
    """Return fields by name, those in `names` plain, the others with their codecs."""
    return (*(Field(name) for name in names.split()), *(Field(name, one) for name, one in codecs.items()))


class Ref:
    """An object, or None."""

    def pack(self, value: Any, writer: Writer, /) -> Any:
        """Return its place."""
        return writer.ref(value)

    def unpack(self, plain: Any, reader: Reader, /) -> Any:
        """Return the object."""
        return reader.thing(plain)


class Refs:
    """A collection of objects, in order; some may be None."""

    def __init__(self, make: Callable[[Iterable[Any]], Any]) -> None:
        self._make = make

    def pack(self, value: Any, writer: Writer, /) -> Any:
        """Return their places."""
        return [writer.ref(one) for one in value]

    def unpack(self, plain: Any, reader: Reader, /) -> Any:
        """Return the collection."""
        return self._make([reader.thing(place) for place in plain])


class RefValues:
    """A dictionary whose values are objects, or None."""

    def pack(self, value: Any, writer: Writer, /) -> Any:
        """Return the places by key."""
        return {key: writer.ref(one) for key, one in value.items()}

    def unpack(self, plain: Any, reader: Reader, /) -> Any:
        """Return the dictionary."""
        return {key: reader.thing(place) for key, place in plain.items()}


class RefLists:
    """A dictionary whose values are lists of objects."""

    def pack(self, value: Any, writer: Writer, /) -> Any:
        """Return lists of places by key."""
        return {key: [writer.ref(one) for one in some] for key, some in value.items()}

    def unpack(self, plain: Any, reader: Reader, /) -> Any:
        """Return the dictionary."""
        return {key: [reader.thing(place) for place in some] for key, some in plain.items()}


class RefKeys:
    """A dictionary whose keys are objects and whose values are plain."""

    def pack(self, value: Any, writer: Writer, /) -> Any:
        """Return the places and the values."""
        return [[writer.ref(one) for one in value], list(value.values())]

    def unpack(self, plain: Any, reader: Reader, /) -> Any:
        """Return the dictionary."""
        places, values = plain
        return {reader.thing(place): one for place, one in zip(places, values, strict=True)}


class RefsByRef:
    """A dictionary from objects to lists of objects, or None for no dictionary."""

    def pack(self, value: Any, writer: Writer, /) -> Any:
        """Return places and lists of places."""
        if value is None:
            return None
        return [[writer.ref(one), [writer.ref(other) for other in some]] for one, some in value.items()]

    def unpack(self, plain: Any, reader: Reader, /) -> Any:
        """Return the dictionary."""
        if plain is None:
            return None
        return {reader.thing(place): [reader.thing(one) for one in some] for place, some in plain}


class Sequence:
    """A collection of plain values: a tuple, a deque, a set (written in ascending order)."""

    def __init__(self, make: Callable[[Iterable[Any]], Any]) -> None:
        self._make = make
        self._is_set = make in (set, frozenset)

    def pack(self, value: Any, _writer: Writer, /) -> Any:
        """Return it as a list."""
        return sorted(value) if self._is_set else list(value)

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the collection."""
        return self._make(plain)


class Row:
    """A named tuple of plain values, or None; later releases may add fields at its end."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def pack(self, value: Any, _writer: Writer, /) -> Any:
        """Return it as a list."""
        return None if value is None else list(value)

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the tuple."""
        return None if plain is None else self._make(*plain)


class Rows:
    """A collection of plain tuples, each made by a function of its parts; `flat` takes one apart."""

    def __init__(
        self,
        make: Callable[..., Any],
        collect: Callable[[Iterable[Any]], Any] = list,
        flat: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        self._make, self._collect, self._flat = make, collect, flat

    def pack(self, value: Any, _writer: Writer, /) -> Any:
        """Return the parts of each."""
        flat = self._flat
        found = list(value) if flat is None else [flat(one) for one in value]
        return sorted(found) if self._collect in (set, frozenset) else found

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the collection."""
        make = self._make
        return self._collect([make(*parts) for parts in plain])


class RowValues:
    """A dictionary whose values are tuples of plain values."""

    def __init__(self, make: Callable[[Iterable[Any]], Any]) -> None:
        self._make = make

    def pack(self, value: Any, _writer: Writer, /) -> Any:
        """Return lists by key."""
        return {key: list(one) for key, one in value.items()}

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the dictionary."""
        return {key: self._make(one) for key, one in plain.items()}


class Choice:
    """A member of an enumeration of numbers."""

    def __init__(self, enumeration: Callable[[int], Any]) -> None:
        self._enumeration = enumeration

    def pack(self, value: Any, _writer: Writer, /) -> Any:
        """Return its number."""
        return int(value)

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the member."""
        return self._enumeration(plain)


class Name:
    """A text that many objects have in common."""

    def pack(self, value: Any, _writer: Writer, /) -> Any:
        """Return it as it is."""
        return value

    def unpack(self, plain: Any, reader: Reader, /) -> Any:
        """Return the one text that stands for all equal ones."""
        return reader.name(plain)


INT_MIN, INT_MAX = -(1 << 63), (1 << 64) - 1
"""What MessagePack has numbers for."""


class Numbers:
    """A dictionary whose values may be numbers of any size, or None: what clients say is not checked."""

    def pack(self, value: Mapping[Any, Any] | None, _writer: Writer, /) -> Any:
        """Return it with the largest numbers as texts in lists."""
        if value is None:
            return None
        return {key: _small(one) for key, one in value.items()}

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the dictionary."""
        if plain is None:
            return None
        return {key: int(one[0], 16) if isinstance(one, list) else one for key, one in plain.items()}


def _small(value: Any) -> Any:
    return [hex(value)] if isinstance(value, int) and not INT_MIN <= value <= INT_MAX else value


class Masks(Numbers):
    """By neighbour's bit, which may be a number of any size: a set of plain values."""

    def pack(self, value: Mapping[Any, Any] | None, _writer: Writer, /) -> Any:
        """Return pairs of bit and list."""
        assert value is not None, "a table is never missing"
        return [[_small(bit), sorted(some)] for bit, some in value.items()]

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the dictionary."""
        return {int(bit[0], 16) if isinstance(bit, list) else bit: set(some) for bit, some in plain}


class Witnesses(Numbers):
    """By neighbour's bit, which may be a number of any size: numbers by number."""

    def pack(self, value: Mapping[Any, Any] | None, _writer: Writer, /) -> Any:
        """Return pairs of bit and dictionary."""
        assert value is not None, "a table is never missing"
        return [[_small(bit), some] for bit, some in value.items()]

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the dictionary."""
        return {int(bit[0], 16) if isinstance(bit, list) else bit: dict(some) for bit, some in plain}


class OrderedSets:
    """A dictionary whose values are dictionaries without values: sets that keep their order."""

    def pack(self, value: Any, _writer: Writer, /) -> Any:
        """Return lists by key."""
        return {key: list(some) for key, some in value.items()}

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the dictionary."""
        return {key: dict.fromkeys(some) for key, some in plain.items()}


class PairKeys:
    """A dictionary whose keys are pairs of plain values; what it holds is plain, or has a codec."""

    def __init__(self, codec: Codec | None = None) -> None:
        self._codec = codec

    def pack(self, value: Any, writer: Writer, /) -> Any:
        """Return rows of both parts of the key and the value."""
        codec = self._codec
        return [
            [one, other, what if codec is None else codec.pack(what, writer)]
            for (one, other), what in value.items()
        ]

    def unpack(self, plain: Any, reader: Reader, /) -> Any:
        """Return the dictionary."""
        codec = self._codec
        return {
            (one, other): what if codec is None else codec.unpack(what, reader) for one, other, what in plain
        }


class RowLists:
    """A dictionary whose values are collections of plain tuples (`Rows`)."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def pack(self, value: Any, writer: Writer, /) -> Any:
        """Return lists of rows by key."""
        return {key: self._rows.pack(some, writer) for key, some in value.items()}

    def unpack(self, plain: Any, reader: Reader, /) -> Any:
        """Return the dictionary."""
        return {key: self._rows.unpack(some, reader) for key, some in plain.items()}


class PairSets:
    """A dictionary whose values are sets of pairs of plain values."""

    def pack(self, value: Any, _writer: Writer, /) -> Any:
        """Return lists of pairs by key."""
        return {key: sorted(some) for key, some in value.items()}

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the dictionary."""
        return {key: {(one, other) for one, other in some} for key, some in plain.items()}


class Struct:
    """A msgspec structure, or None, as its own bytes."""

    def __init__(self, kind: type) -> None:
        self._decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(kind).decode

    def pack(self, value: Any, _writer: Writer, /) -> Any:
        """Return its bytes."""
        return None if value is None else msgspec.msgpack.encode(value)

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the structure."""
        return None if plain is None else self._decode(plain)


class Pieces:
    """What came and was not read yet; of a CONNECT or AUTH nothing, since a password may be in it."""

    def pack(self, value: list[bytes], _writer: Writer, /) -> Any:
        """Return the pieces, up to where a secret may begin."""
        data = b"".join(value)
        end = secret_start(data)
        if end == len(data):
            return value
        return [data[:end]] if end else []

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the pieces."""
        return plain


class MessageProperties:
    """What a message carries besides topic and payload; None where its packet says nothing of that.

    A packet that says what goes without saying is another one: it is not as short as a plain one.
    """

    def pack(self, value: Properties, _writer: Writer, /) -> Any:
        """Return it as a list."""
        if value is PLAIN:
            return None
        *others, user = astuple(value)
        return [*others, [list(pair) for pair in user]]

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the properties."""
        if plain is None:
            return PLAIN
        payload_format, content_type, response_topic, correlation, user = plain
        pairs = tuple((name, text) for name, text in user)
        return Properties(payload_format, content_type, response_topic, correlation, pairs)


class Patterns:
    """Topic patterns, or None."""

    def pack(self, value: tuple[TopicPattern, ...] | None, _writer: Writer, /) -> Any:
        """Return their levels; one of which only the beginning is fixed stands in a list."""
        if value is None:
            return None
        return [
            [[[level.text] if isinstance(level, Prefix) else level for level in one.levels], one.rest]
            for one in value
        ]

    def unpack(self, plain: Any, _reader: Reader, /) -> Any:
        """Return the patterns."""
        if plain is None:
            return None
        return tuple(
            TopicPattern(tuple(Prefix(*one) if isinstance(one, list) else one for one in levels), rest=rest)
            for levels, rest in plain
        )


REF, REF_VALUES, NAME, NUMBERS = Ref(), RefValues(), Name(), Numbers()
TUPLE, DEQUE, SET, FROZEN = Sequence(tuple), Sequence(deque), Sequence(set), Sequence(frozenset)
