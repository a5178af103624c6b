"""Events on their way from a subscriber's old broker to its new one, or to copies that were activated.

The new broker asks the old one with `Moved`, always, and is always answered with FORWARD-END: by the old
broker; or, if that has handed the subscriber on meanwhile, by the broker it handed it to, since the request
is passed on along the way that the subscriber's events took. A request that comes after a later one is told
that it is superseded. A broker that has forgotten says that too, and the subscriber is served with what there
is; when some broker says that it forgot something, requests without an answer are sent again. Where no answer
comes at all, patience ends the wait (`Giving.give_up`).

A subscriber that goes on quickly leaves stays behind that wait for one another, and only the first of them
has something to hear. So a stay that is asked while it waits gives a sign, a Forward without events, when it
is asked and then whenever it hears something itself (`Scheme.signs`). The signs of a chain keep the patience
of all who wait along it; where its first broker is dead, that one's next in line gives up first, and what
there is comes to the others in time.

The same two messages, Forward and FORWARD-END, bring a copy up to date that was activated. Both kinds of
transfer have their own epoch, so that a repetition of one can't be taken for the other.

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

from dataclasses import replace

from sojourn.mobility.copies import State, Turn
from sojourn.mobility.giving import Giving
from sojourn.mobility.holdings import Holding
from sojourn.mobility.keeping import Shelf
from sojourn.mobility.late import Late
from sojourn.mobility.memory import NOBODY, Given, Memory
from sojourn.mobility.post import Post
from sojourn.mobility.queues import Queues
from sojourn.mobility.requests import Requests
from sojourn.routing.effects import Close, Effects
from sojourn.routing.messages import (
    Activated,
    Ask,
    Context,
    Forward,
    ForwardEnd,
    Moved,
    Outcome,
    undoing,
)

Request = Moved | Ask


class Transfers:
    """What a broker does with requests for events, and with the events it asked for."""

    __slots__ = ("_effects", "_giving", "_memory", "_post", "_queues", "_requests", "_shelf")

    def __init__(
        self,
        *,
        shelf: Shelf,
        queues: Queues,
        memory: Memory,
        post: Post,
        requests: Requests,
        giving: Giving,
        effects: Effects,
    ) -> None:
        self._shelf = shelf
        self._queues = queues
        self._memory = memory
        self._post = post
        self._requests = requests
        self._giving = giving
        self._effects = effects

    # The old broker ----------------------------------------------------------------------------------

    def on_activated(self, message: Activated) -> None:
        """A copy stores by itself now: give it what it lacks; or there is none: deliver the context."""
        stay = self._shelf.main.get(message.client)
        if stay is None or stay.state is not State.AWAY or stay.epoch != message.epoch:
            return
        if message.sender not in stay.pending:
            return
        if not message.found:
            self._requests.activate(stay, message.sender, stay.subscriptions)
            return
        stay.pending.discard(message.sender)
        if stay.complete:
            self._giving.give_copy(stay, message.sender)
        else:
            stay.acked.add(message.sender)

    def on_moved(self, message: Moved) -> None:
        """Case 4, and the reactive scheme: the subscriber is with the sender."""
        self._requests.crossed(message.sender)
        stay = self._stay_for(message)
        if stay is None:
            return
        if stay.state is State.PRESENT:
            self._effects.closes.append(Close(stay.client, stay.epoch))
        self._memory.give(message.client, stay.began, message.epoch, message.sender)
        self._memory.close(stay.client, stay.epoch)  # a copy from before this stay is a late repetition
        self._tidy(stay, message)
        client = stay.client
        if message.last_epoch not in (None, stay.epoch):
            # The session that is with the sender left here before this one began, and what was stored for it
            # has ended since: what was sent here for it after that is with nobody.
            stay.is_short = True
        if stay.complete and message.wants and self._giving.is_long(stay):
            stay.cause, stay.successor = message.cause, message
            self.expect_late(stay)
            self._requests.abandon(stay)
            self._shelf.turn(stay, Turn.ASKED_EARLY, message.cause)
            self._shelf.set_aside(stay)
            self._giving.hand_over(stay)
            self.send_askers_on(stay)
        elif stay.complete or not message.wants:
            stay.cause = message.cause
            if message.wants:
                self.expect_late(stay)
                marks = message.marks if message.marks is not None else stay.marks
                self._giving.give(stay, message.sender, message.epoch, marks)
            else:
                self._giving.end(
                    client, message.sender, message.epoch, Outcome.COMPLETE, stay.marks, message.cause
                )
            self._requests.abandon(stay)
            self._shelf.turn(stay, Turn.HANDED_OVER, message.cause)
            self.send_askers_on(stay)
        else:
            stay.cause, stay.successor = message.cause, message
            self._shelf.turn(stay, Turn.ASKED_EARLY, message.cause)
            self._shelf.set_aside(stay)
            self._giving.sign(stay, message)
        if self._post.number in message.holders and client not in self._shelf.main:
            self._become_copy(message)

    def _become_copy(self, message: Moved) -> None:
        """The old broker is a neighbour of the new one: it keeps what it knows as a passive copy."""
        if self._memory.is_closed(message.client, message.epoch):
            return
        copy = self._shelf.place(Holding(message.client, message.epoch, message.subscriptions))
        copy.version = message.version
        copy.controller, copy.others = message.sender, message.holders
        self._shelf.turn(copy, Turn.COPIED, message.cause)

    def _tidy(self, stay: Holding, moved: Moved) -> None:
        """Deactivate the copies that the new broker takes over, delete the others."""
        cause = undoing(moved.cause)
        for broker in sorted(stay.holders - {moved.sender}):
            if broker not in moved.holders:
                self._requests.delete(stay, broker, cause)
            elif stay.state is State.AWAY and not stay.lingers:
                self._requests.deactivate(stay, broker, cause)
        stay.holders.clear()
        stay.pending.clear()
        stay.acked.clear()

    def _stay_for(self, request: Request) -> Holding | None:
        """The stay that a request of a later broker is about; where there is none it is answered here."""
        client, epoch = request.client, request.epoch
        stays = [one for one in self._shelf.all(client) if one.is_stay()]
        if any(one.successor is not None and one.successor.epoch == epoch for one in stays):
            return None  # a repetition: what was asked for is given as soon as it is here
        open_stays = [one for one in stays if one.successor is None and request.after <= one.began < epoch]
        if isinstance(request, Moved) and request.last_epoch is not None:
            meant = next((one for one in open_stays if one.epoch == request.last_epoch), None)
            if meant is not None:
                return meant  # a later one is of another session, which began when this one was on its way
        stay = max(open_stays, key=lambda one: one.began, default=None)
        given = self._given_before(client, epoch, stays)
        if stay is not None and (given is None or given.began < stay.began):
            if stay.epoch < epoch:
                return stay
            # The client came back here after it had connected to the sender.
            self._refuse(request, Outcome.SUPERSEDED)
        elif given is None:
            is_past = any(one.epoch > epoch for one in stays)
            self._refuse(request, Outcome.SUPERSEDED if is_past else Outcome.UNKNOWN)
        elif given.epoch > epoch:
            self._refuse(request, Outcome.SUPERSEDED)
        elif given.epoch < epoch:
            if given.to == NOBODY or given.epoch <= request.after:
                self._refuse(request, Outcome.UNKNOWN)
            else:
                self._post.send(replace(request, destination=given.to, after=given.epoch))
        else:
            # A repetition: it was answered, and whoever has that answer takes no notice of this one.
            self._refuse(request, Outcome.UNKNOWN)
        return None

    def _given_before(self, client: int, epoch: int, stays: list[Holding]) -> Given | None:
        """The latest stay that began before an epoch and that the subscriber has left for another broker.

        Memory has a limit, and who goes on quickly has many such stays that still wait. Those know it
        themselves.
        """
        known = self._memory.last_before(client, epoch)
        left = [
            Given(one.began, one.successor.epoch, one.successor.sender)
            for one in stays
            if one.successor is not None and one.began < epoch
        ]
        return max(left if known is None else [*left, known], default=None)

    def _refuse(self, request: Request, outcome: Outcome) -> None:
        if isinstance(request, Moved):
            self._giving.end(request.client, request.sender, request.epoch, outcome, {}, request.cause)
        else:
            self._tell(request, None)

    def on_ask(self, message: Ask) -> None:
        """The first step of the reactive scheme in paper 001: the new broker lacks the subscriptions."""
        stay = self._stay_for(message)
        if stay is None:
            return
        if stay.is_asking:
            stay.askers[message.epoch] = message
        else:
            self._tell(message, stay)

    def tell_askers(self, stay: Holding) -> None:
        """A stay has learnt what the client wants: tell the later brokers that asked it."""
        for ask in stay.askers.values():
            self._tell(ask, stay)
        stay.askers.clear()

    def send_askers_on(self, stay: Holding) -> None:
        """A stay is over before it learnt what its askers want to know: where it went they find out."""
        askers = [*stay.askers.values()]
        stay.askers.clear()
        for ask in askers:
            self.on_ask(ask)

    def _tell(self, ask: Ask, stay: Holding | None) -> None:
        self._post.send(
            Context(
                destination=ask.sender,
                sender=self._post.number,
                client=ask.client,
                epoch=ask.epoch,
                cause=ask.cause,
                subscriptions=stay.subscriptions if stay is not None else (),
                version=stay.version if stay is not None else 0,
                holder=self._post.number,
            )
        )

    # The new broker, and copies ----------------------------------------------------------------------

    def ask_all_again(self) -> None:
        """Some broker has forgotten what it did last: whoever waits for an answer asks again.

        The request may be forgotten, or the answer. Otherwise the subscriber, and all that is stored for it
        at later brokers, would wait until patience ends, and what comes then is late.
        """
        for client in dict.fromkeys((*self._shelf.main, *self._shelf.older)):
            for stay in self._shelf.all(client):
                if stay.asked != NOBODY and stay.is_stay() and stay.origin is not None:
                    wants = not stay.complete or stay.late is not None
                    self._requests.announce(stay, stay.origin, wants=wants)

    def on_context(self, message: Context) -> None:
        """The subscriptions that were asked for: subscribe, then ask for the events."""
        asking = (
            one for one in self._shelf.all(message.client) if one.is_asking and one.began == message.epoch
        )
        stay = next(asking, None)
        if stay is None:
            return
        stay.is_asking = False
        self._giving.hear(stay)
        stay.subscriptions, stay.version = message.subscriptions, message.version
        if stay.state is not State.LEAVING:
            self._shelf.hold(stay, stay.subscriptions, message.cause)
            self._requests.choose_holders(stay)
        self._requests.announce(stay, message.holder, wants=True)
        self._requests.spread(stay, (message.holder,))
        self.tell_askers(stay)

    def on_forward(self, message: Forward) -> None:
        """Events that another broker has for a subscriber; what nobody here knows of is a repetition."""
        for holding in self._shelf.all(message.client):
            if message.epoch in holding.waits:
                self._giving.hear(holding)
                self._queues.take_in(holding, message.publications)
                return
            if holding.late is not None and message.epoch in holding.late.epochs:
                self._giving.take_late(holding, message.publications)
                return
        late = self._memory.late(message.client, message.epoch)
        if late is not None:
            self._giving.drop_late(message.client, late, message.publications)

    def on_forward_end(self, message: ForwardEnd) -> None:
        """The end of a transfer: whoever waited for it is complete, or knows that it cannot be."""
        for holding in self._shelf.all(message.client):
            is_answer = holding.asked == message.epoch and holding.is_stay()
            if is_answer:
                holding.asked = NOBODY
                if message.outcome == Outcome.SUPERSEDED:
                    if holding.epoch > holding.began and holding.successor is None:
                        self._ask_again(holding)
                    else:
                        self._supersede(holding, message.cause)
                    return
            if message.epoch in holding.waits:
                self._end_of_wait(holding, message)
                return
            if holding.late is not None and message.epoch in holding.late.epochs:
                holding.late = None  # one transfer has come to its end; another has the same events
            if is_answer:
                return
        late = self._memory.late(message.client, message.epoch)
        if late is not None:
            self._memory.late_end(message.client, late)

    def expect_late(self, stay: Holding) -> None:
        """A stay ends before all has come that it asked for: what comes later is to be reported."""
        late = stay.late
        if late is None and stay.waits:
            late = Late.of(stay.waits, stay.marks, stay.forwarded, stay.queue)
        if late is not None:
            self._memory.expect_late(stay.client, late)

    def _end_of_wait(self, holding: Holding, message: ForwardEnd) -> None:
        holding.waits.discard(message.epoch)
        if message.outcome == Outcome.COMPLETE:
            holding.note_marks(message.marks)
            self._giving.complete(holding)
        elif holding.is_stay() and (not holding.waits or holding.controller == holding.origin):
            # A copy that was not brought up to date simply stays incomplete. What the subscriber's old broker
            # had to say to the copy that this stay was, it said before this answer, or it has forgotten it.
            holding.note_marks(message.marks)
            self._giving.complete(holding, short=True)

    def _ask_again(self, stay: Holding) -> None:
        """The client was elsewhere after this stay had asked, but is back: its events are where it was."""
        for epochs in (stay.waits, stay.late.epochs if stay.late is not None else set()):
            if stay.began in epochs:
                epochs.discard(stay.began)
                epochs.add(stay.epoch)
        stay.began = stay.epoch
        stay.heard = True
        assert stay.origin is not None, "only who came from somewhere asks"
        self._requests.announce(stay, stay.origin, wants=not stay.complete or stay.late is not None)

    def _supersede(self, stay: Holding, cause: int) -> None:
        """The subscriber connected elsewhere before this stay could begin: it leaves no trace."""
        if stay.state is State.PRESENT:
            self._effects.closes.append(Close(stay.client, stay.epoch))
        for broker in sorted(stay.holders):
            self._requests.delete(stay, broker, undoing(cause))
        self._requests.abandon(stay)
        self._memory.close(stay.client, stay.epoch)
        moved, stay.successor = stay.successor, None
        self._shelf.turn(stay, Turn.DELETED, cause)
        self.send_askers_on(stay)
        if moved is not None:
            # Who waits for this stay has to go where it went itself, and from there along the events' way.
            self._memory.take_back(stay.client, stay.began)
            if stay.origin is not None:
                self._post.send(replace(moved, destination=stay.origin, after=-1))
            else:
                self._refuse(moved, Outcome.UNKNOWN)
