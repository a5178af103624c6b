"""How many events the frames of a link carry, so that what a neighbour forgot is told in events.

Both ends of a link count the same frames alike, from their bytes. Most frames between brokers carry none:
they are about interests and clients that move.
"""

from __future__ import annotations

import dataclasses

import msgspec

from sojourn.broker.messages import PART, RUN, SPREAD, Part
from sojourn.routing.messages import Forward, Kind

EVENT = bytes([Kind.PUBLISH])
"""The second byte of a frame with one event."""

RUN_OF_EVENTS = bytes([RUN])
"""The second byte of a frame with several events; the third says how many."""

_SPREAD, _FORWARD, _PART = bytes([SPREAD]), bytes([Kind.FORWARD]), bytes([PART])
_EVENTS_AT = 1 + [one.name for one in dataclasses.fields(Forward)].index("publications")
_IS_LAST_AT = 1 + [one.name for one in dataclasses.fields(Part)].index("is_last")


def numbers_in(data: bytes, at: int = 0) -> int:
    """Return how many numbers of a channel a frame takes whose body begins there; a run takes several."""
    return max(1, data[at + 2]) if len(data) > at + 2 and data[at + 1] == RUN else 1


def events_in(body: bytes) -> int:
    """Return how many events a frame carries; of a message in pieces its last one carries one.

    What that message is, its pieces do not say: as a rule it is a large event.
    """
    kind = body[1:2]
    if kind in (EVENT, _SPREAD):
        return 1
    if kind == RUN_OF_EVENTS:
        return body[2] if len(body) > 2 else 0
    if kind not in (_FORWARD, _PART):
        return 0
    try:
        fields = msgspec.msgpack.decode(body)
        return len(fields[_EVENTS_AT]) if kind == _FORWARD else int(fields[_IS_LAST_AT])
    except (msgspec.MsgspecError, UnicodeDecodeError, LookupError, TypeError, ValueError):
        return 0  # whoever takes it in skips what does not read
