"""An Event Broker: a routing strategy with sources and displayers that come and go around it (paper 003).

    effects = broker.handle(fact, now)

The architecture is the routing strategy it is given (`routing/architectures.py`): alone it is the central
broker, with others it broadcasts or multicasts. What stands here is the same for all of them: events for
displayers go through their custody (`custody.py`), and sources that ask for it are quenched (`quench.py`) by
all subscriptions that this broker knows of, its own and those that lie downstream. A broadcasting broker
does not know the others' subscriptions, so it quenches nobody.

Effects stand in the order in which they must be carried out: on one link, what comes first is sent first.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from sojourn.edge.connections import Connection, Fetch, Handed, Stamped
from sojourn.edge.custody import Custody, CustodyRules, Deliver, Settled
from sojourn.edge.quench import ALTERNATIVES_MAX, CombinedInterest, QuenchUpdate
from sojourn.edge.queues import Dropped, Queued, QueuePolicy
from sojourn.errors import SojournError
from sojourn.interest.filters import Filter
from sojourn.routing.mesh_flooding import MeshFloodingRouter
from sojourn.routing.messages import Advertise, Message, Publish, Subscribe, Unadvertise, Unsubscribe
from sojourn.routing.neighbours import LOCAL
from sojourn.routing.router import Router


class EventBrokerError(SojournError):
    """A broker cannot be set up as asked."""


# ------------------------------------------------------------------------------ facts


class SourceArrived(NamedTuple):
    """A source connected; `version` is the combined expression it knows, None if it does not quench."""

    source: int
    advertisement: int | None = None
    version: int | None = None


class SourceLeft(NamedTuple):
    """A source lost its connection."""

    source: int


class SourceAsked(NamedTuple):
    """A source that missed an update asks for what changed since a version."""

    source: int
    version: int


class SourcePublished(NamedTuple):
    """A source sent an event."""

    item: Queued


class DisplayerArrived(NamedTuple):
    """A displayer connected, with its subscriptions and its log."""

    client: int
    number: int
    subscriptions: tuple[int, ...]
    log: tuple[Connection, ...] = ()
    policy: QueuePolicy = QueuePolicy()


class DisplayerLost(NamedTuple):
    """A displayer's connection broke; the broker goes on watching for it."""

    client: int
    number: int


class Subscribed(NamedTuple):
    """A displayer that is here made a subscription."""

    client: int
    subscription: int


class Unsubscribed(NamedTuple):
    """A displayer that is here withdrew a subscription."""

    client: int
    subscription: int


class Received(NamedTuple):
    """A neighbouring broker sent something."""

    message: Message | Fetch | Handed
    sender: int


# ------------------------------------------------------------------------------ effects


class ToBroker(NamedTuple):
    """Send a message to a neighbouring broker."""

    neighbour: int
    message: Message | Fetch | Handed


class ToDisplayer(NamedTuple):
    """Send to a displayer: an event, or that lines of its log are done with."""

    client: int
    what: Deliver | Settled


class ToSource(NamedTuple):
    """Send a source what changed in the combined expression."""

    source: int
    update: QuenchUpdate


class Drop(NamedTuple):
    """An event will not be delivered to a displayer."""

    client: int
    dropped: Dropped


Fact = (
    SourceArrived
    | SourceLeft
    | SourceAsked
    | SourcePublished
    | DisplayerArrived
    | DisplayerLost
    | Subscribed
    | Unsubscribed
    | Received
)
Effect = ToBroker | ToDisplayer | ToSource | Drop


class BrokerRules(NamedTuple):
    """How a broker serves sources and displayers."""

    custody: CustodyRules = CustodyRules()
    quench: bool = False
    narrow_after: int = 1
    alternatives_max: int = ALTERNATIVES_MAX


