"""Who takes how much of the room for what waits for clients and is on its way to them.

There are limits for a client, for all clients of an address that are connected, and for all clients. They
are looked at when something finds its way blocked already, or when all clients together hold more than one
address may: the fast way of a message only adds to the counts.

What an address takes is never stored, since it follows from the connections and their sessions. A client that
leaves takes its part along, and brings it where it comes back. While it is away its session has the limits of
a client, and those of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.mqtt.connection import Connection
    from sojourn.mqtt.session import Session
    from sojourn.mqtt.state import State

FULL = "queue full"
ADDRESS_FULL = "queue full of the address"


class AddressUse:
    """What the connected clients of one address take together."""

    __slots__ = ("bytes", "clients", "subscriptions")

    def __init__(self) -> None:
        self.clients = 0
        self.subscriptions = 0
        self.bytes = 0
        """Of what waits for them, and of what they were sent and have not acknowledged."""


class AddressUses:
    """The same of all addresses that have clients here."""

    __slots__ = ("by_address",)

    def __init__(self) -> None:
        self.by_address: dict[str, AddressUse] = {}

    def came(self, connection: Connection, session: Session) -> None:
        """Count what the session of a client has that is connected now."""
        use = connection.address_use = self.by_address.setdefault(connection.peer, AddressUse())
        use.clients += 1
        use.subscriptions += len(session.subscriptions)
        use.bytes += session.queued_bytes + session.inflight_bytes

    def left(self, connection: Connection, session: Session) -> None:
        """Count it no longer."""
        use = connection.address_use
        use.clients -= 1
        use.subscriptions -= len(session.subscriptions)
        use.bytes -= session.queued_bytes + session.inflight_bytes
        if not use.clients:
            assert not use.subscriptions, "what clients take goes with them"
            assert not use.bytes, "what clients take goes with them"
            del self.by_address[connection.peer]

    def count(self, connections: Iterable[Connection]) -> None:
        """Count everything anew."""
        self.by_address.clear()
        for connection in connections:
            if connection.session is not None:
                self.came(connection, connection.session)


def change_queued(shared: State, session: Session, size: int) -> None:
    """Count that so many bytes more wait for a client, or fewer."""
    session.queued_bytes += size
    shared.queued_bytes += size
    if session.connection is not None:
        session.connection.address_use.bytes += size


def change_inflight(shared: State, session: Session, size: int) -> None:
    """Count that so many bytes more are on their way to a client, or fewer."""
    session.inflight_bytes += size
    shared.inflight_bytes += size
    if session.connection is not None:
        session.connection.address_use.bytes += size


def why_full(shared: State, session: Session, size: int) -> str | None:
    """Why there is no room for so many bytes beside what waits and what is on its way; None if there is."""
    limits, connection = shared.limits, session.connection
    if (
        len(session.queue) >= limits.queue_messages_max
        or session.queued_bytes + session.inflight_bytes + size > limits.queue_bytes_max
        or shared.queued_bytes + shared.inflight_bytes + size > limits.queue_bytes_max_all
    ):
        return FULL
    if connection is not None and connection.address_use.bytes + size > limits.queue_bytes_address_max:
        return ADDRESS_FULL
    return None
