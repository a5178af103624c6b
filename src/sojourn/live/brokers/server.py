"""A broker process: sockets, signals, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from msgspec.structs import replace

from sojourn.errors import SojournError
from sojourn.live.addresses import AddressBook, ComeFrom, Listening, bind, book_of, true_address, why_not
from sojourn.live.brokers.certificate_watch import CertificateWatch
from sojourn.live.brokers.collecting import rest_the_collector
from sojourn.live.brokers.connection import ClientConnection
from sojourn.live.brokers.control import Control
from sojourn.live.brokers.entrance import TlsDoor
from sojourn.live.brokers.leaving import Leaving
from sojourn.live.brokers.node import Node
from sojourn.live.brokers.operating import handlers_of, reloaded
from sojourn.live.brokers.reloading import Reload, apply, prepared
from sojourn.live.brokers.source import check_source
from sojourn.live.config import Address, Config, parse_address
from sojourn.live.links.tls import for_clients, for_guests
from sojourn.live.listening import BACKLOG
from sojourn.live.mishaps import Mishaps
from sojourn.live.page.observer import Observer
from sojourn.live.page.status import Report
from sojourn.live.store.folder import FolderError, refuse_left_votes

if TYPE_CHECKING:
    from sojourn.live.page.page import PageServer
    from sojourn.live.page.waiting import WaitingServer
    from sojourn.live.seats.chamber import Chamber

SPARE_FILES = 256
"""File descriptors besides those of clients."""
SPARE_SHARE = 4
"""Where the system allows few, this part of them is kept for files, pages and neighbours."""

_log = logging.getLogger("sojourn.server")


class ListenError(SojournError):
    """An address cannot be listened on."""


class Server:
    """One broker listening for clients."""

    def __init__(self, config: Config, name: str, book: AddressBook | None = None) -> None:
        self.config = config
        self.name = name
        self.book = book if book is not None else book_of(config)
        """Where brokers say where they listen: the configuration's folder, unless another is given."""
        self.node: Node | None = None
        self.on_failure: Callable[[], None] = lambda: None
        """What is to happen when the broker cannot go on."""
        self.on_stop: Callable[[], None] = lambda: None
        """What is to happen when an operator wants it to stop."""
        self._listeners: list[asyncio.Server] = []
        """The addresses for clients."""
        self.tls_doors: dict[str, TlsDoor] = {}
        """By key of the configuration: those of them where clients come by TLS."""
        self.observer: Observer | None = None
        self.mishaps = Mishaps()
        """Errors that nobody expected; filled where the loop is the broker's own."""
        self.certificate = CertificateWatch(name)
        self.listening: Listening | None = None
        """Where it listens, with true ports."""
        self.page: Address | None = None
        """Where the page is, with its true port."""
        self._page_servers: list[PageServer] = []
        self.waiting_at: dict[str, str] = {}
        """By key of the configuration: where it was shown what the broker waited for."""
        self.reread: Callable[[], Config] | None = None
        """Reads the configuration anew; None where it did not come from a file."""
        self.file: Path | None = None
        """That file."""
        self._control: Control | None = None
        self.chamber: Chamber | None = None
        """Keeps copies at other processes, and those of others here, where that is wanted."""

    async def start(self) -> Address:
        """Listen; return the address, which has the true port where 0 was asked for."""
        place = self.config.broker(self.name)
        before = self.book.find(self.name) or Listening(broker=self.name, pid=0, clients="")
        node = self.node = await self._play(before)
        node.on_failure = self.on_failure  # at once: it may fail in its first turn, while others are awaited
        if node.failure is not None:
            raise node.failure
        if node.network is not None and self.name in node.network.farewells:
            raise ListenError(
                f"{self.name} has left the network: `sojourn leave` takes it out of its file. To let it join "
                "again, give it a new name and a new store."
            )
        if node.warmer.is_due:
            await node.warmer.warm()
        tls = None if self.config.tls is None else for_clients(self.config.tls, self.name)
        guests = (
            None if self.config.tls is None else for_guests(self.config.tls, self.name, place.certificates)
        )
        self.certificate.shows(self.config.tls)
        address = await self._listen("listen", place.listen, before.clients or None)
        assert address is not None
        encrypted = await self._listen("listen_tls", place.listen_tls, before.tls, guests)
        ws = await self._listen("listen_ws", place.listen_ws, before.ws)
        wss = await self._listen("listen_wss", place.listen_wss, before.wss, tls)
        peers: Address | None = None
        if node.links is not None:
            wanted = None if place.peers is None else parse_address(place.peers, "peers")
            peers = await node.links.start(wanted, before.peers)
        self.listening = Listening(
            broker=self.name,
            pid=os.getpid(),
            clients=str(address),
            tls=_text(encrypted),
            ws=_text(ws),
            wss=_text(wss),
            peers=_text(peers),
            came_from=_came_from(node),
        )
        await self._show(node, before)
        if self.config.network.control is not None:
            leaving = Leaving(
                node, self._close_doors, lambda: reference_for(node.config, self.name, self.book)
            )
            handlers = handlers_of(node, self._asked_to_reload, leaving, self._stop_wanted, self.chamber)
            self._control = Control(self.config.network.control, self.name, handlers)
            await self._control.start()
        node.files_room = files_room()
        self.book.write(self.listening)
        return address

    async def _play(self, listened: Listening) -> Node:
        """Begin with the broker; where other processes have copies of it, once they let it."""
        loop = asyncio.get_running_loop()
        if not self.config.mobility.copies:
            refuse_left_votes(self.name, self.config.broker(self.name).store)
            return Node(self.config, self.name, loop, self.book)
        from sojourn.live.seats.chamber import Chamber  # noqa: PLC0415 - others start faster
        from sojourn.live.seats.mesh import book_name  # noqa: PLC0415 - others start faster

        try:
            chamber = self.chamber = Chamber(self.config, self.name, loop, self.book)
        except OSError as error:
            store = self.config.broker(self.name).store
            text = (
                f"{self.name} cannot note its votes about copies beside its store {store}: {error.strerror}."
            )
            raise FolderError(f"{text} Mend that, and start it again; until then others play it.") from None
        before = self.book.find(book_name(self.name))
        await chamber.start(None if before is None else before.seats)
        waiting = await self._show_waiting(chamber, listened)
        try:
            return await chamber.play_own()
        finally:
            for server in waiting:
                await server.stop()

    async def _show_waiting(self, chamber: Chamber, before: Listening) -> list[WaitingServer]:
        """Let others see what the broker waits for, where they will see how it is doing."""
        from sojourn.live.page.page import PageError  # noqa: PLC0415 - others start faster
        from sojourn.live.page.waiting import WaitingServer  # noqa: PLC0415 - others start faster

        place, servers = self.config.broker(self.name), []
        wanted = (("page", place.page, before.page), ("metrics", place.metrics, before.metrics))
        for key, text, last in wanted:
            if text is None:
                continue
            password = place.page_password if key == "page" else None
            server = WaitingServer(
                self.name, parse_address(text, key), chamber.waits_for, chamber.council.ballot, password
            )
            try:
                self.waiting_at[key] = str(await server.start(last))
            except PageError as error:  # it is tried again when the broker serves, and said then
                _log.info("%s", error)
                continue
            servers.append(server)
        return servers

    async def _show(self, node: Node, before: Listening) -> None:
        """Let others see how the broker is doing."""
        assert self.listening is not None
        place = node.place
        self.observer = Observer(
            node, keeps_board=place.page is not None, listen=self.listening.clients, mishaps=self.mishaps
        )
        self.observer.certificate = self.certificate
        self.observer.start()
        why = None
        if place.page is not None:
            self.page, why = await self._serve_page(
                "page", place.page, self.waiting_at.get("page", before.page)
            )
        metrics: Address | None = None
        if place.metrics is not None:
            metrics, _ = await self._serve_page(
                "metrics", place.metrics, self.waiting_at.get("metrics", before.metrics)
            )
        self.listening = replace(
            self.listening, page=_text(self.page), metrics=_text(metrics), without_page=why
        )

    async def _serve_page(
        self, key: str, place: str, before: str | None
    ) -> tuple[Address | None, str | None]:
        """Serve the page, or the metrics alone; return where, or why not."""
        from sojourn.live.page.page import PageError, PageServer  # noqa: PLC0415 - others start faster

        assert self.observer is not None
        server = PageServer(self.observer, parse_address(place, key), with_page=key == "page")
        try:
            address = await server.start(before)
        except PageError as error:  # to serve clients matters more than to be seen doing it
            _log.warning("%s The broker runs without its %s.", error, key)
            return None, str(error)
        self._page_servers.append(server)
        return address, None

    def _taker(self, door: str) -> Callable[[], ClientConnection]:
        """What takes clients at an address."""
        assert self.node is not None
        node, place = self.node, self.node.place
        if door in ("listen", "listen_tls"):
            return partial(ClientConnection, node, door)
        from sojourn.live.brokers.websocket import Gate, WebSocketConnection  # noqa: PLC0415 - others start faster

        gate = Gate(self.config.security.origins, on_loopback=place.is_on_loopback)
        return partial(WebSocketConnection, node, gate, door)

    async def _listen(
        self, door: str, place: str | None, before: str | None, tls: ssl.SSLContext | None = None
    ) -> Address | None:
        """Listen for clients, if that is wanted; return the true address."""
        if place is None:
            return None
        wanted, take = parse_address(place, door), self._taker(door)

        async def create(host: str, port: int) -> asyncio.Server:
            return await asyncio.get_running_loop().create_server(
                take, host, port, backlog=BACKLOG, start_serving=tls is None
            )

        try:
            server, address = await bind(wanted, before, create)
            if tls is not None:  # a handshake may take no longer than a CONNECT
                assert self.node is not None
                handshake_s = float(self.config.limits.connect_timeout_s)
                self.tls_doors[door] = TlsDoor(self.node, take, tls, handshake_s)
                self.tls_doors[door].open(server)
        except OSError as error:
            raise ListenError(f"{self.name} cannot listen on {wanted}: {why_not(error)}.") from None
        self._listeners.append(server)
        return address

    async def hung_up(self) -> None:
        """Do what SIGHUP asks for: operators find their way again, and the configuration is read anew."""
        if self._control is not None:
            await self._control.look()
        await reloaded(self.reload)

    async def _asked_to_reload(self, asked: Mapping[str, object]) -> str:
        check_source(asked, self.file, self.name)
        return await self.reload()

    async def reload(self) -> str:
        """Take in what has changed in the configuration; say what was done, and what waits for a restart."""
        if self.reread is None:
            raise ListenError(f"{self.name} was started without a file, so there is nothing to read anew.")
        node, chamber = self.node, self.chamber
        if node is None and chamber is None:
            raise ListenError(f"{self.name} is only just starting; try again when it listens.")
        try:
            read = self.reread()
            found = self._prepared(read)
            certificates = self._fresh_certificates(found.config)
        except (OSError, ValueError) as error:  # of a file that is named there, and nobody thought of
            raise ListenError(f"The configuration of {self.name} cannot be taken in: {error}.") from error
        guests: list[str] = []
        if chamber is not None:
            from sojourn.live.seats.renewing import renew  # noqa: PLC0415 - others start faster

            guests = await renew(chamber, found.config, node)
        for key, context in certificates.items():
            self.tls_doors[key].tls = context
        self.certificate.shows(found.config.tls)
        self.config = found.config
        said, expected, is_learnt = f"{self.name} has read its configuration anew", [], False
        if node is not None:
            if node.links is not None:
                await node.links.renew(found.proof)
            is_learnt = found.learnt != node.broker.settings.learnt
            said += f"; {apply(node, found)} clients were sent away"
            said += _audit_trouble(node)
            expected = node.regrouping.expect(read)
        if guests:
            said += f"; it holds for {', '.join(guests)} too, played here"
        if chamber is not None:
            chamber.expect(read)
        if expected:
            said += f"; {', '.join(expected)} may join here"
        if is_learnt:
            said += "; it goes by what was learnt anew of where clients go"
        return said + _what_waits(found)

    def _prepared(self, read: Config) -> Reload:
        """Return what is to hold, or refuse it."""
        if self.node is None:  # it waits for other processes, and may play a guest meanwhile
            return prepared(self.config, read, self.config.settings(self.name))
        return prepared(self.node.config, read, self.node.broker.settings)

    def _fresh_certificates(self, config: Config) -> dict[str, ssl.SSLContext]:
        """Return what clients by TLS are to see from now on, by door; open connections go on."""
        if config.tls is None:
            return {}
        place = config.broker(self.name)
        fresh = {
            "listen_tls": for_guests(config.tls, self.name, place.certificates),
            "listen_wss": for_clients(config.tls, self.name),
        }
        return {key: context for key, context in fresh.items() if key in self.tls_doors}

    def _stop_wanted(self) -> None:
        self.on_stop()

    def _close_doors(self) -> None:
        """Let nobody in any more."""
        for door in self.tls_doors.values():
            door.close()
        for listener in self._listeners:
            listener.close()

    async def stop(self, reference: str | None = None) -> None:
        """Accept nobody any more, tell clients where to go, and neighbours what is here in the end."""
        if self._control is not None:
            await self._control.stop()
        self._close_doors()
        self.certificate.stop()
        for page_server in self._page_servers:
            await page_server.stop()
        if self.node is not None:
            self.node.dismiss(reference)
        if self.observer is not None:
            self.observer.stop()
        if self.node is not None:
            await self.node.stop()
        if self.chamber is not None:
            self.chamber.stop()


