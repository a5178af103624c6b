"""Packets other than PUBLISH, decoded and handed to those who do what they ask.

The loop that reads (`core.py`) cuts what comes all the time, plain PUBLISH and PUBACK, out of the bytes
itself. The rest comes here, one whole packet at a time: the first of a connection, which must be CONNECT, and
later ones, of which each kind has its own place. What no client may send is refused.
"""

from __future__ import annotations

from typing import NamedTuple

from mqtt5 import AuthPacket, DisconnectPacket, SubscribePacket, UnsubscribePacket

from sojourn.mqtt.acknowledging import Acknowledger
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.handshake import Handshake
from sojourn.mqtt.mqtt3 import connect_of, is_bridge, is_connect, without_password
from sojourn.mqtt.packets import (
    CONNECT,
    MALFORMED_CONNECT,
    REST,
    SECRETIVE,
    Connect,
    PacketError,
    decode,
    protocol_error,
    read_connect,
)
from sojourn.mqtt.session import Session
from sojourn.mqtt.state import State
from sojourn.mqtt.subscribing import Subscriber

PINGRESP = b"\xd0\x00"


class First(NamedTuple):
    """The first packet of a connection, which should be CONNECT, read once."""

    connect: Connect | None
    """As one of version 5; None if it is another packet."""
    kept: bytes
    """As it is kept for a restart: in its own version, and without a secret."""
    is_old: bool = False
    is_bridge: bool = False


class Dispatch:
    """Hands the packets of all connections on."""

    def __init__(
        self,
        state: State,
        deliverer: Deliverer,
        subscriber: Subscriber,
        handshake: Handshake,
        acknowledger: Acknowledger,
    ) -> None:
        self._state, self._deliverer, self._subscriber = state, deliverer, subscriber
        self._handshake, self._acknowledger = handshake, acknowledger

    def read_first(self, frame: bytes) -> First:
        """Read the first packet of a connection; nothing has happened yet."""
        if frame[0] >> 4 != CONNECT:
            return First(None, without_password(frame) if frame[0] >> 4 in SECRETIVE else frame)
        if not is_connect(frame):
            connect = read_connect(frame)
            return First(connect, connect.without_password)
        try:
            translated = connect_of(frame, self._state.limits.old_session_expiry_s)
        except PacketError as error:
            connect = Connect(None, MALFORMED_CONNECT, error)
        else:
            connect = read_connect(translated)
        return First(connect, without_password(frame), is_old=True, is_bridge=is_bridge(frame))

    def first(self, connection: Connection, first: First, now: float) -> None:
        """Take the first packet of a connection, which must be CONNECT."""
        connect = first.connect
        if connect is None:
            self._state.counters.refused["no CONNECT first"] += 1
            self._handshake.close_silently(connection)
            return
        connection.is_old, connection.is_bridge = first.is_old, first.is_bridge
        if connect.error is not None:
            raise connect.error
        assert connect.packet is not None, "what is not wrong was read"
        self._handshake.knock(connection, connect.packet, connect.without_password, now)

    def other(self, connection: Connection, session: Session, frame: bytes, now: float) -> None:
        """Take any later packet but PUBLISH."""
        if frame[0] >> 4 == CONNECT:
            raise protocol_error("A connection has one CONNECT.")
        if frame == b"\xc0\x00":
            self._deliverer.write(connection, PINGRESP)
            return
        if frame[0] >> 4 == REST:
            self._subscriber.greeter.go_on(connection, session, frame, now)
            return
        packet = decode(frame)
        if self._acknowledger.took(connection, session, packet):
            return
        if isinstance(packet, SubscribePacket):
            self._subscriber.subscribe(connection, session, packet, now)
        elif isinstance(packet, UnsubscribePacket):
            self._subscriber.unsubscribe(connection, session, packet)
        elif isinstance(packet, DisconnectPacket):
            self._handshake.disconnected(connection, session, packet, now)
        elif isinstance(packet, AuthPacket):
            raise protocol_error("There is no enhanced authentication here.")
        else:
            raise protocol_error("That packet is for a broker to send.")
