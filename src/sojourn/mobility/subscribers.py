"""Subscribers that come and go: the facts about them, and each event's way to them (paper 001, section 4).

One mechanism serves the three schemes of `schemes.py`. Durable: a stay never ends and nobody is told.
Reactive: the new broker asks the old one, which hands everything over. Pro-active: the same, and copies at
the neighbours that are activated when the subscriber is lost; a copy that is complete when the subscriber
arrives serves it at once, and the request to the old broker only tidies up. Where there is no copy, as when
an edge is crossed for the first time, pro-active is reactive.

The argument for its correctness stands in `keeping.py`. It asks of a client that its epochs grow, and that
`previous` is the last broker it knows to have taken it in; of the network that links are FIFO and lose
nothing. A client that gives its marks gets each event once and in each source's order if no queue overflows
and no timeout passes; `Ready.complete` and the drops say so where it does not.

Not here: pings (a driver feeds `SubscriberLost` when enough of them were missed), publishers that move
(`stays.py`), and what any of it costs.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from sojourn.mobility import facts
from sojourn.mobility.copies import State, Turn
from sojourn.mobility.facts import How
from sojourn.mobility.holdings import Holding
from sojourn.mobility.prediction import Predictor
from sojourn.mobility.schemes import Scheme
from sojourn.mobility.transfers import Transfers
from sojourn.routing.effects import Close, Deliver, Redirect
from sojourn.routing.messages import Ask, Handoff, Kind, Publish, undoing
from sojourn.routing.router import Router

Placement = Callable[[int, int, int], int]
"""Which broker is to serve a client: given the client, the broker it came to and how many are there."""


class Subscribers(Transfers):
    """The subscriber half of one broker."""

    __slots__ = ("_receive", "placement")

    def __init__(
        self,
        number: int,
        router: Router,
        scheme: Scheme,
        next_hop: Callable[[int, int], int],
        *,
        predictor: Predictor | None = None,
        placement: Placement | None = None,
    ) -> None:
        super().__init__(number, router, scheme, next_hop, predictor)
        self.placement = placement
        self._receive: dict[int, Callable[[Any], None]] = {
            Kind.COPY: self.on_copy,
            Kind.ACTIVATE: self.on_activate,
            Kind.ACTIVATED: self.on_activated,
            Kind.DEACTIVATE: self.on_deactivate,
            Kind.DELETE: self.on_delete,
            Kind.MOVED: self.on_moved,
            Kind.FORWARD: self.on_forward,
            Kind.FORWARD_END: self.on_forward_end,
            Kind.ASK: self.on_ask,
            Kind.CONTEXT: self.on_context,
        }

    # The doors ---------------------------------------------------------------------------------------

    def receive(self, message: Handoff, _bit: int) -> None:
        """Take a message about a subscriber, or pass it on to the broker it is for."""
        if message.destination != self.number:
            self._send(message)
            return
        self._receive[message.kind](message)
        self._settle()

    def handle(self, fact: facts.Fact) -> None:
        """Take a fact about a subscriber."""
        self._HANDLERS[type(fact)](self, fact)
        self._settle()

    def _settle(self) -> None:
        while self._local:
            message = self._local.popleft()
            self._receive[message.kind](message)

    def counts(self) -> dict[str, int]:
        """How many holdings there are in each state."""
        found = dict.fromkeys((state.name.lower() for state in State if state is not State.ABSENT), 0)
        for holding in self.main.values():
            found[holding.state.name.lower()] += 1
        for older in self.older.values():
            for holding in older:
                found[holding.state.name.lower()] += 1
        return found

    # Events ------------------------------------------------------------------------------------------

    def publish(self, message: Publish, bit: int) -> None:
        """Route an event; deliver it to those who are ready, store it for those who are not."""
        self.router.publish(message, bit)
        self.stored = 0
        deliveries = self.effects.deliveries
        if self._watched and deliveries and deliveries[-1].publication is message:
            self._part(deliveries, deliveries.pop().clients, message)

    def _part(self, deliveries: list[Deliver], clients: tuple[int, ...], message: Publish) -> None:
        keeps, fed = self.scheme.acknowledged, self.fed
        here: list[int] = []
        waiting: list[Holding] = []
        for key in clients:
            holding = fed.get(key)
            if holding is None or holding.is_open:
                here.append(key)
            elif not holding.ready:
                waiting.append(holding)
            elif not holding.ceiling or self._is_news(holding, message):
                here.append(holding.client)
                if keeps:
                    waiting.append(holding)
        if here:
            deliveries.append(Deliver(tuple(here), message))
        if waiting:
            self._queue(waiting, message)

    def _is_news(self, holding: Holding, message: Publish) -> bool:
        """Whether the client lacks an event; a source's first one beyond its ceiling lifts the ceiling."""
        source = message.event.source
        ceiling = holding.ceiling
        last = ceiling.get(source)
        if last is None:
            return True
        if message.event.sequence <= last:
            return False
        del ceiling[source]
        if not ceiling and not self.scheme.acknowledged:
            self._set_open(holding, is_open=holding.key == holding.client)
        return True

    def _queue(self, holdings: list[Holding], message: Publish) -> None:
        most = self.scheme.queue_events_max
        fits = [holding for holding in holdings if len(holding.queue) < most]
        if fits and self._admit(message, fits):
            self.stored = len(fits)
            for holding in fits:
                holding.queue.append(message)
            if len(fits) == len(holdings):
                return
            holdings = [holding for holding in holdings if len(holding.queue) >= most]
            holdings = [holding for holding in holdings if holding.queue[-1] is not message]
        for holding in holdings:
            if not holding.ready:  # one that is ready has it, and only loses the second chance
                self._drop(holding, [message], "queue full")

    def _on_consumed(self, fact: facts.Consumed) -> None:
        holding = self.main.get(fact.client)
        if holding is None or holding.state is not State.PRESENT:
            return
        marks, queue = holding.marks, holding.queue
        if fact.sequence <= marks.get(fact.source, -1):
            return
        marks[fact.source] = fact.sequence
        done = []
        while queue and queue[0].event.sequence <= marks.get(queue[0].event.source, -1):
            done.append(queue.popleft())
        self.store.release(done)

    # Arrivals ----------------------------------------------------------------------------------------

    def _on_arrived(self, fact: facts.SubscriberArrived) -> None:
        client = fact.client
        if self.placement is not None and not fact.stays_here:
            better = self.placement(client, self.number, self.present)
            if better != self.number:
                self.effects.redirects.append(Redirect(client, better))
                return
        holding = self.main.get(client)
        if self._is_late(holding, fact):
            self.effects.closes.append(Close(client, fact.epoch))
            return
        if self.scheme.ahead and fact.previous is not None and fact.previous != self.number:
            self.table.cross(fact.previous, self.now)
        comes_back = holding is not None and holding.is_stay()
        if comes_back and self.scheme.follows and fact.previous not in (None, self.number):
            # It has been elsewhere since; that broker has to ask for the old stay before we can.
            assert holding is not None, "only a holding is a stay"
            self._set_aside(holding)
            holding, comes_back = None, False
        if holding is None:
            holding = self.main[client] = Holding(client, fact.epoch, fact.subscriptions or ())
        if comes_back or not self.scheme.follows:
            self._welcome_back(holding, fact)
        else:
            self._welcome(holding, fact)

    def _is_late(self, holding: Holding | None, fact: facts.SubscriberArrived) -> bool:
        """Whether a later connection of the client is known already."""
        if holding is not None and holding.epoch >= fact.epoch:
            return True
        past = self.past.get(fact.client)
        return past is not None and fact.epoch <= max(past.closed, *[one.epoch for one in past.given], -1)

    def _welcome_back(self, stay: Holding, fact: facts.SubscriberArrived) -> None:
        """Case 3, and a durable subscription: what is stored is here."""
        is_new, was_asking = stay.state is State.ABSENT, stay.is_asking
        for broker in sorted(stay.holders if stay.state is State.AWAY else ()):
            self._deactivate(stay, broker, undoing(fact.cause))
        stay.pending.clear()
        stay.acked.clear()
        stay.how = How.FIRST if is_new else How.SAME
        stay.epoch, stay.cause = fact.epoch, fact.cause
        has_changed = fact.subscriptions is not None and stay.want(fact.subscriptions, fact.epoch)
        if fact.marks is not None and self.scheme.follows:
            stay.note_marks(fact.marks)
        if not self.scheme.follows:
            stay.complete = True
        stay.is_asking = was_asking and fact.subscriptions is None
        self._arrive(stay, fact.cause)
        if was_asking and not stay.is_asking:
            self._seek(stay, known=())
            self._tell_askers(stay)
        elif has_changed:
            self._spread(stay, ())
        if stay.complete:
            self._serve(stay, complete=True)

    def _welcome(self, stay: Holding, fact: facts.SubscriberArrived) -> None:
        """Case 5: serve from a complete copy at once, or fetch what is missing from the old broker."""
        previous = fact.previous
        is_active = stay.state is State.ACTIVE
        from_previous = stay.controller == previous
        # What a copy cannot know is what the client consumed elsewhere since; only the client can tell.
        is_current = is_active and (from_previous or fact.marks is not None)
        if fact.subscriptions is None:
            is_current = is_current and from_previous
            stay.subscriptions = stay.subscriptions if from_previous else ()
        else:
            is_current = is_current and stay.subscriptions_include(fact.subscriptions)
        known = (*stay.others, stay.controller) if from_previous else ()
        has_all = previous is None or (is_current and stay.complete)
        if not is_current:
            stay.waits.clear()
        stay.how = How.FIRST if previous is None else How.COPY if is_current else How.FETCHED
        stay.epoch = stay.began = fact.epoch
        stay.cause, stay.origin = fact.cause, previous
        if fact.subscriptions is not None and stay.want(fact.subscriptions, fact.epoch):
            known = ()
        if fact.marks is not None:
            stay.note_marks(fact.marks)
        stay.is_asking = previous is not None and fact.subscriptions is None and not stay.subscriptions
        stay.complete = has_all
        if not has_all:
            stay.waits.add(fact.epoch)
        self._arrive(stay, fact.cause)
        self._seek(stay, known)
        if has_all:
            self._complete(stay)

    def _seek(self, stay: Holding, known: tuple[int, ...]) -> None:
        """Tell the old broker, or ask it what the client wants; then have copies made."""
        self._choose_holders(stay)
        if stay.origin is not None:
            if stay.is_asking:
                self._ask(stay, stay.origin)
                return
            self._announce(stay, stay.origin, wants=not stay.complete)
            known = (*known, stay.origin)
        self._spread(stay, known)

    def _arrive(self, stay: Holding, cause: int) -> None:
        stay.ready = False
        self._set_open(stay, is_open=False)
        self._turn(stay, Turn.ARRIVED, cause)

    def _ask(self, stay: Holding, previous: int) -> None:
        self._send(
            Ask(
                destination=previous,
                sender=self.number,
                client=stay.client,
                epoch=stay.began,
                cause=stay.cause,
            )
        )

    # Departures --------------------------------------------------------------------------------------

    def _on_lost(self, fact: facts.SubscriberLost) -> None:
        stay = self._stay_of(fact.client, fact.epoch)
        if stay is None or stay.state is not State.PRESENT:
            return  # it is known to be elsewhere already
        stay.cause = fact.cause
        self._stop_serving(stay, fact.cause)
        if self.scheme.ahead and self.main.get(fact.client) is stay and stay.subscriptions:
            stay.pending = self._targets(stay)
            stay.holders |= stay.pending
            for broker in sorted(stay.pending):
                self._activate(stay, broker, None)

    def _on_changed(self, fact: facts.SubscriberChanged) -> None:
        stay = self._stay_of(fact.client, fact.epoch)
        if stay is None or stay.state is not State.PRESENT:
            return
        if not stay.want(fact.subscriptions, fact.epoch):
            return
        self._hold(stay, fact.subscriptions, fact.cause)
        if stay.is_asking:
            stay.is_asking = False
            self._seek(stay, known=())
            self._tell_askers(stay)
        else:
            self._spread(stay, ())

    def _on_gone(self, fact: facts.SubscriberGone) -> None:
        stay = self._stay_of(fact.client, fact.epoch)
        if stay is None or stay.state is State.LEAVING:
            return
        self._end_stay(stay)
        for broker in sorted(stay.holders):
            self._delete(stay, broker, undoing(fact.cause), for_good=True)
        self._abandon(stay)
        self._turn(stay, Turn.GONE, fact.cause)
        self._send_askers_on(stay)

    # Time --------------------------------------------------------------------------------------------

    def expired(self, token: int) -> None:
        """Case 8, and the limits of waiting; a timer whose cancellation was under way is of no holding."""
        holding = self.timers.pop(token, None)
        if holding is not None:
            holding.token = 0
            self._expire(holding)
            self._settle()

    def _expire(self, holding: Holding) -> None:
        state = holding.state
        if state is State.PRESENT:
            self._turn(holding, Turn.EXPIRED, holding.cause)
            self._complete(holding, short=True)
            return
        if state is State.PASSIVE:
            # Nothing is over: whoever is in control may still activate it, and is told that it is missing.
            self._turn(holding, Turn.EXPIRED, holding.cause)
            return
        self._abandon(holding)
        if state is State.LEAVING:
            self._complete(holding, short=True)
            return
        if state is State.AWAY:
            for broker in sorted(holding.holders):
                self._delete(holding, broker, undoing(holding.cause))
            self._drop(holding, [*holding.queue, *holding.forwarded], "timeout")
            self._end_stay(holding)
        self._close(holding.client, holding.epoch)
        self._turn(holding, Turn.EXPIRED, holding.cause)
        self._send_askers_on(holding)

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        facts.SubscriberArrived: _on_arrived,
        facts.SubscriberLost: _on_lost,
        facts.SubscriberChanged: _on_changed,
        facts.SubscriberGone: _on_gone,
        facts.Consumed: _on_consumed,
    }
