"""An address that is listened on, and that can begin to show other certificates without closing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Callable

from sojourn.live.links.tls import for_one

BACKLOG = 1_024


HANDSHAKES_MAX = 64
"""Handshakes of TLS that may be under way at once; beyond it the one that has taken longest makes room."""
HANDSHAKE_S = 5.0
PAUSE_S = 0.1
"""How long nobody is accepted after the system refused to: there may be files again then."""

FAILED = "handshake of TLS failed"
TOO_LONG = "handshake of TLS took too long"
"""Why a connection was closed before anybody was told of it."""

Take = Callable[[], asyncio.BaseProtocol]
ShutOut = Callable[[str, str, str], None]
"""Is told of a handshake that came to nothing: the address, the name of the reason and a sentence."""


def _ignore(_host: str, _why: str, _sentence: str) -> None:
    """Say nothing of it."""


class Listener:
    """One address, and who takes the connections that come there."""

    def __init__(
        self, take: Take, server: asyncio.Server, tls: ssl.SSLContext | None, shut_out: ShutOut = _ignore
    ) -> None:
        """Take connections at the addresses that a server has bound; by TLS if it does not serve them."""
        self._take, self._shut_out = take, shut_out
        self._servers = [server]
        self._greeting = None if tls is None else Greeting(take, tls, server, shut_out=shut_out)

    async def renew(self, tls: ssl.SSLContext | None) -> None:
        """Take connections with these certificates from now on; the socket is the same all the time."""
        if self._greeting is not None and tls is not None:
            self._greeting.tls = tls
            return
        loop = asyncio.get_running_loop()
        fresh = [
            await loop.create_server(
                self._take,
                sock=socket.socket(fileno=os.dup(one.fileno())),
                backlog=BACKLOG,
                start_serving=tls is None,
            )
            for server in self._servers
            for one in server.sockets
        ]
        self.close()
        self._servers = fresh
        self._greeting = None if tls is None else Greeting(self._take, tls, *fresh, shut_out=self._shut_out)

    def close(self) -> None:
        """Take nobody any more."""
        if self._greeting is not None:
            self._greeting.close()
        for server in self._servers:
            server.close()


class Greeting:
    """Takes connections by TLS, and knows them from the moment they are accepted.

    A server of the event loop tells nobody of a connection before its handshake is over. Strangers who say
    nothing would use up all files that a process may have open.
    """

    def __init__(
        self, take: Take, tls: ssl.SSLContext, *servers: asyncio.Server, shut_out: ShutOut = _ignore
    ) -> None:
        self._take, self._shut_out = take, shut_out
        self.tls = tls
        """May be replaced; it holds for connections from then on."""
        self._under_way: dict[asyncio.Task[None], socket.socket] = {}
        """The oldest first."""
        self._loop = asyncio.get_running_loop()
        bound = [one for server in servers for one in server.sockets]
        self._accepting = [self._loop.create_task(self._accept(one)) for one in map(_listening, bound)]

    def close(self) -> None:
        """Accept nobody any more."""
        for task in (*self._accepting, *self._under_way):
            task.cancel()

    async def _accept(self, listening: socket.socket) -> None:
        with listening:
            while True:
                try:
                    sock, address = await self._loop.sock_accept(listening)
                except ConnectionError:  # it has gone already
                    continue
                except OSError:
                    await asyncio.sleep(PAUSE_S)
                    continue
                if len(self._under_way) >= HANDSHAKES_MAX:
                    self._end_oldest()
                task = self._loop.create_task(self._greet(sock, str(address[0])))
                self._under_way[task] = sock
                task.add_done_callback(self._is_over)
                await asyncio.sleep(0)  # others have their turn, however many come

    async def _greet(self, sock: socket.socket, host: str) -> None:
        """Shake hands; whoever takes the connection is told of it then."""
        try:
            await self._loop.connect_accepted_socket(
                self._take, sock, ssl=for_one(self.tls), ssl_handshake_timeout=HANDSHAKE_S
            )
        except OSError as error:  # those of TLS are among them
            why = why_no_handshake(error)
            if why is not None:
                self._shut_out(host, *why)

    def _end_oldest(self) -> None:
        """Let a handshake fail."""
        oldest = next(iter(self._under_way))
        with contextlib.suppress(OSError):  # it has gone already
            self._under_way.pop(oldest).shutdown(socket.SHUT_RDWR)

    def _is_over(self, task: asyncio.Task[None]) -> None:
        self._under_way.pop(task, None)


def _listening(bound: socket.socket) -> socket.socket:
    """A socket at the same address that accepts connections, and never waits."""
    found = socket.socket(fileno=os.dup(bound.fileno()))
    found.settimeout(0)
    found.listen(BACKLOG)
    return found


def why_no_handshake(error: OSError) -> tuple[str, str] | None:
    """The name and the sentence of what went wrong with a handshake; None for who went without a word."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return FAILED, f"its certificate was not accepted ({error.verify_message})"
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return None
    if isinstance(error, ssl.SSLError):
        return FAILED, f"TLS could not be agreed on ({(error.reason or 'unknown').replace('_', ' ').lower()})"
    if isinstance(error, ConnectionAbortedError) and "handshake" in str(error):
        return TOO_LONG, "its handshake of TLS took too long"
    return None


def keep_alive(sock: socket.socket | None) -> None:
    """Have small frames sent at once, and the kernel notice a machine that has vanished."""
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # not on every system
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
