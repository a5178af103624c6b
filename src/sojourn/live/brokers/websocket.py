"""MQTT over WebSockets (MQTT 5, section 6): the same bytes, in binary frames that cut packets anywhere.

`wsproto` knows the frames; here it is put between a socket and a `ClientConnection`. What came is passed on
as it comes, not once a frame is whole: so one limit, the session core's, holds for what a client may send
before it can be read, and a frame may be as long as it likes. Thousands of tiny frames, or pings, come in one
read and take long to look at: they are looked at in parts, between which it is others' turn, and all clients
together have so many looked at in a round of the loop (`reading.py`). Pings of one part are answered in one
write. Nobody honest sends many that say nothing before it says who it is: such a stranger is closed.

Browsers let any page connect to anywhere, and say in the header Origin which page it is. A `Gate` decides
whether that page may: by default one that came from the same host as the broker, whatever its port, and for a
broker that listens on loopback only one of this machine (a name that somebody made point here is not enough).
Programs that are no browsers send no Origin, and need none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import ProtocolError, RemoteProtocolError

from sojourn.live.brokers.connection import ClientConnection
from sojourn.live.brokers.node import Node
from sojourn.live.config import is_loopback
from sojourn.mqtt.payload import Data

SUBPROTOCOL = "mqtt"
ANY_ORIGIN = "*"
PIECE_BYTES = 2_048
"""What is looked at before it is counted what was in it."""
IDLE_FRAMES_MAX = 16
"""Pings, pongs and empty frames that a client may send before it was answered, which CONNECT is."""
FRAME_BYTES = 65_535
"""The longest frame that is written: small clients keep a whole one in memory."""


class Refusal(NamedTuple):
    """Why there is no WebSocket, as HTTP says it."""

    status: int
    text: str


class Gate:
    """Decides which WebSockets are opened."""

    def __init__(self, origins: Sequence[str] | None, *, on_loopback: bool) -> None:
        """Admit pages of these origins, or by default of this host."""
        self._origins = None if origins is None else {one.rstrip("/").lower() for one in origins}
        self._on_loopback = on_loopback

    def refusal(self, host: str, origin: str | None, subprotocols: Sequence[str]) -> Refusal | None:
        """Return why a request is refused, or None."""
        if SUBPROTOCOL not in subprotocols:
            return Refusal(400, "Ask for the WebSocket subprotocol mqtt.")
        if origin is None or self._admits(host, origin.lower()):
            return None
        return Refusal(
            403, f"Pages of {origin[:200]} may not connect; `origins` in [security] names those that may."
        )

    def _admits(self, host: str, origin: str) -> bool:
        if self._origins is not None:
            return ANY_ORIGIN in self._origins or origin in self._origins
        page, asked = _host_of(origin), _host_of(f"//{host}")
        if page is None or asked is None:
            return False
        if is_loopback(page) and is_loopback(asked):
            return True
        return page == asked and not self._on_loopback


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:  # brackets that hold no address
        return None


class WebSocketConnection(ClientConnection):
    """A client's connection whose bytes travel in frames."""

    __slots__ = (
        "_at",
        "_gate",
        "_idle_left",
        "_is_going_on",
        "_is_lost",
        "_is_open",
        "_pongs",
        "_rest",
        "_wire",
    )

    def __init__(self, node: Node, gate: Gate, door: str = "listen_ws") -> None:
        super().__init__(node, door)
        self._gate = gate
        self._wire = WSConnection(ConnectionType.SERVER)
        self._is_open = False
        """Whether frames may be written."""
        self._rest, self._at = b"", 0
        """What came and was not looked at yet, and the place from which that is so."""
        self._is_going_on = False
        """Whether the rest is looked at soon."""
        self._is_lost = False
        """Whether the connection is gone, and the node is told when the rest was looked at."""
        self._pongs = b""
        """Answers to pings that are written with whatever is next, or at the end of this part."""
        self._idle_left: int | None = IDLE_FRAMES_MAX
        """How many more frames that say nothing are taken of a stranger; of others any number is."""

    def _came(self, data: bytes) -> None:
        """Take what came on the socket."""
        self._rest, self._at = self._rest[self._at :] + data, 0
        if not self._is_going_on:
            self._take_pieces()

    def _take_pieces(self) -> None:
        """Look at what came, as much as is a client's turn, and go on in the next one."""
        was_cut, self._is_going_on = self._is_going_on, False
        line = self._node.frame_line
        while line.left > 0 and self._at < len(self._rest) and not self._closing and not self._must_wait:
            at, self._at = self._at, self._at + PIECE_BYTES
            line.spend(self._look_at(self._rest[at : self._at]))
        self._write_pongs()
        if self._closing or self._at >= len(self._rest):
            self._rest, self._at = b"", 0
            if self._is_lost:
                self._is_lost = False
                super().connection_lost(None)
            elif was_cut:
                self._go_on()
        elif not self._must_wait:
            if self._transport is not None:
                self._transport.pause_reading()
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        """Look at the rest when it is this client's turn."""
        if not self._is_going_on:
            self._is_going_on = True
            self._node.frame_line.join(self._take_pieces)

    @property
    def _must_wait(self) -> bool:
        """Whether nothing more is read of the client for now; it does not matter any more once it is gone."""
        return not self._is_lost and (self._held or self._paused)

    def _go_on(self) -> None:
        """Read again, once everything was looked at that has been read."""
        if self._rest and not self._closing:
            if not self._must_wait:
                self._wait_for_turn()
        else:
            super()._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is gone, once everything was looked at that came before."""
        if not self._rest or self._closing:
            super().connection_lost(exc)
            return
        if exc is not None:
            self._take_last_words()
        self._is_lost, self._is_open, self._transport = True, False, None
        self._wait_for_turn()

    def _look_at(self, data: bytes) -> int:
        """Let what frames hold be read; return how much there was to do."""
        try:
            self._wire.receive_data(data)
            return self._take_events()
        except RemoteProtocolError as error:
            self._give_up(error.event_hint)
        except (ProtocolError, UnicodeError):  # a header that is no text, or a frame after the last one
            self._give_up(RejectConnection(status_code=400))
        return 1

    def _take_events(self) -> int:
        payload, count = bytearray(), 1
        for event in self._wire.events():
            count += 1
            if isinstance(event, BytesMessage) and event.data:
                payload += event.data
                continue
            self._pass_on(payload)
            if self._closing:
                break
            if isinstance(event, Request):
                self._decide(event)
            elif isinstance(event, Ping | Pong | BytesMessage):
                self._take_idle(event)
            elif isinstance(event, CloseConnection):
                self._give_up(event.response())
            elif isinstance(event, TextMessage):
                self._give_up(CloseConnection(code=CloseReason.UNSUPPORTED_DATA, reason="Frames are binary."))
        self._pass_on(payload)
        return count

    def _take_idle(self, event: Ping | Pong | BytesMessage) -> None:
        """Answer a ping, and end with a stranger that sends many frames which say nothing."""
        if self._idle_left is not None:
            self._idle_left -= 1
            if self._idle_left < 0:
                self._give_up(CloseConnection(code=CloseReason.POLICY_VIOLATION, reason="CONNECT first."))
                return
        if isinstance(event, Ping):
            self._pongs += self._wire.send(event.response())

    def _pass_on(self, payload: bytearray) -> None:
        """Let the node read what frames held."""
        if payload:
            super()._came(bytes(payload))
            payload.clear()

    def _decide(self, request: Request) -> None:
        origin = next((value for name, value in request.extra_headers if name == b"origin"), None)
        refusal = self._gate.refusal(
            request.host, None if origin is None else origin.decode("latin-1"), request.subprotocols
        )
        if refusal is None:
            self._send(AcceptConnection(subprotocol=SUBPROTOCOL))
            self._is_open = True
            return
        body = refusal.text.encode() + b"\n"
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(body))]
        self._send(RejectConnection(status_code=refusal.status, headers=headers, has_body=True))
        self._send(RejectData(data=body))
        super().close()

    def _send(self, event: Event) -> None:
        if self._transport is not None:
            self._pongs += self._wire.send(event)
            self._write_pongs()

    def _write_pongs(self) -> None:
        """Write what waits to be written."""
        pongs, self._pongs = self._pongs, b""
        if pongs and self._transport is not None and not self._is_over:
            self._transport.write(pongs)
            if self._is_full:
                self._count_untaken()

    def _give_up(self, last_word: Event | None) -> None:
        """End the connection with a word on why, if there is one that still may be said."""
        self._is_open = False
        try:
            if last_word is not None:
                self._send(last_word)
        except ProtocolError:
            pass  # it was said before, or the other side has no ear any more
        self._waiting.clear()
        super().close()

    def _writer(self, _transport: asyncio.Transport) -> Callable[[Data], None]:
        return self._write

    def _write(self, data: Data) -> None:
        """Write MQTT's bytes in frames."""
        self._idle_left = None  # nobody is answered who did not send CONNECT
        if self._is_open:
            for at in range(0, len(data), FRAME_BYTES):
                self._send(BytesMessage(data=bytes(data[at : at + FRAME_BYTES])))

    def _end(self) -> None:
        """Say that nothing more comes, in a frame too, and close soon."""
        is_open, self._is_open = self._is_open, False
        if is_open:
            with contextlib.suppress(ProtocolError):
                self._send(CloseConnection(code=CloseReason.NORMAL_CLOSURE))
        super()._end()
