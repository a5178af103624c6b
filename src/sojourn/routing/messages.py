"""The messages brokers send one another about interests and events.

Every message has a `kind`, a small number by which handlers and counters are found, and a `cause`: the
number that ties it to what set it off, so that cost and rebuilding time are sums over a column. A message a
broker passes on is the same object, which is why a flood of a thousand hops builds one message.

Causes come in pairs. An even cause builds trees, the odd one after it tears down what the same move left
behind; `undoing` gives the second. Cause 0 is everything that no move set off.

Interests are named by the numbers of an `Interests` table; a driver that talks to other processes writes
their texts instead. Messages are built by ourselves and therefore not checked here.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from sojourn.interest.events import Event

NO_CAUSE = 0


class Kind(IntEnum):
    """What a message is; also the index of its handler and of its counters."""

    ADVERTISE = 0
    UNADVERTISE = 1
    SUBSCRIBE = 2
    UNSUBSCRIBE = 3
    PUBLISH = 4
    PREPARE = 5
    RELEASE = 6


def undoing(cause: int) -> int:
    """The cause under which what `cause` built is torn down."""
    return cause | 1


@dataclass(frozen=True, slots=True)
class Advertise:
    """Somebody in the sender's direction may publish what `interest` determines."""

    kind: ClassVar[int] = int(Kind.ADVERTISE)
    interest: int
    cause: int = NO_CAUSE


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """Nobody in the sender's direction advertises `interest` any more."""

    kind: ClassVar[int] = int(Kind.UNADVERTISE)
    interest: int
    cause: int = NO_CAUSE


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Somebody in the sender's direction wants events that match `interest`."""

    kind: ClassVar[int] = int(Kind.SUBSCRIBE)
    interest: int
    cause: int = NO_CAUSE


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Nobody in the sender's direction wants `interest` any more."""

    kind: ClassVar[int] = int(Kind.UNSUBSCRIBE)
    interest: int
    cause: int = NO_CAUSE


class Publish:
    """One event on its way; it remembers which subscriptions matched, so that the index is asked once."""

    __slots__ = ("cause", "event", "matched", "version")

    kind: ClassVar[int] = int(Kind.PUBLISH)

    def __init__(self, event: Event, cause: int = NO_CAUSE) -> None:
        self.event = event
        self.cause = cause
        self.matched: tuple[int, ...] = ()
        self.version = -1
        """The version of the interests that `matched` was found with; -1 before the first broker."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """To `destination`: hold these advertisements for a client that is expected, or as its proxy."""

    kind: ClassVar[int] = int(Kind.PREPARE)
    destination: int
    client: int
    advertisements: tuple[int, ...]
    keep: bool
    """True makes the destination a proxy, which holds them until it is released."""
    cause: int = NO_CAUSE


@dataclass(frozen=True, slots=True)
class Release:
    """To `destination`: no longer be the client's proxy; `everywhere`: release all you enrolled for it."""

    kind: ClassVar[int] = int(Kind.RELEASE)
    destination: int
    client: int
    everywhere: bool = False
    cause: int = NO_CAUSE


Control = Advertise | Unadvertise | Subscribe | Unsubscribe
Routed = Prepare | Release
Message = Control | Publish | Routed
