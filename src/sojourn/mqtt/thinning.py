"""Queues of sessions are thinned by what their subscriptions want of what was missed (`queue_policies.py`).

All at once, or in parts while a session is held and given what another part of the broker has stored for it:
then with each part what came is looked at, and what is not wanted goes. What was looked at is remembered
here, and is no state: what is left of a queue leads to the same, part by part or all at once, for what goes
because of others goes whatever comes later, and what is too old goes at the end. But by other subscriptions
other messages would have gone. So a client that changes them before the end is sent the rest as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from sojourn.mqtt.message import Message
from sojourn.mqtt.queue_policies import THIN_AT, Thinner
from sojourn.mqtt.room import replace_queue
from sojourn.mqtt.session import Delivery, Session, Subscription
from sojourn.mqtt.state import State

LEFT_AS_IT_IS = -1
"""`Session.thin_at` of one whose subscriptions have changed."""

Gone = list[tuple[Message, str]]


class _Begun:
    """How far a queue was looked at."""

    __slots__ = ("count", "last", "thinner")

    def __init__(self) -> None:
        self.thinner = Thinner()
        self.count = 0
        """Deliveries at the head of the queue that were looked at, and stay so far."""
        self.last: Delivery | None = None
        """The last of them."""

    def holds_for(self, session: Session) -> bool:
        """Whether the queue still begins with them."""
        queue = session.queue
        return not self.count or (len(queue) >= self.count and queue[self.count - 1] is self.last)


class Thinning:
    """Thins the queues of one broker."""

    __slots__ = ("_begun", "_fitting", "_shared")

    def __init__(self, shared: State, fitting: Callable[[Message, Session], list[Subscription]]) -> None:
        self._shared, self._fitting = shared, fitting
        """`fitting`: the subscriptions of a session that a message is for."""
        self._begun: dict[Session, _Begun] = {}

    def all_of(self, session: Session, now: float, *, is_back: bool) -> Gone:
        """Drop what is not wanted; return it, and why. `is_back`: the client is sent the rest now."""
        begun = self._begun.pop(session, None)
        if session.thin_at == LEFT_AS_IT_IS:
            session.thin_at = THIN_AT
            return []
        if begun is None or not begun.holds_for(session) or not is_back:
            begun = _Begun()
        is_fresh = not begun.count
        self._look(session, begun, now if is_fresh else None)
        if is_back:
            begun.thinner.end(now)
        return self._let_go(session, begun)

    def part_of(self, session: Session) -> Gone:
        """Look at what came since the last part; drop what is not wanted, and return it."""
        if session.thin_at == LEFT_AS_IT_IS:
            return []
        begun = self._begun.get(session)
        if begun is None or not begun.holds_for(session):
            begun = self._begun[session] = _Begun()
        self._look(session, begun, None)
        return self._let_go(session, begun)

    def changed(self, session: Session) -> None:
        """A session has other subscriptions than before."""
        if session.held and session.thin_at:
            session.thin_at = LEFT_AS_IT_IS
            self._begun.pop(session, None)

    def forget(self, session: Session) -> None:
        """A session has no connection any more."""
        self._begun.pop(session, None)

    def _look(self, session: Session, begun: _Begun, now: float | None) -> None:
        for delivery in islice(session.queue, begun.count, None):
            begun.thinner.add(delivery, self._fitting(delivery.message, session), now)

    def _let_go(self, session: Session, begun: _Begun) -> Gone:
        reasons = {id(delivery): reason for delivery, reason in begun.thinner.gone}
        begun.thinner.gone.clear()
        gone: list[tuple[Delivery, str]] = []
        if reasons:
            gone = [(one, reasons[id(one)]) for one in session.queue if id(one) in reasons]
            replace_queue(self._shared, session, [one for one in session.queue if id(one) not in reasons])
        begun.count = len(session.queue)
        begun.last = session.queue[-1] if session.queue else None
        session.thin_at = max(THIN_AT, 2 * len(session.queue))
        for _, reason in gone:
            self._shared.counters.dropped[reason] += 1
        return [(delivery.message, reason) for delivery, reason in gone]
