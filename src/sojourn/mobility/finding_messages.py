"""The messages by which brokers find the session of a client (`finding.py` has the rules)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

EVERYBODY = -1
"""The destination of a question to all brokers."""
FIND, FOUND = 32, 33
"""Kinds of messages, beyond those of `routing.messages`, which no router sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """The client connected to the sender under this epoch; whoever has its session is to give it."""

    kind: ClassVar[int] = FIND
    destination: int
    sender: int
    client: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer to a `Find` of that epoch."""

    kind: ClassVar[int] = FOUND
    destination: int
    sender: int
    client: int
    epoch: int
    held_epoch: int
    """The epoch of a later connection of the client, or 0 if none is known."""
    held_at: int
    """The broker of that connection. If it is the sender, that has the last word about it."""
    present: bool
    """Whether the client is still connected there, or waits for its session; only the broker itself knows."""
    holds: bool
    """Whether the sender has a session of the client, and keeps it."""
    waits_for: tuple[int, ...]
    """Brokers out of reach that may still send the session here; after them the sender speaks again."""
    holder: int
    """The broker that had the session, and still has what is stored for the client: not always the sender,
    who may have passed on what came too late for itself."""
    state: bytes | None
    """The session, which is the asker's from now on."""