class EventBroker:
    """One broker: facts in, effects out."""

    def __init__(
        self,
        number: int,
        router: Router,
        rules: BrokerRules | None = None,
        *,
        next_hop: Callable[[int, int], int] | None = None,
        filter_of: Callable[[int], Filter] | None = None,
    ) -> None:
        self.number = number
        self.router = router
        self.rules = rules or BrokerRules()
        self._next_hop = next_hop
        self._filter_of = filter_of
        self.combined: CombinedInterest | None = None
        if self.rules.quench:
            if filter_of is None:
                raise EventBrokerError("quench needs filter_of, to know what subscriptions say.")
            self.combined = CombinedInterest(
                narrow_after=self.rules.narrow_after, alternatives_max=self.rules.alternatives_max
            )
        self._counted: set[int] | None = None
        """The subscriptions that are in the combined expression; None until a source asks for it."""
        self._told: dict[int, int] = {}
        """By source that quenches and is here: the version it was told."""
        self._ads: dict[int, int] = {}
        self._subs: dict[int, set[int]] = {}
        """By displayer: the subscriptions this broker watches for it."""
        self.custodies: dict[int, Custody] = {}
        self._effects: list[Effect] = []
        self._now = 0.0
        self.handled = 0
        """Events that came in, from sources and neighbours."""
        self.compared = 0
        """Entries of the subscription table that events had to be held against, without an index."""

    def handle(self, fact: Fact, now: float) -> list[Effect]:
        """Take one fact; the effects are to be carried out in their order."""
        self._now = now
        self._effects = []
        self._HANDLERS[type(fact)](self, fact)
        return self._effects

    @property
    def entries(self) -> int:
        """Subscriptions in the table, each once whoever sent it."""
        return len(self.router.subs)

    # Sources ----------------------------------------------------------------------------------------

    def _on_source_arrived(self, fact: SourceArrived) -> None:
        if fact.advertisement is not None:
            self._ads[fact.source] = fact.advertisement
            self.router.client_advertises(fact.source, fact.advertisement)
            self._flush()
        if fact.version is not None and self.combined is not None:
            self._tell(fact.source, fact.version)

    def _on_source_left(self, fact: SourceLeft) -> None:
        # Its advertisement stays: it is expected back, and its tree would only have to be rebuilt.
        self._told.pop(fact.source, None)

    def _on_source_asked(self, fact: SourceAsked) -> None:
        if self.combined is not None:
            self._tell(fact.source, fact.version)

    def _on_source_published(self, fact: SourcePublished) -> None:
        self._publish(Stamped(fact.item), LOCAL)

    def _tell(self, source: int, version: int) -> None:
        assert self.combined is not None
        assert self._filter_of is not None
        if self._counted is None:
            self._counted = set(self.router.subs)
            self.combined.add_all(self._filter_of(sub) for sub in sorted(self._counted))
        update = self.combined.update_from(version)
        self._told[source] = self.combined.version
        self._effects.append(ToSource(source, update))

    def _tell_all(self) -> None:
        assert self.combined is not None
        for source, version in list(self._told.items()):
            if version != self.combined.version:
                self._tell(source, version)

    # Displayers -------------------------------------------------------------------------------------

    def _on_displayer_arrived(self, fact: DisplayerArrived) -> None:
        custody = self._custody(fact.client, fact.policy)
        if fact.number <= custody.number:
            return
        # Subscribed before others are asked: see `custody.py` on why nothing is lost.
        wanted, watched = set(fact.subscriptions), self._subs.get(fact.client, set())
        for sub in sorted(wanted - watched):
            self._watch(fact.client, sub)
        for sub in sorted(watched - wanted):
            self._unwatch(fact.client, sub)
        self._carry(fact.client, custody.arrive(fact.number, fact.log, fact.policy, self._now))

    def _on_displayer_lost(self, fact: DisplayerLost) -> None:
        custody = self.custodies.get(fact.client)
        if custody is not None:
            self._carry(fact.client, custody.lose(fact.number, self._now))

    def _on_subscribed(self, fact: Subscribed) -> None:
        self._watch(fact.client, fact.subscription)

    def _on_unsubscribed(self, fact: Unsubscribed) -> None:
        if fact.subscription in self._subs.get(fact.client, ()):
            self._unwatch(fact.client, fact.subscription)

    def _watch(self, client: int, sub: int) -> None:
        self._subs.setdefault(client, set()).add(sub)
        self.router.client_subscribes(client, sub)
        self._note(sub)
        self._flush()

    def _unwatch(self, client: int, sub: int) -> None:
        self._subs[client].discard(sub)
        self.router.client_unsubscribes(client, sub)
        self._note(sub)
        self._flush()

    def _custody(self, client: int, policy: QueuePolicy | None = None) -> Custody:
        custody = self.custodies.get(client)
        if custody is None:
            custody = Custody(client, self.number, self.rules.custody, policy or QueuePolicy())
            self.custodies[client] = custody
        return custody

    # Other brokers ----------------------------------------------------------------------------------

    def _on_received(self, fact: Received) -> None:
        message = fact.message
        if isinstance(message, Fetch | Handed):
            if message.destination != self.number:
                self._send_on(message)
            elif isinstance(message, Fetch):
                self._on_fetch(message)
            else:
                custody = self._custody(message.client)
                self._carry(message.client, custody.handed(message, self._now))
            return
        bit = self.router.neighbours.bit(fact.sender)
        router = self.router
        match message:
            case Publish():
                self._publish(message, bit)
            case Advertise():
                router.advertise(message, bit)
            case Unadvertise():
                router.unadvertise(message, bit)
            case Subscribe():
                router.subscribe(message, bit)
                self._note(message.interest)
            case Unsubscribe():
                router.unsubscribe(message, bit)
                self._note(message.interest)
        self._flush()

    def _on_fetch(self, fetch: Fetch) -> None:
        answer = self._custody(fetch.client).fetched(fetch, self._now)
        if answer is None:
            return
        self._carry(fetch.client, answer)
        for sub in sorted(self._subs.pop(fetch.client, ())):
            self.router.client_unsubscribes(fetch.client, sub)
            self._note(sub)
            self._flush()

    def _send_on(self, message: Fetch | Handed) -> None:
        if self._next_hop is None:
            raise EventBrokerError(f"Broker {self.number} knows no way to broker {message.destination}.")
        self._effects.append(ToBroker(self._next_hop(self.number, message.destination), message))

    # Common -----------------------------------------------------------------------------------------

    def _carry(self, client: int, effects: Any) -> None:
        """Turn what a custody asks for into this broker's effects."""
        for effect in effects:
            if isinstance(effect, Deliver | Settled):
                self._effects.append(ToDisplayer(client, effect))
            elif isinstance(effect, Dropped):
                self._effects.append(Drop(client, effect))
            else:
                self._send_on(effect)

    def _flush(self) -> None:
        """Carry out what the router asks for: messages to neighbours, events to custodies."""
        asked = self.router.effects
        named = self.router.neighbours.named
        for mask, message in asked.sends:
            self._effects += [ToBroker(neighbour, message) for neighbour in named(mask)]
        deliveries = list(asked.deliveries)
        asked.clear()
        for clients, publication in deliveries:
            assert isinstance(publication, Stamped)
            item = publication.item()
            for client in clients:
                self._carry(client, self._custody(client).event(item, self._now))

    def _publish(self, message: Publish, bit: int) -> None:
        router = self.router
        repeated = isinstance(router, MeshFloodingRouter) and router.has_seen(message)
        self.handled += 1
        self.compared += 0 if repeated else len(router.subs)
        router.publish(message, bit)
        self._flush()

    def _note(self, sub: int) -> None:
        """Keep the combined expression in step with the table."""
        if self.combined is None or self._filter_of is None or self._counted is None:
            return
        known = sub in self.router.subs
        if known == (sub in self._counted):
            return
        if known:
            self._counted.add(sub)
            changed = self.combined.add(self._filter_of(sub))
        else:
            self._counted.discard(sub)
            changed = self.combined.remove(self._filter_of(sub))
        if changed:
            self._tell_all()

    _HANDLERS: dict[type, Callable[["EventBroker", Any], None]] = {  # noqa: RUF012  a table, never changed
        SourceArrived: _on_source_arrived,
        SourceLeft: _on_source_left,
        SourceAsked: _on_source_asked,
        SourcePublished: _on_source_published,
        DisplayerArrived: _on_displayer_arrived,
        DisplayerLost: _on_displayer_lost,
        Subscribed: _on_subscribed,
        Unsubscribed: _on_unsubscribed,
        Received: _on_received,
    }
