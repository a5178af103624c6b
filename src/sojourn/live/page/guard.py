"""Who may see the page: its `Host` header names this machine, and the password is right if there is one.

A page on loopback answers only to the address that it listens on, port and all, and to `localhost` for the
usual ones, so that a web site elsewhere, whose name leads here for a moment, cannot read it through a
visitor's browser, nor a page that another program serves on this machine. A password is asked for as HTTP's
Basic scheme does, with any user name. Comparing one with its hash takes a while on purpose: that is done in a
thread, one at a time, and what was found right is remembered as a digest under a key that only this process
has. An address that brings wrong ones is refused without a look for a while, longer each time; what an
address counts as is said in `mqtt/parties.py`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping

from sojourn.live.brokers.admission import PASSWORD_BYTES_MAX, password_fits
from sojourn.live.config import Address
from sojourn.mqtt.parties import party_of

LOCALHOST = "localhost"
USUAL = (LOCALHOST, "127.0.0.1", "::1")
"""Addresses that have that name."""
HTTP_PORT = 80
"""The port of a Host header without one."""
PORT_DIGITS_MAX = 6
"""More than a port has: what is longer is none."""
FREE_GUESSES = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""After so many wrong passwords of an address there is a pause, which doubles with each further one."""
ADDRESSES_MAX = 1_000
"""Addresses with wrong passwords that are remembered; the one that was wrong longest ago is forgotten."""
WAITING_MAX, WAITING_ADDRESS_MAX = 8, 6
"""Passwords that wait to be compared, of all and of one address, whose browser asks six things at once."""


_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header, as HTTP has them."""


class Guard:
    """Decides about requests for one address."""

    def __init__(self, address: Address, password: Callable[[], str | None]) -> None:
        self._address = address
        self._password = password
        """What is kept of the password today; None for a page that asks for none."""
        self._key = secrets.token_bytes(32)
        self._known: bytes | None = None
        self._turn = asyncio.Lock()
        self._waiting: Counter[str] = Counter()
        """By address: how many passwords wait to be compared."""
        self._wrong: dict[str, tuple[int, float]] = {}
        """By address: how many wrong passwords it brought, and until when it is refused without a look."""

    def is_host(self, hosts: list[str]) -> bool:
        """Whether a request names this page, exactly and once; or nothing at all, as no browser does."""
        if not self._address.is_loopback or not hosts:
            return True
        name, port = _name(hosts[0])
        own = self._address.host.lower()
        is_named = name == own or (name in USUAL and own in USUAL and LOCALHOST in (name, own))
        return len(hosts) == 1 and is_named and port == self._address.port

    def listens_at(self, address: Address) -> None:
        """Note the true port, where the configuration left it open."""
        self._address = address

    async def knows(self, authorizations: list[str], address: str) -> bool:
        """Whether a request from an address brings the password, if there is one."""
        kept = self._password()
        if kept is None:
            return True
        given = _given(authorizations)
        if given is None:
            return False
        digest = hmac.digest(self._key, kept.encode() + b"\0" + given, hashlib.sha256)
        if self._known is not None and hmac.compare_digest(self._known, digest):
            return True
        party = party_of(address)
        if self._waiting.total() >= WAITING_MAX or self._waiting[party] >= WAITING_ADDRESS_MAX:
            return False
        self._waiting[party] += 1
        try:
            async with self._turn:
                fits = not self._must_pause(party) and await asyncio.get_running_loop().run_in_executor(
                    None, password_fits, kept, given
                )
                self._note(party, fits=fits)
        finally:
            self._waiting[party] -= 1
            self._waiting += Counter()  # forgets those of whom none waits
        if fits:
            self._known = digest
        return fits

    def _must_pause(self, address: str) -> bool:
        """Whether an address brought too many wrong passwords just now."""
        _, until_s = self._wrong.get(address, (0, 0.0))
        return asyncio.get_running_loop().time() < until_s

    def _note(self, address: str, *, fits: bool) -> None:
        count, until_s = self._wrong.pop(address, (0, 0.0))
        if fits:
            return
        now = asyncio.get_running_loop().time()
        if now >= until_s:  # else it was not even looked at
            count += 1
            pauses = min(count - FREE_GUESSES, 10)
            until_s = now + min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**pauses / 2) if pauses > 0 else now
        self._wrong[address] = count, until_s
        if len(self._wrong) > ADDRESSES_MAX:
            del self._wrong[next(iter(self._wrong))]


def headers_of(lines: list[str]) -> Mapping[str, list[str]] | None:
    """The values of a request's headers by name, in small letters; None if a line is no header.

    A name with a blank before its colon, or a line that goes on with the one before, would be a header to
    some and none to others (RFC 9112, section 5): who could be misled is not answered.
    """
    found: dict[str, list[str]] = {}
    for line in filter(None, lines):
        name, colon, value = line.partition(":")
        if not colon or _HEADER.fullmatch(name) is None:
            return None
        found.setdefault(name.lower(), []).append(value.strip(" \t"))
    return found


def _name(host: str) -> tuple[str, int]:
    """The name in a Host header, in small letters, and its port; an empty name if it is none."""
    if host.startswith("["):
        name, bracket, rest = host[1:].partition("]")
        if not bracket or ":" not in name:
            return "", 0
    else:
        name, bracket, rest = host.partition(":")
        rest = bracket + rest
    port = rest.removeprefix(":")
    if (rest and not rest.startswith(":")) or (port and not (port.isascii() and port.isdecimal())):
        return "", 0
    return name.lower(), int(port[:PORT_DIGITS_MAX]) if port else HTTP_PORT


def _given(authorizations: list[str]) -> bytes | None:
    """The password that a request brings."""
    if len(authorizations) != 1:
        return None
    scheme, _, encoded = authorizations[0].partition(" ")
    try:
        _, colon, password = base64.b64decode(encoded, validate=True).partition(b":")
    except ValueError:
        return None
    is_one = scheme.lower() == "basic" and colon and len(password) <= PASSWORD_BYTES_MAX
    return password if is_one else None
