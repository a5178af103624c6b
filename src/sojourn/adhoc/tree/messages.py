"""What nodes say to each other, what a node is told, and what it asks its driver to do.

Everything said is a broadcast that all neighbours hear; `to` names whom it concerns, None everybody. All
messages carry the tree they belong to by its root's id, so that several trees can share the air (section 2).
"""

import msgspec

from sojourn.adhoc.tree.cells import Interest
from sojourn.interest.measure import Bound


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Anything said on the air."""

    tree: int
    sender: int
    to: int | None = None
    """Who is meant; None for all."""


class ParentProbe(Message, frozen=True, kw_only=True):
    """A node without a parent asks who has a route."""


class Hop(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a route."""

    node: int
    inherent: Interest
    others: Interest
    """What it forwards for all its children but the one on this route."""


class ParentAdvertise(Message, frozen=True, kw_only=True):
    """A node tells where it hangs and what it forwards: in answer to a probe, and as a beacon."""

    route: tuple[Hop, ...] | None
    """From its parent to the root; empty at the root, None without a route."""
    inherent: Interest
    proxied: Interest
    sole: Interest
    """The part of `proxied` that exactly one child asks for."""
    children: frozenset[int]
    """Those whose wishes are in `proxied`."""

    @property
    def parent(self) -> int | None:
        """Whom it hangs below."""
        return self.route[0].node if self.route else None


class Join(Message, frozen=True, kw_only=True):
    """A child tells its new parent what it asks for."""

    asked: Interest


class Update(Message, frozen=True, kw_only=True):
    """A child tells its parent that what it asks for grew or shrank."""

    asked: Interest


class Leave(Message, frozen=True, kw_only=True):
    """A child tells its old parent that it went."""


class RouteCheck(Message, frozen=True, kw_only=True):
    """A node that wants to switch asks along its new parent's route whether that would close a circle."""

    origin: int
    token: int
    path: tuple[int, ...]
    """Who passed it on, the origin first."""


class RouteAnswer(Message, frozen=True, kw_only=True):
    """The answer, on its way back."""

    origin: int
    token: int
    path: tuple[int, ...]
    granted: bool


class EventMessage(Message, frozen=True, kw_only=True):
    """A published event, said once for all whom it concerns."""

    source: int
    sequence: int
    value: Bound
    """What interests are asked about: a number, a topic's leaf or a cell."""
    up: int | None
    """The parent that is to pass it on towards the root."""
    down: frozenset[int]
    """The children that are to have it."""


# ------------------------------------------------------------------------------ facts


class Started(msgspec.Struct, frozen=True):
    """The node was switched on."""


class Heard(msgspec.Struct, frozen=True):
    """A neighbour said something."""

    message: Message


class TimerFired(msgspec.Struct, frozen=True, kw_only=True):
    """A timer that the node set ran out."""

    name: str
    token: int = 0
    handicaps: dict[int, float] = {}
    """With `shop` and `choose`: what to add to a neighbour's metric (see `cooling.py`); 0 if not named."""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The application on this node published an event."""

    sequence: int
    value: Bound


# ---------------------------------------------------------------------------- effects


class Say(msgspec.Struct, frozen=True):
    """Broadcast this."""

    message: Message


class SetTimer(msgspec.Struct, frozen=True, kw_only=True):
    """Call back after a while, instead of an earlier timer of that name; periodic ones may vary a little."""

    name: str
    delay_s: float
    token: int = 0
    periodic: bool = False


class ParentChanged(msgspec.Struct, frozen=True):
    """The node hangs elsewhere now, or nowhere."""

    parent: int | None


class Deliver(msgspec.Struct, frozen=True, kw_only=True):
    """Hand an event to the application on this node."""

    source: int
    sequence: int


Fact = Started | Heard | TimerFired | Published
Effect = Say | SetTimer | ParentChanged | Deliver
