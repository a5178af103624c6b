"""The mechanism under the subscriber schemes: holdings, their subscriptions, queues, timers and completion.

Who holds what. `main` has the latest holding of each subscriber. An earlier stay that the subscriber's next
broker has not asked for yet stands in `older`, still storing; so does one that is LEAVING. Each holding whose
subscriptions are in the router has a key there, the client's number where it is free.

Why nothing is lost, doubled or out of order. Events of one source have growing sequence numbers and reach
any one broker in that order. Messages between brokers take the links that events take, and links are FIFO,
so a message is a fence. Let a broker I start to receive (it sets a flag where events are flooded; where they
are routed it subscribes) and then send a message to J. An event that I misses was passed on towards J by the
last broker that both ways share, before that broker knew of I, and so ahead of I's message: it is at J when
the message is. So if J has been receiving all along, sends all it has when the message comes, and then says
that this is the end, what J sent and what I received are everything. The events in both are told by (source,
sequence). Until the end I holds everything back; then it delivers in order, and what still arrives from below
that line is a duplicate (`ceiling`). The argument holds for any way that the message takes over the tree.

If J waits for an end itself, it gives what it has only after that. Each stay asks the one that the subscriber
was at before, so waiting goes from later epochs to earlier ones and ends.
"""

from collections import deque
from collections.abc import Callable, Iterator
from math import isfinite

from sojourn.mobility.copies import Feed, State, Turn, Wait, follow
from sojourn.mobility.holdings import NOBODY, Holding, Past, in_order
from sojourn.mobility.neighbour_table import NeighbourTable
from sojourn.mobility.prediction import Predictor
from sojourn.mobility.queues import Store
from sojourn.mobility.schemes import Scheme
from sojourn.routing.effects import CancelTimer, Deliver, Dropped, Effects, Ready, SetTimer
from sojourn.routing.messages import Forward, ForwardEnd, Handoff, Marks, Outcome, Publish, undoing
from sojourn.routing.router import Router

FORWARD_EVENTS_MAX = 64
"""Events in one message between brokers."""
COPY_TIMEOUTS = 2
"""An active copy outlives Timeout(S) of the broker in control by this factor, then it is an orphan."""


