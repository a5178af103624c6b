"""The kinds of classes that a stored state is made of.

The classes themselves are declared in `state_sessions.py` and `state_network.py`.

| kind | its objects |
| --- | --- |
| `Value` | change, and may refer to one another in circles: made blank, then filled |
| `Record` | never change: made from their fields, after what they refer to |
| `Text` | are one text each, and are parsed from it again |
| `Part` | are there already, one in each place: filled where they are |

Each declares which attributes are stored and which are not because they are found again or belong to the
wiring; together these are all attributes of the class, and a test holds every class to that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from sojourn.broker.state_fields import Codec, Field, Reader, Writer
from sojourn.broker.state_shapes import REFERS, checker, shape_of
from sojourn.errors import SojournError


class StateError(SojournError):
    """Bytes that should hold a broker's state do not, or it is not this broker's."""


class _Fields:
    """Named attributes of objects of one class, read all at once."""

    def __init__(self, stored: Sequence[Field]) -> None:
        self.stored = tuple(stored)
        self.names = [field.name for field in self.stored]
        self._get: Callable[[Any], Any] = attrgetter(*self.names)
        self._special = [
            (place, field.codec) for place, field in enumerate(self.stored, 1) if field.codec is not None
        ]

    def row(self, number: int, thing: Any, writer: Writer) -> list[Any]:
        """Return a class's number and an object's fields as plain data."""
        values = self._get(thing)
        row = [number, *values] if len(self.names) > 1 else [number, values]
        for place, codec in self._special:
            row[place] = codec.pack(row[place], writer)
        return row


class Value:
    """A class of objects that are made blank and then filled."""

    def __init__(
        self,
        name: str,
        cls: type,
        blank: Callable[[], Any],
        stored: Sequence[Field],
        *,
        rebuilt: str = "",
        finish: Callable[[Any], None] | None = None,
    ) -> None:
        self.name = name
        """Its name in a document, which never changes."""
        self.cls = cls
        self.make = blank
        """Returns one as its constructor makes it; what a document lacks stays so."""
        self.finish = finish
        """Makes again what is not stored, once all objects are filled."""
        self._fields = _Fields(stored)
        self.names, self.row = self._fields.names, self._fields.row
        self.stored = self._fields.stored
        self.rebuilt = frozenset(rebuilt.split())

    def columns(self, names: Sequence[str]) -> Columns:
        """Return how to read rows with these fields."""
        return Columns(self, names)


class Record:
    """A class of objects that never change."""

    def __init__(self, name: str, cls: type, stored: Sequence[Field]) -> None:
        self.name, self.cls = name, cls
        self._fields = _Fields(stored)
        self.names, self.row = self._fields.names, self._fields.row
        self.stored = self._fields.stored
        self.rebuilt: frozenset[str] = frozenset()

    def columns(self, names: Sequence[str]) -> Columns:
        """Return how to read rows with these fields."""
        return Columns(self, names)


class Text:
    """A class of objects that are one text each."""

    def __init__(self, name: str, cls: type, parse: Callable[[str], Any]) -> None:
        self.name, self.cls, self.parse = name, cls, parse
        self.names = ["text"]
        self.stored: tuple[Field, ...] = ()
        self.rebuilt: frozenset[str] = frozenset()

    def row(self, number: int, thing: Any, _writer: Writer) -> list[Any]:
        """Return a class's number and the text."""
        return [number, str(thing)]

    def columns(self, names: Sequence[str]) -> Columns:
        """Return how to read rows with these fields."""
        return Columns(self, names)


Kind = Value | Record | Text


