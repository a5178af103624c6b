"""The links of one broker to its neighbours: TCP connections made, accepted, lost and made again.

Of two neighbours the one that comes first in the configuration calls the other. What travels, and what makes
it travel exactly once, is in `channel.py`; this file only moves bytes:

    links = PeerLinks("B1", channels, calls={"B2": Address(…)}, on_frame=node.frame_arrived)
    await links.start(listen)
    links.flush()              # once a loop turn: write what the channels have to say

A caller is believed to be who it says when the transport proves it (a certificate with that name); without
TLS both ends must be on this machine. A neighbour that is not connected costs nothing but the room of its
queue; the pauses between calls grow to a few seconds.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sojourn.broker.channel import HELLO_BYTES_MAX, Channel, ChannelError, Position, peek_hello
from sojourn.errors import SojournError

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
CALL_S = 5.0
GREETING_S = 5.0
"""How long a caller may take to say who it is."""
STRANGERS_MAX = 64
"""Connections that have not said yet who they are."""
WRITE_BUFFER_BYTES = 8 << 20

_log = logging.getLogger("sojourn.peers")


class PeerError(SojournError):
    """A link between brokers cannot be set up."""


class PeerAddress(NamedTuple):
    """Where a broker listens for other brokers."""

    host: str
    port: int


OnFrame = Callable[[str, Position, bytes], None]
OnChange = Callable[[str, bool], None]


class PeerLinks:
    """All links of one broker."""

    def __init__(
        self,
        broker: str,
        channels: Mapping[str, Channel],
        *,
        calls: Mapping[str, PeerAddress],
        on_frame: OnFrame,
        on_change: OnChange | None = None,
        on_read: Callable[[], None] = lambda: None,
        server_tls: ssl.SSLContext | None = None,
        client_tls: ssl.SSLContext | None = None,
    ) -> None:
        self.broker = broker
        self.channels = channels
        self._calls = dict(calls)
        self._on_frame = on_frame
        self._on_change = on_change or (lambda _peer, _up: None)
        self._on_read = on_read
        self._server_tls, self._client_tls = server_tls, client_tls
        self._connections: dict[str, _Connection] = {}
        self._strangers: set[_Connection] = set()
        self._callers: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None

    async def start(self, listen: PeerAddress | None) -> None:
        """Listen for neighbours and begin to call the others."""
        loop = asyncio.get_running_loop()
        if listen is not None:
            try:
                self._server = await loop.create_server(
                    lambda: _Connection(self, None), listen.host, listen.port, ssl=self._server_tls
                )
            except OSError as error:
                raise PeerError(
                    f"{self.broker} cannot listen for other brokers on {listen.host}:{listen.port}: "
                    f"{error.strerror or error}."
                ) from None
        self._callers = [
            loop.create_task(self._keep_calling(peer, address)) for peer, address in self._calls.items()
        ]

    async def stop(self) -> None:
        """End all connections; the channels keep what was not acknowledged."""
        for caller in self._callers:
            caller.cancel()
        if self._server is not None:
            self._server.close()
        for connection in [*self._connections.values(), *self._strangers]:
            connection.abort()
        await asyncio.gather(*self._callers, return_exceptions=True)

    def connected(self, peer: str) -> bool:
        """Whether there is a connection to a neighbour on which both sides have said hello."""
        return self.channels[peer].open

    def flush(self) -> None:
        """Write what the channels may say now."""
        for peer, connection in self._connections.items():
            connection.write(self.channels[peer].outgoing())

    async def _keep_calling(self, peer: str, address: PeerAddress) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE_S
        while True:
            try:
                async with asyncio.timeout(CALL_S):
                    _, connection = await loop.create_connection(
                        lambda: _Connection(self, peer),
                        address.host,
                        address.port,
                        ssl=self._client_tls,
                        server_hostname=peer if self._client_tls else None,
                    )
                pause = FIRST_PAUSE_S
                await connection.ended
            except (OSError, TimeoutError) as error:
                _log.debug("%s cannot reach %s: %s", self.broker, peer, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    # What connections tell -------------------------------------------------------------------------------

    def admit(self, connection: _Connection, peer: str) -> None:
        """A connection is to this neighbour; an older one, half dead perhaps, makes way."""
        before = self._connections.get(peer)
        if before is not None and before is not connection:
            before.abort()
        self._strangers.discard(connection)
        self._connections[peer] = connection
        channel = self.channels[peer]
        channel.opened()
        connection.write(channel.greet())

    def stranger(self, connection: _Connection) -> None:
        """Somebody called who has not said yet who it is."""
        if len(self._strangers) >= STRANGERS_MAX:
            connection.abort()
            return
        self._strangers.add(connection)

    def lost(self, connection: _Connection) -> None:
        """A connection is gone."""
        self._strangers.discard(connection)
        peer = connection.peer
        if peer is not None and self._connections.get(peer) is connection:
            del self._connections[peer]
            was_open = self.channels[peer].open
            self.channels[peer].closed()
            if was_open:
                self._on_change(peer, False)  # noqa: FBT003 - up or down

    def arrived(self, peer: str, data: bytes) -> None:
        """Bytes came from a neighbour."""
        channel = self.channels[peer]
        was_open = channel.open
        for position, body in channel.arrived(data):
            self._on_frame(peer, position, body)
        if channel.open and not was_open:
            self._on_change(peer, True)  # noqa: FBT003 - up or down
        self._on_read()


class _Connection(asyncio.Protocol):
    """One TCP connection to or from another broker."""

    def __init__(self, links: PeerLinks, peer: str | None) -> None:
        self._links = links
        self.peer = peer
        """Who is at the other end: known to a caller, learnt by who is called."""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._greeting = b""
        self._deadline: asyncio.TimerHandle | None = None
        self._paused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP
        """Say hello, or wait for one."""
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._deadline = asyncio.get_running_loop().call_later(GREETING_S, self._check_greeting)
        if self.peer is not None:
            self._links.admit(self, self.peer)
        else:
            self._links.stranger(self)

    def data_received(self, data: bytes) -> None:
        """Hand bytes to the channel, once it is known which one."""
        try:
            if self.peer is None:
                data = self._learn(self._greeting + data)
                if self.peer is None:
                    return
            self._links.arrived(self.peer, data)
        except SojournError as error:
            _log.warning(
                "%s ends a connection to %s: %s", self._links.broker, self.peer or "a stranger", error
            )
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Tell whoever waits for the end."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._transport = None
        self._links.lost(self)
        if not self.ended.done():
            self.ended.set_result(None)

    def write(self, data: bytes) -> None:
        """Write; the channel's window bounds how much is ever under way."""
        if data and self._transport is not None:
            self._transport.write(data)

    def abort(self) -> None:
        """End the connection without further words."""
        if self._transport is not None:
            self._transport.abort()

    def _learn(self, data: bytes) -> bytes:
        hello = peek_hello(data)
        if hello is None:
            if len(data) > HELLO_BYTES_MAX:
                raise ChannelError("A caller sends more than a hello before it says who it is.")
            self._greeting = data
            return b""
        if hello.broker not in self._links.channels:
            raise ChannelError(f"A caller says it is {hello.broker!r}, which is no neighbour.")
        proven = self._certified_name()
        if proven is not None and proven != hello.broker:
            raise ChannelError(f"A caller says it is {hello.broker!r} and its certificate says {proven!r}.")
        self.peer = hello.broker
        self._links.admit(self, self.peer)
        return data

    def _certified_name(self) -> str | None:
        """The name on the other side's certificate; None without TLS."""
        assert self._transport is not None
        certificate = self._transport.get_extra_info("peercert")
        if not certificate:
            return None
        for (key, value), *_ in certificate.get("subject", ()):
            if key == "commonName":
                return str(value)
        return ""

    def _check_greeting(self) -> None:
        if self.peer is None or not self._links.channels[self.peer].open:
            _log.warning("%s ends a connection on which nobody said hello.", self._links.broker)
            self.abort()