def reference_for(config: Config, name: str, book: AddressBook) -> str | None:
    """Return where the clients of a broker are to go when it stops: to a neighbour, if there is one."""
    neighbours = config.neighbours(name)
    if not neighbours:
        return None
    broker = config.broker(neighbours[0])
    wanted = parse_address(broker.listen, "listen")
    if broker.advertised is not None or wanted.port:
        return broker.advertised or broker.listen
    said = book.find(broker.name)
    return None if said is None else _text(true_address(wanted, said.clients, broker.name))


def _came_from(node: Node) -> ComeFrom | None:
    """What a broker brought along from a network of other brokers or links; None if nothing, or from none."""
    before, settings, state = node.broker.settings_before, node.broker.settings, node.core.state
    if before.drawn == settings.drawn or not (state.sessions or state.retained.count):
        return None
    return ComeFrom(network=before.drawn, sessions=len(state.sessions), retained=state.retained.count)


def _what_waits(found: Reload) -> str:
    """Return what has changed in a configuration and cannot hold yet, if anything has."""
    if not found.waits:
        return ""
    needs = "needs" if len(found.waits) == 1 else "need"
    return f"; {', '.join(found.waits)} changed too and {needs} a restart"


def _audit_trouble(node: Node) -> str:
    why = node.witnesses.audit_trouble()
    return "" if why is None else f"; {why}"


