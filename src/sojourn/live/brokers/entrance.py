"""Connections by TLS from the moment they are accepted: they count, whatever becomes of their handshake.

A server of the event loop tells nobody of a connection before its handshake is over. So connections are
accepted here, counted for their address and for all, and only then shake hands. One that is beyond a limit is
closed at once: a handshake costs more than anything else that a stranger can ask for. One whose handshake
fails is counted, and said in one sentence.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable

from sojourn.live.addresses import address_of
from sojourn.live.brokers.connection import ClientConnection
from sojourn.live.brokers.node import Node
from sojourn.live.links.tls import for_one
from sojourn.live.listening import BACKLOG, why_no_handshake

PAUSE_S = 0.1
"""How long nobody is accepted after the system refused to: there may be files again then."""


class TlsDoor:
    """An address where clients come by TLS; what it shows them may change while it is open."""

    def __init__(
        self, node: Node, take: Callable[[], ClientConnection], tls: ssl.SSLContext, handshake_s: float
    ) -> None:
        self._node = node
        self._take = take
        self.tls = tls
        self.handshake_s = handshake_s
        """How long a handshake may take."""
        self._accepting: list[asyncio.Task[None]] = []

    def open(self, server: asyncio.Server) -> None:
        """Accept connections at the addresses that a server has bound and does not serve."""
        for one in server.sockets:
            listening = socket.socket(fileno=os.dup(one.fileno()))
            listening.settimeout(0)  # never waits
            listening.listen(BACKLOG)
            self._accepting.append(self._node.loop.create_task(self._accept(listening)))

    def close(self) -> None:
        """Accept nobody any more."""
        for task in self._accepting:
            task.cancel()

    async def _accept(self, listening: socket.socket) -> None:
        node = self._node
        with listening:
            while True:
                try:
                    sock, address = await node.loop.sock_accept(listening)
                except ConnectionError:  # it has gone already
                    continue
                except OSError:
                    await asyncio.sleep(PAUSE_S)
                    continue
                peer = address_of(address)
                if node.knocked(peer):
                    node.begin(self._greet(sock, peer))
                else:
                    sock.close()
                await asyncio.sleep(0)  # others have their turn, however many come

    async def _greet(self, sock: socket.socket, peer: str) -> None:
        """Shake hands; from then on it is a client's connection like any other."""
        node, client = self._node, self._take()
        client.is_counted = True
        try:
            await node.loop.connect_accepted_socket(
                lambda: client, sock, ssl=for_one(self.tls), ssl_handshake_timeout=self.handshake_s
            )
        except OSError as error:  # those of TLS are among them
            why = why_no_handshake(error)
            if why is not None:
                node.shut_out(peer, *why)
        finally:
            if client.is_counted:
                node.turned_away(peer)
