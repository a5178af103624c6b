"""A client's connection by WebSocket (MQTT 5, section 6): the same bytes, in binary frames.

`wsproto` knows the frames, as it does for brokers (`live/brokers/websocket.py`). A `WebLink` asks for a
WebSocket as soon as there is a connection; it stands when the broker has agreed, and from then on it is a
`Link` like any other. Proxies and brokers that refuse say why in an answer of HTTP, which is passed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from http.client import responses
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import ProtocolError

from sojourn.live.client.link import HUNG_UP, LIKELY, Address, Link, StrangeAnswerError

SUBPROTOCOL = "mqtt"
REFUSAL_BYTES_MAX = 500
"""So much is read of why there is no WebSocket."""


class WebLink(Link):
    """A connection whose packets travel in frames."""

    def __init__(
        self,
        address: Address,
        on_packet: Callable[[Link, Any], None],
        on_lost: Callable[[Link, str], None],
    ) -> None:
        super().__init__(on_packet, on_lost)
        self._address = address
        self._wire = WSConnection(ConnectionType.CLIENT)
        self._agreed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refusal: tuple[int, bytearray] | None = None
        """The status of an answer that means no, and what has come of its text."""

    async def stands(self) -> None:
        """Wait until the broker has agreed to speak MQTT here, or say what it answered."""
        try:
            await self._agreed
        except BaseException:
            self.close("no WebSocket", abrupt=True)
            raise

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP
        """Ask for a WebSocket."""
        super().connection_made(transport)
        address = self._address
        self._tell(Request(host=address.place, target=address.path or "/", subprotocols=[SUBPROTOCOL]))

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waits for a WebSocket learns that there will be none."""
        super().connection_lost(exc)
        self._refuse(self._lost)

    def data_received(self, data: bytes) -> None:
        """Take what came on the socket."""
        try:
            self._wire.receive_data(data)
            for event in self._wire.events():
                self._take(event)
        except (ProtocolError, UnicodeError) as error:  # a header that is no text, or a frame that is none
            self._refuse("what answers there knows no WebSockets")
            self.close(f"the broker sent what is no WebSocket: {error}", abrupt=True)

    def _take(self, event: Event) -> None:
        match event:
            case BytesMessage():
                super().data_received(bytes(event.data))
            case AcceptConnection() if not self._agreed.done():
                self._agreed.set_result(None)
            case Ping():
                self._tell(event.response())
            case CloseConnection():
                self.close(event.reason or "the broker closed the connection")
            case TextMessage():
                self.close("the broker sent text, and MQTT is bytes")
            case RejectConnection():
                self._refusal = event.status_code, bytearray()
                if not event.has_body:
                    self._read_refusal()
            case RejectData() if self._refusal is not None:
                self._refusal[1].extend(event.data)
                if event.body_finished or len(self._refusal[1]) > REFUSAL_BYTES_MAX:
                    self._read_refusal()
            case _:
                pass

    def _read_refusal(self) -> None:
        """Pass on why there is no WebSocket."""
        assert self._refusal is not None
        status, body = self._refusal
        text = body[:REFUSAL_BYTES_MAX].decode(errors="replace").strip()
        if not text.isprintable() or "<" in text:  # a page for people
            text = ""
        self._refuse(f"HTTP {status}: {text or responses.get(status, 'no reason given')}")
        self.close("refused", abrupt=True)

    def _refuse(self, why: str) -> None:
        if not self._agreed.done():
            likely = f"; {LIKELY[self._address.scheme]}" if why == HUNG_UP else "."
            self._agreed.set_exception(
                StrangeAnswerError(f"{self._address} opens no WebSocket for MQTT ({why}){likely}")
            )
            self._agreed.exception()  # nobody may be waiting any more

    def _write(self, data: bytes) -> None:
        """Write MQTT's bytes in a frame."""
        self._tell(BytesMessage(data=data))

    def _tell(self, event: Event) -> None:
        if self._transport is not None:
            self._transport.write(self._wire.send(event))

    def close(self, why: str = "closed", *, abrupt: bool = False) -> None:
        """End the connection, with a word of WebSockets' own unless `abrupt`."""
        if not abrupt and self.alive and self._agreed.done():
            with suppress(ProtocolError):  # it was said before
                self._tell(CloseConnection(code=CloseReason.NORMAL_CLOSURE))
        super().close(why, abrupt=abrupt)