def _text(address: Address | None) -> str | None:
    return None if address is None else str(address)


def allow_many_files(wanted: int) -> None:
    """Raise the limit on open files as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


def files_room() -> int | None:
    """How many files this process may open besides those it has open and those it may need."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        count = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - numbers, and no files
    except OSError:  # another system
        return None
    return max(1, soft - count - min(SPARE_FILES, soft // SPARE_SHARE))


OnReady = Callable[[Listening], None]
"""Is told where the broker listens."""
OnReport = Callable[[Report], bool]
"""Is told every second how the broker is doing; False asks it to stop."""


Reread = Callable[[], Config]
"""Reads the configuration anew."""


def serve(
    config: Config,
    name: str,
    on_ready: OnReady,
    on_report: OnReport | None = None,
    reread: Reread | None = None,
    file: Path | None = None,
) -> None:
    """Run a broker until SIGTERM or SIGINT; it then tells its clients where to go.

    SIGHUP makes it read its configuration anew. What it writes is for its own user alone.
    """
    os.umask(0o077)
    allow_many_files(config.limits.connections_max + SPARE_FILES)
    server = Server(config, name)
    server.reread, server.file = reread, None if file is None else file.absolute()
    uvloop.run(_serve(server, on_ready, on_report))


async def _serve(server: Server, on_ready: OnReady, on_report: OnReport | None) -> None:
    config, name = server.config, server.name
    stopped = asyncio.Event()
    server.on_failure = server.on_stop = stopped.set
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(server.mishaps.heard)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    reloads: set[asyncio.Task[None]] = set()

    def on_hangup() -> None:
        task = loop.create_task(server.hung_up())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    loop.add_signal_handler(signal.SIGHUP, on_hangup)
    starting = loop.create_task(server.start())
    stopping = loop.create_task(stopped.wait())
    await asyncio.sleep(0)  # now there is something that can be reloaded
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():  # it waits for other processes, and is stopped meanwhile
        starting.cancel()
        await asyncio.wait({starting})
        await server.stop()
        if server.node is not None and server.node.failure is not None:
            raise server.node.failure
        return
    await starting
    assert server.listening is not None
    assert server.node is not None
    rest_the_collector()
    if on_report is not None and server.observer is not None:
        server.observer.listeners.append(lambda report: None if on_report(report) else stopped.set())
    on_ready(server.listening)
    await stopped.wait()
    await server.stop(reference_for(config, name, server.book))
    if server.node.failure is not None:
        raise server.node.failure
