"""What a client is waiting to hear from its broker, by kind of question and packet id."""

from __future__ import annotations

import asyncio
from collections.abc import Container
from typing import Any

import mqtt5

from sojourn.live.client.link import ClientError

PACKET_IDS = 65_535


class Answers:
    """Questions under way."""

    def __init__(self) -> None:
        self._futures: dict[tuple[str, int], asyncio.Future[Any]] = {}

    def expect(self, kind: str, packet_id: int = 0) -> asyncio.Future[Any]:
        """Begin to wait for an answer."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._futures[kind, packet_id] = future
        return future

    def hear(self, packet: Any) -> None:
        """Take a packet that answers something; any other is let go."""
        match packet:
            case mqtt5.PubAckPacket() | mqtt5.PubRecPacket():
                self.give("publish", packet.packet_id, (int(packet.reason_code), packet.reason_str))
            case mqtt5.PubCompPacket():
                self.give("publish", packet.packet_id, (0, None))
            case mqtt5.SubAckPacket():
                self.give("suback", packet.packet_id, packet)
            case mqtt5.UnsubAckPacket():
                self.give("unsuback", packet.packet_id, packet)
            case mqtt5.ConnAckPacket():
                self.give("connect", 0, packet)
            case _:
                pass

    def give(self, kind: str, packet_id: int, answer: Any) -> None:
        """It has come; one that nobody waits for is let go."""
        future = self._futures.pop((kind, packet_id), None)
        if future is not None and not future.done():
            future.set_result(answer)

    def drop(self, kind: str, packet_id: int = 0) -> None:
        """Wait no more."""
        self._futures.pop((kind, packet_id), None)

    def refuse(self, kind: str, error: Exception) -> None:
        """There will be no answer to the one question of this kind."""
        future = self._futures.get((kind, 0))
        if future is not None and not future.done():
            future.set_exception(error)

    def fail(self, error: Exception) -> None:
        """There will be no answer to anything."""
        for future in self._futures.values():
            if not future.done():
                future.set_exception(error)
                future.exception()  # nobody may be waiting any more
        self._futures.clear()


class PacketIds:
    """Packet ids in turn, none that is still under way."""

    def __init__(self) -> None:
        self._last = 0

    def take(self, under_way: Container[int]) -> int:
        """The next one that is free."""
        for _ in range(PACKET_IDS):
            self._last = self._last % PACKET_IDS + 1
            if self._last not in under_way:
                return self._last
        raise ClientError(f"All {PACKET_IDS} packet ids are under way; wait for some publishes to return.")
