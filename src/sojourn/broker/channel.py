"""What makes a link between two brokers lose nothing and repeat nothing, whatever happens to its connections.

A channel numbers every frame it sends and keeps it until the other side says it has taken it in; it takes in
each frame of the other side once, in order. A frame with a run of events takes a number for each of them, and
its position is that of the last, so that a receiver may take them in one by one. When a connection breaks,
the next one begins with a `Hello` from both sides that says how far each has got, and goes on from there.

    channel.put(body)                   # queue a frame for the peer
    channel.opened(); channel.greet()   # a connection is there: what to write first
    for position, body in channel.arrived(data): …; channel.took(position)
    channel.outgoing()                  # what to write now, in one piece

The rules:

- A frame is acknowledged when it has been *taken in* (`took`), not when it arrived: a broker takes it in once
  its journal holds it, so a frame that was acknowledged survives the death of its receiver, and one that was
  not is still with its sender.
- At most `window_bytes` are under way unacknowledged. A receiver that cannot go on simply takes nothing in;
  acknowledgements are read all the same.
- `full` says that the queue holds more than `queue_bytes`: whoever fills it should pause.
- A *volatile* frame need not survive the death of its sender (an event of QoS 0). It has no number of its own
  but a rank after the last number, so that a broken connection repeats neither kind, while a sender that was
  restarted from its journal, where volatile frames are not, agrees with the receiver about the numbers. A
  receiver that was restarted may have taken in those that were written to it, and handed them out: they are
  not written again.

Memory can be lost: a store that was deleted, or whose last lines were not yet on the disk when power failed.
Frames belong to a *stream*, which has a name, and a broker tells in its hello at which number of the stream
each of its lives began (`births`) and from which number on it still has all frames (`kept`). From the two
hellos of a connection both sides conclude alike (`is_broken`) whether anything between them was forgotten. If
so both begin a new stream (`reset`) and tell each other everything anew on the next connection; what was not
acknowledged goes into the new stream.

Everything here is plain state: no socket, no clock.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from sojourn.broker.frame_events import EVENT, RUN_OF_EVENTS, events_in, numbers_in
from sojourn.broker.frame_heads import ACKNOWLEDGE, FRAME, HEAD, HELLO, Position
from sojourn.broker.hello import (
    BIRTHS_MAX,
    PROTOCOL,
    ChannelError,
    Hello,
    forgotten,
    is_broken,
    may_have_lost,
    read_hello,
    shared_until,
)

WINDOW_BYTES = 4 << 20
QUEUE_BYTES = 64 << 20
OVERFULL = 2
"""By how much a queue may be over its limit before neighbours are kept waiting."""
FRAME_BYTES_MAX = 32 << 20


class _Waiting(NamedTuple):
    position: Position
    data: bytes


class Channel:
    """Both directions of a link, seen from one of its ends."""

    __slots__ = (
        "_acknowledged_to",
        "_arrived",
        "_buffer",
        "_greeting",
        "_hello",
        "_in_flight",
        "_met_life",
        "_noted_to",
        "_out",
        "_pending",
        "_sent",
        "_sent_events",
        "_streams",
        "_taken",
        "_taken_events",
        "_written",
        "birth_events",
        "births",
        "broker",
        "life",
        "network",
        "open",
        "peer",
        "peer_life",
        "peer_stream",
        "queue_bytes",
        "queued",
        "refused",
        "stream",
        "window_bytes",
    )

    def __init__(
        self,
        broker: str,
        peer: str,
        life: str,
        *,
        network: str = "",
        window_bytes: int = WINDOW_BYTES,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self.broker, self.peer, self.life = broker, peer, life
        self.network = network
        self.window_bytes, self.queue_bytes = window_bytes, queue_bytes
        self.open = False
        """Whether a connection is there on which frames may be sent."""
        self.stream = life
        """The name of the stream of frames that are sent."""
        self._streams = 0
        """How many streams were begun before this one."""
        self.births: list[tuple[str, int]] = [(life, 0)]
        """The lives in which the stream was sent, and its last number when each began."""
        self.birth_events = [0]
        """For each of these: how many events the stream had carried by then."""
        self.peer_life = ""
        self.peer_stream = ""
        self.queued = 0
        """Bytes that the peer has not acknowledged."""
        self.refused = 0
        """Events of QoS 0, and other volatile frames, that were not queued because the queue was full."""
        self._out: deque[_Waiting] = deque()
        """Frames not acknowledged, oldest first; the first `_in_flight` bytes of them are under way."""
        self._in_flight = 0
        self._sent = 0
        """How many frames of `_out` this connection carries already."""
        self._written = Position()
        """The last frame that any connection has carried."""
        self._met_life = ""
        """The life of the other side that this side went on with last."""
        self._pending = Position()
        """The position of the last frame that was queued."""
        self._sent_events = self._taken_events = 0
        """How many events the numbered frames of either stream have carried."""
        self._taken = Position()
        self._arrived = Position()
        """The last frame that this connection brought; what was not taken in comes again on the next one."""
        self._acknowledged_to = Position()
        self._noted_to = 0
        """Up to which number the other side's acknowledgements are remembered, or need not be."""
        self._greeting: Hello | None = None
        """What this side said first on this connection."""
        self._hello: Hello | None = None
        """What the other side said first on this connection."""
        self._buffer = b""

    # Out -------------------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Whether whoever fills the queue should pause."""
        return self.queued >= self.queue_bytes

    @property
    def waiting(self) -> int:
        """Frames that the peer has not acknowledged."""
        return len(self._out)

    @property
    def last(self) -> int:
        """The number of the last frame that was queued; a restart must not find another."""
        return self._pending.number

    @property
    def kept(self) -> int:
        """The number after which all frames are still here."""
        for frame in self._out:
            position = frame.position
            return position.number if position.rank else position.number - numbers_in(frame.data, HEAD.size)
        return self._pending.number

    def put(self, body: bytes, *, volatile: bool = False) -> bool:
        """Queue a frame; a volatile one is refused while the queue is full."""
        if len(body) > FRAME_BYTES_MAX:
            raise ChannelError(f"A frame for {self.peer} has {len(body)} bytes, over {FRAME_BYTES_MAX}.")
        if volatile:
            if self.queued >= self.queue_bytes:
                self.refused += events_in(body) or 1
                return False
            self._pending = Position(self._pending.number, self._pending.rank + numbers_in(body))
        elif body[1:2] == EVENT:
            self._pending = Position(self._pending.number + 1)
            self._sent_events += 1
        else:
            self._pending = Position(self._pending.number + numbers_in(body))
            self._sent_events += events_in(body)
        data = HEAD.pack(len(body), FRAME, *self._pending) + body
        self._out.append(_Waiting(self._pending, data))
        self.queued += len(data)
        return True

    def greet(self, epoch: int = 0, memory: str = "") -> bytes:
        """The hello to write first on a new connection; it leaves when all that was taken in is safe."""
        self._acknowledged_to = self._taken
        self._greeting = Hello(
            PROTOCOL,
            self.broker,
            self.life,
            self.stream,
            self.births[-BIRTHS_MAX:],
            self.kept,
            self.peer_stream,
            self._taken.number,
            self._taken.rank,
            self.peer_life,
            epoch,
            self.network,
            memory,
            self._sent_events - sum(events_in(body) for _, body in self._numbered()),
            self._taken_events,
            self.birth_events[-BIRTHS_MAX:],
        )
        body = msgspec.json.encode(self._greeting)
        return HEAD.pack(len(body), HELLO, 0, 0) + body

    def outgoing(self) -> bytes:
        """All that may be written now: frames within the window, and an acknowledgement if one is due."""
        if not self.open:
            return b""
        parts: list[bytes] = []
        if self._acknowledged_to != self._taken:
            self._acknowledged_to = self._taken
            parts.append(HEAD.pack(0, ACKNOWLEDGE, *self._taken))
        while self._sent < len(self._out) and self._in_flight < self.window_bytes:
            data = self._out[self._sent].data
            parts.append(data)
            self._sent += 1
            self._in_flight += len(data)
        if self._sent:
            self._written = max(self._written, self._out[self._sent - 1].position)
        return b"".join(parts)

    # The connection --------------------------------------------------------------------------------------

    def opened(self) -> None:
        """A new connection is there; nothing but the hello may be written before the other side's."""
        self.closed()

    def closed(self) -> None:
        """The connection is gone; what was under way on it goes back to waiting."""
        self.open = False
        self._greeting = self._hello = None
        self._arrived = self._taken
        self._sent = self._in_flight = 0
        self._buffer = b""

    def reborn(self, life: str) -> None:
        """The broker was restarted from its journal: volatile frames that it had queued are not there."""
        self.closed()
        self.life = life
        self._acknowledged_to = self._taken
        self._out = deque(frame for frame in self._out if not frame.position.rank)
        self.queued = sum(len(frame.data) for frame in self._out)
        self._pending = Position(self._pending.number)
        self._written = Position()
        if life != self.births[-1][0]:
            self.births = [*self.births[-BIRTHS_MAX:], (life, self._pending.number)]
            self.birth_events = [*self.birth_events[-BIRTHS_MAX:], self._sent_events]

    def greeted(self, life: str, stream: str) -> None:
        """The other side goes on with a stream, perhaps in another life, or begins its first one."""
        if stream != self.peer_stream:
            self.peer_stream = stream
            self._taken = self._arrived = self._acknowledged_to = Position()
            self._taken_events = 0
        if life != self.peer_life:
            # Its volatile frames start anew; the numbered ones go on, for they are in its journal.
            self.peer_life = life
            self._taken = self._arrived = Position(self._taken.number)
            self._acknowledged_to = Position(self._acknowledged_to.number)

    def reset(self, taken: int = 0) -> list[bytes]:
        """Begin a new stream and forget the other side's; return the frames that the other side lacks.

        Those are all that it has not acknowledged, but for the ones up to the number `taken`.
        """
        self.closed()
        left = [body for number, body in self._numbered() if number > taken]
        self._out.clear()
        self.queued = 0
        self._pending = self._taken = self._arrived = self._acknowledged_to = Position()
        self._written = Position()
        self._noted_to = self._sent_events = self._taken_events = 0
        self.peer_stream = self.peer_life = ""
        self._streams += 1
        self.stream = f"{self.life}.{self._streams}"
        self.births = [(self.life, 0)]
        self.birth_events = [0]
        return left

    def _numbered(self) -> list[tuple[int, bytes]]:
        """The numbered frames that were not acknowledged."""
        waiting = ((frame.position, frame.data) for frame in self._out)
        return [(number, data[HEAD.size :]) for (number, rank), data in waiting if not rank]

    # In --------------------------------------------------------------------------------------------------

    def arrived(self, data: bytes) -> list[tuple[Position, bytes]]:
        """The new frames in what the connection brought, each with its position; to be taken in, in order.

        It stops after a hello: whoever reads decides then whether to go on (`peer_hello`), and calls again.
        """
        buffer = self._buffer + data if self._buffer else data
        start, available = 0, len(buffer)
        frames: list[tuple[Position, bytes]] = []
        try:
            while available - start >= HEAD.size:
                length, kind, number, rank = HEAD.unpack_from(buffer, start)
                if length > FRAME_BYTES_MAX:
                    raise ChannelError(f"{self.peer} sent a frame of {length} bytes, over {FRAME_BYTES_MAX}.")
                body_at = start + HEAD.size
                if body_at + length > available:
                    break
                start = body_at + length
                if kind == HELLO:
                    self._on_hello(buffer[body_at:start])
                    break
                if self._hello is None:
                    raise ChannelError(f"{self.peer} sent a frame before its hello.")
                position = Position(number, rank)
                if kind == ACKNOWLEDGE:
                    self._on_acknowledged(position)
                elif kind != FRAME:
                    raise ChannelError(f"{self.peer} sent a frame of unknown kind {kind}.")
                else:
                    body = buffer[body_at:start]
                    if self._is_new(position, 1 if body[1:2] == EVENT else numbers_in(body)):
                        self._arrived = position
                        frames.append((position, body))
        finally:
            self._buffer = buffer[start:]
        return frames

    def _is_new(self, position: Position, numbers: int) -> bool:
        """Whether a frame that takes so many numbers up to a position is to be taken in.

        A run may have been taken in up to an event within it. Events of QoS 0 are then let go; whoever takes
        in others knows which came before.
        """
        taken = self._arrived
        if position <= taken:
            return False
        if position.rank:
            if position.number == taken.number and position.rank - numbers < taken.rank:
                return False
        elif position.number - numbers < taken.number:
            return True
        # Ranks may be skipped: this broker may have taken those in and forgotten it when it was killed.
        if position.number != taken.number + (0 if position.rank else numbers):
            raise ChannelError(
                f"{self.peer} sent frame {position.number} after {taken.number}; some are missing."
            )
        return True

    def took(self, position: Position, body: bytes = b"") -> None:
        """A frame that arrived was taken in, and all before it: it is acknowledged with the next write."""
        before, self._taken = self._taken, position
        if position.rank:
            return
        kind = body[1:2]
        if kind == EVENT:
            self._taken_events += 1
        elif kind == RUN_OF_EVENTS:  # but for those of them that were taken in before
            self._taken_events += position.number - before.number
        else:
            self._taken_events += events_in(body)

    @property
    def taken(self) -> Position:
        """How far the other side's frames were taken in."""
        return self._taken

    @property
    def is_connected(self) -> bool:
        """Whether a connection is there, and this side's hello was written to it."""
        return self._greeting is not None

    @property
    def peer_hello(self) -> Hello | None:
        """What the other side said first on this connection, once it has."""
        return self._hello

    @property
    def has_forgotten(self) -> bool:
        """Whether the two hellos of this connection say that either side has forgotten something."""
        assert self._greeting is not None, "a hello is only read on a connection that began with ours"
        assert self._hello is not None, "the other side has said hello"
        return is_broken(self._greeting, self._hello) or is_broken(self._hello, self._greeting)

    @property
    def has_lost_memory(self) -> bool:
        """Whether this side has forgotten something, or may have, as the two hellos say."""
        assert self._greeting is not None, "a hello is only read on a connection that began with ours"
        assert self._hello is not None, "the other side has said hello"
        return may_have_lost(self._greeting, self._hello)

    @property
    def forgotten(self) -> int:
        """How many events the other side has forgotten, as the two hellos say."""
        assert self._greeting is not None, "a hello is only read on a connection that began with ours"
        assert self._hello is not None, "the other side has said hello"
        return forgotten(self._greeting, self._hello)

    @property
    def shared(self) -> int:
        """Up to which number the other side has the frames of this one, as the two hellos say."""
        assert self._greeting is not None, "a hello is only read on a connection that began with ours"
        assert self._hello is not None, "the other side has said hello"
        return shared_until(self._greeting, self._hello)

    def agreed(self) -> None:
        """Both sides go on: send what the other one lacks."""
        hello = self._hello
        assert hello is not None, "the other side has said hello"
        self.open = True
        if hello.seen_stream == self.stream:
            self._on_acknowledged(Position(hello.number, hello.rank if hello.seen_life == self.life else 0))
        if hello.life != self._met_life:
            self._met_life = hello.life
            self._drop_written()
        if hello.seen_life == self.life:
            self.births = [birth for birth in self.births if birth[0] == self.life]
            self.birth_events = self.birth_events[-len(self.births) :]

    def _drop_written(self) -> None:
        """Let go of volatile frames that an earlier life of the other side may have handed out."""
        kept = deque(one for one in self._out if not one.position.rank or one.position > self._written)
        if len(kept) < len(self._out):
            self._out = kept
            self.queued = sum(len(frame.data) for frame in kept)

    def _on_hello(self, body: bytes) -> None:
        if self._hello is not None:
            raise ChannelError(f"{self.peer} said hello twice on one connection.")
        hello = read_hello(body, self.peer)
        if hello.protocol != PROTOCOL:
            raise ChannelError(
                f"{self.peer} speaks version {hello.protocol} of the link protocol, this broker {PROTOCOL}; "
                "run the same release on both."
            )
        if hello.broker != self.peer:
            raise ChannelError(f"The broker at the other end is {hello.broker!r}, not {self.peer!r}.")
        if hello.network != self.network:
            raise ChannelError(
                f"{self.peer} reads another configuration, with other brokers or links than this broker's; "
                "start both with the same file."
            )
        self._hello = hello

    def acknowledgement(self, *, is_free: bool) -> int | None:
        """The number up to which it is to be remembered that the other side has all frames; None if known.

        One that costs a write of its own (not `is_free`) is put off while more are about to come.
        """
        if (self._out and not is_free) or self._pending.number <= self._noted_to:
            return None
        first = self._out[0].position if self._out else None
        if first is not None and not first.rank and first.number <= self._noted_to + 1:
            return None  # the first frame that is not acknowledged comes right after what is noted
        kept = self.kept
        if kept <= self._noted_to:
            return None
        self._noted_to = kept
        return kept

    def acknowledged(self, number: int) -> None:
        """The other side had acknowledged all frames up to this number, as was remembered."""
        self._on_acknowledged(Position(number))
        self._noted_to = max(self._noted_to, number)

    def _on_acknowledged(self, reached: Position) -> None:
        while self._out and self._out[0].position <= reached:
            frame = self._out.popleft()
            self.queued -= len(frame.data)
            if self._sent:
                self._sent -= 1
                self._in_flight -= len(frame.data)
