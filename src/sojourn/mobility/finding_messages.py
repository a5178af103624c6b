"""What brokers say to find the session of a client, and what comes of it (`finding.py` has the rules)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, NamedTuple

EVERYBODY = -1
"""The destination of a question to all brokers."""
FIND, FOUND = 32, 33
"""Kinds of messages, beyond those of `routing.messages`, which no router sees."""
CLEARED, FORGOT = 45, 46


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """The client connected to the sender under this epoch; whoever has its session is to give it."""

    kind: ClassVar[int] = FIND
    destination: int
    sender: int
    client: int
    epoch: int
    owner: str | None = None
    """Who is connected under it: a session of somebody else is not given. None where the sender cannot say;
    whoever is given a session then looks whose it is."""
    since_s: float | None = None
    """Since when there is a session of that owner with the sender; None if the client waits for one."""


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
    who may have passed on what came too late for itself. Of a refusal that is passed on, who did that."""
    state: bytes | None
    """The session, which is the asker's from now on."""
    refused: str | None = None
    """The owner in the question, if the session here is somebody else's and stays: it may have none."""
    since_s: float | None = None
    """Of a refusal: since when the session here is that somebody's."""

    @property
    def is_passed_on(self) -> bool:
        """Whether a refusal went on to where a session had gone: there it answers nothing that was asked."""
        return self.refused is not None and self.holder != self.sender


def refusal(question: Find, here: int, since_s: float) -> Found:
    """Return the answer to somebody for whom a session is not that this broker has, and since when."""
    return Found(
        destination=question.sender,
        sender=here,
        client=question.client,
        epoch=question.epoch,
        held_epoch=0,
        held_at=here,
        present=False,
        holds=False,
        waits_for=(),
        holder=here,
        state=None,
        refused=question.owner,
        since_s=since_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """A session that the destination gave away has ended: nobody will ask for what it stores for it."""

    kind: ClassVar[int] = CLEARED
    destination: int
    client: int
    epoch: int
    """Of the session's last connection there."""
    lost: int | None = None
    """How many of the stored events, the oldest, nobody wanted to lose: the session was given up."""


@dataclass(frozen=True, slots=True)
class Forgot:
    """A broker has forgotten what it did last: no active copy is to be relied on; to be passed on."""

    kind: ClassVar[int] = FORGOT


class Ending(Enum):
    """How a session ended that comes when its client has another one."""

    REPEATED = auto()
    """It did not: it came before, from a broker that has forgotten to have given it."""
    WANTED = auto()
    """The client asked for a new one."""
    GIVEN_UP = auto()
    """The client was given a new one, since this one was out of reach for too long."""


class Discard(NamedTuple):
    """A session that came for a client which has a later one."""

    client: int
    holder: int
    """The broker that had it, and still has what is stored for the client."""
    state: bytes
    ending: Ending


class Result(NamedTuple):
    """What came of looking for a client: its session, or none (it starts anew), or why it cannot come in."""

    client: int
    asked: int
    """The epoch that `Finder.seek` was told; 0 for a session that comes late, when nobody waits for it."""
    epoch: int
    """The epoch that the connection has now: it may have had to overtake another."""
    state: bytes | None = None
    """The session, if there is one."""
    holder: int | None = None
    """The broker that had it."""
    superseded: bool = False
    """The client has connected elsewhere since. If nothing was asked (0), the session here is to end:
    `holder` has another one with a later epoch, which stays."""
    unreachable: frozenset[int] = frozenset()
    """Brokers that may have the session and did not answer; the client is to try again."""
    given_up: frozenset[int] = frozenset()
    """Brokers that may have had it, and have been out of reach for too long."""


class Give(NamedTuple):
    """Take the client's session and hand it to `Finder.give`: another broker has the client now."""

    client: int
    epoch: int
    to: int
