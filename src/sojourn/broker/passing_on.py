"""Frames about clients that move, at brokers that they only pass: which these are, and whom they are for.

All of them are for one broker, and the others on their way have nothing to do with them. So those look at the
first three bytes of a frame and put it into the next channel as it is.
"""

from __future__ import annotations

from sojourn.broker.wire import MESSAGES
from sojourn.mobility.finding_messages import Find, Found
from sojourn.routing.messages import Handoff

PASSED_ON = frozenset(bytes([cls.kind]) for cls in MESSAGES if issubclass(cls, (Handoff, Find, Found)))
"""The second bytes of such frames; the third is the number of the broker that they are for."""
PLACE_MAX = 0x7F
"""A higher number takes more than one byte; what is for such a broker is read by all on its way."""


def destination_of(body: bytes) -> int | None:
    """Return which broker a frame about a client that moves is for; None if that takes reading it."""
    place = body[2] if len(body) > 2 and body[1:2] in PASSED_ON else PLACE_MAX + 1
    return place if place <= PLACE_MAX else None
