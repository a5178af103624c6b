"""How a broker serves subscribers that move: three schemes as answers to two questions (paper 001).

1. Does what is stored for a subscriber follow it to its next broker? With durable subscriptions it does not:
   every broker it ever visited stores for it until it comes back. Reactive and pro-active it does.
2. Is it there before the subscriber is? Pro-active keeps passive copies of its subscriptions at the brokers
   it may come to, and activates them when it leaves (section 4); reactive fetches everything afterwards.

The rest are limits: each queue, wait and memory has one.
"""

import math
from dataclasses import dataclass, replace

from sojourn.errors import SojournError

DURABLE = "durable"
REACTIVE = "reactive"
PROACTIVE = "proactive"
SCHEMES = (DURABLE, REACTIVE, PROACTIVE)

AMPLE_BYTES = 1 << 40
AMPLE_EVENTS = 1 << 30


class SchemeError(SojournError):
    """A scheme's name or parameter has no meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """What a broker does for subscribers that move; the default is the reactive scheme with ample room."""

    follows: bool = True
    """Whether stored events move after the subscriber."""
    ahead: bool = False
    """Whether copies wait for it one hop ahead."""
    gives_along: bool = False
    """Whether a copy that was never made is activated with its subscriptions at once; if not, as in paper
    001, its broker is asked first and says that it has none. Only the number of messages depends on it."""
    grace_s: float = 0.0
    """How long after a subscriber has left its copies are activated; paper 001 does so at once. One that is
    elsewhere by then is served as fast without them, and nobody was bothered."""
    signs: bool = False
    """Whether a broker that waits for events itself gives a sign to whoever waits for them behind it, so that
    patience ends only where nothing comes any more. Paper 001 has no such message and knows no patience."""
    acknowledged: bool = True
    """Whether an event counts as consumed only once the client says so (`Consumed`, or its marks). If not,
    handing it to the link is enough, and what a breaking link swallows is lost."""
    timeout_s: float = 120.0
    """Timeout(S): how long a subscriber may be away before all that is kept for it goes; inf for ever."""
    passive_s: float = math.inf
    """How long a passive copy is kept of which nobody says anything: the broker in control may be gone for
    good. A copy that is missing when it is to be activated is asked for, so this costs a message and loses
    nothing."""
    patience_s: float = 60.0
    """How long a subscriber that arrived waits for a sign of its old broker before it is served with what
    there is; inf for ever. While its events come, it waits for their end."""
    queue_bytes_max: int = AMPLE_BYTES
    """Room for stored events at a broker, all subscribers together; an event is stored once for all. What is
    handed over from another broker is taken in all the same."""
    queue_bytes_each_max: int = AMPLE_BYTES
    """Bytes of events stored for one subscriber: while it is away, does not read, or has not acknowledged."""
    queue_bytes_party_max: int = AMPLE_BYTES
    """Bytes of events stored for all subscribers of one party, such as those of one address: its share of
    what a broker stores. An event that is stored for several of them counts once."""
    queue_events_all_max: int = AMPLE_EVENTS
    """How many events a broker stores for all subscribers; an event is stored once for all."""
    queue_events_party_max: int = AMPLE_EVENTS
    """How many are stored for all subscribers of one party."""
    evicts: bool = False
    """Whether a full broker gives up its oldest stored event for a new one, as caches do, or refuses the new
    one. Only the second keeps what was promised."""
    queue_events_max: int = AMPLE_EVENTS
    """How many events may be stored for one subscriber, in the same sense."""
    event_bytes: int = 1024
    """Room taken by an event that does not say its size."""
    neighbours_max: int = 64
    """How many neighbours a broker keeps in its table; the least recently crossed goes first."""
    edge_timeout_s: float = math.inf
    """How long an edge that nobody crosses stays in the table."""
    memory_max: int = 100_000
    """How many departed clients a broker remembers; the oldest is forgotten first."""

    @property
    def prepares(self) -> bool:
        """Whether copies are made while a subscriber is connected, as in paper 001.

        Where copies are activated a while after it left, and given what it wants along with that, nobody is
        told before: one that comes and goes quickly bothers nobody but the brokers that it goes to.
        """
        return self.ahead and not (self.gives_along and self.grace_s)

    def __post_init__(self) -> None:
        for name in ("timeout_s", "passive_s", "patience_s", "edge_timeout_s"):
            value = getattr(self, name)
            if not value > 0:
                raise SchemeError(f"{name} must be more than 0, not {value:g}.")
        for name in (
            "queue_bytes_max",
            "queue_bytes_each_max",
            "queue_bytes_party_max",
            "queue_events_max",
            "queue_events_all_max",
            "queue_events_party_max",
            "event_bytes",
            "neighbours_max",
            "memory_max",
        ):
            if getattr(self, name) < 1:
                raise SchemeError(f"{name} must be 1 or more, not {getattr(self, name)}.")
        if not 0 <= self.grace_s < math.inf:
            raise SchemeError(f"grace_s must be 0 or more, not {self.grace_s:g}.")
        if self.ahead and not self.follows:
            raise SchemeError("ahead needs follows: copies that wait ahead are of no use to durable brokers.")

    @classmethod
    def named(cls, name: str, **limits: float | bool) -> "Scheme":
        """The scheme of a name, with other limits than the usual ones."""
        if name not in SCHEMES:
            raise SchemeError(f"scheme may be {', '.join(SCHEMES)}, not {name!r}.")
        # Durable subscriptions stay until their owner ends them (JMS), so nothing times out by default.
        usual = cls(follows=name != DURABLE, ahead=name == PROACTIVE)
        if name == DURABLE:
            usual = replace(usual, timeout_s=math.inf)
        return replace(usual, **limits)  # type: ignore[arg-type]  # checked in __post_init__
