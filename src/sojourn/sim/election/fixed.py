"""The fixed network, as nodes that come into reach of it find it: one broker that never fails.

It knows an event that is offered again by the stream that it comes in, whose numbers grow: one that is not
above the last is a repetition, as with any publisher (`mqtt/publishing.py`). For every node that was in reach
once it keeps a session, with what came since.
"""

from collections import Counter, deque

from sojourn.adhoc.election.messages import EventId, Kept
from sojourn.interest.events import Event


class FixedNetwork:
    """A broker, one subscriber that wants everything, and sessions of nodes."""

    def __init__(self) -> None:
        self.got: Counter[EventId] = Counter()
        """By event: how often its subscriber was given it."""
        self.repeats = 0
        self.reach: set[int] = set()
        """Nodes that reach it."""
        self._last: dict[tuple[int, int], int] = {}
        self._sessions: dict[int, deque[Event]] = {}

    def connect(self, node: int) -> None:
        """A node is in reach; what came since it was first is kept for it."""
        self.reach.add(node)
        self._sessions.setdefault(node, deque())

    def take(self, kept: Kept) -> None:
        """Be offered an event."""
        custody = kept.custody
        assert custody is not None
        stream = custody.broker, custody.term
        if custody.number <= self._last.get(stream, 0):
            self.repeats += 1
            return
        self._last[stream] = custody.number
        self.publish(kept.event)

    def publish(self, event: Event) -> None:
        """Somebody publishes an event here."""
        self.got[event.source, event.sequence] += 1
        for session in self._sessions.values():
            session.append(event)

    def next_for(self, node: int) -> Event | None:
        """What a node is to be told next; it stays until `told`."""
        session = self._sessions.get(node)
        return session[0] if session else None

    def told(self, node: int) -> None:
        """The node has it."""
        self._sessions[node].popleft()
