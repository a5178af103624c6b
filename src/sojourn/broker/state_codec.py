"""The whole state of a broker as bytes and back, whatever release reads them.

    data = dump_state(core, network)
    load_state(data, core, network)          # both freshly made, with the settings it was kept with

Which classes there are, and what of each is stored, is declared in `state_sessions.py` and
`state_network.py`; nothing else is written or made, so that bytes from anywhere can be read: the worst they
do is to be refused. The rules:

- *Values* (sessions, messages, holdings, …) are rows of one flat list and refer to each other by place in it.
  No depth of data is a depth of calls, and what was shared is shared again.
- *Parts* (cores, tables, channels: one of each, wired together) are made by their constructors as ever; their
  data is filled in where it belongs, into the containers that others may hold already.
- What can be found again is not stored: indexes, caches, encoded forms; filters are stored as their text.
  What is held back from a neighbour, and for the sake of what, is history and stored.
- A row says by name which fields it has. A reader passes over a field that it does not know, and leaves one
  that is missing as the constructor made it. So a later release may add fields without further ado; for
  anything else `VERSION` grows and `MIGRATIONS` says how to turn a document of the version before into one of
  the next.

A broker that comes back from its state does to the byte what it would have done otherwise. Nothing must be
under way when a state is taken: what a fact led to was carried out (outputs that wait to be written aside).
"""

from __future__ import annotations

import contextlib
import gc
import struct
from collections.abc import Callable, Generator, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from sojourn.broker import state_sessions
from sojourn.broker.records import LATER
from sojourn.broker.state_checks import check_sense
from sojourn.broker.state_kinds import Part, StateError, Table, Text, Value
from sojourn.broker.state_shapes import REFERS, check_kind
from sojourn.errors import SojournError
from sojourn.mqtt.core import Core

if TYPE_CHECKING:
    from sojourn.broker.network import Network

FORMAT = "sojourn-state"
VERSION = 1
"""Grows when a reader of the version before would misunderstand a document."""

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""By version: what makes a document of that version one of the next."""

PART_ROWS = 256
"""How many objects are made before others have their turn: some milliseconds."""

_MISREAD = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
_ARRAY = struct.Struct(">BI")
"""What a MessagePack array of up to 2**32 - 1 elements begins with."""
_encoder = msgspec.msgpack.Encoder()
_encode = _encoder.encode
_decode = msgspec.msgpack.Decoder().decode


def dump_state(core: Core, network: Network | None) -> bytes:
    """Return the state of a broker as bytes."""
    _check_calm(core)
    table = table_for(network)
    writer = _Writer(table)
    parts: dict[str, Any] = {}
    for path, part, thing in walk_parts(table, _roots(core, network)):
        parts[path] = part.dump(thing, writer)
    return writer.document({"parts": parts})


def load_state(data: bytes, core: Core, network: Network | None) -> None:
    """Fill a broker that was freshly made with the state that bytes hold; after a refusal it is of no use."""
    with _without_garbage():
        for _ in _loading(data, core, network):
            pass


def load_in_parts(data: bytes, core: Core, network: Network | None) -> Generator[None, None, None]:
    """Do the same, and stop after every few objects, so that others have their turn in between."""
    steps = _loading(data, core, network)
    while True:
        with _without_garbage():
            try:
                next(steps)
            except StopIteration:
                return
        yield


def _loading(data: bytes, core: Core, network: Network | None) -> Iterator[None]:
    document = read_document(data)
    with _refusing("a state"):
        table = table_for(network)
        reader = _Reader(table, document)
        yield from reader.make()
        _load_parts(document, table, reader, core, network)
        check_sense(core, network)


def _load_parts(
    document: Mapping[str, Any], table: Table, reader: _Reader, core: Core, network: Network | None
) -> None:
    stored = dict(document["parts"])
    waiting = list(walk_parts(table, _roots(core, network)))
    for path, part, thing in waiting:
        plain = stored.pop(path, {})
        if not isinstance(plain, dict):
            raise StateError(f"what a state has of {path} is no part.")
        part.load(thing, plain, reader)
    for _, part, thing in waiting:
        part.finish(thing)
    if stored:
        raise StateError(f"a state is of parts that are not there: {', '.join(sorted(stored))}.")


@contextlib.contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Whatever wrong data leads to is a refusal."""
    try:
        yield
    except StateError:
        raise
    except (SojournError, *_MISREAD) as error:
        raise StateError(f"{what} does not read ({type(error).__name__}: {error}).") from error