class Columns:
    """How rows of a document become objects of one class: its fields may be others than ours."""

    def __init__(self, kind: Kind, names: Sequence[str]) -> None:
        self.kind = kind
        stored = {field.name: field for field in kind.stored}
        self._known: list[tuple[int, str, Codec | None]] = [
            (place, name, stored[name].codec) for place, name in enumerate(names, 1) if name in stored
        ]
        blank = kind.make() if isinstance(kind, Value) else None
        shapes: list[Any]
        if isinstance(kind, Text):
            shapes = [str for _ in names]
        else:
            shapes = [shape_of(kind.name, stored[name], blank) if name in stored else Any for name in names]
        self.check = checker(tuple[int, *shapes])  # type: ignore[valid-type]  # known when it is read
        """Raises a `ValueError` for a row with values that its fields cannot have."""
        self._references = [
            (name, f"{kind.name}.{name}") for _, name, _ in self._known if f"{kind.name}.{name}" in REFERS
        ]

    def fill(self, thing: Any, row: Sequence[Any], reader: Reader) -> None:
        """Give an object the fields of a row."""
        for place, name, codec in self._known:
            plain = row[place]
            setattr(thing, name, plain if codec is None else codec.unpack(plain, reader))
        for name, field in self._references:
            reader.check(field, getattr(thing, name))

    def build(self, row: Sequence[Any], reader: Reader) -> Any:
        """Return an object that never changes."""
        kind = self.kind
        if isinstance(kind, Text):
            return kind.parse(row[1])
        made = kind.cls(
            **{
                name: row[place] if codec is None else codec.unpack(row[place], reader)
                for place, name, codec in self._known
            }
        )
        for name, field in self._references:
            reader.check(field, getattr(made, name))
        return made


class Part:
    """A class of which there is one object in each place."""

    def __init__(
        self,
        cls: type,
        stored: Sequence[Field] = (),
        *,
        parts: str = "",
        wired: str = "",
        save: Callable[[Any, Writer], dict[str, Any]] | None = None,
        restore: Callable[[Any, Mapping[str, Any], Reader], None] | None = None,
        finish: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self.cls = cls
        self.stored = tuple(stored)
        self.parts = tuple(parts.split())
        """Attributes that are parts themselves, or dictionaries of parts by name."""
        self.wired = frozenset(wired.split())
        """Attributes that constructors and drivers set, that are found again, or empty between two facts."""
        self._save, self._restore = save, restore
        self.finish = finish
        """Makes again what is not stored, once all parts are filled."""

    def dump(self, thing: Any, writer: Writer) -> dict[str, Any]:
        """Return a part's own data as plain data, by field."""
        found = {
            name: getattr(thing, name) if codec is None else codec.pack(getattr(thing, name), writer)
            for name, codec in self.stored
        }
        return found | self._save(thing, writer) if self._save is not None else found

    def load(self, thing: Any, plain: Mapping[str, Any], reader: Reader) -> None:
        """Fill a part; what the data lacks stays as it was made."""
        owner = self.cls.__name__
        for field in self.stored:
            name, codec = field
            if name in plain:
                said = checker(shape_of(owner, field, thing))(plain[name])
                value = said if codec is None else codec.unpack(said, reader)
                reader.check(f"{owner}.{name}", value)
                fill(thing, name, value)
        if self._restore is not None and plain:
            self._restore(thing, plain, reader)


def fill(thing: Any, name: str, value: Any) -> None:
    """Set an attribute; a container is filled in place, since others may hold it."""
    container = getattr(thing, name)
    if isinstance(container, dict) and isinstance(value, dict):
        container.clear()
        container.update(value)
    elif isinstance(container, (list, deque)) and isinstance(value, (list, deque)):
        container.clear()
        container.extend(value)
    elif isinstance(container, set) and isinstance(value, set):
        container.clear()
        container.update(value)
    else:
        setattr(thing, name, value)


class Table(NamedTuple):
    """All declared classes."""

    kinds: dict[type, Kind]
    parts: dict[type, Part]

    @classmethod
    def of(cls, kinds: Iterable[Kind], parts: Iterable[Part]) -> Table:
        """Return the table of these classes."""
        return cls({kind.cls: kind for kind in kinds}, {part.cls: part for part in parts})
