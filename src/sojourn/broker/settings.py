"""What one broker is told about itself and its network: the part of a configuration that decides anything.

A driver makes this from its configuration file; a simulated world makes it from a seed. Two brokers of one
network have the same settings but for `name`.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec

from sojourn.mobility.prediction import Foreseen
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.ranges import PositiveSeconds, Range, ZeroOrMore

DRAWN_MAX = 200
"""Characters of a network in words."""


class MobilityConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens when clients move."""

    subscribers: Literal["proactive", "reactive", "durable"] = "proactive"
    """What happens to the session of a client that moves: copies wait one hop ahead of it, it is fetched when
    the client arrives, or every broker keeps its own."""
    timeout_s: PositiveSeconds = 3_600.0
    """How long events are stored for a client that is away, at the most."""
    give_up_s: PositiveSeconds = 300.0
    """How long a client is told to try again while its session may be at a broker that is out of reach; after
    that it begins anew. As long a client that is in waits for events that its last broker has for it."""
    grace_s: Annotated[float, Range(0)] = 0.05
    """How long after a client has left copies begin to store for it; whoever is elsewhere sooner is served as
    fast without them."""
    publishers: str = "standard"
    """A publisher protocol, or several joined by +."""
    copies: ZeroOrMore = 0
    """How many other brokers' processes hold a copy of each broker's journal before anything is acknowledged;
    with 0 each has its own store alone."""
    gone_s: Annotated[float, Range(1)] = 4.0
    """After how long a process that is away or silent is thought gone, and others take over what it has. One
    that is busy may well be silent for less than a second."""
    graph: Literal["crossed", "links"] = "crossed"
    """What a broker takes for edges of the neighbour graph: what clients cross, or from the start its links
    too."""


class RoutingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How events find their way between brokers."""

    mode: Literal["content", "flooding"] = "content"
    """Events go where a subscription wants them, or to every broker."""
    covering: bool = True
    """Whether a subscription that a wider one covers stays at home."""


class AtOnce(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a long piece of work is done in one turn, before others have theirs."""

    given: int = 1_000
    """Stored events that are given to a client that comes, or to its next broker."""
    withdrawn: int = 1_000
    """Subscriptions that are looked at when one that covered them is withdrawn."""
    picked_again: int = 250
    """Events for which another member of a group is picked when one has ended that had not acknowledged
    them."""
    told: int = 256
    """Retained values that are told to a neighbour which is to have them all."""
    read: int = 1_024
    """Characters of filters and advertisements that are read for a client, or its session, before it is
    taken in: some ten milliseconds."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One broker's place in its network, and what it allows."""

    name: str
    brokers: tuple[str, ...]
    """The names of all brokers that ever were in the network, in the same order for each of them: a broker's
    number is its place there, and brokers name one another by numbers."""
    links: tuple[tuple[str, str], ...] = ()
    """Between these, those of brokers that have left included."""
    mobility: MobilityConfig = MobilityConfig()
    routing: RoutingConfig = RoutingConfig()
    limits: Limits = Limits()
    at_once: AtOnce = AtOnce()
    traces: bool = False
    """Whether somebody records what happened (`Effects.notes`)."""
    learnt: tuple[Foreseen, ...] = ()
    """Where clients of this broker go next, as far as it was learnt; copies wait there and nowhere else."""

    joined: tuple[tuple[str, ...], ...] = ()
    """Of the brokers those that joined later, which are named last, in that order, each with those among the
    earlier ones that it is linked to (`roll.py`)."""
    left: tuple[str, ...] = ()
    """Of the brokers those that are there no more."""

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The brokers that this one is linked to."""
        return tuple(
            other
            for link in self.links
            if self.name in link
            for other in link
            if other != self.name and other not in self.left
        )

    @property
    def founders(self) -> tuple[str, ...]:
        """The brokers that the network began with."""
        return self.brokers[: len(self.brokers) - len(self.joined)]

    @property
    def founding_links(self) -> tuple[tuple[str, str], ...]:
        """The links that the network began with, whatever order they were written in."""
        founders = {*self.founders}
        return tuple(sorted((min(link), max(link)) for link in self.links if founders.issuperset(link)))

    @property
    def network(self) -> str:
        """What the network is called: the same name only for the same founders, linked and routing alike."""
        whole = msgspec.json.encode((self.founders, self.founding_links, self.routing.mode))
        return hashlib.sha256(whole).hexdigest()[:32]

    @property
    def drawn(self) -> str:
        """The brokers of the network and their links, in a few words."""
        links = sorted("-".join(sorted(link)) for link in self.links if not {*self.left}.intersection(link))
        brokers = ", ".join(one for one in self.brokers if one not in self.left)
        words = f"{brokers}; links {', '.join(links)}" if links else brokers
        return words if len(words) <= DRAWN_MAX else f"{words[:DRAWN_MAX]}…"

    @property
    def session_expiry_max_s(self) -> float | None:
        """How long a session may outlive its connection, where that is not for the limits alone to say.

        In a network events are stored for an absent client for so long; a session that lived longer would
        promise what is no longer there.
        """
        follows = self.routes and self.mobility.subscribers != "durable"
        return self.mobility.timeout_s if follows else None

    @property
    def quenches(self) -> bool:
        """Whether this broker knows what others want, and can tell publishers."""
        return self.routing.mode == "content" or not self.neighbours

    @property
    def shares(self) -> bool:
        """Whether there are shared subscriptions.

        In a network their members are known by what brokers tell each other of interests, and move from
        broker to broker: not where events are flooded, nor with durable subscriptions.
        """
        return not self.routes or (self.mobility.subscribers != "durable" and self.routing.mode == "content")

    @property
    def routes(self) -> bool:
        """Whether subscribers are known one by one: to route to them, or to account for what each got."""
        return any(self.name in link for link in self.links) or self.traces