@contextlib.contextmanager
def _without_garbage() -> Iterator[None]:
    """Spare the collector the search through objects that are just being made: that would take most time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_document(data: bytes) -> dict[str, Any]:
    """Return a document as plain data, of the present version."""
    try:
        document = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise StateError(f"a state does not read ({error}).") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise StateError("what should be a broker's state is something else.")
    version = document.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise StateError(f"a state has version {version}, {LATER} {VERSION}: run the release that wrote it.")
    found: dict[str, Any] = document
    while version < VERSION:
        if version not in MIGRATIONS:
            raise StateError(f"a state has version {version}, which no release has written.")
        found = MIGRATIONS[version](found)
        version += 1
    return found


def rows_of(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of the class and the fields of every row, as plain data."""
    classes = document["classes"]
    for number, *values in document["rows"]:
        name, names = classes[number]
        yield name, dict(zip(names, values, strict=True))


def walk_parts(table: Table, roots: Mapping[str, object]) -> Iterator[tuple[str, Part, Any]]:
    """Yield every part with its path, each before those inside it."""
    waiting: list[tuple[str, Any]] = list(roots.items())[::-1]
    while waiting:
        path, thing = waiting.pop()
        part = table.parts.get(type(thing))
        if part is None:
            raise StateError(
                f"{type(thing).__qualname__} at {path} is not declared: add it to state_network.py."
            )
        yield path, part, thing
        below: list[tuple[str, Any]] = []
        for name in part.parts:
            found = getattr(thing, name)
            if isinstance(found, dict):
                below += [(f"{path}.{name}.{key}", one) for key, one in found.items()]
            else:
                below.append((f"{path}.{name}", found))
        waiting += below[::-1]


class _Writer:
    """Numbers objects as they are referred to, and writes each once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._things: list[Any] = []
        self._places: dict[int, int] = {}
        self._texts: dict[tuple[type, str], int] = {}
        """By class and text: where the first of several equal filters is; which of them are one object is
        nobody's memory."""

    def ref(self, thing: Any, /) -> int | None:
        """Return an object's place in the list of rows."""
        if thing is None:
            return None
        place = self._places.get(id(thing))
        if place is None:
            place = len(self._things)
            if isinstance(self._table.kinds.get(type(thing)), Text):
                place = self._texts.setdefault((type(thing), str(thing)), place)
            self._places[id(thing)] = place
            if place == len(self._things):
                self._things.append(thing)
        return place

    def document(self, content: dict[str, Any]) -> bytes:
        """Return all that was referred to, and what refers to it, as bytes."""
        kinds = self._table.kinds
        return _encode(
            {
                "format": FORMAT,
                "version": VERSION,
                **content,
                "classes": [[kind.name, kind.names] for kind in kinds.values()],
                "rows": msgspec.Raw(self._rows()),
            }
        )

    def _rows(self) -> bytes:
        """Return all rows as one MessagePack array, encoded one by one: they are never all there."""
        kinds, encode_into = self._table.kinds, _encoder.encode_into
        numbers = {kind: number for number, kind in enumerate(kinds)}
        rows, row = bytearray(_ARRAY.size), bytearray()
        for thing in self._things:  # grows as rows refer to further objects
            kind = kinds.get(type(thing))
            if kind is None:
                raise StateError(
                    f"{type(thing).__qualname__} is referred to and not declared: add it to state_network.py."
                )
            encode_into(kind.row(numbers[type(thing)], thing, self), row)
            rows += row
        _ARRAY.pack_into(rows, 0, 0xDD, len(self._things))
        return bytes(rows)


