"""With which store the events were lost that a run of `kill_brokers.py` misses, if with any."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from plain_clients import Acknowledged, Event, SessionLoss, Subscriber

MOMENT_S = 2.0
"""What was acknowledged so shortly before a broker died may have been in its store alone."""
UNEXPLAINED = "not explained by any store that was deleted"


class Death(NamedTuple):
    """One broker's end and return; times in seconds since it was killed, None for never."""

    broker: str
    killed_s: float
    """When it was killed, as of `time.time`."""
    at_s: float
    """The same since the first kill was due."""
    started_s: float | None
    """When its next process began; with Python and all that it loads."""
    listens_s: float | None
    linked_s: float | None
    """When its last link was up again, as it tells itself."""
    store: str
    """What became of its store: kept, deleted, or deleted too late."""

    @property
    def relinked_s(self) -> float | None:
        """How long after its restart its links were up again."""
        if self.linked_s is None or self.started_s is None:
            return None
        return self.linked_s - self.started_s


class LostStore(NamedTuple):
    """A store that brokers say was lost, and what they knew was in it."""

    broker: str
    sessions: int
    events: int


class Missed(NamedTuple):
    """An event that was acknowledged and did not come to a subscriber."""

    subscriber: Subscriber
    event: Event
    told: Acknowledged


def explain(missed: list[Missed], losses: list[SessionLoss], deaths: list[Death]) -> Counter[str]:
    """Say of each missing delivery with which store it was lost; `UNEXPLAINED` for none.

    - A session was lost with a store: its client was told so, and missed what came from a little before the
      end of that broker until it had subscribed again.
    - An event was only in the store of the broker that had acknowledged it a moment before.
    - An event waited for a client that was away, and went to its next broker through one whose store was
      deleted before the client was back.
    """
    gone = [death for death in deaths if death.store != "kept"]
    gaps: dict[str, list[tuple[float, float]]] = {}
    for loss in losses:
        # It was at one of these brokers, or on its way through one.
        ends = [one.killed_s for one in gone if loss.since_s <= one.killed_s < loss.found_s]
        if ends:
            gaps.setdefault(loss.client, []).append((min(ends) - MOMENT_S, loss.found_s))
    found: Counter[str] = Counter()
    for subscriber, _, told in missed:
        spans = [
            (start_s, min((moment_s for moment_s in subscriber.renewed if moment_s >= end_s), default=end_s))
            for start_s, end_s in gaps.get(subscriber.name, [])
        ]
        if any(start_s <= told.at_s <= end_s for start_s, end_s in spans):
            found["of sessions that were lost, as their clients were told"] += 1
        elif any(one.broker == told.broker and 0 <= one.killed_s - told.at_s <= MOMENT_S for one in gone):
            found["acknowledged just before, by the broker whose store was deleted"] += 1
        elif any(told.at_s <= one.killed_s <= _back_s(subscriber, told.at_s) for one in gone):
            found["waited for clients that were away when a store was deleted, and moved"] += 1
        elif any(0 <= one.killed_s - told.at_s <= MOMENT_S for one in gone):
            found["on their way through a broker when its store was deleted"] += 1
        else:
            found[UNEXPLAINED] += 1
    return found


def _back_s(subscriber: Subscriber, at_s: float) -> float:
    """When a subscriber that was away at a moment was let in again; that moment itself if it was not away."""
    if any(came_s <= at_s <= left_s for came_s, left_s in subscriber.stays):
        return at_s
    return min((came_s for came_s, _ in subscriber.stays if came_s > at_s), default=at_s)
