"""A whole broker: its router, and what it does for publishers and subscribers that come and go.

    effects = broker.handle(fact, now)

The answer is one reused `Effects` object: carry it out and `clear` it before the next fact. A broker never
waits, draws or sends; time only enters as `now`, and only to say since when a stay is in its state.

`handle` is the door for every fact. A driver that carries many messages may take the short way of the same
code, `broker.receivers[message.kind](message, bit)`, where `bit` stands for the sender (`neighbours.py`);
messages about subscribers need the time, so such a driver sets `subscribers.now` before.

The subscriber half (`subscribers.py`) is there if the broker has a `Scheme`; it has its own facts, messages
and timers, whose tokens are negative. Where events are flooded, interests stay where they are made.

Building before tearing down is a rule here too: a broker first announces the publisher to the next one and
then lets its own tree go. The message that announces is routed hop by hop along the overlay like any other.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sojourn.mobility import facts
from sojourn.mobility.learnt_graph import LearntGraph
from sojourn.mobility.policies import Policy
from sojourn.mobility.prediction import Foresight
from sojourn.mobility.schemes import Scheme
from sojourn.mobility.stays import Next, State, Tree, Turn, Wait, follow
from sojourn.mobility.subscribers import Placement, Subscribers
from sojourn.routing.effects import CancelTimer, Effects, SetTimer
from sojourn.routing.flooding import FloodingRouter
from sojourn.routing.interests import Interests
from sojourn.routing.messages import NO_CAUSE, Kind, Prepare, Release, undoing
from sojourn.routing.neighbours import LOCAL, Neighbours
from sojourn.routing.overlay import NOWHERE
from sojourn.routing.router import Router

IDLE = -1
"""The work of a fact that needed no routing computation."""


class Stay:
    """What a broker holds for one publisher."""

    __slots__ = ("advertisements", "cause", "since_s", "state", "token")

    def __init__(self) -> None:
        self.state = State.ABSENT
        self.advertisements: tuple[int, ...] = ()
        self.cause = 0
        """The move that is to blame when a timer tears the tree down."""
        self.token = 0
        """The timer that runs for this stay; 0 for none."""
        self.since_s = 0.0


class Broker:
    """One broker: facts in, effects out."""

    __slots__ = (
        "_foresight",
        "_next_hop",
        "_tokens",
        "effects",
        "enrolled",
        "number",
        "policy",
        "receivers",
        "router",
        "stays",
        "subscribers",
        "work",
        "work_cause",
    )

    def __init__(  # noqa: PLR0913  (a broker is put together from its parts here and nowhere else)
        self,
        number: int,
        neighbours: Neighbours,
        interests: Interests,
        policy: Policy,
        next_hop: Callable[[int, int], int],
        *,
        scheme: Scheme | None = None,
        flooding: bool = False,
        foresight: Foresight | None = None,
        placement: Placement | None = None,
    ) -> None:
        self.number = number
        self.policy = policy
        self.effects = Effects()
        self.router = (FloodingRouter if flooding else Router)(neighbours, interests, self.effects)
        self.subscribers = Subscribers(
            number, self.router, scheme or Scheme(), next_hop, foresight=foresight, placement=placement
        )
        self.stays: dict[int, Stay] = {}
        """By client: every stay that is not ABSENT."""
        self.enrolled: dict[int, tuple[int, ...]] = {}
        """By client: the proxies that this broker, the client's first, asked to keep its tree."""
        self.work = IDLE
        """The kind of routing computation that the last fact needed, for whoever charges for it."""
        self.work_cause = NO_CAUSE
        """The cause of that work, if it was the tree of a publisher."""
        self._foresight = foresight
        self._next_hop = next_hop
        self._tokens = 0
        router = self.router
        self.receivers: tuple[Callable[[Any, int], None], ...] = (
            router.advertise,
            router.unadvertise,
            router.subscribe,
            router.unsubscribe,
            router.publish if scheme is None else self.subscribers.publish,
            self._on_prepare,
            self._on_release,
            *[self.subscribers.receive] * (len(Kind) - Kind.COPY),
        )
        """By kind of message: what handles it, given the message and the sender's bit."""

    def handle(self, fact: facts.Fact, now: float) -> Effects:
        """Take one fact; the effects are to be carried out and cleared before the next."""
        assert not self.effects.sends, "the effects of the last fact were not cleared"
        if isinstance(fact, facts.Received):
            message = fact.message
            self.work = message.kind
            self.subscribers.now = now
            self.receivers[message.kind](message, self.router.neighbours.bit(fact.sender))
        else:
            self._HANDLERS[type(fact)](self, fact, now)
        return self.effects

    # Publishers --------------------------------------------------------------------------------------

    def _on_arrived(self, fact: facts.ClientArrived, now: float) -> None:
        self.work = IDLE
        self._turn(Turn.ARRIVED, fact.client, fact.advertisements, fact.cause, now)
        if fact.proxies:
            self.enrolled[fact.client] = fact.proxies
        for proxy in fact.proxies:
            if proxy == self.number:
                self._turn(Turn.ENROLLED, fact.client, fact.advertisements, fact.cause, now)
            else:
                self._send_towards(
                    Prepare(proxy, fact.client, fact.advertisements, keep=True, cause=fact.cause)
                )

    def _on_left(self, fact: facts.ClientLeft, now: float) -> None:
        self.work = IDLE
        stay = self.stays.get(fact.client)
        advertisements = stay.advertisements if stay is not None else ()
        following = self._turn(Turn.LEFT, fact.client, (), fact.cause, now)
        expected_at = self._expected_at(fact, now) if self.policy.predicts else None
        if expected_at is not None:
            if expected_at == self.number:
                self._turn(Turn.ANNOUNCED, fact.client, advertisements, fact.cause, now)
                return
            self._send_towards(
                Prepare(expected_at, fact.client, advertisements, keep=False, cause=fact.cause)
            )
        if following.wait is Wait.DELAY and not self.policy.delay_s:
            self._turn(Turn.EXPIRED, fact.client, (), undoing(fact.cause), now)

    def _expected_at(self, fact: facts.ClientLeft, now: float) -> int | None:
        """Where a publisher that left goes: as a driver says, or the likeliest of what was learnt."""
        if fact.expected_at is not None or self._foresight is None:
            return fact.expected_at
        likely = self._foresight.next_brokers(fact.client, self.number, fact.came_from, now)
        return likely[0] if likely else None

    def foresee(self, foresight: Foresight | None) -> None:
        """Go by this from now on, for subscribers and for publishers."""
        self._foresight = foresight
        self.subscribers.foresee(foresight)

    def _on_gone(self, fact: facts.ClientGone, now: float) -> None:
        self.work = IDLE
        cause = undoing(fact.cause)
        self._turn(Turn.GONE, fact.client, (), cause, now)
        if fact.home == self.number:
            self._release_all(fact.client, cause, now)
        elif fact.home is not None:
            self._send_towards(Release(fact.home, fact.client, everywhere=True, cause=cause))

    def _on_timer(self, fact: facts.TimerFired, now: float) -> None:
        self.work = IDLE
        if fact.token < 0:
            self.subscribers.now = now
            self.subscribers.expired(fact.token)
            return
        stay = self.stays.get(fact.client)
        # A timer may fire while its cancellation is under way: then it is of no stay any more.
        if stay is not None and stay.token == fact.token:
            stay.token = 0
            self._turn(Turn.EXPIRED, fact.client, (), undoing(stay.cause), now)

    def _on_prepare(self, message: Prepare, _bit: int) -> None:
        self.work = IDLE
        if message.destination != self.number:
            self._send_towards(message)
            return
        turn = Turn.ENROLLED if message.keep else Turn.ANNOUNCED
        self._turn(turn, message.client, message.advertisements, message.cause, 0.0)

    def _on_release(self, message: Release, _bit: int) -> None:
        self.work = IDLE
        if message.destination != self.number:
            self._send_towards(message)
        elif message.everywhere:
            self._release_all(message.client, message.cause, 0.0)
        else:
            self._turn(Turn.RELEASED, message.client, (), message.cause, 0.0)

    def _release_all(self, client: int, cause: int, now: float) -> None:
        for proxy in self.enrolled.pop(client, ()):
            if proxy == self.number:
                self._turn(Turn.RELEASED, client, (), cause, now)
            else:
                self._send_towards(Release(proxy, client, cause=cause))

    # Subscribers and events --------------------------------------------------------------------------

    def _on_subscribed(self, fact: facts.ClientSubscribed, _now: float) -> None:
        self.work = Kind.SUBSCRIBE
        self.router.client_subscribes(fact.client, fact.subscription, fact.cause)

    def _on_unsubscribed(self, fact: facts.ClientUnsubscribed, _now: float) -> None:
        self.work = Kind.UNSUBSCRIBE
        self.router.client_unsubscribes(fact.client, fact.subscription, fact.cause)

    def _on_published(self, fact: facts.ClientPublished, _now: float) -> None:
        self.work = Kind.PUBLISH
        self.receivers[Kind.PUBLISH](fact.publication, LOCAL)

    def _on_subscriber(self, fact: facts.Fact, now: float) -> None:
        assert self.receivers[Kind.PUBLISH] == self.subscribers.publish, "moving subscribers need a scheme"
        self.work = IDLE
        self.subscribers.now = now
        self.subscribers.handle(fact)

    def load_graph(self, graph: LearntGraph, names: Sequence[str], now: float) -> None:
        """Start the neighbour table from a learnt graph; `names` are the brokers' in it, by number."""
        numbers = {name: number for number, name in enumerate(names)}
        self.subscribers.table.load(graph, names[self.number], numbers, now)

    # The mechanism -----------------------------------------------------------------------------------

    def _turn(self, turn: Turn, client: int, advertisements: tuple[int, ...], cause: int, now: float) -> Next:
        stay = self.stays.get(client)
        following = follow(stay.state if stay is not None else State.ABSENT, turn)
        if stay is None:
            if following.state is State.ABSENT:
                return following
            stay = self.stays[client] = Stay()
        stay.state, stay.since_s = following.state, now
        if turn in (Turn.LEFT, Turn.ANNOUNCED):
            stay.cause = cause
        if following.wait is not Wait.AS_IS:
            self._rewind(client, stay, following.wait)
        if following.tree is Tree.BUILD:
            self._hold(client, stay, advertisements, cause)
        elif following.tree is Tree.TEAR_DOWN:
            self._hold(client, stay, (), cause)
        if following.state is State.ABSENT:
            del self.stays[client]
        return following

    def _rewind(self, client: int, stay: Stay, wait: Wait) -> None:
        """Stop the stay's timer and start the next one, if the state has one."""
        if stay.token:
            self.effects.cancels.append(CancelTimer(client, stay.token))
            stay.token = 0
        if wait is Wait.STOP:
            return
        delay_s = self.policy.delay_s if wait is Wait.DELAY else self.policy.patience_s
        if delay_s:
            self._tokens += 1
            stay.token = self._tokens
            self.effects.timers.append(SetTimer(client, stay.token, delay_s))

    def _hold(self, client: int, stay: Stay, advertisements: tuple[int, ...], cause: int) -> None:
        """Hold exactly these advertisements for the client: first what is new, then less what is not."""
        held = stay.advertisements
        if held == advertisements:
            return
        for ad in advertisements:
            if ad not in held:
                self.router.client_advertises(client, ad, cause)
                self.work, self.work_cause = Kind.ADVERTISE, cause
        for ad in held:
            if ad not in advertisements:
                self.router.client_unadvertises(client, ad, undoing(cause))
                if self.work == IDLE:
                    self.work, self.work_cause = Kind.UNADVERTISE, undoing(cause)
        stay.advertisements = advertisements

    def _send_towards(self, message: Prepare | Release) -> None:
        hop = self._next_hop(self.number, message.destination)
        if hop != NOWHERE:  # else that broker has left
            self.effects.sends.append((self.router.neighbours.bit(hop), message))

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any, float], None]]] = {
        facts.ClientArrived: _on_arrived,
        facts.ClientLeft: _on_left,
        facts.ClientGone: _on_gone,
        facts.ClientSubscribed: _on_subscribed,
        facts.ClientUnsubscribed: _on_unsubscribed,
        facts.ClientPublished: _on_published,
        facts.TimerFired: _on_timer,
        facts.SubscriberArrived: _on_subscriber,
        facts.SubscriberLost: _on_subscriber,
        facts.SubscriberChanged: _on_subscriber,
        facts.SubscriberGone: _on_subscriber,
        facts.Consumed: _on_subscriber,
        facts.CopiesDoubted: _on_subscriber,
    }
