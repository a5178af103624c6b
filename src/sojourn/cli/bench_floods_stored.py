"""Floods of `sojourn bench floods` by what a broker keeps: much is stored, and then concerned all at once.

Each begins with harmless work that leaves a broker with a lot for one client: stored events, unanswered ones,
filters, retained messages. Then a single packet, or the end of a connection, concerns all of that.
"""

from __future__ import annotations

import time

from mqtt5 import (
    ConnAckPacket,
    DisconnectPacket,
    PubAckPacket,
    PublishPacket,
    QoS,
    SubAckPacket,
    UnsubAckPacket,
    UnsubscribePacket,
)

from sojourn.cli.bench_floods_attacks import Crowd, Peer, crowd_of, hello, subscribe
from sojourn.mqtt.conventions import ADVERTISE

STORED, LEFT, FILTERS, RETAINED = 40_000, 10_000, 190, 50_000
AT_ONCE = 500
FILTER_CHARS, ADVERTISEMENT_CHARS, ADVERTISEMENTS = 180, 4_070, 4
CHANGES_S = 5.0
SURE = QoS.AT_LEAST_ONCE
GROUP = "$share/group/stored/#"
KEEPS = {"clean_start": False, "session_expiry_interval": 600, "receive_max": 65_535}


def _publish(crowd: Crowd, port: int, count: int, topic: str, *, retain: bool = False) -> int:
    """Publish events, some at a time; return how many were acknowledged."""
    writer = crowd.join(port, hello("writer"))
    crowd.wait(1, ConnAckPacket)
    done = 0
    while done < count and writer in crowd.peers and time.monotonic() < crowd.until:
        packets = [
            PublishPacket(
                topic.format(number),
                b"x" * 16,
                qos=QoS.AT_LEAST_ONCE,
                packet_id=1 + number % 60_000,
                retain=retain,
            ).write()
            for number in range(done, min(count, done + AT_ONCE))
        ]
        crowd.say(writer, b"".join(packets))
        done += crowd.wait(len(packets), PubAckPacket)
    crowd.leave(writer)
    return done


def _subscriber(crowd: Crowd, port: int, name: str, wanted: str) -> Peer:
    peer = crowd.join(port, hello(name, **KEEPS) + subscribe(1, [wanted], qos=SURE))
    crowd.wait(1, SubAckPacket)
    return peer


def _store(crowd: Crowd, port: int) -> int:
    """Have events stored for a client that is away."""
    reader = _subscriber(crowd, port, "reader", "stored/#")
    crowd.leave(reader)
    return _publish(crowd, port, STORED, "stored/events")


def _come(crowd: Crowd, port: int) -> str:
    """Come back to what is stored, and read for a while."""
    crowd.join(port, hello("reader", **KEEPS))
    until, size = time.monotonic() + CHANGES_S, 0
    while time.monotonic() < until:
        size += crowd.swallow()
    return f"{size:,} bytes came"


def comes_back(ports: list[int]) -> str:
    """A client comes back to many stored events."""
    with crowd_of() as crowd:
        return f"{_store(crowd, ports[0]):,} stored, {_come(crowd, ports[0])}"


def moves(ports: list[int]) -> str:
    """The same at another broker."""
    with crowd_of() as crowd:
        return f"{_store(crowd, ports[0]):,} stored, {_come(crowd, ports[1])}"


def member_ends(ports: list[int]) -> str:
    """A member of a shared subscription leaves with many unanswered events; another one is there."""
    with crowd_of() as crowd:
        first = _subscriber(crowd, ports[0], "first", GROUP)
        count = _publish(crowd, ports[0], LEFT, "stored/events")
        _subscriber(crowd, ports[0], "second", GROUP)
        crowd.say(first, UnsubscribePacket(2, [GROUP]).write())
        answered = crowd.wait(1, UnsubAckPacket)
        return f"{count:,} left, {answered} UNSUBACK"


def _condition(number: int, chars: int) -> str:
    text, at = f"a{number} > {number}", 0
    while len(text) < chars - 16:
        text += f" OR b{at} = {number * 1_000 + at}"
        at += 1
    return text


def session_ends(ports: list[int]) -> str:
    """A session ends that has many filters over attributes."""
    with crowd_of() as crowd:
        packets = [
            subscribe(number, [f"t/{number}/#"], _condition(number, FILTER_CHARS))
            for number in range(1, FILTERS + 1)
        ]
        one = crowd.join(ports[0], hello("filters") + b"".join(packets))
        count = crowd.wait(FILTERS, SubAckPacket)
        crowd.say(one, DisconnectPacket().write())
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            list(crowd.turn())
        return f"{count} filters"


def advertisements(ports: list[int]) -> str:
    """A CONNECT has the longest advertisements that there may be."""
    with crowd_of() as crowd:
        said = [
            (ADVERTISE, _condition(number, ADVERTISEMENT_CHARS)) for number in range(1, ADVERTISEMENTS + 1)
        ]
        crowd.join(ports[0], hello("advertiser", user_properties=said))
        return f"{crowd.wait(1, ConnAckPacket)} CONNACK"


def retained(ports: list[int]) -> str:
    """A subscription asks for as many retained messages as one address may have."""
    with crowd_of() as crowd:
        count = _publish(crowd, ports[0], RETAINED, "kept/{}", retain=True)
        crowd.join(ports[0], hello("asks") + subscribe(1, ["kept/#"], qos=SURE))
        until, size = time.monotonic() + CHANGES_S, 0
        while time.monotonic() < until:
            size += crowd.swallow()
        return f"{count:,} retained, {size:,} bytes came"


def changes(ports: list[int]) -> str:
    """A client subscribes to something and no longer, again and again."""
    with crowd_of() as crowd:
        one = crowd.join(ports[0], hello("changes"))
        crowd.wait(1, ConnAckPacket)
        until, granted, refused = time.monotonic() + CHANGES_S, 0, 0
        pair = subscribe(1, ["c/+/d"], "value > 1") + UnsubscribePacket(2, ["c/+/d"]).write()
        while time.monotonic() < until and crowd.peers:
            if not one.to_send:
                crowd.say(one, pair * 50)
            for _, packet in crowd.turn():
                if isinstance(packet, SubAckPacket):
                    is_refused = int(packet.reason_codes[0]) >= 0x80
                    refused, granted = refused + is_refused, granted + (not is_refused)
        return f"{granted:,} granted, {refused:,} refused"
