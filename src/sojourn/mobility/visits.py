"""Subscribers come, change their minds, are lost, go for good, or stay away too long (paper 001, section 4).

These are the facts that a driver tells, and the timers that run out. Who arrives is served from what is
stored here, or its old broker is asked; who is lost has events stored; the end of a stay is told to whoever
has copies. What other brokers ask is in `copy_requests.py` and `transfers.py`.
"""

from collections.abc import Callable

from sojourn.mobility import facts
from sojourn.mobility.copies import State, Turn, Wait
from sojourn.mobility.facts import NO_EPOCH, How
from sojourn.mobility.giving import Giving
from sojourn.mobility.holdings import Holding
from sojourn.mobility.keeping import Shelf
from sojourn.mobility.memory import NOBODY, Memory
from sojourn.mobility.queues import GIVEN_UP, Queues
from sojourn.mobility.requests import Requests
from sojourn.mobility.schemes import Scheme
from sojourn.mobility.transfers import Transfers
from sojourn.routing.effects import Close, Effects, Ended, Redirect
from sojourn.routing.messages import undoing

Placement = Callable[[int, int, int], int]
"""Which broker is to serve a client: given the client, the broker it came to and how many are there."""


class Visits:
    """The stays of subscribers at one broker, from arrival to end."""

    __slots__ = (
        "_effects",
        "_giving",
        "_memory",
        "_number",
        "_placement",
        "_queues",
        "_requests",
        "_scheme",
        "_shelf",
        "_transfers",
    )

    def __init__(  # noqa: PLR0913  (each part that a visit touches)
        self,
        *,
        number: int,
        scheme: Scheme,
        shelf: Shelf,
        queues: Queues,
        memory: Memory,
        requests: Requests,
        giving: Giving,
        transfers: Transfers,
        effects: Effects,
        placement: Placement | None,
    ) -> None:
        self._number = number
        self._scheme = scheme
        self._shelf = shelf
        self._queues = queues
        self._memory = memory
        self._requests = requests
        self._giving = giving
        self._transfers = transfers
        self._effects = effects
        self._placement = placement

    # Arrivals ----------------------------------------------------------------------------------------

    def on_arrived(self, fact: facts.SubscriberArrived) -> None:
        """A client connected: send it elsewhere, or find out what is here for it, and serve it."""
        client, scheme = fact.client, self._scheme
        if self._placement is not None and not fact.stays_here:
            better = self._placement(client, self._number, self._shelf.present)
            if better != self._number:
                self._effects.redirects.append(Redirect(client, better))
                return
        holding = self._shelf.main.get(client)
        is_known = holding is not None and holding.epoch >= fact.epoch
        if is_known or self._memory.is_over(client, fact.epoch):
            self._effects.closes.append(Close(client, fact.epoch))
            return
        if fact.previous is not None:
            self._requests.crossed(fact.previous)
        comes_back = holding is not None and holding.is_stay()
        if comes_back and scheme.follows and fact.previous != self._number:
            # It has been elsewhere since; that broker has to ask for the old stay before we can. Or it begins
            # anew, and its old session is on its way: whoever is given that asks for what is stored for it.
            assert holding is not None, "only a holding is a stay"
            self._shelf.set_aside(holding)
            holding, comes_back = None, False
        if holding is None:
            holding = self._shelf.place(Holding(client, fact.epoch, fact.subscriptions or ()))
        self._queues.accounts.enter(holding, fact.party)
        if comes_back or not scheme.follows:
            self._welcome_back(holding, fact)
        else:
            self._welcome(holding, fact)

    def _welcome_back(self, stay: Holding, fact: facts.SubscriberArrived) -> None:
        """Case 3, and a durable subscription: what is stored is here."""
        is_new, was_asking = stay.state is State.ABSENT, stay.is_asking
        is_stored = stay.state is State.AWAY and not stay.lingers
        for broker in sorted(stay.holders if is_stored else ()):
            self._requests.deactivate(stay, broker, undoing(fact.cause))
        stay.pending.clear()
        stay.acked.clear()
        stay.how = How.FIRST if is_new else How.SAME
        stay.epoch, stay.cause = fact.epoch, fact.cause
        has_changed = fact.subscriptions is not None and stay.want(fact.subscriptions, fact.epoch)
        if fact.marks is not None and self._scheme.follows:
            stay.note_marks(fact.marks)
        if not self._scheme.follows:
            stay.complete = True
        stay.is_asking = was_asking and fact.subscriptions is None
        self._shelf.arrive(stay, fact.cause)
        if was_asking and not stay.is_asking:
            self._requests.seek(stay, known=())
            self._transfers.tell_askers(stay)
        elif has_changed:
            self._requests.spread(stay, ())
        if stay.complete:
            self._giving.serve(stay)

    def _welcome(self, stay: Holding, fact: facts.SubscriberArrived) -> None:
        """Case 5: serve from a complete copy at once, or fetch what is missing from the old broker."""
        previous = fact.previous
        is_active = stay.state is State.ACTIVE
        from_previous = stay.controller == previous
        # What a copy cannot know is what the client consumed elsewhere since; only the client can tell.
        is_current = is_active and (from_previous or fact.marks is not None)
        if fact.last_epoch not in (None, stay.epoch):
            # It stored while the client was served elsewhere, by a broker that forgot to have activated it.
            is_current = False
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
        stay.last_epoch = fact.last_epoch if fact.last_epoch != NO_EPOCH else None
        if fact.subscriptions is not None and stay.want(fact.subscriptions, fact.epoch):
            known = ()
        if fact.marks is not None:
            stay.note_marks(fact.marks)
        stay.is_asking = previous is not None and fact.subscriptions is None and not stay.subscriptions
        stay.complete = has_all
        if not has_all:
            stay.waits.add(fact.epoch)
        self._shelf.arrive(stay, fact.cause)
        self._requests.seek(stay, known)
        if has_all:
            self._giving.complete(stay)

    # What else clients do ----------------------------------------------------------------------------

    def on_changed(self, fact: facts.SubscriberChanged) -> None:
        """A connected client wants something else: so do its copies."""
        stay = self._shelf.stay_of(fact.client, fact.epoch)
        if stay is None or stay.state is not State.PRESENT:
            return
        if not stay.want(fact.subscriptions, fact.epoch):
            return
        self._shelf.hold(stay, fact.subscriptions, fact.cause)
        if stay.is_asking:
            stay.is_asking = False
            self._requests.seek(stay, known=())
            self._transfers.tell_askers(stay)
        else:
            self._requests.spread(stay, ())

    def on_lost(self, fact: facts.SubscriberLost) -> None:
        """Case 2: a connection is gone; store from now on, and have the copies store, perhaps a little later.

        Nothing depends on when they begin: all that comes meanwhile is stored here, and given to them.
        """
        stay = self._shelf.stay_of(fact.client, fact.epoch)
        if stay is None or stay.state is not State.PRESENT:
            return  # it is known to be elsewhere already
        stay.cause = fact.cause
        self._shelf.stop_serving(stay, fact.cause)
        if self._scheme.ahead and self._shelf.main.get(fact.client) is stay and stay.subscriptions:
            if self._scheme.grace_s:
                self._shelf.linger(stay, self._scheme.grace_s)
            else:
                self._activate(stay)

    def _activate(self, stay: Holding) -> None:
        """Have events stored by copies wherever the subscriber may come next."""
        has_copy = stay.holders.copy()
        stay.pending = self._requests.targets(stay)
        stay.holders |= stay.pending
        for broker in sorted(stay.pending):
            is_new = self._scheme.gives_along and broker not in has_copy
            self._requests.activate(stay, broker, stay.subscriptions if is_new else None)

    def on_gone(self, fact: facts.SubscriberGone) -> None:
        """Case 6: a client left for good; everything that is kept for it anywhere goes."""
        stay = self._shelf.stay_of(fact.client, fact.epoch)
        if stay is None or stay.state is State.LEAVING:
            return
        self._queues.drop(stay.client, stay.stored()[: max(0, fact.lost)], GIVEN_UP)
        self._end_stay(stay)
        for broker in sorted(stay.holders):
            self._requests.delete(stay, broker, undoing(fact.cause), for_good=True)
        self._requests.abandon(stay)
        self._shelf.turn(stay, Turn.GONE, fact.cause)
        self._transfers.send_askers_on(stay)

    def _end_stay(self, stay: Holding) -> None:
        """A stay is over and nobody follows: whoever asks for it later is told."""
        self._memory.close(stay.client, stay.epoch)
        self._memory.give(stay.client, stay.began, stay.epoch, NOBODY)

    # Time --------------------------------------------------------------------------------------------

    def expire(self, holding: Holding) -> None:
        """Case 8, and the limits of waiting: the time of a holding is up."""
        state = holding.state
        if holding.lingers:
            holding.lingers = False
            self._shelf.rewind(holding, Wait.TIMEOUT)
            if self._shelf.main.get(holding.client) is holding:
                self._activate(holding)
        elif state in (State.PRESENT, State.LEAVING) and holding.heard:
            # What it waits for is under way: it gives up when nothing more comes.
            holding.heard = False
            self._shelf.rewind(holding, Wait.PATIENCE)
        elif state is State.PRESENT:
            self._shelf.turn(holding, Turn.EXPIRED, holding.cause)
            self._giving.give_up(holding)
        elif state is State.PASSIVE:
            # Nothing is over: whoever is in control may still activate it, and is told that it is missing.
            self._shelf.turn(holding, Turn.EXPIRED, holding.cause)
        elif state is State.LEAVING:
            self._requests.abandon(holding)
            self._transfers.expect_late(holding)
            self._giving.complete(holding, short=True)
        else:
            self._end_storing(holding)

    def _end_storing(self, holding: Holding) -> None:
        """A subscriber was away for too long, or a copy was left alone."""
        self._requests.abandon(holding)
        if holding.state is State.AWAY:
            for broker in sorted(holding.holders):
                self._requests.delete(holding, broker, undoing(holding.cause))
            self._queues.drop(holding.client, (*holding.queue, *holding.forwarded), "timeout")
            self._transfers.expect_late(holding)
            self._end_stay(holding)
            self._effects.ends.append(Ended(holding.client, holding.epoch))
        self._memory.close(holding.client, holding.epoch)
        self._shelf.turn(holding, Turn.EXPIRED, holding.cause)
        self._transfers.send_askers_on(holding)
