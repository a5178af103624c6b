"""What may stand at a place of a configuration: the sentence for a value that is none of the choices."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

_REFUSED = re.compile(r"Invalid enum value (.+) - at `\$\.?(.*)`")


def with_choices(sentence: str, kind: type) -> str:
    """Return what msgspec says of a bad value with the values there are, where it leaves them out."""
    found = _REFUSED.fullmatch(sentence)
    if found is None:
        return sentence
    value, path = found.groups()
    choices = list(_choices(kind, re.findall(r"\w+", path)))
    like = difflib.get_close_matches(value.strip("'\""), choices, 1)
    meant = f" (perhaps {like[0]!r} was meant)" if like else ""
    return f"{path} may be {', '.join(choices)}, not {value}{meant}" if choices else sentence


def _choices(kind: Any, path: list[str]) -> Iterator[str]:
    """The values that a type allows at a path of fields; numbers of list items may stand between."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal and not path:
        yield from map(str, inside)
    elif origin in (types.UnionType, typing.Union, list, tuple, dict, typing.Annotated):
        rest = path[1:] if origin in (list, tuple) and path and path[0].isdecimal() else path
        for one in inside:
            yield from _choices(one, rest)
    elif isinstance(kind, type) and issubclass(kind, Enum) and not path:
        yield from (str(one.value) for one in kind)
    elif isinstance(kind, type) and path:
        hints = typing.get_type_hints(kind, include_extras=True)
        if path[0] in hints:
            yield from _choices(hints[path[0]], path[1:])
