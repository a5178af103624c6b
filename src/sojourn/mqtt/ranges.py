"""Which numbers may stand in a configuration: each key says so beside itself, and here they are compared.

    connections_max: Annotated[int, Range(1)] = 20_000

A number is refused where a file is read, and nowhere else: a store holds what an earlier build let pass.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import msgspec

ENOUGH = 10**15
"""What is more than that of anything fits nowhere."""
BYTES_2_MAX, BYTES_4_MAX = 65_535, 4_294_967_295
"""The largest numbers that packets of MQTT have room for."""


class Range(NamedTuple):
    """The numbers that a key may have."""

    least: int
    most: float = ENOUGH
    without_least: bool = False
    """Whether the least is not one of them."""

    def holds(self, value: float) -> bool:
        """Whether it has a number; NaN is in none."""
        return self.least <= value <= self.most and not (self.without_least and value == self.least)

    def __str__(self) -> str:
        first = f"more than {self.least}" if self.without_least else f"at least {self.least}"
        if self.most in (ENOUGH, math.inf):
            return first
        if self.without_least:
            return f"{first} and at most {self.most}"
        return f"from {self.least} to {self.most}"


ZeroOrMore = Annotated[int, Range(0)]
OneOrMore = Annotated[int, Range(1)]
PositiveSeconds = Annotated[float, Range(0, math.inf, without_least=True)]
Share = Annotated[float, Range(0, 1, without_least=True)]


class Number(NamedTuple):
    """A number of a configuration and where it stands."""

    table: str
    key: str
    value: float
    range: Range


def range_of(kind: Any) -> Range | None:
    """Return the range that the type of a field states, if it states one."""
    if typing.get_origin(kind) is Annotated:
        return next((one for one in kind.__metadata__ if isinstance(one, Range)), None)
    return None


def numbers(thing: msgspec.Struct, table: str = "") -> Iterator[Number]:
    """All numbers of a configuration that have a range, table by table."""
    for field in msgspec.structs.fields(thing):
        value, here = getattr(thing, field.name), f"{table}.{field.name}" if table else field.name
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, msgspec.Struct):
                yield from numbers(one, here)
        allowed = range_of(field.type)
        if allowed is not None:
            yield Number(table, field.name, value, allowed)


def why_out_of_range(thing: msgspec.Struct) -> str:
    """Say which number of a configuration is none that its key may have; nothing if there is none."""
    for table, key, value, allowed in numbers(thing):
        if not allowed.holds(value):
            unit = " seconds" if key.endswith("_s") else ""
            wanted = f"at most {ENOUGH}" if value > ENOUGH and allowed.most == ENOUGH else str(allowed)
            said = f"{value:g}" if isinstance(value, float) else str(value)
            return f"{key} of [{table}] is {wanted}{unit}, not {said}."
    return ""
