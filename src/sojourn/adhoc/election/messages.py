"""What nodes say to find, elect and use a broker, what a core is told, and what it asks its driver for.

Everything is a broadcast that all neighbours hear. A `Flood` is said again once by every node that hears it;
a `Routed` message goes hop by hop to one node, along the way on which something last came from there.

The *fixed network* is there for some nodes at some times. What a broker there has taken is known by the
*stream* that it came in and a number that grows within it, as any publisher's events are (`Custody`).
"""

from typing import NamedTuple

from sojourn.interest.events import Event
from sojourn.interest.filters import Filter

EventId = tuple[str, int]
Seniority = tuple[float, int]
"""When a broker was elected, and its number: the smaller pair is the senior."""


class Custody(NamedTuple):
    """Under which name the fixed network is offered an event: whoever offers it, the name is the same."""

    broker: int
    """The broker that took it in first."""
    term: int
    """For the how-manieth time that one was a broker: what it keeps is given away whole at the end of it."""
    number: int
    """Counted within that: so every copy of a term's events begins with the first, and has no holes."""


class Kept(NamedTuple):
    """An event as brokers and sources keep it."""

    event: Event
    published_s: float
    custody: Custody | None = None
    """None until a broker has it, and where another one answers for it, or the fixed network has it."""
    is_copy: bool = False
    """Whether another broker answers for it."""
    is_seen_to: bool = False
    """Whether the fixed network has it."""
    body: bytes = b""
    """What the application sent along, which nobody here reads."""

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
    since_s: float | None = None
    """Published from then on; None means from now on."""


class Published(NamedTuple):
    """The application on this node published an event."""

    event: Event
    body: bytes = b""
    is_shown: bool = False
    """Whether the users of this node have it already."""


class Shown(NamedTuple):
    """The user has seen what was shown under this number."""

    number: int


class FixedReached(NamedTuple):
    """A broker of the fixed network answers this node."""


class FixedLost(NamedTuple):
    """It does so no more."""


class FixedTold(NamedTuple):
    """The fixed network has an event that is wanted here."""

    event: Event
    body: bytes = b""


class FixedTook(NamedTuple):
    """The fixed network has taken this event."""

    id: EventId


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
    """Show an event to the user of this node, and tell with `Shown` when that is done."""

    kept: Kept
    number: int
    """Counted; what is shown again after the node's death has the number that it had."""


class Offer(NamedTuple):
    """Give the fixed network an event, those of a stream in their order; `FixedTook` tells when it has it."""

    kept: Kept


class Keep(NamedTuple):
    """Write this down before anything that follows is done; `Node.recall` is told it after a restart."""

    note: "Note"


# ---------------------------------------------------------------------------- what is remembered


class Began(NamedTuple):
    """The node was switched on, for the how-manieth time."""

    life: int


class Wants(NamedTuple):
    """What its user wants, and since when."""

    wanted: Filter
    since_s: float


class Owes(NamedTuple):
    """An event of its own that no broker has stored yet."""

    kept: Kept


class Paid(NamedTuple):
    """A broker has stored these."""

    ids: tuple[EventId, ...]


class Elected(NamedTuple):
    """It is a broker, for the how-manieth time."""

    term: int
    seniority: Seniority


class Took(NamedTuple):
    """It keeps an event as a broker."""

    kept: Kept


class SeenTo(NamedTuple):
    """The fixed network has these."""

    ids: tuple[EventId, ...]


class GaveAway(NamedTuple):
    """Another broker has all it kept."""


class Showing(NamedTuple):
    """An event is being shown."""

    kept: Kept
    number: int


class Saw(NamedTuple):
    """The user has seen what was shown under this number."""

    number: int


class Knows(NamedTuple):
    """Events that are not to be shown, because users have them."""

    ids: tuple[EventId, ...]
    shows: int
    """Numbers of shows used up so far."""


Note = Began | Wants | Owes | Paid | Elected | Took | SeenTo | GaveAway | Showing | Saw | Knows
Fact = (
    Started
    | Heard
    | TimerFired
    | Subscribed
    | Published
    | Shown
    | FixedReached
    | FixedLost
    | FixedTold
    | FixedTook
)
Effect = Say | SetTimer | Show | Offer | Keep
