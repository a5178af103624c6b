"""Where what clients send has to pass: who waits its turn, and who sends more than its share.

A slice is an amount of work (`costs.py`): many cheap packets, or a dear one. While nobody waits and little
was read in this turn, a client is read as its bytes come. Otherwise it lines up (`input.py`).
"""

from __future__ import annotations

from mqtt5 import DisconnectReasonCode as Reason

from sojourn.mqtt.connection import Connection
from sojourn.mqtt.connection import State as Phase
from sojourn.mqtt.packets import PacketError
from sojourn.mqtt.rates import spend
from sojourn.mqtt.state import Due, State

UNLIMITED = 1 << 60
TOO_MANY = "There are too many incomplete packets at present; try again later."


class Gate:
    """Lets clients' packets in, each client's in its turn."""

    __slots__ = ("_shared", "slices", "unsliced")

    def __init__(self, shared: State) -> None:
        self._shared = shared
        self.slices = False
        """Whether clients are read in slices, in turn (`Core.begin_turn`)."""
        self.unsliced = UNLIMITED
        """How much may still be read in this turn as it comes."""

    def line_up(self, connection: Connection) -> None:
        """Let a connection wait its turn; one that has not been let in waits for that first."""
        if not connection.waits and connection.state is not Phase.KNOCKING:
            self._shared.input.line_up(connection)
            self._shared.effects.waiting.append(connection.number)

    def wait_for_more(self, connection: Connection, data: bytes, needed: int, now: float) -> None:
        """Keep the beginning of a packet if there is room; its client has so long to send the rest."""
        shared = self._shared
        shared.input.put_by(connection, data, now)
        connection.needed = needed
        if connection.state is Phase.OPEN and not connection.reminded:
            connection.reminded = True
            shared.remind(now + shared.limits.packet_timeout_s, Due.PACKET, connection.number)
        self.check_room(connection)

    def check_room(self, connection: Connection) -> None:
        """Limit what clients may send that cannot be read yet: one before it is admitted, and all of them."""
        limits, waiting = self._shared.limits, self._shared.input
        if connection.state is Phase.KNOCKING and connection.have > limits.packet_bytes_max:
            raise PacketError(Reason.QUOTA_EXCEEDED, TOO_MANY)
        if waiting.bytes > limits.input_bytes_max_all:
            largest = waiting.largest(None, self._shared.connections)
        elif waiting.by_address.get(connection.party, 0) > limits.input_bytes_address_max:
            largest = waiting.largest(connection.party, self._shared.connections)
        else:
            return
        if largest is None or largest.have <= connection.have:
            raise PacketError(Reason.QUOTA_EXCEEDED, TOO_MANY)
        self._shared.effects.dismissals[largest.number] = int(Reason.QUOTA_EXCEEDED), TOO_MANY

    def check_rate(self, connection: Connection, published: int, now: float) -> None:
        """Limit how often a client publishes."""
        per_s = self._shared.limits.publishes_per_s_max
        if published and not spend(connection, published, per_s, now):
            raise PacketError(
                Reason.MESSAGE_RATE_TOO_HIGH, f"A client publishes at most {per_s} events a second here."
            )