class _Reader:
    """Makes the objects of a document."""

    def __init__(self, table: Table, document: Mapping[str, Any]) -> None:
        self._texts: dict[str, str] = {}
        by_name = {kind.name: kind for kind in table.kinds.values()}
        classes = document["classes"]
        kinds = []
        for name, names in classes:
            kind = by_name.get(name)
            if kind is None:
                raise StateError(f"a state has objects of a class {name!r} that is not known.")
            kinds.append(kind.columns(names))
        self._classes = {name: kind.cls for name, kind in by_name.items()}
        self._rows: list[list[Any]] = document["rows"]
        self._kinds = kinds
        self._things: list[Any] = [None] * len(self._rows)
        self._building: set[int] = set()

    def name(self, text: str, /) -> str:
        """Return the one object that stands for all equal texts."""
        return self._texts.setdefault(text, text)

    def check(self, field: str, value: Any, /) -> None:
        """Refuse a value of a field that refers to objects of another class than it should."""
        kind = REFERS.get(field)
        if kind is not None:
            check_kind(self._classes[kind], value)

    def thing(self, place: int | None, /) -> Any:
        """Return the object at a place."""
        if place is None:
            return None
        if type(place) is not int or not 0 <= place < len(self._things):
            raise StateError(f"a state refers to place {place!r} of {len(self._things)}.")
        found = self._things[place]
        return found if found is not None else self._build(place)

    def make(self) -> Iterator[None]:
        """Make all objects, then fill those that may refer to one another in a circle; stop now and then."""
        things, kinds = self._things, self._kinds
        for part in self._parts():
            for place, row in part:
                kind = kinds[row[0]]
                kind.check(row)
                if isinstance(kind.kind, Value):
                    things[place] = kind.kind.make()
            yield
        for part in self._parts():
            for place, row in part:
                if things[place] is None:
                    self._build(place)
                elif isinstance(kinds[row[0]].kind, Value):
                    kinds[row[0]].fill(things[place], row, self)
            yield
        for part in self._parts():
            for place, row in part:
                value = kinds[row[0]].kind
                if isinstance(value, Value) and value.finish is not None:
                    value.finish(things[place])
            yield

    def _parts(self) -> Iterator[Iterator[tuple[int, list[Any]]]]:
        """All rows with their places, a few at a time."""
        for first in range(0, len(self._rows), PART_ROWS):
            yield zip(count(first), self._rows[first : first + PART_ROWS], strict=False)

    def _build(self, place: int) -> Any:
        """Make an object that never changes, after what it refers to; that is never a circle."""
        if place in self._building:
            raise StateError("a state has objects that contain themselves.")
        self._building.add(place)
        row = self._rows[place]
        found = self._things[place] = self._kinds[row[0]].build(row, self)
        self._building.discard(place)
        return found


def table_for(network: Network | None) -> Table:
    """Return the declared classes of a broker with or without neighbours."""
    if network is None:
        return state_sessions.TABLE
    # Imported here: a single broker does without the kernels that routing brings along.
    from sojourn.broker import state_network  # noqa: PLC0415 - see above

    return state_network.TABLE


def _roots(core: Core, network: Network | None) -> dict[str, object]:
    return {"core": core} if network is None else {"core": core, "network": network}


def _check_calm(core: Core) -> None:
    """A state is taken between two facts, when all that the last one led to was carried out."""
    effects = core.effects
    under_way = (effects.knocks, effects.unread, effects.overflowing, effects.published, effects.settled)
    assert not any((*under_way, effects.changes, core.handshake.wills)), "effects were not carried out"
