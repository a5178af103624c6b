"""Copies at this broker of subscribers that are elsewhere: kept, activated, deactivated, deleted.

These are requests of the broker that serves a subscriber, or served it last (paper 001, section 4.1, cases 1
to 4 and 6 to 8). Two such brokers may ask at once, and a transport may repeat or delay what they ask, so
every request is weighed: against what is over (`Past.closed`), and against who is in control of the copy
(`Holding.yields_to`). Only a subscriber that leaves for good needs no control, and its copy goes anyway.
"""

from sojourn.mobility.copies import State, Turn
from sojourn.mobility.holdings import Holding
from sojourn.mobility.requests import Requests
from sojourn.routing.messages import Activate, Activated, Copy, Deactivate, Delete, Handoff


class CopyRequests(Requests):
    """What a broker does with copies on behalf of others."""

    __slots__ = ()

    def on_copy(self, message: Copy) -> None:
        """Cases 1 and 7: keep the subscriptions, passive."""
        client = message.client
        if self._is_closed(client, message.epoch):
            return
        copy = self._copy_for(message)
        if copy is None:
            if client in self.main:
                return
            copy = self.main[client] = Holding(client, message.epoch, message.subscriptions)
        elif message.epoch == copy.epoch and (
            copy.state is State.ACTIVE or message.version < copy.version or message.sender != copy.controller
        ):
            return  # a repetition from before it was activated or changed
        self._turn(copy, Turn.COPIED, message.cause)
        self._calm(copy)
        copy.epoch, copy.version = message.epoch, message.version
        copy.subscriptions, copy.others = message.subscriptions, message.others
        copy.controller = message.sender

    def on_activate(self, message: Activate) -> None:
        """Case 2: store from now on; first the subscriptions, then the answer, which is the fence."""
        client = message.client
        if self._is_closed(client, message.epoch):
            return
        copy = self._copy_for(message)
        if copy is None:
            if client in self.main:
                return
            if message.subscriptions is None:
                self._answer(message, found=False)
                return
            copy = self.main[client] = Holding(client, message.epoch, message.subscriptions)
        elif copy.state is State.ACTIVE and copy.epoch == message.epoch:
            return  # a repetition: it was answered
        if message.subscriptions is not None:
            copy.subscriptions, copy.version = message.subscriptions, message.version
        elif copy.version != message.version:
            self._answer(message, found=False)
            return
        # A copy that another broker had activated goes on storing; if it was complete, it still is.
        was_complete = copy.state is State.ACTIVE and copy.complete
        copy.epoch, copy.controller = message.epoch, message.sender
        copy.others, copy.cause = message.others, message.cause
        copy.note_marks(message.marks)
        if not was_complete:
            copy.waits.add(message.epoch)
        self._turn(copy, Turn.ACTIVATED, message.cause)
        self._answer(message, found=True)

    def on_deactivate(self, message: Deactivate) -> None:
        """Cases 3 and 4: store no more, and empty the queue."""
        copy = self.main.get(message.client)
        self._close(message.client, message.epoch)
        if copy is not None and not copy.is_stay() and copy.yields_to(message):
            self._turn(copy, Turn.DEACTIVATED, message.cause)
            self._calm(copy)

    def on_delete(self, message: Delete) -> None:
        """Cases 4, 6 and 8: forget the copy."""
        copy = self.main.get(message.client)
        self._close(message.client, message.epoch)
        if copy is None or copy.is_stay():
            return
        # Unsubscribing needs no control; a copy of a later connection is another matter.
        if copy.yields_to(message) or (message.for_good and message.epoch >= copy.epoch):
            self._turn(copy, Turn.DELETED, message.cause)

    def _copy_for(self, message: Handoff) -> Holding | None:
        """The copy that a request may act on; a stay of an earlier epoch makes room for one."""
        holding = self.main.get(message.client)
        if holding is None:
            return None
        if holding.is_stay():
            if message.epoch > holding.epoch:
                self._set_aside(holding)
            return None
        return holding if holding.yields_to(message) else None

    def _calm(self, copy: Holding) -> None:
        """A passive copy stores nothing and waits for nothing."""
        self._empty(copy)
        copy.waits.clear()
        copy.complete = False
        copy.marks = {}

    def _answer(self, message: Activate, *, found: bool) -> None:
        self._send(
            Activated(
                destination=message.sender,
                sender=self.number,
                client=message.client,
                epoch=message.epoch,
                cause=message.cause,
                found=found,
            )
        )
