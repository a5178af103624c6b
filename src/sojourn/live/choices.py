"""What may stand at a place of a configuration: sentences for wrong values and for unknown keys."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec

_REFUSED = re.compile(r"Invalid enum value (.+) - at `\$\.?(.*)`")
_OTHER_KIND = re.compile(r"Expected `(.+)`, got `(.+)` - at `\$\.?(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.+?)`(?: - at `\$\.?(.*)`)?")

KINDS = {
    "int": "a whole number without quotes",
    "float": "a number without quotes",
    "bool": "true or false",
    "str": "text in quotes",
    "array": "a list",
    "object": "a table",
}


def with_choices(sentence: str, kind: type) -> str:
    """Return what msgspec says of a bad value or key with those that there are, where it leaves them out."""
    if found := _REFUSED.fullmatch(sentence):
        value, path = found.groups()
        choices = [one for place in _places(kind, _words(path)) for one in _values(place)]
        said = f"{path} may be {', '.join(choices)}, not {value}"
    elif found := _UNKNOWN.fullmatch(sentence):
        value, path = found[1], found[2] or ""
        choices = [one for place in _places(kind, _words(path)) for one in _keys(place)]
        said = f"{path or 'the top level'} has no key {value!r}"
        if not difflib.get_close_matches(value, choices, 1):
            said += f", only {', '.join(choices)}"
    elif found := _OTHER_KIND.fullmatch(sentence):
        wanted, came, path = found.groups()
        return f"{path} is {_in_words(wanted)}, not {_in_words(came)}"
    else:
        return sentence
    like = difflib.get_close_matches(value.strip("'\""), choices, 1)
    meant = f" (perhaps {like[0]!r} was meant)" if like else ""
    return f"{said}{meant}" if choices else sentence


def _in_words(kinds: str) -> str:
    """What msgspec calls values, as people who write TOML do."""
    found = [KINDS.get(one, one) for one in kinds.split(" | ") if one != "null"]
    return " or ".join(found)


def _words(path: str) -> list[str]:
    return re.findall(r"\w+", path)


def _places(kind: Any, path: list[str]) -> Iterator[Any]:
    """The types at a path of fields; numbers of list items may stand between."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union, list, tuple, dict, typing.Annotated):
        rest = path[1:] if origin in (list, tuple) and path and path[0].isdecimal() else path
        for one in inside:
            yield from _places(one, rest)
    elif not path:
        yield kind
    elif isinstance(kind, type):
        hints = typing.get_type_hints(kind, include_extras=True)
        if path[0] in hints:
            yield from _places(hints[path[0]], path[1:])


def _values(kind: Any) -> Iterator[str]:
    """The values that a type allows, if they can be listed."""
    if typing.get_origin(kind) is typing.Literal:
        yield from map(str, typing.get_args(kind))
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield from (str(one.value) for one in kind)


def _keys(kind: Any) -> Iterator[str]:
    """The keys of a table of this type."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from (field.encode_name for field in msgspec.structs.fields(kind))
