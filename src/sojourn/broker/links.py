"""A broker's links: which brokers there are, the channels to those next to it, and how messages go out.

A broker's number is its place in the settings. Messages with a destination go hop by hop along the overlay
that all brokers compute alike; questions, retained events and reports are flooded over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sojourn.broker.carried import Carried
from sojourn.broker.channel import OVERFULL, Channel
from sojourn.broker.messages import Part, Reach, Run
from sojourn.broker.names import LiveInterests, Names
from sojourn.broker.passing_on import destination_of
from sojourn.broker.settings import Settings
from sojourn.broker.tree import overlay_of
from sojourn.broker.wire import Wire
from sojourn.mqtt.message import Message
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import NOWHERE

VOLATILE_QUEUE_BYTES = 1 << 20
"""A link with more than that waiting is spared what is of no use later."""
GUESS_QUEUE_BYTES = 16 << 20
"""As much may wait for a neighbour that has not said what it wants; what comes then is counted as lost."""
MASKS_MAX = 4_096
"""Sets of neighbours of which it is remembered which channels lead to them."""
PART_BYTES = 1 << 20
"""A longer message goes in pieces of this length, so that others are not kept waiting behind it for long."""
PARTS_MAX = 4_096
"""Pieces of one message; the session of a client with all that is on its way to it may be large."""


class Links:
    """The brokers around one, seen from it."""

    def __init__(self, settings: Settings, life: str) -> None:
        self.name = settings.name
        self.names_of = list(settings.brokers)
        self.numbers = {broker: number for number, broker in enumerate(self.names_of)}
        self.number = self.numbers[self.name]
        self.overlay = overlay_of(settings)
        self.left = {self.numbers[name] for name in settings.left}
        """Brokers that are there no more."""
        self.life, self.network = life, settings.network
        near = self.overlay.neighbours[self.number]
        self.interests = LiveInterests(covering=settings.routing.covering)
        self.names = Names(self.interests)
        self.wire = Wire(self.names, len(self.names_of))
        self.channels = {self.names_of[peer]: self._channel_to(peer) for peer in near}
        ever = overlay_of(settings, with_left=True).neighbours[self.number] if self.left else near
        self.neighbours = Neighbours(ever)
        for peer in ever:
            if peer not in near:  # who was a neighbour keeps its bit, so that the others keep theirs
                self.neighbours.remove(peer, for_good=True)
        self.bits = {self.names_of[peer]: self.neighbours.bit(peer) for peer in near}
        """By neighbour: the bit that stands for it."""
        self._towards: dict[int, tuple[Channel, ...]] = {}
        """By mask of neighbours: the channels to them."""
        self.down_since: dict[str, float] = {}
        """By neighbour that there is no connection to: since when."""
        self.far_down: dict[tuple[int, int], float] = {}
        """Links between other brokers that are not in use, by who said so and the other: since when."""
        self._pieces: dict[str, list[bytes]] = {}
        """By neighbour: what came of a message that takes several frames."""
        self.congested: list[Message] = []
        """Events that were put into the queue of a link that is full, for whoever asks publishers to wait."""

    def _channel_to(self, peer: int) -> Channel:
        return Channel(self.name, self.names_of[peer], self.life, network=self.network)

    def regroup(self, settings: Settings) -> tuple[list[int], list[int]]:
        """Go by brokers that joined or left; return which neighbours that adds and which it takes away."""
        before = {self.numbers[peer] for peer in self.channels}
        self.names_of[:] = settings.brokers
        self.numbers.update((broker, number) for number, broker in enumerate(self.names_of))
        self.left.update(self.numbers[name] for name in settings.left)
        self.overlay.become(overlay_of(settings))
        self.wire.grow(len(self.names_of))
        self.far_down = {link: s for link, s in self.far_down.items() if not self.left.intersection(link)}
        near = set(self.overlay.neighbours[self.number])
        return sorted(near - before), sorted(before - near)

    def link_to(self, peer: int) -> None:
        """Be linked to a broker that has become a neighbour, and has its bit."""
        name = self.names_of[peer]
        self.channels[name] = self._channel_to(peer)
        self.bits[name] = self.neighbours.bit(peer)
        self._towards.clear()

    def unlink(self, peer: int) -> Channel:
        """Be linked to a broker no more; return the channel that led to it."""
        name = self.names_of[peer]
        del self.bits[name]
        self.down_since.pop(name, None)
        self.forget_pieces(name)
        self._towards.clear()
        return self.channels.pop(name)

    def changed(self, peer: str, now: float, *, up: bool) -> None:
        """A link is in use, or no longer."""
        if up:
            self.down_since.pop(peer, None)
        else:
            self.down_since.setdefault(peer, now)

    def restarted(self, now: float) -> None:
        """No link is in use, and none counts as out of use for the time in which this broker was not there.

        It has not tried to reach anybody meanwhile; and its clock may have been set ahead.
        """
        self.down_since = dict.fromkeys(self.channels, now)
        self.far_down = dict.fromkeys(self.far_down, now)

    def heard_of(self, reach: Reach, now: float) -> None:
        """Another broker says that one of its links is in use, or no longer."""
        if reach.up:
            self.far_down.pop((reach.origin, reach.peer), None)
        elif reach.origin != self.number:
            self.far_down.setdefault((reach.origin, reach.peer), now)

    def is_behind(self, neighbour: int, broker: int) -> bool:
        """Whether the way to a broker leads over a neighbour, or it is that neighbour."""
        return broker != self.number and self.overlay.next_hop(self.number, broker) == neighbour

    def out_of_reach(self) -> dict[int, float]:
        """The brokers on the far side of links that are not in use, and since when each is."""
        if not self.down_since and not self.far_down:
            return {}
        found: dict[int, float] = {}
        passed = {self.number}
        ways: list[tuple[int, float | None]] = [(self.number, None)]
        for broker, since_s in ways:
            for near in self.overlay.neighbours[broker]:
                if near in passed:
                    continue
                passed.add(near)
                down_s = since_s if since_s is not None else self._down_since(broker, near)
                if down_s is not None:
                    found[near] = down_s
                ways.append((near, down_s))
        return found

    def _down_since(self, one: int, other: int) -> float | None:
        """Since when a link is not in use, as either of its ends says; this broker knows its own best."""
        if one == self.number:
            return self.down_since.get(self.names_of[other])
        said = (self.far_down.get((one, other)), self.far_down.get((other, one)))
        return min((since_s for since_s in said if since_s is not None), default=None)

    def send(self, mask: int, message: Any, now: float) -> None:
        """Send a message to every neighbour of a mask."""
        body = self.wire.encode(message, now)
        event = message.message if isinstance(message, Carried) else None
        for channel in self._towards.get(mask) or self._channels_of(mask):
            if event is not None and not event.qos:
                channel.put(body, volatile=True)
            elif len(body) <= PART_BYTES:
                channel.put(body)
            else:
                self.put(channel, body, now)
            if event is not None and channel.queued >= channel.queue_bytes:
                self.congested.append(event)

    def send_run(self, mask: int, run: Sequence[Carried], now: float) -> None:
        """Send events that came together (`runs.py`) to every neighbour of a mask."""
        if len(run) == 1:
            self.send(mask, run[0], now)
            return
        body, event = self.wire.encode(Run(tuple(run)), now), run[0].message
        for channel in self._towards.get(mask) or self._channels_of(mask):
            channel.put(body, volatile=not event.qos)
            if channel.queued >= channel.queue_bytes:
                self.congested.append(event)

    def _channels_of(self, mask: int) -> tuple[Channel, ...]:
        """The channels to the neighbours of a mask."""
        found = tuple(self.channels[self.names_of[peer]] for peer in self.neighbours.named(mask))
        if len(self._towards) < MASKS_MAX:
            self._towards[mask] = found
        return found

    def is_open_for(self, peer: str) -> bool:
        """Whether what a neighbour sends has room on its way on: no other link is overfull."""
        for name, channel in self.channels.items():
            if channel.queued >= OVERFULL * channel.queue_bytes and name != peer:
                return False
        return True

    def send_guess(self, mask: int, message: Any, now: float) -> int:
        """Send an event to neighbours that may want it; return how many had no room left for that.

        Nobody is made to wait for a neighbour that perhaps wants nothing, and perhaps never comes.
        """
        body = self.wire.encode(message, now)
        volatile = not message.message.qos
        refused = 0
        for channel in self._channels_of(mask):
            if channel.queued >= GUESS_QUEUE_BYTES:
                refused += not volatile
            elif not volatile:
                self.put(channel, body, now)
            elif channel.open:
                channel.put(body, volatile=True)
        return refused

    def forward(self, message: Any, now: float) -> None:
        """Send a message one hop towards its destination."""
        hop = self.overlay.next_hop(self.number, message.destination)
        if hop == NOWHERE:
            return  # that broker has left
        self.put(self.channels[self.names_of[hop]], self.wire.encode(message, now), now)

    def pass_on(self, body: bytes) -> bool:
        """Send a frame that is for a broker further on, as it is; return whether it is for one.

        Whoever it is for reads it. It goes out in the order in which it came, as all frames do: it is a fence
        (`mobility/transfers.py`) for what this broker sent before.
        """
        destination = destination_of(body)
        if destination is None or destination == self.number or destination >= len(self.names_of):
            return False
        hop = self.overlay.next_hop(self.number, destination)
        if hop != NOWHERE:  # else that broker has left
            self.channels[self.names_of[hop]].put(body)
        return True

    def flood(self, message: Any, sender: int | None, now: float, event: Message | None = None) -> None:
        """Send a message to every neighbour but the one it came from; it may be about one event."""
        body = self.wire.encode(message, now)
        for peer in self.neighbours.brokers:
            if peer != sender:
                channel = self.channels[self.names_of[peer]]
                self.put(channel, body, now)
                if event is not None and channel.queued >= channel.queue_bytes:
                    self.congested.append(event)

    def put(self, channel: Channel, body: bytes, now: float) -> None:
        """Queue the bytes of a message, in several frames if they are many."""
        if len(body) <= PART_BYTES:
            channel.put(body)
            return
        for start in range(0, len(body), PART_BYTES):
            end = start + PART_BYTES
            part = Part(start // PART_BYTES, end >= len(body), body[start:end])
            channel.put(self.wire.encode(part, now))

    def whole(self, peer: str, part: Part) -> bytes | None:
        """Put a piece of a message to those before it; return the message once all of it is there.

        A message whose first pieces came before a link lost its memory is not whole any more, and is let go.
        """
        pieces = self._pieces.setdefault(peer, [])
        if part.place != len(pieces) or len(pieces) >= PARTS_MAX:
            self._pieces.pop(peer)
            return None
        pieces.append(part.piece)
        if not part.is_last:
            return None
        return b"".join(self._pieces.pop(peer))

    def would_be_whole(self, peer: str, place: int, piece: bytes) -> bytes | None:
        """Return the message that a last piece would complete; None if others are missing."""
        pieces = self._pieces.get(peer, [])
        return b"".join([*pieces, piece]) if place == len(pieces) else None

    def forget_pieces(self, peer: str) -> None:
        """Let go of a message that was not whole yet."""
        self._pieces.pop(peer, None)

    def flood_volatile(self, message: Any, sender: int | None, now: float) -> list[int]:
        """Send what is of no use later to the neighbours that can be told now; return which these are."""
        body = self.wire.encode(message, now)
        told = []
        for peer in self.neighbours.brokers:
            channel = self.channels[self.names_of[peer]]
            if peer != sender and channel.open and channel.queued < VOLATILE_QUEUE_BYTES:
                channel.put(body, volatile=True)
                told.append(peer)
        return told

    def forward_volatile(self, message: Any, now: float) -> None:
        """Send what is of no use later one hop towards its destination, if that can be told now."""
        hop = self.overlay.next_hop(self.number, message.destination)
        if hop != NOWHERE:
            self.send_volatile(hop, message, now)

    def send_volatile(self, peer: int, message: Any, now: float) -> bool:
        """Send what is of no use later to one neighbour, if it can be told now."""
        channel = self.channels[self.names_of[peer]]
        if not channel.open:
            return False
        return channel.put(self.wire.encode(message, now), volatile=True)
