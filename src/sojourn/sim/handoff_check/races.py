"""Paper 001, section 4.1: the four races between brokers, followed through every interleaving.

Each ordered pair of brokers has its own FIFO channel, which lets more orders happen than the tree that
messages take in truth; client facts and a timer are channels of their own. From a settled beginning all
orders in which the channels can be emptied are followed, depth first; equal states are visited once, and the
number of interleavings is the number of ways through them.

In each race subscriber S has left broker J, comes to K and, while J tidies up, leaves it again or for good;
N is a neighbour that has a copy. At each end the copies must be those that the text demands, and when S has
come back and said goodbye there must be none left. There are no events here: `handoff_check.py` has them.
"""

import copy
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sojourn.interest.events import Event
from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.mobility.copies import State
from sojourn.mobility.holdings import Holding
from sojourn.mobility.policies import Policy
from sojourn.mobility.schemes import Scheme
from sojourn.mobility.subscribers import Subscribers
from sojourn.routing.interests import Interests
from sojourn.routing.neighbours import Neighbours

J, K, N = 0, 1, 2
BROKERS = (J, K, N)
S, OTHER = 7, 8
SUBS = (0,)
TRIANGLE: Mapping[int, tuple[int, ...]] = {J: (K, N), K: (J, N), N: (J, K)}
STAR: Mapping[int, tuple[int, ...]] = {J: (K, N), K: (J,), N: (J,)}
NOTHING = (None, None, None)
STATES_MAX = 200_000
"""Different states of one race; every race of the paper has far fewer."""
_UNSEEN = {"token", "queue", "forwarded", "key", "fed", "cause"}
"""What of a holding makes no difference to what follows, where there are no events."""

Held = tuple[State, int | None] | None
"""What a broker holds for S: its state and, of a copy, the broker in control."""


class WrongEndError(Exception):
    """Some order of a race ends as it must not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceFound:
    """What following a race came to."""

    name: str
    interleavings: int
    """How many orders there are; those up to the first wrong end, if there is one."""
    states: int
    failure: str | None


class _OneInterest(Interests):
    """A single subscription that matches everything."""

    def __init__(self) -> None:
        super().__init__()
        self.enter_sub(ads=())

    def __deepcopy__(self, _memo: object) -> "_OneInterest":
        return self

    def match(self, event: Event) -> tuple[int, ...]:  # noqa: ARG002  (as the base class has it)
        """The one subscription."""
        return SUBS


class Mesh:
    """Three brokers that talk to each other directly."""

    def __init__(self, tables: Mapping[int, tuple[int, ...]]) -> None:
        interests = _OneInterest()
        self.brokers = [
            Broker(
                number,
                Neighbours(tuple(other for other in BROKERS if other != number)),
                interests,
                Policy(),
                _direct,
                scheme=Scheme.named("proactive"),
                flooding=True,
            )
            for number in BROKERS
        ]
        for number, neighbours in tables.items():
            for neighbour in neighbours:
                self.brokers[number].subscribers.table.cross(neighbour, 0.0)
        self.channels: dict[object, deque[tuple[int, facts.Fact]]] = {}
        self.timers: dict[int, dict[int, int]] = {number: {} for number in BROKERS}
        """By broker and client: the timer that runs."""

    def feed(self, broker: int, fact: facts.Fact) -> None:
        """Give a broker a fact, and put what it sends into the channels."""
        effects = self.brokers[broker].handle(fact, 1.0)
        for mask, message in effects.sends:
            for to in self.brokers[broker].router.neighbours.named(mask):
                channel = self.channels.setdefault((broker, to), deque())
                channel.append((to, facts.Received(message, broker)))
        for cancel in effects.cancels:
            self.timers[broker].pop(cancel.client, None)
        for timer in effects.timers:
            self.timers[broker][timer.client] = timer.token
        effects.clear()

    def will(self, name: str, *what: tuple[int, facts.Fact]) -> None:
        """Have facts happen, in this order among themselves."""
        self.channels[name] = deque(what)

    def ready(self) -> list[object]:
        """The channels that have something."""
        return sorted((name for name, waiting in self.channels.items() if waiting), key=repr)

    def step(self, name: object) -> None:
        """Let the first thing of a channel happen."""
        broker, fact = self.channels[name].popleft()
        self.feed(broker, fact)

    def settle(self) -> None:
        """Let everything happen, in some order."""
        while self.ready():
            self.step(self.ready()[0])

    def state(self) -> str:
        """All that matters of the present state, as text."""
        halves = [broker.subscribers for broker in self.brokers]
        holdings = [
            [_fields(one) for client in (S, OTHER) for one in _holdings(half, client)] for half in halves
        ]
        pasts = [
            {client: (past.closed, past.given) for client, past in sorted(half.past.items())}
            for half in halves
        ]
        tables = [half.table.neighbours(1.0) for half in halves]
        waiting = {name: list(self.channels[name]) for name in self.ready()}
        return repr((holdings, pasts, tables, waiting))

    def held(self) -> tuple[Held, Held, Held]:
        """What J, K and N hold for S."""
        j, k, n = (self._held(broker) for broker in self.brokers)
        return j, k, n

    def _held(self, broker: Broker) -> Held:
        if S in broker.subscribers.older:
            raise WrongEndError(f"broker {broker.number} still has an older stay of S")
        one = broker.subscribers.main.get(S)
        return None if one is None else (one.state, None if one.is_stay() else one.controller)


def _direct(_broker: int, destination: int) -> int:
    return destination


def _holdings(half: Subscribers, client: int) -> list[Holding]:
    """What a broker has of a client: its present stay or copy, and those of older stays."""
    main = half.main.get(client)
    return [*([main] if main is not None else []), *half.older.get(client, ())]


def _fields(one: Holding) -> list[tuple[str, object]]:
    return [(name, _in_order(getattr(one, name))) for name in one.__slots__ if name not in _UNSEEN]


def _in_order(value: object) -> object:
    return sorted(value) if isinstance(value, set) else value


def _expect(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise WrongEndError(f"{what}: {found!r}, not {wanted!r}")


class _Explorer:
    """All orders from one beginning."""

    def __init__(self, at_end: Callable[[Mesh], None]) -> None:
        self._at_end = at_end
        self.ways: dict[str, int] = {}
        """By state: how many orders lead from it to an end."""

    def follow(self, here: Mesh) -> int:
        key = here.state()
        known = self.ways.get(key)
        if known is not None:
            return known
        if len(self.ways) > STATES_MAX:
            raise WrongEndError(f"more than {STATES_MAX} states")
        names = here.ready()
        total = 0 if names else 1
        if not names:
            self._at_end(here)
        for name in names:
            there = copy.deepcopy(here)
            there.step(name)
            total += self.follow(there)
        self.ways[key] = total
        return total


def _explore(name: str, mesh: Mesh, at_end: Callable[[Mesh], None]) -> RaceFound:
    explorer = _Explorer(at_end)
    orders, failure = 0, None
    try:
        orders = explorer.follow(mesh)
    except WrongEndError as error:
        failure = str(error)
    return RaceFound(name=name, interleavings=orders, states=len(explorer.ways), failure=failure)


def _lost_at_j(tables: Mapping[int, tuple[int, ...]]) -> Mesh:
    """S was at J and is lost there; the copies at J's neighbours are active."""
    mesh = Mesh(tables)
    mesh.feed(J, facts.SubscriberArrived(S, 1, SUBS))
    mesh.settle()
    mesh.feed(J, facts.SubscriberLost(S, 1))
    mesh.settle()
    return mesh


