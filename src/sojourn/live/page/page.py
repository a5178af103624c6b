"""The page of a broker, its metrics and its health, over HTTP.

| path | what it is |
| --- | --- |
| `/`, `/*.js`, `/page.css` | the page and its parts, all of them files of this package |
| `/stream` | its numbers every second, as server-sent events |
| `/state` | the same numbers once, and the last minutes, as JSON |
| `/clients`, `/client`, `/filters`, `/topics`, `/who`, `/history` | what people look for (`views.py`) |
| `/metrics` | Prometheus' text format |
| `/healthz` | JSON; 200 while the broker lives and can write its store, else 503 and the reasons |
| `/readyz` | JSON; 200 while links are up, copies whole and nothing is refused, else 503 and the reasons |

A server without the page has the last three. A link that is down is no reason to restart a broker: that is
why `/healthz` says nothing of it.

Just enough of HTTP/1.1, by hand: GET and HEAD, one request a connection, a limit on each of request size,
waiting time, number of streams and number of other requests: who watches takes no room from who asks. Who may
ask is `guard.py`'s business.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from sojourn.errors import SojournError
from sojourn.live.addresses import address_of, bind, why_not
from sojourn.live.config import Address
from sojourn.live.page.asking import BusyError
from sojourn.live.page.guard import Guard, headers_of
from sojourn.live.page.metrics import BrokerMetrics
from sojourn.live.page.observer import Observer
from sojourn.live.page.status import Report, link_states, store_state
from sojourn.live.page.views import Views

REQUEST_BYTES_MAX = 8_192
REQUEST_S = 5.0
"""How long a request may take to arrive, and an answer to be taken."""
STREAMS_MAX = 64
REQUESTS_MAX = 64
"""Requests under way; the one that has taken longest makes room for another."""
OPEN_TO_ALL = ("/healthz", "/readyz")
"""What machines ask that know no password."""
PARTS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
"""The files of this package that the page is made of, by how their names end, and what they are."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page runs its own script and asks nobody else."""
PARAMETERS_MAX = 16

_log = logging.getLogger("sojourn.page")


class PageError(SojournError):
    """The page cannot be served."""


class Answer(NamedTuple):
    """What a path answers with."""

    status: str
    kind: str
    body: bytes


View = Callable[[Mapping[str, str]], Awaitable[Any]]


