"""What a broker remembers of subscribers beyond what it holds for them: which of their stays are over.

A transport may repeat a request at any later time, and a broker may ask for a subscriber that has long been
handed on. So a broker remembers up to which epoch a client's copies are closed, and where its last stays
went. Both are limited: in number of stays and clients, and in time by whoever calls `forget_until`. A request
that comes later than that finds a broker that knows nothing, and is answered so.
"""

from collections.abc import Container
from typing import NamedTuple

from sojourn.mobility.late import Late

NOBODY = -1
GIVEN_MAX = 64
"""How many stays of one client a broker remembers after they ended: a request that is sent again may be about
any of them, and who is told that its stay is superseded lets go of what it has stored."""
LATE_MAX = 16
"""Of how many of them it remembers what they still expected."""


class Moment:
    """The time of the fact in hand: one object, shared by the parts of a broker that need to know it."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = 0.0


class Given(NamedTuple):
    """A stay that was here: when it began, and the stay that everything went to (to NOBODY if it ended)."""

    began: int
    epoch: int
    to: int


class Past:
    """What a broker remembers of one subscriber."""

    __slots__ = ("closed", "given", "late", "touched_s")

    def __init__(self) -> None:
        self.closed = -1
        """Copies of this epoch and before were deactivated or deleted; whoever says otherwise is late."""
        self.given: list[Given] = []
        """The last stays here, in the order they ended."""
        self.late: list[Late] = []
        """What is known of the events that some of them still expected when they ended."""
        self.touched_s = 0.0
        """When there was last something to remember."""

    def last_before(self, epoch: int) -> Given | None:
        """The latest stay that began before an epoch."""
        return max((one for one in self.given if one.began < epoch), default=None)


class Memory:
    """The pasts of all subscribers at one broker."""

    __slots__ = ("_clients_max", "_moment", "pasts")

    def __init__(self, moment: Moment, clients_max: int) -> None:
        self._moment = moment
        self._clients_max = clients_max
        self.pasts: dict[int, Past] = {}
        """By client, the one remembered longest first."""

    def close(self, client: int, epoch: int) -> None:
        """The copies of this epoch and before are over."""
        past = self._touch(client)
        past.closed = max(past.closed, epoch)

    def give(self, client: int, began: int, epoch: int, to: int) -> None:
        """A stay is over, and everything went to the stay of that epoch at another broker, or to NOBODY."""
        past = self._touch(client)
        past.given.append(Given(began, epoch, to))
        if len(past.given) > GIVEN_MAX:
            del past.given[0]

    def take_back(self, client: int, began: int) -> None:
        """A stay that was promised to another broker came to nothing."""
        past = self._touch(client)
        past.given = [one for one in past.given if one.began != began]

    def expect_late(self, client: int, late: Late) -> None:
        """A stay is over before all came that it expected."""
        past = self._touch(client)
        past.late.append(late)
        if len(past.late) > LATE_MAX:
            del past.late[0]

    def late(self, client: int, epoch: int) -> Late | None:
        """What is known of events that come under an epoch for a stay that is over."""
        past = self.pasts.get(client)
        known = past.late if past is not None else ()
        return next((late for late in known if epoch in late.epochs), None)

    def late_end(self, client: int, late: Late) -> None:
        """Nothing more comes for a stay that is over."""
        self.pasts[client].late.remove(late)

    def is_closed(self, client: int, epoch: int) -> bool:
        """Whether a request of that epoch about a copy is late."""
        past = self.pasts.get(client)
        return past is not None and epoch <= past.closed

    def is_over(self, client: int, epoch: int) -> bool:
        """Whether a connection of that epoch is late: a later one of the client, or its end, is known."""
        return epoch <= self.latest(client)

    def latest(self, client: int) -> int:
        """The latest epoch of a client that is known to be over, or is known from where its stay went."""
        past = self.pasts.get(client)
        return -1 if past is None else max(past.closed, *[one.epoch for one in past.given], -1)

    def last_before(self, client: int, epoch: int) -> Given | None:
        """The latest stay of a client that began before an epoch and is over."""
        past = self.pasts.get(client)
        return past.last_before(epoch) if past is not None else None

    def forget_until(self, moment_s: float, held: Container[int]) -> None:
        """Forget clients of whom nothing was heard since then, but those of whom something is held."""
        for client, past in list(self.pasts.items()):
            if past.touched_s > moment_s:
                break  # the rest is fresher
            if client not in held:
                del self.pasts[client]

    def _touch(self, client: int) -> Past:
        """What is remembered of a client, now the freshest memory."""
        past = self.pasts.pop(client, None) or Past()
        past.touched_s = self._moment.now
        self.pasts[client] = past
        if len(self.pasts) > self._clients_max:
            del self.pasts[next(iter(self.pasts))]
        return past
