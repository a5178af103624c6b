"""One connection of a client to one broker: bytes and packets, and nothing that outlives it.

`Link` is an asyncio protocol. It cuts what arrives into packets and hands each to its owner, writes what the
owner gives it, keeps the connection alive and notices when it is dead. The session lives in `client.py`.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import mqtt5

from sojourn.errors import SojournError

PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}
"""The schemes of addresses, and the port that each means if none is named."""
PACKET_BYTES_MAX = 16 << 20
OPEN_S = 10.0
"""How long a connection may take to stand."""
ANSWER_S = 10.0
"""How long a broker may take to answer."""


class ClientError(SojournError):
    """The client cannot do what it was asked to do."""


NO = 0x80
"""Reason codes from here on mean no. The codec's enumerations do not compare with numbers: use `int`."""


HUNG_UP = "the broker closed the connection"
NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG")
"""What OpenSSL says of an answer that is none of TLS."""
PLAIN = {"mqtts": "mqtt", "wss": "ws"}
ASKED = "is a certificate of the client asked for there, and none was shown, or one that is not accepted"
LIKELY = {
    "mqtt": "is that a port for TLS (mqtts://), for WebSockets (ws://) or for other brokers (`peers`)?",
    "mqtts": f"is that a port for WebSockets (wss://), or {ASKED}?",
    "ws": "is that a port for TLS (wss://) or without WebSockets (mqtt://)?",
    "wss": f"is that a port without WebSockets (mqtts://), or {ASKED}?",
}
"""By scheme: why somebody may hang up who has said nothing."""


class RefusedError(ClientError):
    """A broker answered with a reason code that means no."""

    def __init__(self, what: str, code: int, reason: str | None = None) -> None:
        super().__init__(f"{what}: {reason or name_of(code)} (reason code {code:#04x}).")
        self.code = code


class UnreachableError(ClientError, ConnectionError):
    """There is nobody at a broker's address, or nobody who answers."""


class StrangeAnswerError(UnreachableError):
    """Somebody is at a broker's address and speaks otherwise than it says, such as without TLS."""


class Address(NamedTuple):
    """Where a broker listens, and how it is spoken to."""

    host: str
    port: int
    scheme: str = "mqtt"
    path: str = ""
    """What a WebSocket asks for, after the port."""

    @classmethod
    def parse(cls, url: str, like: Address | None = None) -> Address:
        """Read `mqtt://host:port`, `mqtts://…`, `ws://host:port/path`, `wss://…` or `host:port`.

        One that names no scheme is spoken to in the way of `like`, so that nobody who came by TLS goes on
        without it.
        """
        scheme = like.scheme if like is not None else "mqtt"
        parts = urlsplit(url if "://" in url else f"{scheme}://{url}")
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in PORTS or not parts.hostname or port == -1:
            raise ClientError(
                f"{url!r} is no broker's address; write it as mqtt://host:port or mqtts://host:port, "
                "or ws://host:port or wss://host:port for WebSockets."
            )
        if parts.username is not None:
            raise ClientError(
                f"The address of {parts.hostname} has a user name in it; give `username` and `password` "
                "instead (on the command line --user, and SOJOURN_PASSWORD)."
            )
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        if "://" not in url and like is not None:
            path = like.path
        return cls(parts.hostname, port or PORTS[parts.scheme], parts.scheme, path)

    @property
    def tls(self) -> bool:
        """Whether all that is said is encrypted."""
        return self.scheme in ("mqtts", "wss")

    @property
    def web(self) -> bool:
        """Whether packets travel in the frames of a WebSocket."""
        return self.scheme in ("ws", "wss")

    @property
    def place(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.place}{self.path if self.web else ''}"


def not_open(address: Address, error: OSError) -> OSError:
    """Say why there is no connection; what is wrong with a certificate stays as it is."""
    if isinstance(error, ssl.SSLError):
        if error.reason not in NO_TLS:
            return error
        return StrangeAnswerError(
            f"{address} does not answer in TLS, so that is likely a port without it: use "
            f"{PLAIN[address.scheme]}:// there, or the port that has TLS."
        )
    if address.tls and isinstance(error, ConnectionError) and error.errno is None:
        return StrangeAnswerError(
            f"{address} closed the connection while TLS was begun; is that a port with TLS, and not one for "
            f"{PLAIN[address.scheme]}://?"
        )
    return UnreachableError(f"{address} cannot be reached ({reason_of(error)}).")


def unanswered(address: Address, why: str) -> ClientError:
    """Say what became of a connection that ended before its broker had answered, and why that may be."""
    if why == HUNG_UP:
        return ClientError(f"{address} closed the connection without an answer; {LIKELY[address.scheme]}")
    return ClientError(f"{address} closed the connection: {why}.")


