"""Calls to neighbours: directly, or by way of a process that passes on what one caller says.

A process that passes on listens for one caller, at a port that anybody may find. So it tells that caller
alone a word to begin with (`seats/detours.py`), and the word is said before anything of the link is, be it
encrypted or not.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Self, TypeVar

from sojourn.live.config import Address

WORD_BYTES = 32

_Protocol = TypeVar("_Protocol", bound=asyncio.Protocol)


class Doorway(Address):
    """Where a word has to be said first."""

    word: bytes

    def __new__(cls, address: Address, word: bytes) -> Self:
        """Make one of an address."""
        made = super().__new__(cls, *address)
        made.word = word
        return made


async def called(
    address: Address, protocol: Callable[[], _Protocol], tls: ssl.SSLContext | None, name: str | None
) -> _Protocol:
    """Connect to an address; with encryption, to whoever proves this name."""
    loop = asyncio.get_running_loop()
    if not isinstance(address, Doorway):
        return (await loop.create_connection(protocol, *address, ssl=tls, server_hostname=name))[1]
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003  (as the standard library has it)
        await loop.sock_connect(sock, tuple(address))
        await loop.sock_sendall(sock, address.word)
        return (await loop.create_connection(protocol, sock=sock, ssl=tls, server_hostname=name))[1]
    except BaseException:
        sock.close()
        raise
