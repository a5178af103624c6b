"""A broker process: sockets, signals, and an orderly end."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvloop

from sojourn.errors import SojournError
from sojourn.live.brokers.connection import ClientConnection
from sojourn.live.brokers.node import Node
from sojourn.live.config import Address, Config, parse_address
from sojourn.live.links.peers import PeerAddress
from sojourn.live.links.tls import for_clients
from sojourn.live.page.observer import Observer
from sojourn.live.page.status import Report

if TYPE_CHECKING:
    from sojourn.live.page.page import PageServer

BACKLOG = 1_024
COLLECTOR_THRESHOLDS = (50_000, 20, 50)
SPARE_FILES = 256
"""File descriptors besides those of clients."""

_log = logging.getLogger("sojourn.server")


class ListenError(SojournError):
    """An address cannot be listened on."""


class Server:
    """One broker listening for clients."""

    def __init__(self, config: Config, name: str) -> None:
        self.config = config
        self.name = name
        self.node: Node | None = None
        self._server: asyncio.Server | None = None
        self._tls_server: asyncio.Server | None = None
        self.observer: Observer | None = None
        self.page: Address | None = None
        """Where the page is, with its true port."""
        self._page_server: PageServer | None = None

    async def start(self) -> Address:
        """Listen; return the address, which has the true port where 0 was asked for."""
        loop = asyncio.get_running_loop()
        address = parse_address(self.config.broker(self.name).listen, "listen")
        node = self.node = Node(self.config, self.name, loop)
        self._server = await self._listen(node, address, None)
        tls = self.config.tls
        encrypted = self.config.broker(self.name).listen_tls
        if encrypted is not None and tls is not None:
            place = parse_address(encrypted, "listen_tls")
            self._tls_server = await self._listen(node, place, for_clients(tls, self.name))
        if node.links is not None:
            peers = self.config.broker(self.name).peers
            await node.links.start(PeerAddress(*parse_address(peers, "peers")) if peers is not None else None)
        await self._show(node)
        port = self._server.sockets[0].getsockname()[1]
        return Address(address.host, port)

    async def _show(self, node: Node) -> None:
        """Let others see how the broker is doing."""
        place = node.place.page
        self.observer = Observer(node, keeps_board=place is not None)
        self.observer.start()
        if place is not None:
            from sojourn.live.page.page import PageError, PageServer  # noqa: PLC0415 - others start faster

            self._page_server = PageServer(self.observer, parse_address(place, "page"))
            try:
                self.page = await self._page_server.start()
            except PageError as error:  # to serve clients matters more than to be seen doing it
                _log.warning("%s The broker runs without its page.", error)

    async def _listen(self, node: Node, address: Address, tls: ssl.SSLContext | None) -> asyncio.Server:
        try:
            return await asyncio.get_running_loop().create_server(
                lambda: ClientConnection(node), address.host, address.port, backlog=BACKLOG, ssl=tls
            )
        except OSError as error:
            raise ListenError(
                f"Cannot listen on {address}: {error.strerror or error}; choose another port."
            ) from None

    async def stop(self, reference: str | None = None) -> None:
        """Accept nobody any more, and tell clients where to go."""
        for server in (self._server, self._tls_server):
            if server is not None:
                server.close()
        if self._page_server is not None:
            await self._page_server.stop()
        if self.observer is not None:
            self.observer.stop()
        if self.node is not None:
            await self.node.stop(reference)


def reference_for(config: Config, name: str) -> str | None:
    """Return where the clients of a broker are to go when it stops: to a neighbour, if there is one."""
    neighbours = config.neighbours(name)
    if not neighbours:
        return None
    broker = config.broker(neighbours[0])
    return broker.advertised or broker.listen


def allow_many_files(wanted: int) -> None:
    """Raise the limit on open files as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


OnReady = Callable[[Address, Address | None], None]
"""Is told where clients connect, and where the page is."""
OnReport = Callable[[Report], bool]
"""Is told every second how the broker is doing; False asks it to stop."""


def rest_the_collector() -> None:
    """Let the cycle collector look rarely, and not at all at what was there from the start.

    A broker makes and drops many small objects and hardly any cycles; looking through all its sessions every
    few hundred of them costs time, and makes some messages wait.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def serve(config: Config, name: str, on_ready: OnReady, on_report: OnReport | None = None) -> None:
    """Run a broker until SIGTERM or SIGINT; it then tells its clients where to go."""
    allow_many_files(config.limits.connections_max + SPARE_FILES)
    uvloop.run(_serve(config, name, on_ready, on_report))


async def _serve(config: Config, name: str, on_ready: OnReady, on_report: OnReport | None) -> None:
    server = Server(config, name)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    address = await server.start()
    rest_the_collector()
    if on_report is not None and server.observer is not None:
        server.observer.listeners.append(lambda report: None if on_report(report) else stopped.set())
    on_ready(address, server.page)
    await stopped.wait()
    await server.stop(reference_for(config, name))
