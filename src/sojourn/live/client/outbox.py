"""What a client has published and its broker has not settled yet; it outlives connections.

Events leave in the order of their numbers: a broker that has taken a number takes no smaller one, which is
how it knows an event that is sent again. So whoever publishes takes turns (`turn`), from being numbered until
the event is under way, and waits in that turn for a connection and for room.
"""

from __future__ import annotations

import asyncio
import time

import mqtt5

from sojourn.live.client.answers import PACKET_IDS, PacketIds
from sojourn.live.client.link import Link
from sojourn.live.client.packets import again, with_id


class Outbox:
    """Events on their way to a broker, as many as it allows."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.unsettled: dict[int, mqtt5.PublishPacket] = {}
        """By packet id, oldest first."""
        self.released: set[int] = set()
        """Of those, the ones that the broker has received and that wait for its PUBCOMP."""
        self._ids = PacketIds()
        self._limit = 1
        self._settled = asyncio.Event()
        self._last_number = 0

    def number(self) -> int:
        """The number of the next event: it grows, also from one life of the application to the next."""
        self._last_number = max(self._last_number + 1, time.time_ns() // 1000)
        return self._last_number

    def packet_id(self) -> int:
        """A packet id that is free."""
        return self._ids.take(self.unsettled)

    async def enter(self, packet: mqtt5.PublishPacket) -> tuple[mqtt5.PublishPacket, int]:
        """Wait for room, and give an event its packet id."""
        while len(self.unsettled) >= self._limit:
            self._settled.clear()
            await self._settled.wait()
        packet_id = self.packet_id()
        self.unsettled[packet_id] = packet = with_id(packet, packet_id)
        return packet, packet_id

    def settle(self, packet_id: int) -> None:
        """Forget an event that was answered, or that nobody waits for any more."""
        self.unsettled.pop(packet_id, None)
        self.released.discard(packet_id)
        self._settled.set()

    def resume(self, link: Link, limit: int, *, known: bool) -> None:
        """Send again what was not settled; `known`: the broker at the other end knows the session."""
        self._limit = max(1, min(limit, PACKET_IDS))
        self._settled.set()
        if not known:
            self.released.clear()  # the new broker does not know them: they are published again
        for packet_id, packet in self.unsettled.items():
            if packet_id in self.released:
                link.send(mqtt5.PubRelPacket(packet_id))
            else:
                link.send(again(packet))
