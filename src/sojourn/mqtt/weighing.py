"""Packets that are more work than their bytes tell are found before anything in them is decoded.

The smallest user property has five bytes, the smallest topic filter two: within the size that a packet may
have there is room for hundreds of thousands, and decoding them takes a second. So whatever a packet may have
many of is counted first, in the bytes as they came, and counting ends at the limit. It comes before rights
and, for a CONNECT, before anybody looks at a password. Who sends more is told (0x97) and disconnected.

What is malformed is left to the codec, which stops at the same place. Packets that are told again from a
journal are not weighed: they were, or came before there was a limit.
"""

from __future__ import annotations

from mqtt5 import DisconnectReasonCode as Reason

from sojourn.mqtt.limits import Limits
from sojourn.mqtt.packets import (
    AUTH,
    CONNECT,
    DISCONNECT,
    FIXED_BYTES,
    PAIR,
    PROPERTIES,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBSCRIBE,
    UNSUBSCRIBE,
    VARIABLE,
    PacketError,
    too_many_filters,
)

SMALLEST_BYTES = 2
"""Of what a packet may have many of. A shorter packet than so many of these as it may have is not weighed."""
_REPEATED = (0x0B, 0x26)
"""Properties that a packet may have many of: subscription identifiers and user properties."""
_WILL_FLAG = 0x04
_BEFORE_PROPERTIES = {
    SUBSCRIBE: 2, UNSUBSCRIBE: 2, PUBACK: 3, PUBREC: 3, PUBREL: 3, PUBCOMP: 3, DISCONNECT: 1, AUTH: 1,
}  # fmt: skip
"""By kind of packet: bytes of its body before its properties."""


def weigh(data: bytes, at: int, body: int, stop: int, limits: Limits) -> None:
    """Refuse a packet, between two places, with more properties or topic filters than one may have."""
    kind = data[at] >> 4
    try:
        if kind == PUBLISH:
            topic_end = body + 2 + int.from_bytes(data[body : body + 2])
            _past_properties(data, topic_end + (2 if data[at] & 0x06 else 0), stop, limits)
        elif kind == CONNECT:
            _weigh_connect(data, body, stop, limits)
        elif kind in _BEFORE_PROPERTIES:
            start = body + _BEFORE_PROPERTIES[kind]
            if start >= stop:
                return
            end = _past_properties(data, start, stop, limits)
            if kind in (SUBSCRIBE, UNSUBSCRIBE):
                _count_filters(data, end, stop, kind == SUBSCRIBE, limits.topic_filters_max)
    except IndexError:
        return  # it is shorter than its fields


def _weigh_connect(data: bytes, body: int, stop: int, limits: Limits) -> None:
    name_end = body + 2 + int.from_bytes(data[body : body + 2])
    if data[name_end] != 5:
        return  # earlier versions have no properties
    at = _past_properties(data, name_end + 4, stop, limits)
    if data[name_end + 1] & _WILL_FLAG:
        _past_properties(data, at + 2 + (data[at] << 8 | data[at + 1]), stop, limits)


def _past_properties(data: bytes, at: int, stop: int, limits: Limits) -> int:
    """Return the place after some properties; raise a `PacketError` if there are too many."""
    length, at = _variable(data, at)
    end, most = min(at + length, stop), limits.user_properties_max
    if length <= SMALLEST_BYTES * most:
        return end
    repeated = others = 0
    while at < end:
        identifier, at = _variable(data, at)
        form = PROPERTIES.get(identifier)
        if form is None:
            return end  # there is no such property
        if identifier in _REPEATED:
            repeated += 1
        else:
            others += 1
        if repeated > most or others > len(PROPERTIES):
            text = f"A packet has at most {most} user properties here."
            raise PacketError(Reason.QUOTA_EXCEEDED, text)
        if form in FIXED_BYTES:
            at += FIXED_BYTES[form]
        elif form == VARIABLE:
            _, at = _variable(data, at)
        else:
            at += 2 + (data[at] << 8 | data[at + 1])
            if form == PAIR:
                at += 2 + (data[at] << 8 | data[at + 1])
    return end


def _count_filters(data: bytes, at: int, stop: int, has_options: bool, most: int) -> None:  # noqa: FBT001 - quicker by place
    if stop - at <= SMALLEST_BYTES * most:
        return
    count, further = 0, 3 if has_options else 2
    while at < stop:
        count += 1
        if count > most:
            raise too_many_filters(most)
        at += further + (data[at] << 8 | data[at + 1])


def _variable(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the place after it."""
    value = shift = 0
    while shift <= 21:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, at