class SmallServer:
    """Answers requests for a few paths."""

    def __init__(
        self, address: Address, password: Callable[[], str | None], routes: dict[str, Callable[[], Answer]]
    ) -> None:
        self._address = address
        self._guard = Guard(address, password)
        self._server: asyncio.Server | None = None
        self._asking: dict[asyncio.StreamWriter, None] = {}
        """Connections with a request under way, the oldest first."""
        self._watching: set[asyncio.StreamWriter] = set()
        """Connections with a stream."""
        self._next: asyncio.Future[None] | None = None
        self._policy = "default-src 'none'"
        self._streams = False
        self._parts: dict[str, Answer] = {}
        self._views: dict[str, View] = {}
        self._routes = routes

    async def start(self, before: str | None = None) -> Address:
        """Listen; return the address with the true port.

        `before` is where it was in the broker's last life, which is tried first if any port will do.
        """

        async def create(host: str, port: int) -> asyncio.Server:
            return await asyncio.start_server(self._serve, host, port, limit=REQUEST_BYTES_MAX)

        try:
            self._server, address = await bind(self._address, before, create)
        except OSError as error:
            raise PageError(f"Cannot serve the page on {self._address}: {why_not(error)}.") from None
        self._guard.listens_at(address)
        return address

    async def stop(self) -> None:
        """Take no more requests and end the streams."""
        if self._server is not None:
            self._server.close()
        for writer in (*self._asking, *self._watching):
            writer.close()
        if self._next is not None and not self._next.done():
            self._next.set_result(None)

    # One request -----------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._asking) >= REQUESTS_MAX:
            oldest = next(iter(self._asking))
            del self._asking[oldest]
            oldest.transport.abort()
        self._asking[writer] = None
        try:
            async with asyncio.timeout(REQUEST_S):
                request = await reader.readuntil(b"\r\n\r\n")
            await self._answer(reader, writer, request)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked has gone, or does not speak HTTP
        finally:
            self._asking.pop(writer, None)
            self._watching.discard(writer)
            writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
    ) -> None:
        lines = request.decode("latin-1").split("\r\n")
        headers = headers_of(lines[1:])
        method, _, rest = lines[0].partition(" ")
        path, _, query = rest.partition(" ")[0].partition("?")
        if headers is None:
            answer = Answer("400 Bad Request", "text/plain", b"A line of the request is no header.\n")
            await self._write(writer, answer)
        elif not self._guard.is_host(headers.get("host", [])):
            text = b"This page is for this machine only.\n"
            await self._write(writer, Answer("421 Misdirected Request", "text/plain", text))
        elif path not in OPEN_TO_ALL and not await self._guard.knows(
            headers.get("authorization", []), address_of(writer.get_extra_info("peername"))
        ):
            answer = Answer("401 Unauthorized", "text/plain", b"This page asks for a password.\n")
            await self._write(writer, answer)
        elif method not in ("GET", "HEAD"):
            await self._write(writer, Answer("405 Method Not Allowed", "text/plain", b"GET or HEAD.\n"))
        elif path == "/stream" and method == "GET" and self._streams:
            await self._stream(reader, writer)
        elif path in self._routes:
            await self._write(writer, self._routes[path](), with_body=method == "GET")
        elif path in self._parts:
            await self._write(writer, self._parts[path], with_body=method == "GET")
        elif path in self._views:
            await self._write(writer, await self._view(path, query), with_body=method == "GET")
        else:
            paths = [*self._routes, *self._views, *(["/", "/stream"] if self._streams else [])]
            text = f"There are {', '.join(sorted(paths))}.\n".encode()
            await self._write(writer, Answer("404 Not Found", "text/plain", text))

    async def _write(self, writer: asyncio.StreamWriter, answer: Answer, *, with_body: bool = True) -> None:
        head = self._head(answer.status, answer.kind, f"Content-Length: {len(answer.body)}\r\n")
        writer.write(head + answer.body if with_body else head)
        async with asyncio.timeout(REQUEST_S):
            await writer.drain()

    def _head(self, status: str, kind: str, length: str = "") -> bytes:
        return (
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{length}Cache-Control: no-store\r\n"
            f"Content-Security-Policy: {self._policy}\r\nX-Content-Type-Options: nosniff\r\n"
            f"Referrer-Policy: no-referrer\r\n{_asks(status)}Connection: close\r\n\r\n"
        ).encode()

    async def _view(self, _path: str, _query: str) -> Answer:
        raise NotImplementedError

    async def _stream(self, _reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError


class PageServer(SmallServer):
    """Serves what an observer sees."""

    def __init__(self, observer: Observer, address: Address, *, with_page: bool = True) -> None:
        self._observer = observer
        self._metrics = BrokerMetrics(observer)
        self._told = b""
        """What streams were told last."""
        routes: dict[str, Callable[[], Answer]] = {
            "/metrics": lambda: Answer("200 OK", CONTENT_TYPE_LATEST, self._metrics.text()),
            "/healthz": lambda: _verdict(health(observer)),
            "/readyz": lambda: _verdict(readiness(observer)),
        }
        super().__init__(address, lambda: observer.node.place.page_password if with_page else None, routes)
        self._streams = with_page
        if with_page:
            assert observer.board is not None, "a page shows the board"
            self._board = observer.board
            self._policy = POLICY
            self._views = Views(observer).paths
            self._parts = _parts()
            self._routes["/state"] = lambda: _json(self._state())

    async def start(self, before: str | None = None) -> Address:
        """Listen, and be told of every report."""
        address = await super().start(before)
        self._next = asyncio.get_running_loop().create_future()
        self._observer.listeners.append(self._ticked)
        return address

    # What there is to say --------------------------------------------------------------------------------

    async def _view(self, path: str, query: str) -> Answer:
        """What people look for, or one sentence on why they cannot have it."""
        try:
            given = dict(
                parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX)
            )
            return _json(msgspec.json.encode(await self._views[path](given)))
        except BusyError as error:
            return _sorry("503 Service Unavailable", str(error))
        except SojournError as error:
            return _sorry("400 Bad Request", str(error))
        except ValueError:
            return _sorry("400 Bad Request", "The parameters of the request cannot be read.")

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._watching) >= STREAMS_MAX:
            await self._write(writer, Answer("503 Service Unavailable", "text/plain", b"Too many watch.\n"))
            return
        self._asking.pop(writer, None)
        self._watching.add(writer)
        writer.write(self._head("200 OK", "text/event-stream"))
        # Who watches has nothing more to say.
        gone: asyncio.Future[Any] = asyncio.ensure_future(reader.read(1))
        try:
            while not (writer.is_closing() or gone.done()):
                self._told = self._told or b"data: " + self._now() + b"\n\n"
                writer.write(self._told)
                async with asyncio.timeout(REQUEST_S):
                    await writer.drain()
                assert self._next is not None
                both: set[asyncio.Future[Any]] = {gone, self._next}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()

    def _ticked(self, _report: Report) -> None:
        self._told = b""  # made again when somebody watches, once for all who do
        if self._next is not None and not self._next.done():
            self._next.set_result(None)
            self._next = asyncio.get_running_loop().create_future()

    def _now(self) -> bytes:
        return msgspec.json.encode(self._board.state(self._observer.node.now()))

    def _state(self) -> bytes:
        state = self._board.state(self._observer.node.now())
        return msgspec.json.encode(state | {"history": self._board.history.minutes()})


