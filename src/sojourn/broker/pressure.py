"""Back-pressure: what waits when a link to a neighbour is full, so that no queue grows without bound.

- A client that publishes while some link is full is not read any further until there is room: it feels it,
  and nobody else does.
- A frame of a neighbour is not taken in while the link to another neighbour is full; it is not acknowledged
  either, so that the neighbour's window closes and it waits in its turn. Frames that were held when their
  connection broke are forgotten, since they come again.

In an acyclic network what comes from one neighbour only ever waits for others, so nobody waits in a circle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Protocol

from sojourn.broker.channel import Channel, Position

Frame = tuple[Position, bytes]


class Held(Protocol):
    """A client that can be kept waiting."""

    def hold(self) -> None:
        """Read no further."""

    def release(self) -> None:
        """Read again."""


class Pressure:
    """Which frames and clients of one broker wait."""

    def __init__(self, channels: Mapping[str, Channel]) -> None:
        self._channels = channels
        self._held: dict[str, deque[Frame]] = {}
        self.clients: dict[int, Held] = {}
        """By number of their connection: clients that are not read."""

    @property
    def is_on(self) -> bool:
        """Whether some link is full."""
        return any(channel.full for channel in self._channels.values())

    @property
    def waits(self) -> bool:
        """Whether anything is held back."""
        return bool(self._held or self.clients)

    def _is_open_for(self, peer: str) -> bool:
        return not any(channel.full for name, channel in self._channels.items() if name != peer)

    def hold_frame(self, peer: str, frame: Frame) -> bool:
        """Hold a frame back if it must wait; say whether it must."""
        if peer in self._held or not self._is_open_for(peer):
            self._held.setdefault(peer, deque()).append(frame)
            return True
        return False

    def next_frame(self) -> tuple[str, Frame] | None:
        """A frame that need not wait any longer, or None."""
        for peer, frames in self._held.items():
            if self._is_open_for(peer):
                frame = frames.popleft()
                if not frames:
                    del self._held[peer]
                return peer, frame
        return None

    def forget(self, peer: str) -> None:
        """A connection broke: what it brought and was not taken in comes again."""
        self._held.pop(peer, None)

    def hold_client(self, number: int, client: Held) -> None:
        """Read no further from a client."""
        if number not in self.clients:
            self.clients[number] = client
            client.hold()

    def release_clients(self) -> None:
        """Read all clients again."""
        for client in self.clients.values():
            client.release()
        self.clients.clear()
