"""An address that is listened on, and that can begin to show other certificates without closing."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable

BACKLOG = 1_024


class Listener:
    """One address, and who takes the connections that come there."""

    def __init__(self, take: Callable[[], asyncio.BaseProtocol], server: asyncio.Server) -> None:
        self._take = take
        self._servers = [server]

    async def renew(self, tls: ssl.SSLContext | None) -> None:
        """Take connections with these certificates from now on; the socket is the same all the time."""
        loop = asyncio.get_running_loop()
        fresh = [
            await loop.create_server(
                self._take,
                sock=socket.socket(fileno=os.dup(one.fileno())),
                backlog=BACKLOG,
                ssl=tls,
            )
            for server in self._servers
            for one in server.sockets
        ]
        self.close()
        self._servers = fresh

    def close(self) -> None:
        """Take nobody any more."""
        for server in self._servers:
            server.close()


def keep_alive(sock: socket.socket | None) -> None:
    """Have small frames sent at once, and the kernel notice a machine that has vanished."""
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):  # not on every system
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
