"""What stands before the body of everything that goes over a link, and where a frame stands in its stream."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from sojourn.broker.hello import HELLO_BYTES_MAX, ChannelError, Hello, read_hello

HEAD: Final = struct.Struct(">IBQI")
"""Length of the body, kind, number, rank."""
HELLO, FRAME, ACKNOWLEDGE = 1, 2, 3
"""The kinds."""


class Position(NamedTuple):
    """How far a side has got: the last numbered frame, and how many volatile ones after it."""

    number: int = 0
    rank: int = 0


def peek_hello(data: bytes) -> Hello | None:
    """The hello that a connection begins with, once all of it is there: who is called learns who calls."""
    if len(data) < HEAD.size:
        return None
    length, kind, _, _ = HEAD.unpack_from(data)
    if kind != HELLO or length > HELLO_BYTES_MAX:
        raise ChannelError("A connection to the port for brokers did not begin with a hello.")
    if len(data) < HEAD.size + length:
        return None
    return read_hello(data[HEAD.size : HEAD.size + length], "A caller")
