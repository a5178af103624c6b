"""The reference of the configuration, from the classes that read it."""

from __future__ import annotations

import types
import typing
from typing import Any

import msgspec
from words import attribute_words, prose, table

from sojourn.live.config import Config, GuestConfig, UserConfig
from sojourn.mqtt.ranges import range_of

LINKS = "Between which brokers there is a connection: pairs of names. Loops are fine."
HEAD = """# Configuration

One TOML file describes a network, and every broker of it reads the same one: `sojourn serve FILE --broker
NAME`. `sojourn init NAME FILE` writes a commented example. Paths begin at the folder of the file; a port
of 0 is any that is free. A key that is not listed here is refused. Users, permissions, tokens,
certificates and the secret are read anew by `sojourn reload`; everything else takes a restart.

This page is made from the classes that read the file.
"""


def page() -> str:
    """The page."""
    parts = [HEAD, "## Top of the file\n", table(("key", "what it is"), [("`links`", LINKS)])]
    for place, kind in tables(Config):
        parts.append(f"## `{place}`\n")
        parts.append(prose(kind.__doc__ or ""))
        parts.append(table(("key", "kind", "default", "unit", "what it is"), rows(kind)))
    return "\n".join(parts)


def tables(kind: type, above: str = "") -> typing.Iterator[tuple[str, type]]:
    """Every table of the file, as it is written there, with the class that reads it."""
    for field in msgspec.structs.fields(kind):
        inner, many = _struct(field.type)
        if inner is not None:
            name = f"{above}{field.name}"
            yield (f"[[{name}]]" if many else f"[{name}]"), inner
            yield from tables(inner, f"{name}.")


def rows(kind: type) -> list[tuple[str, ...]]:
    """A row for each key of a table."""
    return [
        (f"`{field.name}`", kind_of(field.type), _default(field), unit(field.name), about(kind, field.name))
        for field in msgspec.structs.fields(kind)
        if _struct(field.type)[0] is None
    ]


def about(kind: type, name: str) -> str:
    """What a key is for; a guest's keys mean what a user's do."""
    found = attribute_words(kind).get(name, "")
    return found or (attribute_words(UserConfig).get(name, "") if kind is GuestConfig else "")


def unit(name: str) -> str:
    """What a number counts, by the name of its key."""
    if name.endswith("_per_s_max"):
        return "per second"
    if name.endswith("_s"):
        return "seconds"
    return "bytes" if "bytes" in name.split("_") else ""


def kind_of(kind: Any) -> str:
    """The kind of a value, in the words of TOML."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return ", ".join(f'`"{one}"`' for one in inside)
    if origin is typing.Annotated:
        return f"{kind_of(inside[0])}, {range_of(kind)}"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(kind_of(one) for one in inside if one is not type(None))
    if origin is list:
        return f"list of {kind_of(inside[0])}s"
    if origin is tuple:
        return "pair"
    if origin is dict:
        return "table"
    return {str: "string", bool: "true or false", int: "whole number", float: "number"}[kind]


def _default(field: Any) -> str:
    if field.required:
        return "must be given"
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{_toml(field.default_factory())}`"
    return "" if field.default is None else f"`{_toml(field.default)}`"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return f'"{value}"' if isinstance(value, str) else str(value or "{}" if value == {} else value)


def _struct(kind: Any) -> tuple[type | None, bool]:
    """The class of a table, and whether there may be many of it."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind, False
    many = typing.get_origin(kind) is list
    if many or typing.get_origin(kind) in (types.UnionType, typing.Union):
        for one in typing.get_args(kind):
            if isinstance(one, type) and issubclass(one, msgspec.Struct):
                return one, many
    return None, False
