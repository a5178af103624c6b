"""What live brokers say to one another, beside the messages of the cores; as bytes, see `wire.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from sojourn.broker.carried import Carried

RETAIN, STATUS, SYNC_END, WAVE, ECHO, SLOW, PART, REACH, RETAIN_ASK, ORDER, SETTLED = range(34, 45)
SPREAD, RUN, ROLL, OFFER = 47, 48, 49, 50
"""The kinds of the messages below, beyond those of the cores and of `mobility/finding_messages.py`."""


@dataclass(frozen=True, slots=True)
class Retain:
    """Keep these events for later subscribers, or forget the topics of empty ones; pass on what is news."""

    kind: ClassVar[int] = RETAIN
    publications: tuple[Carried, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """An event that is published and to be retained: every broker keeps it, and gives it to its clients.

    So it comes to a broker once, and whoever subscribes there either finds it kept or is given it.
    """

    kind: ClassVar[int] = SPREAD
    publications: tuple[Carried, ...]
    """The one event."""


@dataclass(frozen=True, slots=True)
class Run:
    """Events of one publisher on one topic that came together (`runs.py`)."""

    kind: ClassVar[int] = RUN
    publications: tuple[Carried, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """How a broker is doing, for whoever watches (`status.py`); old news is worthless, so it is volatile."""

    kind: ClassVar[int] = STATUS
    sender: int
    report: bytes


@dataclass(frozen=True, slots=True)
class SyncEnd:
    """The sender has told everything anew (`reconciling.py`)."""

    kind: ClassVar[int] = SYNC_END


@dataclass(frozen=True, slots=True)
class Wave:
    """Answer this when everybody behind you has (`confirming.py`)."""

    kind: ClassVar[int] = WAVE
    origin: int
    number: int


@dataclass(frozen=True, slots=True)
class Echo:
    """The answer to a `Wave`."""

    kind: ClassVar[int] = ECHO
    origin: int
    number: int


@dataclass(frozen=True, slots=True)
class Slow:
    """To `destination`: do not read this publisher for now, its events meet a full link (`pressure.py`)."""

    kind: ClassVar[int] = SLOW
    destination: int
    client: int


@dataclass(frozen=True, slots=True)
class Reach:
    """The link between two brokers is in use or not, as the first of them sees it; to be passed on."""

    kind: ClassVar[int] = REACH
    origin: int
    peer: int
    up: bool


@dataclass(frozen=True, slots=True)
class RetainAsk:
    """Tell me all retained values again: there was no room for some of them, and now there is."""

    kind: ClassVar[int] = RETAIN_ASK


@dataclass(frozen=True, slots=True)
class Order:
    """An operator kicks or bans clients, or ends a ban (`ruling.py`); to be passed on."""

    kind: ClassVar[int] = ORDER
    verb: str
    scope: str
    whom: str
    stamp: int
    """Of two orders about the same the one with the higher number counts."""


@dataclass(frozen=True, slots=True)
class Settled:
    """To the broker that chose a member for events of a source: how it went (`sharing.py`)."""

    kind: ClassVar[int] = SETTLED
    destination: int
    source: str
    done: tuple[int, ...]
    """The numbers of those that are done with."""
    declined: tuple[int, ...]
    """The numbers of those that somebody else should get."""


@dataclass(frozen=True, slots=True)
class Roll:
    """Who has joined the network and who has left it (`roll.py`); news is to be passed on."""

    kind: ClassVar[int] = ROLL
    joined: list[list[str]]
    """In order: each broker with those that it is linked to."""
    left: list[str]


@dataclass(frozen=True, slots=True)
class Offer:
    """To `destination`: the sender is about to leave, and has the session of this client; take it."""

    kind: ClassVar[int] = OFFER
    destination: int
    sender: int
    client: int
    owner: str | None
    """Whose session it is."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message that is too large for one frame."""

    kind: ClassVar[int] = PART
    place: int
    """How many pieces came before it."""
    is_last: bool
    piece: bytes