class Verdict(NamedTuple):
    """Whether all is well, and what is not."""

    about: dict[str, Any]
    reasons: list[str]


def health(observer: Observer) -> Verdict:
    """Whether the broker lives and can write its store; only a reason to mend or restart is a reason here."""
    node = observer.node
    about = {"broker": node.place.name, "store": store_state(node)}
    reasons = [node.core.state.refusing, None if node.failure is None else str(node.failure)]
    return Verdict(about, [why for why in reasons if why is not None])


def readiness(observer: Observer) -> Verdict:
    """Whether the broker does all that clients expect of it: its links too are up."""
    about, reasons = health(observer)
    links = link_states(observer.node)
    down = [
        f"The link to {peer} is down for {link.down_s:g} s." for peer, link in links.items() if not link.up
    ]
    about |= {
        "listens": observer.listen,
        "links": {peer: link.up for peer, link in links.items()},
        "sessions": len(observer.node.core.state.sessions),
    }
    outbox = observer.node.outbox
    if outbox is not None:
        state = outbox.copying.state()
        about["copies"] = {"wanted": observer.node.config.mobility.copies, "whole": state.least}
        about["copies"]["unplayed"] = list(state.unplayed)
        if state.why:
            reasons = [*reasons, f"It acknowledges nothing before its copies are whole: {state.why}"]
        reasons = [
            *reasons,
            *(f"What it plays for another waits for copies, {why}" for why in state.guests_why),
        ]
    full = "No room for another client: the limit on open files is reached; raise it (ulimit -n)."
    return Verdict(about, reasons + [full] * observer.node.is_out_of_files + down)


def _verdict(found: Verdict) -> Answer:
    status = "503 Service Unavailable" if found.reasons else "200 OK"
    word = "failing" if found.reasons else "ok"
    body = msgspec.json.encode({"status": word, "reasons": found.reasons, **found.about})
    return Answer(status, "application/json", body)


def _asks(status: str) -> str:
    """The header that makes a browser ask for the password."""
    return 'WWW-Authenticate: Basic realm="sojourn"\r\n' if status.startswith("401") else ""


def _json(body: bytes) -> Answer:
    return Answer("200 OK", "application/json", body)


def _sorry(status: str, text: str) -> Answer:
    return Answer(status, "application/json", msgspec.json.encode({"error": text}))


def _parts() -> dict[str, Answer]:
    """The document, and the files that it is made of."""
    found = {}
    for file in resources.files("sojourn.live.page").iterdir():
        kind = PARTS.get(file.name[file.name.rfind(".") :])
        if kind is not None:
            found[f"/{file.name}"] = Answer("200 OK", kind, file.read_bytes())
        elif file.name == "page.html":
            found["/"] = Answer("200 OK", "text/html; charset=utf-8", file.read_bytes())
    return found