def reason_of(error: OSError) -> str:
    """An error of the system in a few words."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return error.strerror or str(error)


def name_of(code: int) -> str:
    """A reason code in words."""
    for codes in (mqtt5.DisconnectReasonCode, mqtt5.ConnAckReasonCode, mqtt5.SubAckReasonCode):
        try:
            return codes(code).name.replace("_", " ").lower()
        except ValueError:
            continue
    return "unknown reason"


@dataclass(slots=True)
class Connection:
    """One line of the connection log: which broker, since when, until when and why it ended."""

    url: str
    broker: str
    since: float
    until: float | None = None
    ended: str = ""


class Link(asyncio.Protocol):
    """A connection that speaks packets."""

    def __init__(self, on_packet: Callable[[Link, Any], None], on_lost: Callable[[Link, str], None]) -> None:
        self._on_packet, self._on_lost = on_packet, on_lost
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._lost = ""
        self._heard = self._said = 0.0
        self._pinger: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    @classmethod
    async def open(
        cls,
        address: Address,
        on_packet: Callable[[Link, Any], None],
        on_lost: Callable[[Link, str], None],
        tls: ssl.SSLContext | None = None,
    ) -> Link:
        """Connect to a broker's address, or say in a sentence that nobody is there.

        What is wrong with a certificate is raised as it is.
        """
        if address.web:
            from sojourn.live.client.websocket import WebLink  # noqa: PLC0415 - most clients need none

            made: Link = WebLink(address, on_packet, on_lost)
        else:
            made = cls(on_packet, on_lost)
        context = (tls or ssl.create_default_context()) if address.tls else None
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(OPEN_S):
                transport, link = await loop.create_connection(
                    lambda: made, address.host, address.port, ssl=context
                )
                await link.stands()
        except TimeoutError:
            raise UnreachableError(f"{address} cannot be reached (no answer in {OPEN_S:g} s).") from None
        except UnreachableError:
            raise
        except OSError as error:
            raise not_open(address, error) from None
        if transport.get_extra_info("sockname") == transport.get_extra_info("peername"):
            # The port of a broker that is down was given to this very connection: it has reached itself.
            transport.abort()
            raise UnreachableError(f"{address} cannot be reached (connection refused).")
        return link

    async def greet(
        self, hello: mqtt5.ConnectPacket, answer: asyncio.Future[mqtt5.ConnAckPacket], address: Address
    ) -> mqtt5.ConnAckPacket:
        """Say hello and return the answer; a connection on which there is none is ended."""
        self.send(hello)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await answer
        except TimeoutError:
            self.close("no answer", abrupt=True)
            raise UnreachableError(f"{address} does not answer; is it an MQTT 5 broker?") from None
        except BaseException:
            self.close("no answer", abrupt=True)
            raise

    @property
    def alive(self) -> bool:
        """Whether packets can still be written."""
        return self._transport is not None and not self._lost

    def send(self, packet: Any) -> None:
        """Write a packet; on a dead connection it goes nowhere, as with any that is lost on the way."""
        if self._transport is not None and not self._lost:
            self._said = asyncio.get_running_loop().time()
            self._write(packet.write())

    async def stands(self) -> None:
        """Wait until packets can be sent."""

    def _write(self, data: bytes) -> None:
        """Write MQTT's bytes."""
        assert self._transport is not None
        self._transport.write(data)

    async def drained(self) -> None:
        """Wait until the broker keeps up with what was written."""
        await self._writable.wait()

    def keep_alive(self, seconds: int) -> None:
        """Ping when nothing else is said, and give the connection up when nothing is heard."""
        if seconds:
            self._pinger = asyncio.get_running_loop().create_task(self._ping(seconds))

    async def _ping(self, seconds: int) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(seconds / 4)
            now = loop.time()
            if now - self._heard > 1.5 * seconds:
                self.close(f"nothing was heard for {now - self._heard:.0f} s")
                return
            if now - self._said > seconds / 2 or now - self._heard > seconds / 2:
                self.send(mqtt5.PingReqPacket())

    def close(self, why: str = "closed", *, abrupt: bool = False) -> None:
        """End the connection, after what was written has gone out unless `abrupt`."""
        if not self._lost:
            self._lost = why
        if self._transport is not None:
            if abrupt:
                self._transport.abort()
            else:
                self._transport.close()

    # asyncio.Protocol ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP
        """Begin."""
        self._transport = transport
        self._heard = self._said = asyncio.get_running_loop().time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the owner once."""
        if self._pinger is not None:
            self._pinger.cancel()
        self._transport = None
        self._writable.set()
        self._lost = self._lost or (str(exc) if exc else HUNG_UP)
        self._on_lost(self, self._lost)

    def pause_writing(self) -> None:
        """The broker reads more slowly than we write."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Cut bytes into packets."""
        self._heard = asyncio.get_running_loop().time()
        self._buffer = self._buffer + data if self._buffer else data
        view, start = memoryview(self._buffer), 0
        try:
            while start < len(view):
                packet, length = mqtt5.read(view[start:])
                start += length
                self._on_packet(self, packet)
        except IndexError:  # the codec's word for "the rest has not arrived yet"
            pass
        except ValueError as error:
            self.close(f"the broker sent what is not MQTT 5: {error}")
            return
        self._buffer = self._buffer[start:]
        if len(self._buffer) > PACKET_BYTES_MAX:
            self.close(f"the broker sent a packet of over {PACKET_BYTES_MAX} bytes")
