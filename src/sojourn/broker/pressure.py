"""Back-pressure: who waits when a link to a neighbour is full, so that no queue grows without bound.

A link that is down, or slower than what is sent over it, fills its queue. The rules:

- The publisher of an event that meets a full link is not read any further: by its broker, if that is this
  one, or else that broker is asked (`Slow`). Publishers whose events go elsewhere notice nothing.
- A publisher of this broker is read again when no link is full; one that another broker spoke of after
  `SLOW_S`, unless it is spoken of again. Nothing of this has to be taken back, so nothing can be left over.
- A broker whose store is full takes in no frames: it could not promise to have them.
- Publishers may be many and messages late, so a queue may be over its limit for a while. At twice the limit
  the frames of other neighbours wait too; they are not acknowledged, and their senders wait in their turn. In
  an acyclic network what comes from one neighbour only ever waits for others, so nobody waits in a circle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sojourn.broker.frame_heads import Position
from sojourn.broker.links import Links
from sojourn.broker.messages import PART, Slow
from sojourn.broker.preparing import PreparedFrames
from sojourn.broker.settings import AtOnce
from sojourn.broker.wire import kind_of
from sojourn.mobility.finding_messages import FIND
from sojourn.mqtt.core import Core
from sojourn.mqtt.message import Message

SLOW_S = 1.0
"""How long a publisher is not read that another broker spoke of, and how often it is spoken of at most."""
SPOKEN_OF_MAX = 10_000
"""Publishers of other brokers that it is remembered of when they were last spoken of."""

Frame = tuple[Position, bytes]


class Pressure:
    """Which frames and clients of one broker wait."""

    def __init__(self, core: Core, links: Links, at_once: AtOnce) -> None:
        self._core, self._links = core, links
        self.frames: dict[str, deque[Frame]] = {}
        """By neighbour: its frames that wait."""
        self.held: dict[int, float] = {}
        """By connection of a client that is not read: until when at least; 0 while a link here is full."""
        self.prepared = PreparedFrames(links, at_once.read)
        """Frames that bring much to read wait until it has been read."""
        self._spoken_of: dict[tuple[int, str], float] = {}
        """By broker and publisher: when it was last asked to wait."""
        self.holds: list[int] = []
        """Connections to be read no further."""
        self.releases: list[int] = []
        """Connections to be read again."""

    def restarted(self) -> None:
        """No connection is left: nobody is held back."""
        for waiting in (self.frames, self.held, self.holds, self.releases):
            waiting.clear()

    # Frames --------------------------------------------------------------------------------------------

    def _is_open_for(self, peer: str) -> bool:
        return self._core.state.refusing is None and self._links.is_open_for(peer)

    def hold_frame(self, peer: str, frame: Frame, *, is_turn: bool = True) -> bool:
        """Hold a frame back if it must wait, for room or because it is not its turn; say whether it must."""
        is_dear = self.prepared.is_dear(frame[1])
        if not is_turn or is_dear or peer in self.frames or not self._is_open_for(peer):
            self.frames.setdefault(peer, deque()).append(frame)
            return True
        return False

    def put_first(self, peer: str, frames: Sequence[Frame]) -> None:
        """Let frames wait their turn before all others of a neighbour."""
        if frames:
            self.frames.setdefault(peer, deque()).extendleft(reversed(frames))

    def next_frame(self) -> tuple[str, Frame] | None:
        """A frame that need not wait any longer, of each neighbour in turn; None also if one is only read."""
        for peer, frames in self.frames.items():
            if self._is_open_for(peer):
                is_ready = self.prepared.is_ready(peer, *frames[0])
                frame = frames.popleft() if is_ready else None
                del self.frames[peer]
                if frames:
                    self.frames[peer] = frames
                return None if frame is None else (peer, frame)
        return None

    @property
    def has_frames(self) -> bool:
        """Whether there is a frame that need not wait any longer."""
        return any(self._is_open_for(peer) for peer in self.frames)

    def may_speak_of(self, client_id: str) -> bool:
        """Whether a frame that waits because the store is full may ask for the session of a client.

        Frames are searched and not read: what is read changes the books of names, and is to be noted then.
        """
        if self._core.state.refusing is None:
            return False
        name = client_id.encode()
        for peer, frames in self.frames.items():
            if any(kind_of(body) in (FIND, PART) and name in body for _, body in frames):
                return True
            if sum(len(body) for _, body in frames) >= self._links.channels[peer].window_bytes:
                return True  # the neighbour sends no more, and may have more to say
        return False

    def forget(self, peer: str) -> None:
        """A connection broke: what it brought and was not taken in comes again."""
        self.frames.pop(peer, None)
        self.prepared.forget(peer)

    # Clients -------------------------------------------------------------------------------------------

    def settle(self, now: float) -> None:
        """Let publishers wait whose events met a full link, and let others go on."""
        congested, self._links.congested = self._links.congested, []
        for message in congested:
            self._slow_down(message, now)
        if self.held:
            self._let_go(now)

    def on_slow(self, slow: Slow, client_id: str, now: float) -> None:
        """Another broker asks to read no more of a publisher for now."""
        if slow.destination != self._links.number:
            self._links.forward_volatile(slow, now)
            return
        self._hold(client_id, now + SLOW_S)

    def lost(self, connection: int) -> None:
        """A client's connection is gone."""
        self.held.pop(connection, None)
        for waiting in (self.holds, self.releases):
            if connection in waiting:
                waiting.remove(connection)

    def next_moment(self) -> float | None:
        """When to look again at clients that wait."""
        return min((until_s for until_s in self.held.values() if until_s), default=None)

    def _slow_down(self, message: Message, now: float) -> None:
        publisher, origin = message.publisher, message.source.rpartition("@")[2]
        broker = self._links.numbers.get(origin.partition("~")[0])
        if broker == self._links.number:
            self._hold(publisher, 0.0)
        elif broker is not None and now - self._spoken_of.get((broker, publisher), 0.0) >= SLOW_S:
            self._spoken_of[broker, publisher] = now
            if len(self._spoken_of) > SPOKEN_OF_MAX:
                del self._spoken_of[next(iter(self._spoken_of))]
            self._links.forward_volatile(Slow(broker, self._links.names.client_number(publisher)), now)

    def _hold(self, client_id: str, until_s: float) -> None:
        session = self._core.state.sessions.get(client_id)
        connection = session.connection if session is not None else None
        if connection is None:
            return
        if connection.number not in self.held:
            self.holds.append(connection.number)
        before = self.held.get(connection.number, until_s)
        self.held[connection.number] = 0.0 if not before or not until_s else max(before, until_s)

    def _let_go(self, now: float) -> None:
        is_full = any(channel.full for channel in self._links.channels.values())
        for number, until_s in list(self.held.items()):
            connection = self._core.state.connections.get(number)
            if connection is not None:
                connection.seen_s = now  # it is silent because it is not read
            if (until_s and until_s <= now) or (not until_s and not is_full):
                del self.held[number]
                self.releases.append(number)