def _comes_to_k(mesh: Mesh, then: facts.Fact) -> None:
    """S arrives at K and something happens to it there, while everything is under way."""
    mesh.will("S", (K, facts.SubscriberArrived(S, 2, SUBS, J, {})), (K, then))


def _expect_none_left(mesh: Mesh) -> None:
    """When S comes back to K and says goodbye, no copy is left anywhere."""
    mesh.feed(K, facts.SubscriberArrived(S, 3, SUBS, K, {}))
    mesh.settle()
    mesh.feed(K, facts.SubscriberGone(S, 3))
    mesh.settle()
    _expect(mesh.held(), NOTHING, "copies after goodbye")


def deactivate_against_activate() -> RaceFound:
    """J deactivates N's copy while K activates it: it ends active, under K's control."""
    mesh = _lost_at_j(TRIANGLE)
    _comes_to_k(mesh, facts.SubscriberLost(S, 2))

    def at_end(end: Mesh) -> None:
        _expect(end.held(), ((State.ACTIVE, K), (State.AWAY, None), (State.ACTIVE, K)), "copies")
        complete = [broker.subscribers.main[S].complete for broker in end.brokers]
        _expect(complete, [True, True, True], "complete")
        _expect_none_left(end)

    return _explore("deactivate against activate", mesh, at_end)


def delete_against_activate() -> RaceFound:
    """J deletes N's copy, since N is not K's neighbour; then it becomes one, and K activates the copy.

    Another subscriber comes from N to K at any time and makes the edge. If the delete comes first, K is told
    that the copy is missing, and delivers it. Where K learns the edge too late, N has none.
    """
    mesh = _lost_at_j(STAR)
    _comes_to_k(mesh, facts.SubscriberLost(S, 2))
    mesh.feed(N, facts.SubscriberArrived(OTHER, 1, SUBS))
    mesh.will("other", (K, facts.SubscriberArrived(OTHER, 2, SUBS, N, {})))

    def at_end(end: Mesh) -> None:
        is_neighbour = N in end.brokers[K].subscribers.main[S].holders
        at_n = (State.ACTIVE, K) if is_neighbour else None
        _expect(end.held(), ((State.ACTIVE, K), (State.AWAY, None), at_n), "copies")
        if is_neighbour:
            _expect(end.brokers[N].subscribers.main[S].complete, wanted=True, what="complete")
        _expect_none_left(end)

    return _explore("delete against activate", mesh, at_end)


def deactivate_against_unsubscribe() -> RaceFound:
    """S says goodbye at K right after its arrival: nothing is left, whoever was in control."""
    mesh = _lost_at_j(TRIANGLE)
    _comes_to_k(mesh, facts.SubscriberGone(S, 2))

    def at_end(end: Mesh) -> None:
        _expect(end.held(), NOTHING, "copies")
        for broker in end.brokers:
            _expect(broker.router.is_empty(), wanted=True, what=f"broker {broker.number}'s tables are empty")

    return _explore("deactivate against unsubscribe", mesh, at_end)


def timeout_against_activate() -> RaceFound:
    """J's Timeout(S) runs out at any time around S's arrival and loss at K: K's copies stay."""
    mesh = _lost_at_j(TRIANGLE)
    _comes_to_k(mesh, facts.SubscriberLost(S, 2))
    mesh.will("timer", (J, facts.TimerFired(S, mesh.timers[J][S])))

    def at_end(end: Mesh) -> None:
        _expect(end.held(), ((State.ACTIVE, K), (State.AWAY, None), (State.ACTIVE, K)), "copies")
        _expect_none_left(end)

    return _explore("timeout against activate", mesh, at_end)


RACES = (
    deactivate_against_activate,
    delete_against_activate,
    deactivate_against_unsubscribe,
    timeout_against_activate,
)


def follow_all_races() -> list[RaceFound]:
    """Every interleaving of the four races."""
    return [race() for race in RACES]
