"""What a broker holds for one subscriber: a copy, or the stay of one epoch.

A broker has at most one holding of a subscriber that counts, its latest, and perhaps older stays that still
wait for their successor to ask, or that owe it something (`keeping.py`).

A holding is a record. Its place, state, timer and entry in the router are the shelf's to write
(`keeping.py`), its events the queues' (`queues.py`); what it waits for and whom it answers is written by
whoever handles the fact or request that says so.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from sojourn.mobility.accounts import Account
from sojourn.mobility.copies import State
from sojourn.mobility.facts import How
from sojourn.mobility.late import Late
from sojourn.mobility.memory import NOBODY
from sojourn.routing.messages import NO_CAUSE, Ask, Handoff, Marks, Moved, Publish

CHANGES_BITS = 20
"""A client changes its mind at most a million times in one epoch before versions of two epochs meet."""
NOT_SERVED = -1
STAYS = (State.PRESENT, State.AWAY, State.LEAVING)


@dataclass(slots=True, eq=False)
class Holding:
    """One subscriber's copy or stay at this broker."""

    client: int
    epoch: int
    """Of a stay, its own; of a copy, that of the connection for whose sake it is kept."""
    subscriptions: tuple[int, ...]
    version: int = field(init=False)
    """Of the subscriptions: grows whenever the client wants something else."""
    began: int = field(init=False)
    """A stay's first epoch, under which it asks for what it lacks: the client may come back meanwhile."""
    state: State = State.ABSENT
    cause: int = NO_CAUSE
    token: int = 0
    """The timer that runs; 0 for none."""

    # Events.
    fed: tuple[int, ...] = ()
    """The subscriptions that are entered in the router for it, under `key`."""
    key: int = field(init=False)
    queue: deque[Publish] = field(default_factory=deque)
    """What arrived here by itself and is not consumed, in the order of arrival."""
    bytes: int = 0
    """Of all in the queue."""
    behind: int = 0
    """How often the client consumed something behind the queue's head since consumed events left it."""
    account: Account | None = None
    """Whose share of the broker's room its events take; None for nobody's (`accounts.py`)."""
    forwarded: list[Publish] = field(default_factory=list)
    """What another broker sent, until all of it is there."""
    marks: dict[str, int] = field(default_factory=dict)
    ceiling: dict[str, int] = field(default_factory=dict)
    """By source: up to here the client has everything, though it may yet arrive by itself."""
    checks: bool = False
    """Whether an event has to be compared with the ceiling, or noted for the sake of late ones."""
    ready: bool = False
    """Whether events go to the client at once."""
    is_open: bool = False
    """Ready, and nothing to check or to keep: the fast way."""
    served: int = NOT_SERVED
    """How many events at the head of the queue the client was given already, while it is given them in
    parts (`giving.py`)."""
    gives: dict[int, int] = field(default_factory=dict)
    """By broker with a copy that is given the queue in parts: how many events at its head it was given."""
    is_short: bool = False
    """Whether it lacks something that brokers before this one stored, and its client was not told."""

    # What it waits for.
    waits: set[int] = field(default_factory=set)
    """The epochs under which it expects events; the end of any one of them completes it."""
    complete: bool = False
    """Whether the queue has all that the client has not consumed."""
    heard: bool = False
    """Whether the old broker gave a sign since the patience for it began."""
    late: Late | None = None
    """What is known of transfers that it no longer waits for."""
    is_asking: bool = False
    """Whether it waits for the subscriptions themselves."""
    askers: dict[int, Ask] = field(default_factory=dict)
    """By epoch: later brokers that want to know them too."""
    asked: int = NOBODY
    """The epoch of a `Moved` that is not answered."""
    how: How = How.FIRST

    # A copy's.
    controller: int = NOBODY
    others: tuple[int, ...] = ()

    # A stay's.
    origin: int | None = None
    """The broker that the subscriber came from."""
    last_epoch: int | None = None
    """Under which epoch its session was kept there, if that is known."""
    holders: set[int] = field(default_factory=set)
    """The brokers whose copies are this stay's to tidy up."""
    lingers: bool = False
    """Whether the subscriber has only just left, so that its copies are not active yet (`Scheme.grace_s`)."""
    pending: set[int] = field(default_factory=set)
    """Those that were told to activate and have not answered."""
    acked: set[int] = field(default_factory=set)
    """Those that answered while this stay waits itself."""
    successor: Moved | None = None
    """What the next broker sent, while this one is LEAVING."""
    signed_s: float = 0.0
    """When the next broker was last given a sign that this one waits itself."""

    def __post_init__(self) -> None:
        self.began, self.version, self.key = self.epoch, version_of(self.epoch), self.client

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
        late = (self.late.floor, self.late.first) if self.late is not None else ()
        for marks in (self.marks, self.ceiling, *late):
            old = {source for source, last in marks.items() if last < before}
            if old:
                stored = {one.source for events in (self.queue, self.forwarded) for one in events}
                for source in old - stored:
                    del marks[source]

    def is_stay(self) -> bool:
        """Whether the subscriber is or was connected here in this epoch."""
        return self.state in STAYS

    def stored(self) -> list[Publish]:
        """What the subscriber has not consumed, as far as it is here."""
        return in_order([*self.forwarded, *self.queue], self.marks)

    def note_marks(self, marks: Marks) -> None:
        """The client has consumed at least this."""
        own = self.marks
        for source, sequence in marks.items():
            if sequence > own.get(source, -1):
                own[source] = sequence


def version_of(epoch: int) -> int:
    """The version of subscriptions that were first named in an epoch."""
    return epoch << CHANGES_BITS


def in_order(publications: Iterable[Publish], marks: Marks) -> list[Publish]:
    """The events beyond the marks, each once, every source's in its order, sources mixed as they came."""
    publications = list(publications)
    if _are_in_order(publications, marks):
        return publications
    by_source: dict[str, dict[int, Publish]] = {}
    order: list[str] = []
    disordered = set()
    last: dict[str, int] = {}
    for publication in publications:
        source, sequence = publication.source, publication.sequence
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


def _are_in_order(publications: list[Publish], marks: Marks) -> bool:
    """Whether events are beyond the marks and in order already, as they nearly always are."""
    last = dict(marks)
    for one in publications:
        source, sequence = one.source, one.sequence
        if sequence <= last.get(source, -1):
            return False
        last[source] = sequence
    return True
