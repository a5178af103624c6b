"""Looks through a broker at work for anything that the table of stored classes does not speak of."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from typing import Any

import msgspec

from sojourn.broker.state_codec import table_for
from sojourn.broker.state_fields import Field, Ref, RefKeys, RefLists, Refs, RefsByRef, RefValues
from sojourn.broker.state_kinds import Text

REFERRING = (Ref, Refs, RefValues, RefLists, RefKeys, RefsByRef)
PLAIN = (bool, int, float, str, bytes, type(None))
CONTAINERS = (dict, list, tuple, deque, set, frozenset, Counter, OrderedDict)


def attributes(thing: object) -> set[str]:
    """The names of all attributes that an object can have, or has."""
    if isinstance(thing, msgspec.Struct):
        return {*thing.__struct_fields__}
    names = {*getattr(thing, "__dict__", ()), *getattr(thing, "_fields", ())}
    for kind in type(thing).__mro__:
        names.update(getattr(kind, "__slots__", ()))
    return names


def undeclared(core: Any, network: Any) -> list[str]:
    """Every class or attribute in a broker's state that is declared neither stored nor made again."""
    table = table_for(network)
    problems: set[str] = set()
    waiting: list[Any] = [core] if network is None else [core, network]
    seen: set[int] = set()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or type(thing) in PLAIN:
            continue
        seen.add(id(thing))
        name = type(thing).__name__
        if type(thing) in CONTAINERS:
            waiting += [*thing, *thing.values()] if isinstance(thing, dict) else [*thing]
        elif type(thing) in table.parts:
            part = table.parts[type(thing)]
            names = {field.name for field in part.stored} | {*part.parts} | part.wired
            problems |= {f"{name}.{one}" for one in attributes(thing) ^ names}
            waiting += [getattr(thing, one) for one in part.parts]
            waiting += [wired for one in part.wired if type(wired := getattr(thing, one)) in table.parts]
            problems |= {f"{name}.{one} is not plain" for one in _not_plain(thing, part.stored)}
            waiting += _stored(thing, part.stored)
        elif type(thing) in table.kinds:
            kind = table.kinds[type(thing)]
            if not isinstance(kind, Text):
                problems |= {f"{name}.{one}" for one in attributes(thing) ^ ({*kind.names} | kind.rebuilt)}
                problems |= {f"{name}.{one} is not plain" for one in _not_plain(thing, kind.stored)}
                waiting += _stored(thing, kind.stored)
        else:
            problems.add(name)
    return sorted(problems)


def _stored(thing: Any, stored: tuple[Field, ...]) -> list[Any]:
    """What is stored of an object as it is, or referred to; the rest is its codec's business."""
    return [
        getattr(thing, field.name)
        for field in stored
        if field.codec is None or isinstance(field.codec, REFERRING)
    ]


def _not_plain(thing: Any, stored: tuple[Field, ...]) -> list[str]:
    """The fields stored as they are that would come back as something else: as a list instead of a set."""
    return [
        field.name for field in stored if field.codec is None and not _is_plain(getattr(thing, field.name))
    ]


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(key) in PLAIN and _is_plain(one) for key, one in value.items())
    if type(value) is list:
        return all(_is_plain(one) for one in value)
    return type(value) in PLAIN
