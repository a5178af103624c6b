"""Where brokers really listen: a port of 0 in a configuration means any that is free.

Nobody can know beforehand which port will be free when a broker binds it. So a broker binds first and then
says in its *address file*, `NAME.address.json`, where it listens:

    book = FolderBook(folder)
    server, address = await bind(wanted, known, create)    # tries the port it had before, then any
    book.write(Listening(broker="B1", clients=str(address), …))
    book.find("B1")                                        # read anew each time

Neighbours read the file whenever they call, so a broker that comes back on another port is found again. Of a
file only ports are believed: the hosts must be those of the configuration. `MemoryBook` does the same for
brokers in one process.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import msgspec

from sojourn.live.config import Address, Config, ConfigError, parse_address
from sojourn.live.seldom import Seldom

FILE_BYTES_MAX = 4_096
SCOPE_AT = 3
"""Where in what a socket says of its peer the link is, by IPv6."""

_log = logging.getLogger("sojourn.addresses")
_seldom = Seldom(_log)


def address_of(peername: object) -> str:
    """The address that a socket says it is connected to; one that holds on a link only, with that link."""
    if not isinstance(peername, tuple):
        return ""
    host, scope = str(peername[0]), peername[3] if len(peername) > SCOPE_AT else 0
    if not scope or "%" in host:
        return host
    try:
        return f"{host}%{socket.if_indextoname(scope)}"
    except OSError:  # the link is gone already
        return f"{host}%{scope}"


class ComeFrom(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker brought along from another network."""

    network: str
    """Its brokers and links, in words."""
    sessions: int
    retained: int


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where one broker listens; what it does not serve is None."""

    broker: str
    pid: int
    """The process that wrote this: an older file is told from that of a broker just started."""
    clients: str
    tls: str | None = None
    ws: str | None = None
    wss: str | None = None
    peers: str | None = None
    seats: str | None = None
    page: str | None = None
    metrics: str | None = None
    without_page: str | None = None
    """Why there is no page although the configuration wants one."""
    came_from: ComeFrom | None = None
    """The other network that it was part of in its last life, if so."""

    @property
    def place(self) -> Listening:
        """Where that is, whichever life of the broker says so."""
        return msgspec.structs.replace(self, pid=0, came_from=None)


class AddressBook(Protocol):
    """Where brokers listen, by name."""

    def find(self, broker: str) -> Listening | None:
        """Return what a broker last said; None if nothing that can be used."""

    def write(self, listening: Listening) -> None:
        """Say where a broker listens."""


class MemoryBook:
    """The address book of brokers in one process."""

    def __init__(self) -> None:
        self._known: dict[str, Listening] = {}

    def find(self, broker: str) -> Listening | None:
        """Return what a broker last said."""
        return self._known.get(broker)

    def write(self, listening: Listening) -> None:
        """Say where a broker listens."""
        self._known[listening.broker] = listening


class FolderBook:
    """The address book of brokers on one machine: a folder with a file for each."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, broker: str) -> Path:
        """Where a broker's address file is."""
        return self.folder / f"{broker}.address.json"

    def find(self, broker: str) -> Listening | None:
        """Return what a broker last said; a file that cannot be used counts as none, and that is logged."""
        path = self.path(broker)
        try:
            with path.open("rb") as file:
                found = msgspec.json.decode(file.read(FILE_BYTES_MAX), type=Listening)
            if found.broker != broker:
                raise ConfigError(f"it is of {found.broker!r}")  # noqa: TRY301 - one place says what is wrong
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, ConfigError) as error:
            _seldom.warning(("address file", broker), "The address file %s is ignored: %s", path, error)
            return None
        return found

    def write(self, listening: Listening) -> None:
        """Say where a broker listens: the file appears whole, and only its owner reads it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Made by mkstemp, which lets nobody else read it.
            number, name = tempfile.mkstemp(dir=self.folder, prefix=f".{listening.broker}.")
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(msgspec.json.encode(listening) + b"\n")
                Path(name).replace(self.path(listening.broker))
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise ConfigError(
                f"{listening.broker} cannot say in the folder {self.folder} where it listens: "
                f"{error.strerror or error}; name another with `addresses` in [network]."
            ) from None


def book_of(config: Config) -> AddressBook:
    """Return the address book that a configuration names, or one that only this process knows."""
    folder = config.network.addresses
    return MemoryBook() if folder is None else FolderBook(folder)


def true_address(wanted: Address, said: str | None, broker: str) -> Address | None:
    """Return where to call a broker: as configured, or at the port that it said; None if that is unknown."""
    if wanted.port or said is None:
        return wanted if wanted.port else None
    try:
        found = parse_address(said, "an address")
    except ConfigError as error:
        _seldom.warning(("address", broker), "What %s says of its address is ignored: %s", broker, error)
        return None
    if found.host != wanted.host or not found.port:
        _seldom.warning(
            ("host", broker), "%s says it listens on %s, which its configuration does not", broker, found
        )
        return None
    return found


async def bind(
    wanted: Address, said: str | None, create: Callable[[str, int], Awaitable[asyncio.Server]]
) -> tuple[asyncio.Server, Address]:
    """Listen as configured; where any port will do, on the one had before if it is still free.

    Returns the server and its true address; raises OSError if there is no way.
    """
    before = true_address(wanted, said, "this broker") if not wanted.port else None
    if before is not None:
        try:
            return await create(before.host, before.port), before
        except OSError:
            _log.info("another process has the port of before", extra={"address": str(before)})
    server = await create(wanted.host, wanted.port)
    return server, Address(wanted.host, int(server.sockets[0].getsockname()[1]))


def why_not(error: OSError) -> str:
    """Say in a few words why an address cannot be listened on."""
    if error.errno == errno.EADDRINUSE:
        return "another process has that port; stop it or choose another"
    if error.errno == errno.EACCES:
        return "this user may not use that port; choose one above 1023"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address; use one of its own, or 0.0.0.0 for all of them"
    return str(error.strerror or error)
