"""Packets other than PUBLISH, decoded and handed to those who do what they ask.

The loop that reads (`core.py`) cuts what comes all the time, plain PUBLISH and PUBACK, out of the bytes
itself. The rest comes here, one whole packet at a time: the first of a connection, which must be CONNECT, and
later ones, of which each kind has its own place. What no client may send is refused.
"""

from __future__ import annotations

from mqtt5 import AuthPacket, ConnectPacket, DisconnectPacket, SubscribePacket, UnsubscribePacket

from sojourn.mqtt.acknowledging import Acknowledger
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.handshake import Handshake
from sojourn.mqtt.mqtt3 import connect_of, is_bridge, is_connect, without_password
from sojourn.mqtt.packets import CONNECT, decode, protocol_error
from sojourn.mqtt.session import Session
from sojourn.mqtt.state import State
from sojourn.mqtt.subscribing import Subscriber

PINGRESP = b"\xd0\x00"


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

    def first(self, connection: Connection, frame: bytes, now: float) -> None:
        """Take the first packet of a connection, which must be CONNECT."""
        if frame[0] >> 4 != CONNECT:
            self._state.counters.refused["no CONNECT first"] += 1
            self._handshake.close_silently(connection)
            return
        if is_connect(frame):
            connection.is_old, connection.is_bridge = True, is_bridge(frame)
            frame = connect_of(frame, self._state.limits.old_session_expiry_s)
        packet = decode(frame)
        assert isinstance(packet, ConnectPacket)
        self._handshake.knock(connection, packet, without_password(frame), now)

    def other(self, connection: Connection, session: Session, frame: bytes, now: float) -> None:
        """Take any later packet but PUBLISH."""
        if frame[0] >> 4 == CONNECT:
            raise protocol_error("A connection has one CONNECT.")
        if frame == b"\xc0\x00":
            self._deliverer.write(connection, PINGRESP)
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
