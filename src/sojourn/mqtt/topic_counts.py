"""How many events clients published on each topic, for people who look; nothing is decided by it.

There is room for so many topics. When it is taken, events on further ones are counted together until
somebody who looks now and then makes room (`make_room`), which forgets the topics that are the least busy.
Counts begin anew with the process: nobody was promised anything about them.
"""

from __future__ import annotations

import heapq

TOPICS_MAX = 2_000
COUNTED_CHARS_MAX = 1_024
"""Events on a longer topic are counted together with those that there is no room for."""


class TopicCounts:
    """By topic: how many events, and when the last one came."""

    __slots__ = ("beyond", "rows", "since_s")

    def __init__(self) -> None:
        self.rows: dict[str, list[float]] = {}
        """By topic: its events, and the time of the last."""
        self.beyond = 0
        """Events on topics that there was no room for."""
        self.since_s = 0.0
        """When the first event was counted."""

    def begin(self, topic: str, now: float) -> None:
        """Count the first event of a topic."""
        self.since_s = self.since_s or now
        if len(self.rows) < TOPICS_MAX and len(topic) <= COUNTED_CHARS_MAX:
            self.rows[topic] = [1, now]
        else:
            self.beyond += 1

    def make_room(self) -> None:
        """Forget the less busy half of the topics if there is no room for more."""
        if len(self.rows) >= TOPICS_MAX:
            busiest = heapq.nlargest(TOPICS_MAX // 2, self.rows.items(), key=lambda item: item[1])
            self.rows = dict(busiest)
