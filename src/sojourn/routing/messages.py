"""The messages brokers send one another about interests and events.

Every message has a `kind`, a small number by which handlers and counters are found, and a `cause`: the
number that ties it to what set it off, so that cost and rebuilding time are sums over a column. A message a
broker passes on is the same object, which is why a flood of a thousand hops builds one message.

Causes come in pairs. An even cause builds trees, the odd one after it tears down what the same move left
behind; `undoing` gives the second. Cause 0 is everything that no move set off.

The messages about subscribers that move (paper 001, section 4; `mobility/subscribers.py`) are `Handoff`s.
Like `Prepare` and `Release` they have a destination and go hop by hop over the links that events take, which
makes each a fence: what was sent before it on its way is there before it.

Interests are named by the numbers of an `Interests` table; a driver that talks to other processes writes
their texts instead. Messages are built by ourselves and therefore not checked here.
"""

from collections.abc import Mapping
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
    COPY = 7
    ACTIVATE = 8
    ACTIVATED = 9
    DEACTIVATE = 10
    DELETE = 11
    MOVED = 12
    FORWARD = 13
    FORWARD_END = 14
    ASK = 15
    CONTEXT = 16


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

    __slots__ = ("cause", "event", "matched", "sequence", "size", "source", "version")

    kind: ClassVar[int] = int(Kind.PUBLISH)
    topic: str = ""
    """Its topic, for routers that can do with that; empty where the event has to be looked at."""

    def __init__(self, event: Event, cause: int = NO_CAUSE, size: int = 0) -> None:
        self.event = event
        self.source, self.sequence = event.source, event.sequence
        self.cause = cause
        self.size = size
        """Bytes that it takes in a queue; 0 for what the broker takes as usual (`mobility/schemes.py`)."""
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


Marks = Mapping[str, int]
"""By source: the sequence number of the last event that a subscriber has consumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """What all messages about a moving subscriber have in common.

    `epoch` counts the client's connections. One epoch is one connection at one broker, so (epoch, sender)
    names who speaks, and of two requests that crossed the later epoch is right. Each of these messages may
    be repeated by a transport, at any later time: a core takes the second one for what it is.
    """

    kind: ClassVar[int]
    destination: int
    sender: int
    client: int
    epoch: int
    cause: int = NO_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy(Handoff):
    """Keep a passive copy of these subscriptions: the client is with the sender and may come to you."""

    kind: ClassVar[int] = int(Kind.COPY)
    subscriptions: tuple[int, ...]
    version: int
    """Grows whenever the client wants something else."""
    others: tuple[int, ...]
    """All brokers that the sender gave a copy to: its part of the exchange of neighbour lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate(Handoff):
    """The client has left the sender: store its events from now on, under the sender's control."""

    kind: ClassVar[int] = int(Kind.ACTIVATE)
    marks: Marks
    others: tuple[int, ...]
    version: int
    """Of the subscriptions: a copy of others is as good as none."""
    subscriptions: tuple[int, ...] | None = None
    """The context itself, given after the notice that the copy is missing."""
    party: str | None = None
    """On whose account they are stored (`mobility/accounts.py`); None for nobody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated(Handoff):
    """The copy is active since before this message; or there is none (`found` is False): deliver it."""

    kind: ClassVar[int] = int(Kind.ACTIVATED)
    found: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Deactivate(Handoff):
    """Stop storing and make the copy passive, if it is under the sender's control."""

    kind: ClassVar[int] = int(Kind.DEACTIVATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Handoff):
    """Forget the copy, if it is under the sender's control; `for_good` needs no control (unsubscribe)."""

    kind: ClassVar[int] = int(Kind.DELETE)
    for_good: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved(Handoff):
    """The client is with the sender now: give what it has not consumed, tidy up, and be done."""

    kind: ClassVar[int] = int(Kind.MOVED)
    marks: Marks | None
    """What the client says it has consumed; None where the old broker's knowledge must do."""
    holders: tuple[int, ...]
    """The brokers whose copies the sender takes over; copies elsewhere are to be deleted."""
    wants: bool
    """Whether the events are wanted; a copy that is complete needs none."""
    subscriptions: tuple[int, ...]
    version: int
    after: int = -1
    """The epoch of the last broker it was passed on to: it is not passed back to earlier ones."""
    last_epoch: int | None = None
    """Under which epoch the client's session was kept there, if that is known: what is stored under another
    one is another session's, which began when this one was on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward(Handoff):
    """Events stored for the client, for the copy or stay that the epoch names."""

    kind: ClassVar[int] = int(Kind.FORWARD)
    publications: tuple[Publish, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardEnd(Handoff):
    """FORWARD-END: nothing more is to come under this epoch."""

    kind: ClassVar[int] = int(Kind.FORWARD_END)
    outcome: int
    """One of `Outcome`."""
    marks: Marks


class Outcome(IntEnum):
    """How a transfer of events ended."""

    COMPLETE = 0
    """Everything the client has not consumed was forwarded."""
    UNKNOWN = 1
    """Nobody there knows the client, or no longer: what there was is lost."""
    SUPERSEDED = 2
    """The client has connected elsewhere since; whoever asked is to forget it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Handoff):
    """The client came without its subscriptions; say which they are."""

    kind: ClassVar[int] = int(Kind.ASK)
    after: int = -1
    """As in `Moved`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Handoff):
    """The subscriptions that were asked for; none if nobody knows the client."""

    kind: ClassVar[int] = int(Kind.CONTEXT)
    subscriptions: tuple[int, ...]
    version: int
    holder: int
    """The broker that has the client's events."""


Control = Advertise | Unadvertise | Subscribe | Unsubscribe
Routed = Prepare | Release
Message = Control | Publish | Routed | Handoff