class Keeping:
    """Holdings of subscribers at one broker, and what every request needs of them."""

    __slots__ = (
        "_local",
        "_next_hop",
        "_spare_key",
        "_token",
        "_watched",
        "effects",
        "fed",
        "main",
        "now",
        "number",
        "older",
        "past",
        "predictor",
        "present",
        "router",
        "scheme",
        "store",
        "stored",
        "table",
        "timers",
    )

    def __init__(
        self,
        number: int,
        router: Router,
        scheme: Scheme,
        next_hop: Callable[[int, int], int],
        predictor: Predictor | None = None,
    ) -> None:
        self.number = number
        self.router = router
        self.effects: Effects = router.effects
        self.scheme = scheme
        self.predictor = predictor
        self.now = 0.0
        self.present = 0
        """How many subscribers are connected here."""
        self.table = NeighbourTable(scheme.neighbours_max, scheme.edge_timeout_s)
        self.store = Store(scheme.queue_bytes_max, scheme.event_bytes, evicts=scheme.evicts)
        self.stored = 0
        """In how many queues the last event was put, for whoever charges for it."""
        self.main: dict[int, Holding] = {}
        self.older: dict[int, list[Holding]] = {}
        self.past: dict[int, Past] = {}
        """By client, the one remembered longest first."""
        self.fed: dict[int, Holding] = {}
        """By key in the router."""
        self.timers: dict[int, Holding] = {}
        """By token."""
        self._next_hop = next_hop
        self._local: deque[Handoff] = deque()
        """Messages to this broker itself; they are handled before the next fact."""
        self._token = 0
        self._spare_key = 0
        self._watched = 0
        """How many holdings in the router are not open."""

    # Turns -------------------------------------------------------------------------------------------

    def _turn(self, holding: Holding, turn: Turn, cause: int) -> None:
        following = follow(holding.state, turn)
        self.present += (following.state is State.PRESENT) - (holding.state is State.PRESENT)
        holding.state = following.state
        if following.wait is not Wait.AS_IS:
            self._rewind(holding, following.wait)
        if following.feed is Feed.START:
            self._hold(holding, holding.subscriptions, cause)
        elif following.feed is Feed.STOP:
            self._hold(holding, (), undoing(cause))
        if following.state is State.ABSENT:
            self._forget(holding)

    def _rewind(self, holding: Holding, wait: Wait) -> None:
        """Stop the holding's timer and start the next one, if the state has one."""
        if holding.token:
            self.timers.pop(holding.token, None)
            self.effects.cancels.append(CancelTimer(holding.client, holding.token))
            holding.token = 0
        if wait is Wait.STOP or (wait is Wait.PATIENCE and not holding.waits):
            return
        delay_s = self.scheme.patience_s if wait is Wait.PATIENCE else self.scheme.timeout_s
        if holding.state is State.ACTIVE:
            delay_s *= COPY_TIMEOUTS
        elif holding.state is State.PASSIVE:
            delay_s = self.scheme.passive_s
        if isfinite(delay_s):
            self._token -= 1  # the tokens of publishers' stays are positive
            holding.token = self._token
            self.timers[self._token] = holding
            self.effects.timers.append(SetTimer(holding.client, self._token, delay_s))

    def _hold(self, holding: Holding, subscriptions: tuple[int, ...], cause: int) -> None:
        """Have exactly these subscriptions in the router: first what is new, then less what is not."""
        held = holding.fed
        if held == subscriptions:
            return
        if not held:
            self._enter(holding)
        old, new = set(held), set(subscriptions)
        for sub in subscriptions:
            if sub not in old:
                self.router.client_subscribes(holding.key, sub, cause)
        for sub in held:
            if sub not in new:
                self.router.client_unsubscribes(holding.key, sub, undoing(cause))
        holding.fed = subscriptions
        if not subscriptions:
            del self.fed[holding.key]
            self._watched -= not holding.is_open
            holding.is_open = False

    def _enter(self, holding: Holding) -> None:
        holding.key = holding.client
        if holding.key in self.fed:
            self._spare_key -= 1
            holding.key = self._spare_key
        self.fed[holding.key] = holding
        holding.is_open = False
        self._watched += 1

    def _set_open(self, holding: Holding, *, is_open: bool) -> None:
        if holding.fed and holding.is_open != is_open:
            holding.is_open = is_open
            self._watched += -1 if is_open else 1

    def _forget(self, holding: Holding) -> None:
        self._empty(holding)
        if self.main.get(holding.client) is holding:
            del self.main[holding.client]
            return
        older = self.older.get(holding.client)
        if older is not None and holding in older:
            older.remove(holding)
            if not older:
                del self.older[holding.client]

    def _empty(self, holding: Holding) -> None:
        """Give up all that is stored for it."""
        self.store.release(holding.queue)
        self.store.release(holding.forwarded)
        holding.queue.clear()
        holding.forwarded.clear()

    def _set_aside(self, holding: Holding) -> None:
        """The subscriber has a later holding here; this one still waits to be asked, or to give."""
        if self.main.get(holding.client) is holding:
            del self.main[holding.client]
            self.older.setdefault(holding.client, []).append(holding)
        if holding.state is State.PRESENT:
            self._stop_serving(holding, holding.cause)

    def _stop_serving(self, stay: Holding, cause: int) -> None:
        """Its connection is gone: store from now on."""
        stay.ready = False
        self._set_open(stay, is_open=False)
        self._turn(stay, Turn.LOST, cause)

    def _stay_of(self, client: int, epoch: int) -> Holding | None:
        for holding in self._all(client):
            if holding.is_stay() and holding.epoch == epoch:
                return holding
        return None

    def _all(self, client: int) -> Iterator[Holding]:
        main = self.main.get(client)
        if main is not None:
            yield main
        yield from tuple(self.older.get(client, ()))

    # Memory ------------------------------------------------------------------------------------------

    def _remember(self, client: int) -> Past:
        """What is remembered of a client, now the freshest memory."""
        past = self.past.pop(client, None) or Past()
        past.touched_s = self.now
        self.past[client] = past
        if len(self.past) > self.scheme.memory_max:
            del self.past[next(iter(self.past))]
        return past

    def forget_until(self, moment_s: float) -> None:
        """Forget departed clients of whom nothing was heard since then and of whom nothing is held."""
        for client, past in list(self.past.items()):
            if past.touched_s > moment_s:
                break  # the rest is fresher
            if client not in self.main and client not in self.older:
                del self.past[client]

    def forget_marks(self, before: int) -> None:
        """Forget of all that is held how far sources had come whose numbers ended long ago."""
        for client in (*self.main, *self.older):
            for holding in self._all(client):
                holding.forget_marks(before)

    def _close(self, client: int, epoch: int) -> None:
        past = self._remember(client)
        past.closed = max(past.closed, epoch)

    def _end_stay(self, stay: Holding) -> None:
        """A stay is over and nobody follows: whoever asks for it later is told."""
        self._close(stay.client, stay.epoch)
        self.past[stay.client].give(stay.began, stay.epoch, NOBODY)

    def _is_closed(self, client: int, epoch: int) -> bool:
        past = self.past.get(client)
        return past is not None and epoch <= past.closed

    # Events ------------------------------------------------------------------------------------------

    def _complete(self, holding: Holding, *, short: bool = False) -> None:
        """Nothing is waited for any more: put what came in order, and serve whoever waits."""
        holding.waits.clear()
        holding.complete = True
        if holding.forwarded:
            self._replace_queue(holding, [*holding.forwarded, *holding.queue])
        if holding.state is State.PRESENT:
            self._rewind(holding, Wait.STOP)
            self._serve(holding, complete=not short)
        outcome = Outcome.UNKNOWN if short else Outcome.COMPLETE
        for broker in sorted(holding.acked):
            self._give(holding, broker, holding.epoch, holding.marks, outcome)
        holding.acked.clear()
        if holding.successor is not None:
            moved = holding.successor
            marks = moved.marks if moved.marks is not None else holding.marks
            self._give(holding, moved.sender, moved.epoch, marks, outcome)
            self._turn(holding, Turn.HANDED_OVER, moved.cause)

    def _replace_queue(self, holding: Holding, publications: list[Publish]) -> None:
        """Make the queue these events less those consumed and doubled, and all else none of it."""
        kept = in_order(publications, holding.marks)
        for publication in kept:
            # Each is stored already, so there is always room.
            self._admit(publication, [holding])
        self._empty(holding)
        holding.queue.extend(kept)

    def _serve(self, holding: Holding, *, complete: bool) -> None:
        """Deliver what is stored, and from now on what comes."""
        client, marks = holding.client, holding.marks
        self._replace_queue(holding, list(holding.queue))
        ceiling = dict(marks) if self.scheme.follows else {}
        for publication in holding.queue:
            self.effects.deliveries.append(Deliver((client,), publication))
            ceiling[publication.event.source] = publication.event.sequence
        holding.ceiling = ceiling
        holding.ready = True
        if not self.scheme.acknowledged:
            self._empty(holding)
            self._set_open(holding, is_open=not ceiling and holding.key == client)
        self.effects.ready.append(Ready(client, holding.epoch, int(holding.how), complete))

    def _give(self, holding: Holding, to: int, epoch: int, marks: Marks, outcome: Outcome) -> None:
        """Send what is stored beyond the marks, and the end."""
        events = in_order(holding.queue, marks)
        for start in range(0, len(events), FORWARD_EVENTS_MAX):
            batch = tuple(events[start : start + FORWARD_EVENTS_MAX])
            self._send(
                Forward(
                    destination=to,
                    sender=self.number,
                    client=holding.client,
                    epoch=epoch,
                    cause=holding.cause,
                    publications=batch,
                )
            )
        self._end(holding.client, to, epoch, outcome, holding.marks, holding.cause)

    def _end(self, client: int, to: int, epoch: int, outcome: Outcome, marks: Marks, cause: int) -> None:
        self._send(
            ForwardEnd(
                destination=to,
                sender=self.number,
                client=client,
                epoch=epoch,
                cause=cause,
                outcome=int(outcome),
                marks=dict(marks),
            )
        )

    def _admit(self, publication: Publish, holdings: list[Holding]) -> bool:
        """Have room for an event that is to be stored for these; the caller puts it into their queues."""
        store = self.store
        while not store.admit(publication, len(holdings)):
            oldest = store.oldest()
            if not self.scheme.evicts or oldest is None:
                return False
            self._evict(oldest)
        if store.owners is not None:
            store.owners.setdefault(publication, []).extend(holdings)
        return True

    def _evict(self, publication: Publish) -> None:
        """Give up a stored event, whoever it is stored for."""
        owners = self.store.owners
        assert owners is not None, "only a store that evicts knows the owners"
        for holding in dict.fromkeys(owners.pop(publication)):
            for place in (holding.queue, holding.forwarded):
                # The oldest event of the broker is as a rule the oldest of its owner.
                if place and (place[0] is publication or publication in place):
                    place.remove(publication)
                    self.store.release((publication,))
                    if not holding.ready:
                        self._drop(holding, [publication], "queue full")

    def _drop(self, holding: Holding, publications: list[Publish], reason: str) -> None:
        client = holding.client
        self.effects.drops.extend(Dropped(client, publication, reason) for publication in publications)

    # Messages ----------------------------------------------------------------------------------------

    def _send(self, message: Handoff) -> None:
        if message.destination == self.number:
            self._local.append(message)
            return
        hop = self._next_hop(self.number, message.destination)
        self.effects.sends.append((self.router.neighbours.bit(hop), message))
