"""The half of a client that reads: events in, each once, and their acknowledgements out.

An event is acknowledged when the application is done with it, so that the broker keeps it until then: in a
loop over the client when the next one is asked for, with `next` at once, with `take` when its caller says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial

import mqtt5

from sojourn.live.client.answers import PACKET_IDS
from sojourn.live.client.inbox import Inbox, Pending, Receipt, Received
from sojourn.live.client.link import ClientError, Connection, Link
from sojourn.live.client.packets import UserProperties


class Reading:
    """What every client does with events that come."""

    def __init__(self, inbox: int) -> None:
        self.connections: list[Connection] = []
        """The connection log, oldest first."""
        self._moving = asyncio.Lock()
        """Held by whoever connects or moves: two at once would take the session from one another."""
        self._inbox = Inbox(min(inbox, PACKET_IDS))
        self._half_received: dict[int, UserProperties] = {}
        """By packet id of a QoS 2 event that was acknowledged and not released yet: what it is known by."""
        self._failure: Exception | None = None
        """Why there will be no connection any more, if so."""

    async def __aiter__(self) -> AsyncIterator[Received]:
        """The events, each once, until the client is closed or gives up.

        >>> async with Client("mqtt://127.0.0.1:1883") as client:
        ...     await client.subscribe(topic="news/#")
        ...     await client.publish("news/today", "hello")
        ...     async for event in client:
        ...         print(event.topic, event.payload)
        ...         break
        news/today b'hello'
        """
        while (taken := await self._take()) is not None:
            yield taken.event
            # Acknowledged after the application is done with it: the broker keeps it until then.
            self._settle(taken)
        if self._failure is not None:
            raise self._failure

    async def next(self, timeout_s: float | None = None) -> Received:
        """The next event; `TimeoutError` if none comes in time."""
        event, settle = await self.take(timeout_s)
        settle()
        return event

    async def take(self, timeout_s: float | None = None) -> tuple[Received, Callable[[], None]]:
        """The next event, and what to call when it is safe: until then the broker keeps it."""
        async with asyncio.timeout(timeout_s):
            taken = await self._take()
        if taken is None:
            raise self._failure or ClientError("The client is closed.")
        return taken.event, partial(self._settle, taken)

    def seen(self, marks: Mapping[str, int]) -> None:
        """Take events up to these, by source, for seen: a restarted application goes on from there."""
        self._inbox.seen(marks)

    @property
    def repeated(self) -> int:
        """Events that came again and were not passed on."""
        return self._inbox.repeated

    def _check_begun(self) -> None:
        """Say what is missing where there was no connection yet and none is being made."""
        if not self.connections and not self._moving.locked():
            raise ClientError("The client is not connected; `await client.connect()` comes first.")

    # Packets -------------------------------------------------------------------------------------------

    def _on_publish(self, link: Link, packet: mqtt5.PublishPacket) -> None:
        receipt = Receipt(link, packet.qos, packet.packet_id)
        if packet.qos == mqtt5.QoS.EXACTLY_ONCE and packet.packet_id in self._half_received:
            if self._half_received[packet.packet_id] == packet.user_properties:
                self._acknowledge(receipt, packet.user_properties)
                return
            del self._half_received[packet.packet_id]  # a broker that was told the marks gave the id anew
        if not self._inbox.put(packet, receipt):
            self._acknowledge(receipt, packet.user_properties)

    async def _take(self) -> Pending | None:
        if not len(self._inbox):
            self._check_begun()
        taken = await self._inbox.take()
        if taken is not None and all(one.packet_id is None for one in taken.receipts):
            self._settle(taken)  # no broker keeps it
        return taken

    def _settle(self, taken: Pending) -> None:
        for receipt in self._inbox.settle(taken):
            self._acknowledge(receipt, list(taken.event.properties))

    def _acknowledge(self, receipt: Receipt, properties: UserProperties) -> None:
        # On another connection the id means nothing: the event comes again there, and is known by its mark.
        link, qos, packet_id = receipt
        if link.alive and packet_id is not None:
            if qos == mqtt5.QoS.AT_LEAST_ONCE:
                link.send(mqtt5.PubAckPacket(packet_id))
            elif qos == mqtt5.QoS.EXACTLY_ONCE:
                self._half_received[packet_id] = properties
                link.send(mqtt5.PubRecPacket(packet_id))

    def _on_release(self, link: Link, packet: mqtt5.PubRelPacket) -> None:
        self._half_received.pop(packet.packet_id, None)
        link.send(mqtt5.PubCompPacket(packet.packet_id))
