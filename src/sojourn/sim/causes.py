"""What each move costs in messages and time, by counting its messages that are still on the way.

A move has two causes, one that builds (even) and one that tears down (odd; `routing/messages.py`). A cause is
active while any of its messages has not been processed. Its time is the sum of its active spells, as paper
000, section 5.2.3 measures it: from the instant the broker receives what sets the tree off (the publisher's
advertisement, or the prefetch) to the instant the last message it led to has been processed. There is more
than one spell only if a prediction was wrong and the tree is built a second time.

The time a prefetch takes to the next broker and the publisher's own link are not in the spell; the wait that
the publisher sees is counted from its arrival (`results.py`).
"""

from sojourn.routing.messages import Kind

KINDS = Kind.RELEASE + 1
"""The kinds of message that moving publishers lead to: all up to this one."""
NEVER = -1.0


class Causes:
    """Counters by cause; cause 0 and 1 are the set-up."""

    __slots__ = ("active_s", "client_hops", "ended_s", "hops", "opened_s", "pending")

    def __init__(self) -> None:
        self.pending: list[int] = []
        """Messages of the cause that are on the way or being processed."""
        self.opened_s: list[float] = []
        """When the present spell began."""
        self.active_s: list[float] = []
        """How long past spells lasted, all together."""
        self.ended_s: list[float] = []
        """When the last spell ended; `NEVER` before the first did."""
        self.hops: list[int] = []
        """Hops between brokers, at cause * KINDS + kind."""
        self.client_hops: list[int] = []
        """Messages of the cause on the publisher's own link."""
        self.add_pair()

    def add_pair(self) -> int:
        """Make room for one more move; its building cause is returned."""
        cause = len(self.pending)
        self.pending += (0, 0)
        self.opened_s += (NEVER, NEVER)
        self.active_s += (0.0, 0.0)
        self.ended_s += (NEVER, NEVER)
        self.client_hops += (0, 0)
        self.hops += (0,) * (2 * KINDS)
        return cause

    def open(self, cause: int, received_s: float) -> None:
        """A broker has work to do for a cause that it received at that time."""
        if not self.pending[cause]:
            self.opened_s[cause] = received_s
        self.pending[cause] += 1

    def close(self, cause: int, now: float) -> None:
        """The last message of a cause has been processed."""
        self.active_s[cause] += now - self.opened_s[cause]
        self.ended_s[cause] = now

    def totals(self) -> list[int]:
        """Hops by kind, over all causes."""
        return [sum(self.hops[kind::KINDS]) for kind in range(KINDS)]
