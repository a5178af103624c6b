"""Copies at this broker of subscribers that are elsewhere: kept, activated, deactivated, deleted.

These are requests of the broker that serves a subscriber, or served it last (paper 001, section 4.1, cases 1
to 4 and 6 to 8). Two such brokers may ask at once, and a transport may repeat or delay what they ask, so
every request is weighed: against what is over (`Memory.is_closed`), and against who is in control of the copy
(`Holding.yields_to`). Only a subscriber that leaves for good needs no control, and its copy goes anyway.

All of that rests on brokers that remember. One that forgets what it did last may leave copies behind that
store for a subscriber which is served elsewhere, under an epoch that it does not know any more. So whenever a
broker has forgotten something, all active copies are in doubt.
"""

from sojourn.mobility.copies import State, Turn
from sojourn.mobility.facts import CopiesDoubted
from sojourn.mobility.holdings import Holding
from sojourn.mobility.keeping import Shelf
from sojourn.mobility.memory import Memory
from sojourn.mobility.post import Post
from sojourn.mobility.queues import Queues
from sojourn.routing.effects import Close, Effects
from sojourn.routing.messages import Activate, Activated, Copy, Deactivate, Delete, Handoff


class CopyRequests:
    """What a broker does with copies on behalf of others."""

    __slots__ = ("_effects", "_memory", "_post", "_queues", "_shelf")

    def __init__(self, shelf: Shelf, queues: Queues, memory: Memory, post: Post, effects: Effects) -> None:
        self._shelf = shelf
        self._queues = queues
        self._memory = memory
        self._post = post
        self._effects = effects

    def on_copy(self, message: Copy) -> None:
        """Cases 1 and 7: keep the subscriptions, passive."""
        client = message.client
        if self._memory.is_closed(client, message.epoch):
            return
        copy = self._copy_for(message)
        if copy is None:
            if client in self._shelf.main:
                return
            copy = self._shelf.place(Holding(client, message.epoch, message.subscriptions))
        elif message.epoch == copy.epoch and (
            copy.state is State.ACTIVE or message.version < copy.version or message.sender != copy.controller
        ):
            return  # a repetition from before it was activated or changed
        self._shelf.turn(copy, Turn.COPIED, message.cause)
        self._calm(copy)
        copy.epoch, copy.version = message.epoch, message.version
        copy.subscriptions, copy.others = message.subscriptions, message.others
        copy.controller = message.sender

    def on_activate(self, message: Activate) -> None:
        """Case 2: store from now on; first the subscriptions, then the answer, which is the fence."""
        client = message.client
        if self._memory.is_closed(client, message.epoch):
            return
        copy = self._copy_for(message)
        if copy is None:
            if client in self._shelf.main:
                return
            if message.subscriptions is None:
                self._answer(message, found=False)
                return
            copy = self._shelf.place(Holding(client, message.epoch, message.subscriptions))
        elif copy.state is State.ACTIVE and copy.epoch == message.epoch:
            return  # a repetition: it was answered
        is_same = message.subscriptions is None or copy.subscriptions_include(message.subscriptions)
        if message.subscriptions is not None:
            copy.subscriptions, copy.version = message.subscriptions, message.version
        elif copy.version != message.version:
            self._answer(message, found=False)
            return
        # A copy that another broker had activated goes on storing; if it was complete, it still is. One that
        # stored for less lacks what has come for the rest, as that of a session that ended, or is elsewhere.
        was_complete = copy.state is State.ACTIVE and copy.complete and is_same
        copy.complete = was_complete
        copy.epoch, copy.controller = message.epoch, message.sender
        copy.others, copy.cause = message.others, message.cause
        copy.note_marks(message.marks)
        self._queues.accounts.enter(copy, message.party)
        if not was_complete:
            copy.waits.add(message.epoch)
        self._shelf.turn(copy, Turn.ACTIVATED, message.cause)
        self._answer(message, found=True)

    def on_deactivate(self, message: Deactivate) -> None:
        """Cases 3 and 4: store no more, and empty the queue."""
        copy = self._shelf.main.get(message.client)
        self._memory.close(message.client, message.epoch)
        if copy is not None and not copy.is_stay() and copy.yields_to(message):
            self._shelf.turn(copy, Turn.DEACTIVATED, message.cause)
            self._calm(copy)

    def on_delete(self, message: Delete) -> None:
        """Cases 4, 6 and 8: forget the copy."""
        copy = self._shelf.main.get(message.client)
        self._memory.close(message.client, message.epoch)
        if copy is None or copy.is_stay():
            return
        # Unsubscribing needs no control; a copy of a later connection is another matter.
        if copy.yields_to(message) or (message.for_good and message.epoch >= copy.epoch):
            self._shelf.turn(copy, Turn.DELETED, message.cause)

    def on_doubted(self, _fact: CopiesDoubted) -> None:
        """Some broker has forgotten what it did last; let every active copy end that nobody activates anew.

        It may be the one in control, which then never says that it wants a copy no longer; or one on the way,
        with what was said; or this one. To end a copy that is wanted loses nothing: what is stored in it is
        with the broker in control, too, and is fetched from there when the subscriber comes.
        """
        for holding in self._shelf.main.values():
            if holding.state is State.ACTIVE:
                self._shelf.doubt(holding)

    def _copy_for(self, message: Handoff) -> Holding | None:
        """The copy that a request may act on; a stay of an earlier epoch makes room for one."""
        holding = self._shelf.main.get(message.client)
        if holding is None:
            return None
        if holding.is_stay():
            if message.epoch > holding.epoch:
                if holding.state is State.PRESENT:
                    # Whoever asks for this stay later finds it AWAY, so its connection ends now.
                    self._effects.closes.append(Close(holding.client, holding.epoch))
                self._shelf.set_aside(holding)
            return None
        return holding if holding.yields_to(message) else None

    def _calm(self, copy: Holding) -> None:
        """A passive copy stores nothing and waits for nothing."""
        self._queues.empty(copy)
        copy.waits.clear()
        copy.complete = False
        copy.marks = {}

    def _answer(self, message: Activate, *, found: bool) -> None:
        self._post.send(
            Activated(
                destination=message.sender,
                sender=self._post.number,
                client=message.client,
                epoch=message.epoch,
                cause=message.cause,
                found=found,
            )
        )
