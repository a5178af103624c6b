"""Subscribers that come and go: the door of one broker's subscriber half (paper 001, section 4).

One mechanism serves the three schemes of `schemes.py`. Durable: a stay never ends and nobody is told.
Reactive: the new broker asks the old one, which hands everything over. Pro-active: the same, and copies at
the neighbours that are activated when the subscriber is lost; a copy that is complete when the subscriber
arrives serves it at once, and the request to the old broker only tidies up. Where there is no copy, as when
an edge is crossed for the first time, pro-active is reactive.

| part | what it does |
| --- | --- |
| `Shelf` (`keeping.py`) | has the holdings, their timers and their entries in the router |
| `Queues` (`queues.py`) | has their events, within the limits |
| `Accounts` (`accounts.py`) | count them for the party that each subscriber is of |
| `Memory` (`memory.py`) | remembers what is over |
| `Deliveries` (`deliveries.py`) | takes each event to who is ready and into the queues of who is not |
| `Visits` (`visits.py`) | handles what clients do, and time |
| `CopyRequests` (`copy_requests.py`) | handles what other brokers want of copies here |
| `Transfers` (`transfers.py`) | handles who asks for events, and the events that were asked for |
| `Giving` (`giving.py`) | gives stored events to a client or to another broker |
| `Requests` (`requests.py`) | asks other brokers |
| `Post` (`post.py`) | sends |

The argument for its correctness stands in `transfers.py`. It asks of a client that its epochs grow, and that
`previous` is the last broker it knows to have taken it in; of the network that links are FIFO and lose
nothing. A client that gives its marks gets each event once and in each source's order if no queue overflows
and no timeout passes; `Ready.complete` and the drops say so where it does not.

Not here: pings (a driver feeds `SubscriberLost` when enough of them were missed), publishers that move
(`stays.py`), and what any of it costs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sojourn.mobility import facts
from sojourn.mobility.copies import State
from sojourn.mobility.copy_requests import CopyRequests
from sojourn.mobility.deliveries import Deliveries
from sojourn.mobility.giving import Giving
from sojourn.mobility.holdings import Holding
from sojourn.mobility.keeping import Shelf
from sojourn.mobility.memory import Memory, Moment, Past
from sojourn.mobility.post import Post
from sojourn.mobility.prediction import Foresight
from sojourn.mobility.queues import Queues
from sojourn.mobility.requests import Requests
from sojourn.mobility.schemes import Scheme
from sojourn.mobility.transfers import Transfers
from sojourn.mobility.visits import Placement, Visits
from sojourn.routing.messages import Handoff, Kind, Marks, Publish
from sojourn.routing.router import Router

__all__ = ["Placement", "Subscribers"]


class Subscribers:
    """The subscriber half of one broker: its parts, and the doors to them."""

    __slots__ = (
        "_deliveries",
        "_giving",
        "_handle",
        "_memory",
        "_moment",
        "_post",
        "_queues",
        "_receive",
        "_requests",
        "_shelf",
        "_visits",
        "accounts",
        "consumed",
        "fed",
        "main",
        "older",
        "past",
        "publish",
        "scheme",
        "store",
        "table",
        "timers",
    )

    def __init__(
        self,
        number: int,
        router: Router,
        scheme: Scheme,
        next_hop: Callable[[int, int], int],
        *,
        foresight: Foresight | None = None,
        placement: Placement | None = None,
    ) -> None:
        effects = router.effects
        self.scheme = scheme
        self._moment = Moment()
        self._memory = memory = Memory(self._moment, scheme.memory_max)
        self._post = post = Post(number, router, next_hop)
        self._queues = queues = Queues(scheme, effects)
        self._shelf = shelf = Shelf(router, scheme, queues)
        self._requests = requests = Requests(scheme, post, self._moment, foresight)
        self._giving = giving = Giving(scheme, shelf, queues, post, self._moment, effects)
        copies = CopyRequests(shelf, queues, memory, post, effects)
        transfers = Transfers(
            shelf=shelf,
            queues=queues,
            memory=memory,
            post=post,
            requests=requests,
            giving=giving,
            effects=effects,
        )
        self._visits = visits = Visits(
            number=number,
            scheme=scheme,
            shelf=shelf,
            queues=queues,
            memory=memory,
            requests=requests,
            giving=giving,
            transfers=transfers,
            effects=effects,
            placement=placement,
        )
        self._deliveries = deliveries = Deliveries(scheme, router, shelf, queues)
        self.publish = deliveries.publish
        """The door for events: routed, delivered, stored."""
        self.consumed = deliveries.consumed
        """The door for what a client has consumed: nothing follows from that."""
        # To be looked at, not to be written.
        self.main: Mapping[int, Holding] = shelf.main
        self.older: Mapping[int, list[Holding]] = shelf.older
        self.fed: Mapping[int, Holding] = shelf.fed
        self.timers: Mapping[int, Holding] = shelf.timers
        self.past: Mapping[int, Past] = memory.pasts
        self.store = queues.store
        self.accounts = queues.accounts
        self.table = requests.table

        def doubt(fact: facts.CopiesDoubted) -> None:
            copies.on_doubted(fact)
            transfers.ask_all_again()

        self._handle: dict[type, Callable[[Any], None]] = {
            facts.SubscriberArrived: visits.on_arrived,
            facts.SubscriberLost: visits.on_lost,
            facts.SubscriberChanged: visits.on_changed,
            facts.SubscriberGone: visits.on_gone,
            facts.Consumed: deliveries.on_consumed,
            facts.CopiesDoubted: doubt,
        }
        self._receive: dict[int, Callable[[Any], None]] = {
            Kind.COPY: copies.on_copy,
            Kind.ACTIVATE: copies.on_activate,
            Kind.ACTIVATED: transfers.on_activated,
            Kind.DEACTIVATE: copies.on_deactivate,
            Kind.DELETE: copies.on_delete,
            Kind.MOVED: transfers.on_moved,
            Kind.FORWARD: transfers.on_forward,
            Kind.FORWARD_END: transfers.on_forward_end,
            Kind.ASK: transfers.on_ask,
            Kind.CONTEXT: transfers.on_context,
        }

    # The doors ---------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The time of the fact in hand."""
        return self._moment.now

    @now.setter
    def now(self, now: float) -> None:
        self._moment.now = now

    @property
    def looks(self) -> bool:
        """Whether events for some client are to be stored, or to be looked at before they are delivered."""
        return bool(self._shelf.watched)

    def receive(self, message: Handoff, _bit: int) -> None:
        """Take a message about a subscriber, or pass it on to the broker it is for."""
        if message.destination != self._post.number:
            self._post.send(message)
            return
        self._receive[message.kind](message)
        self._settle()

    def handle(self, fact: facts.Fact) -> None:
        """Take a fact about a subscriber."""
        self._handle[type(fact)](fact)
        self._settle()

    def expired(self, token: int) -> None:
        """A timer has run out."""
        holding = self._shelf.fired(token)
        if holding is not None:
            self._visits.expire(holding)
            self._settle()

    def _settle(self) -> None:
        for message in self._post.local():
            self._receive[message.kind](message)

    def restarted(self) -> None:
        """Let nobody give up because of the time that this broker was down, or that its clock went ahead."""
        for client in (*self.main, *self.older):
            for stay in self._shelf.all(client):
                stay.heard = stay.heard or bool(stay.waits)

    def give_in_parts(self, part_max: int) -> None:
        """Give no more than so many stored events at once, and the rest when told to (`go_on_giving`)."""
        if self.scheme.acknowledged and not self.scheme.evicts:
            self._giving.part_max = part_max

    @property
    def is_giving(self) -> bool:
        """Whether stored events are being given in parts."""
        return bool(self._giving.under_way)

    def go_on_giving(self, now: float) -> None:
        """Give a part of what is stored to whoever has its subscriber now."""
        self.now = now
        self._giving.go_on()
        self._settle()

    def foresee(self, foresight: Foresight | None) -> None:
        """Have copies made from now on where this says that a subscriber may go; None: at all neighbours."""
        self._requests.foresight = foresight

    # What there is -----------------------------------------------------------------------------------

    @property
    def present(self) -> int:
        """How many subscribers are connected here."""
        return self._shelf.present

    @property
    def stored(self) -> int:
        """In how many queues the last event was put, for whoever charges for it."""
        return self._deliveries.stored

    def stored_for(self, client: int, epoch: int) -> list[Publish]:
        """What is stored here for the stay of a subscriber that a connection began or resumed."""
        stay = self._shelf.stay_of(client, epoch)
        return stay.stored() if stay is not None else []

    def latest(self, client: int) -> int:
        """Return the latest epoch that is known of a client here; one that is served has a later one."""
        holding = self.main.get(client)
        return max(self._memory.latest(client), -1 if holding is None else holding.epoch)

    def counts(self) -> dict[str, int]:
        """How many holdings there are in each state."""
        found = dict.fromkeys((state.name.lower() for state in State if state is not State.ABSENT), 0)
        for holding in self.main.values():
            found[holding.state.name.lower()] += 1
        for older in self.older.values():
            for holding in older:
                found[holding.state.name.lower()] += 1
        return found

    def restore(self, client: int, publications: Sequence[Publish], marks: Marks) -> None:
        """Put back what was stored for a subscriber that is away, and how far it had come.

        For a driver that moves its subscribers into a new broker of theirs.
        """
        holding = self.main[client]
        holding.note_marks(marks)
        for publication in publications:
            self._queues.take_in_late(holding, publication)

    def rebuild(self) -> None:
        """Count anew what is stored, and on whose account, after a state was read."""
        holdings = [*self.main.values(), *(one for older in self.older.values() for one in older)]
        for holding in holdings:
            holding.bytes = sum([one.size or self.scheme.event_bytes for one in holding.queue])
        self.store.count()
        self.accounts.rebuild(holdings)

    # Forgetting --------------------------------------------------------------------------------------

    def forget_until(self, moment_s: float) -> None:
        """Forget departed clients of whom nothing was heard since then and of whom nothing is held."""
        self._memory.forget_until(moment_s, {*self.main, *self.older})

    def forget_marks(self, before: int) -> None:
        """Forget of all that is held how far sources had come whose numbers ended long ago."""
        self._shelf.forget_marks(before)
