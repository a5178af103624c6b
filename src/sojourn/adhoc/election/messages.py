"""What nodes say to find, elect and use a broker, what a core is told, and what it asks its driver for.

Everything is a broadcast that all neighbours hear. A `Flood` is said again once by every node that hears it;
a `Routed` message goes hop by hop to one node, along the way on which something last came from there.
"""

from typing import NamedTuple

from sojourn.interest.events import Event
from sojourn.interest.filters import Filter

EventId = tuple[str, int]
Seniority = tuple[float, int]
"""When a broker was elected, and its number: the smaller pair is the senior."""


class Kept(NamedTuple):
    """An event as brokers and sources keep it."""

    event: Event
    published_s: float

    @property
    def id(self) -> EventId:
        """What tells it from all others."""
        return self.event.source, self.event.sequence


class Entry(NamedTuple):
    """A displayer in a broker's table."""

    displayer: int
    wanted: Filter
    since_s: float
    """Since when it wants this: older events are not for it."""
    refreshed_s: float
    seen: frozenset[EventId]


# ---------------------------------------------------------------------------- floods


class Search(NamedTuple):
    """The origin looks for a broker."""


class Candidacy(NamedTuple):
    """If nobody objects, the origin is the broker."""


class Beacon(NamedTuple):
    """The origin is a broker."""

    seniority: Seniority


class Flood(NamedTuple):
    """Something for everybody."""

    sender: int
    origin: int
    number: int
    what: Search | Candidacy | Beacon


# ---------------------------------------------------------------------------- from node to node


class Refresh(NamedTuple):
    """A displayer tells the broker what it wants, and which events it has seen."""

    number: int
    wanted: Filter
    since_s: float
    seen: tuple[EventId, ...]
    whole: bool
    """Whether `seen` is all it ever saw; else what came since the last refresh that was answered."""


class Refreshed(NamedTuple):
    """The broker took a refresh; where it does not know the displayer, it asks for a whole one."""

    number: int
    ask_whole: bool


class Publish(NamedTuple):
    """A source sends events; it sends them again until they are stored."""

    events: tuple[Kept, ...]


class Stored(NamedTuple):
    """The broker has these events."""

    ids: tuple[EventId, ...]


class Deliver(NamedTuple):
    """Events for a displayer; they are sent again until it has told that it saw them."""

    events: tuple[Kept, ...]


class Handover(NamedTuple):
    """A junior broker gives a senior one all it keeps."""

    number: int
    entries: tuple[Entry, ...]
    events: tuple[Kept, ...]


class HandedOver(NamedTuple):
    """The senior broker has it."""

    number: int


What = Refresh | Refreshed | Publish | Stored | Deliver | Handover | HandedOver


class Routed(NamedTuple):
    """Something for one node."""

    sender: int
    to: int
    """The neighbour that is to pass it on."""
    origin: int
    destination: int
    hops_left: int
    what: What


Message = Flood | Routed

# ---------------------------------------------------------------------------- facts


class Started(NamedTuple):
    """The node was switched on."""


class Heard(NamedTuple):
    """A neighbour said something."""

    message: Message


class TimerFired(NamedTuple):
    """A timer ran out."""

    name: str


class Subscribed(NamedTuple):
    """The user of this node wants events."""

    wanted: Filter


class Published(NamedTuple):
    """The application on this node published an event."""

    event: Event


# ---------------------------------------------------------------------------- effects


class Say(NamedTuple):
    """Broadcast this."""

    message: Message


class SetTimer(NamedTuple):
    """Call back after a while, instead of an earlier timer of that name."""

    name: str
    delay_s: float
    periodic: bool = False
    """It may come a little early or late, so that nodes do not speak in step."""


class Show(NamedTuple):
    """Show an event to the user of this node."""

    kept: Kept


Fact = Started | Heard | TimerFired | Subscribed | Published
Effect = Say | SetTimer | Show
