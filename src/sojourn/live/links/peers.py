"""The connections of one broker to its neighbours: made, accepted, lost and made again.

Of two neighbours the one that comes first in the configuration calls the other. What travels, and what makes
it travel exactly once, is the broker's business (`broker/channel.py`); this file only moves bytes:

    links = PeerLinks("B1", ("B2", "B3"), node.tell, calls={"B2": PeerAddress(…)})
    await links.start(listen)
    links.write(peer, data); links.close(peer, why)

A caller is believed to be who it says when the transport proves it (a certificate with that name); without
TLS both ends must be on this machine. A neighbour that is not connected costs nothing but the room of its
queue; the pauses between calls grow to a second.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sojourn.broker import facts
from sojourn.broker.channel import HELLO_BYTES_MAX, ChannelError, peek_hello
from sojourn.errors import SojournError

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
CALL_S = 5.0
GREETING_S = 5.0
"""How long a caller may take to say who it is."""
STRANGERS_MAX = 64
"""Connections that have not said yet who they are."""
WRITE_BUFFER_BYTES = 8 << 20
QUIET_S = 10.0
"""The same complaint about the same neighbour is logged once in this time."""

_log = logging.getLogger("sojourn.peers")


class PeerError(SojournError):
    """A link between brokers cannot be set up."""


class PeerAddress(NamedTuple):
    """Where a broker listens for other brokers."""

    host: str
    port: int


class PeerLinks:
    """All links of one broker."""

    def __init__(
        self,
        broker: str,
        peers: Sequence[str],
        tell: Callable[[facts.Fact], None],
        *,
        calls: Mapping[str, PeerAddress],
        server_tls: ssl.SSLContext | None = None,
        client_tls: ssl.SSLContext | None = None,
    ) -> None:
        self.broker = broker
        self.peers = frozenset(peers)
        self.tell = tell
        self._calls = dict(calls)
        self._server_tls, self._client_tls = server_tls, client_tls
        self._connections: dict[str, _Connection] = {}
        self._strangers: set[_Connection] = set()
        self._callers: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None
        self._complained: dict[tuple[str, str], float] = {}
        """By neighbour and complaint: when it was last logged."""

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
        """End all connections; the broker keeps what was not acknowledged."""
        for caller in self._callers:
            caller.cancel()
        if self._server is not None:
            self._server.close()
        for connection in [*self._connections.values(), *self._strangers]:
            connection.finish()
        await asyncio.gather(*self._callers, return_exceptions=True)

    def write(self, peer: str, data: bytes) -> None:
        """Write to a neighbour, if it is there."""
        connection = self._connections.get(peer)
        if connection is not None:
            connection.write(data)

    def close(self, peer: str, why: str) -> None:
        """End the connection to a neighbour; it is made anew."""
        self.complain(peer, why)
        connection = self._connections.get(peer)
        if connection is not None:
            connection.finish()

    def complain(self, peer: str, why: str) -> None:
        """Log what is wrong with a connection, but not all the time."""
        now = asyncio.get_running_loop().time()
        last = self._complained.get((peer, why))
        if last is None or now - last >= QUIET_S:
            if len(self._complained) >= STRANGERS_MAX:
                self._complained.clear()
            self._complained[peer, why] = now
            _log.warning("%s ends a connection to %s: %s", self.broker, peer, why)

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
        self._strangers.discard(connection)
        if before is not None and before is not connection:
            self._connections.pop(peer)
            before.abort()
            self.tell(facts.PeerLost(peer))
        self._connections[peer] = connection
        self.tell(facts.PeerConnected(peer))

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
            self.tell(facts.PeerLost(peer))

    def arrived(self, connection: _Connection, peer: str, data: bytes) -> None:
        """Bytes came from a neighbour."""
        if self._connections.get(peer) is connection:
            self.tell(facts.PeerSent(peer, data))


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
        self._has_heard = False

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
        """Hand bytes on, once it is known whose they are."""
        self._has_heard = self._has_heard or self.peer is not None
        try:
            if self.peer is None:
                data = self._learn(self._greeting + data)
                if self.peer is None:
                    return
            self._links.arrived(self, self.peer, data)
        except SojournError as error:
            self._links.complain(self.peer or "a stranger", str(error))
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

    def finish(self) -> None:
        """End the connection after what was written."""
        if self._transport is not None:
            self._transport.close()
            asyncio.get_running_loop().call_later(CALL_S, self._transport.abort)

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
        if hello.broker not in self._links.peers:
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
        if not self._has_heard:
            self._links.complain(self.peer or "a stranger", "nobody said hello on it.")
            self.abort()
