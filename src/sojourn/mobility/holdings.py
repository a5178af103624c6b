"""What a broker holds for one subscriber: a copy, or the stay of one epoch; and what it remembers of others.

A broker has at most one holding of a subscriber that counts, its latest, and perhaps older stays that still
wait for their successor to ask, or that owe it something (`keeping.py`).
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from sojourn.mobility.copies import State
from sojourn.mobility.facts import How
from sojourn.routing.messages import NO_CAUSE, Ask, Handoff, Marks, Moved, Publish

NOBODY = -1
CHANGES_BITS = 20
"""A client changes its mind at most a million times in one epoch before versions of two epochs meet."""
GIVEN_MAX = 16
"""How many stays of one client a broker remembers after they ended."""
STAYS = (State.PRESENT, State.AWAY, State.LEAVING)


class Holding:
    """One subscriber's copy or stay at this broker."""

    __slots__ = (
        "acked",
        "asked",
        "askers",
        "began",
        "cause",
        "ceiling",
        "client",
        "complete",
        "controller",
        "epoch",
        "fed",
        "forwarded",
        "holders",
        "how",
        "is_asking",
        "is_open",
        "key",
        "marks",
        "origin",
        "others",
        "pending",
        "queue",
        "ready",
        "state",
        "subscriptions",
        "successor",
        "token",
        "version",
        "waits",
    )

    def __init__(self, client: int, epoch: int, subscriptions: tuple[int, ...]) -> None:
        self.client = client
        self.epoch = epoch
        """Of a stay, its own; of a copy, that of the connection for whose sake it is kept."""
        self.began = epoch
        """A stay's first epoch, under which it asks for what it lacks: the client may come back meanwhile."""
        self.state = State.ABSENT
        self.subscriptions = subscriptions
        self.version = version_of(epoch)
        """Of the subscriptions: grows whenever the client wants something else."""
        self.cause = NO_CAUSE
        self.token = 0
        """The timer that runs; 0 for none."""
        # Events.
        self.fed: tuple[int, ...] = ()
        """The subscriptions that are entered in the router for it, under `key`."""
        self.key = client
        self.queue: deque[Publish] = deque()
        """What arrived here by itself and is not consumed, in the order of arrival."""
        self.forwarded: list[Publish] = []
        """What another broker sent, until all of it is there."""
        self.marks: dict[str, int] = {}
        self.ceiling: dict[str, int] = {}
        """By source: up to here the client has everything, though it may yet arrive by itself."""
        self.ready = False
        """Whether events go to the client at once."""
        self.is_open = False
        """Ready, and nothing to check or to keep: the fast way."""
        # What it waits for.
        self.waits: set[int] = set()
        """The epochs under which it expects events; the end of any one of them completes it."""
        self.complete = False
        """Whether the queue has all that the client has not consumed."""
        self.is_asking = False
        """Whether it waits for the subscriptions themselves."""
        self.askers: dict[int, Ask] = {}
        """By epoch: later brokers that want to know them too."""
        self.asked = NOBODY
        """The epoch of a `Moved` that is not answered."""
        self.how = How.FIRST
        # A copy's.
        self.controller = NOBODY
        self.others: tuple[int, ...] = ()
        # A stay's.
        self.origin: int | None = None
        """The broker that the subscriber came from."""
        self.holders: set[int] = set()
        """The brokers whose copies are this stay's to tidy up."""
        self.pending: set[int] = set()
        """Those that were told to activate and have not answered."""
        self.acked: set[int] = set()
        """Those that answered while this stay waits itself."""
        self.successor: Moved | None = None
        """What the next broker sent, while this one is LEAVING."""

    def want(self, subscriptions: tuple[int, ...], epoch: int) -> bool:
        """The client says what it wants; say whether that is something else."""
        if subscriptions == self.subscriptions:
            return False
        self.subscriptions = subscriptions
        self.version = max(self.version + 1, version_of(epoch))
        return True

    def subscriptions_include(self, subscriptions: tuple[int, ...]) -> bool:
        """Whether the queue has been filled for all of these."""
        return set(subscriptions) <= set(self.subscriptions)

    def yields_to(self, request: Handoff) -> bool:
        """Whether a request may act on this copy: by the broker in control, or one that served later.

        The broker's id is what paper 001, section 4.1 puts on each copy; the epoch dates it.
        """
        if request.epoch != self.epoch:
            return request.epoch > self.epoch
        return request.sender == self.controller

    def forget_marks(self, before: int) -> None:
        """Forget how far sources had come whose last event has a number below this one.

        That is for a driver whose numbers are dates: no such event is stored anywhere or on its way any more.
        One that is stored here all the same, behind others that nobody consumes, keeps its mark.
        """
        for marks in (self.marks, self.ceiling):
            old = {source for source, last in marks.items() if last < before}
            if old:
                stored = {one.event.source for events in (self.queue, self.forwarded) for one in events}
                for source in old - stored:
                    del marks[source]

    def is_stay(self) -> bool:
        """Whether the subscriber is or was connected here in this epoch."""
        return self.state in STAYS

    def note_marks(self, marks: Marks) -> None:
        """The client has consumed at least this."""
        own = self.marks
        for source, sequence in marks.items():
            if sequence > own.get(source, -1):
                own[source] = sequence


def version_of(epoch: int) -> int:
    """The version of subscriptions that were first named in an epoch."""
    return epoch << CHANGES_BITS


class Given(NamedTuple):
    """A stay that was here: when it began, and the stay that everything went to (to NOBODY if it ended)."""

    began: int
    epoch: int
    to: int


class Past:
    """What a broker remembers of a subscriber beyond what it holds for it."""

    __slots__ = ("closed", "given", "touched_s")

    def __init__(self) -> None:
        self.closed = -1
        """Copies of this epoch and before were deactivated or deleted; whoever says otherwise is late."""
        self.given: list[Given] = []
        """The last stays here, in the order they ended."""
        self.touched_s = 0.0
        """When there was last something to remember."""

    def give(self, began: int, epoch: int, to: int) -> None:
        """Remember where a stay went."""
        self.given.append(Given(began, epoch, to))
        if len(self.given) > GIVEN_MAX:
            del self.given[0]

    def take_back(self, began: int) -> None:
        """A stay that was promised to another broker came to nothing."""
        self.given = [one for one in self.given if one.began != began]

    def last_before(self, epoch: int) -> Given | None:
        """The latest stay that began before an epoch."""
        return max((one for one in self.given if one.began < epoch), default=None)


def in_order(publications: Iterable[Publish], marks: Marks) -> list[Publish]:
    """The events beyond the marks, each once, every source's in its order, sources mixed as they came."""
    by_source: dict[str, dict[int, Publish]] = {}
    order: list[str] = []
    disordered = set()
    last: dict[str, int] = {}
    for publication in publications:
        event = publication.event
        source, sequence = event.source, event.sequence
        if sequence <= marks.get(source, -1):
            continue
        known = by_source.setdefault(source, {})
        if sequence in known:
            continue
        known[sequence] = publication
        order.append(source)
        if sequence < last.get(source, -1):
            disordered.add(source)
        else:
            last[source] = sequence
    streams = {
        source: iter(
            [known[sequence] for sequence in sorted(known)] if source in disordered else known.values()
        )
        for source, known in by_source.items()
    }
    return [next(streams[source]) for source in order]
