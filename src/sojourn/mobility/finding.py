"""Finding the session of a client that connects to a broker which has never seen it.

What is stored for a subscriber follows it by the schemes of `schemes.py`. The rest of its session (what it
subscribed to and how, what it has half received) is kept by one broker at a time, and a client need not know
which. So the broker it connects to asks: the broker the client names as its last, or else all of them.

    finder.seek(client, epoch, previous)      # asks; `finder.results` says what came of it
    finder.asked(message)                     # somebody else asks
    finder.answered(message)                  # an answer came
    finder.time_passed(now)                   # gives up on brokers that do not answer

The rules:

- Whoever has the session gives it away to an asker with a later epoch and forgets it; to one with an earlier
  epoch it says that the client is here now.
- A broker that is still looking for a client itself, and is asked by one with a later epoch, passes on what
  it finds. So a client that runs ahead of the answers is followed along the way it took.
- An asker gives up after a time, first on the named broker and then on all others: the client then
  starts anew. What is given away after that comes to nobody, and is a result like any other.
- Brokers that the driver knows to be out of reach (`absent`) are asked like all others and not waited for,
  unless the client names one. A session that is only there is given up for a client that comes here; it ends
  when the question reaches it.

This is a core: no clock, no sockets. Messages go hop by hop like all that have a destination.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

EVERYBODY = -1
"""The destination of a question to all brokers."""
ASKERS_MAX = 10_000
LAST_PATIENCE_S = 1.0
"""What is left at least of the patience with a broker that a client names again."""
FIND, FOUND = 32, 33
"""Kinds of messages, beyond those of `routing.messages`, which no router sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """The client connected to the sender under this epoch; whoever has its session is to give it."""

    kind: ClassVar[int] = FIND
    destination: int
    sender: int
    client: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer to a `Find` of that epoch."""

    kind: ClassVar[int] = FOUND
    destination: int
    sender: int
    client: int
    epoch: int
    held_epoch: int
    """The epoch of the client's connection here, or 0 if it is not known."""
    holder: int
    """The broker that had the session, and still has what is stored for the client: not always the sender,
    who may have passed on what came too late for itself."""
    state: bytes | None
    """The session, which is the asker's from now on."""


class Result(NamedTuple):
    """What came of looking for a client."""

    client: int
    epoch: int
    state: bytes | None = None
    """The session, if there is one."""
    holder: int | None = None
    """The broker that had it."""
    superseded: bool = False
    """The client has connected elsewhere since."""


class Give(NamedTuple):
    """Take the client's session and hand it to `Finder.give`: another broker has the client now."""

    client: int
    epoch: int
    to: int


class _Search:
    """What one broker waits for."""

    __slots__ = ("deadline_s", "epoch", "given_up", "heir", "named", "named_s", "silent", "void")

    def __init__(self, epoch: int, silent: set[tuple[int, int]], named: int | None, now: float) -> None:
        self.epoch = epoch
        self.silent = silent
        """Brokers that have not answered, each with the epoch of the question: one of an earlier connection
        to this broker may still be answered with the session."""
        self.named = named
        """The one broker that was asked; None if all were."""
        self.named_s = now
        """When the client first named it."""
        self.given_up: frozenset[int] = frozenset()
        """Brokers that were waited for in vain."""
        self.deadline_s = now
        self.void = False
        """The client has connected elsewhere; but a session may be on its way here, and must not be missed by
        an asker who hears from everybody that they have none."""
        self.heir: tuple[int, int] | None = None
        """The epoch and broker of a later asker, who gets what is found."""


class Finder:
    """The searches of one broker."""

    def __init__(
        self, number: int, brokers: int, *, patience_s: float = 5.0, named_patience_s: float = 15.0
    ) -> None:
        self.number = number
        self._others = frozenset(range(brokers)) - {number}
        self._patience_s, self._named_patience_s = patience_s, named_patience_s
        """For the answers of all brokers; for that of the one which the client says it comes from."""
        self.absent: frozenset[int] = frozenset()
        """Brokers that are out of reach and have been so for a while, as far as the driver knows."""
        self._searches: dict[int, _Search] = {}
        self._askers: OrderedDict[int, tuple[int, int]] = OrderedDict()
        """By client: the epoch and broker of the latest question; what comes late goes there."""
        self.sends: list[Find | Found] = []
        """Messages to be sent towards their destination, or to every neighbour."""
        self.results: list[Result] = []
        self.gives: list[Give] = []

    def seek(self, client: int, epoch: int, previous: int | None, now: float) -> None:
        """Look for a client's session: at the broker it names, or everywhere."""
        self._remember(client, epoch, self.number)
        running = self._searches.pop(client, None)
        if running is not None:  # the client connected again, here; what is on its way still comes
            if not running.void:
                self.results.append(Result(client, running.epoch, superseded=True))
            if running.heir is not None:
                self._tell(client, *running.heir, held_epoch=epoch)
        before = running.silent if running is not None else set()
        named = previous if previous in self._others else None
        since = running.named_s if running is not None and running.named == named else None
        self._search(client, _Search(epoch, before, named, now if since is None else since), now)

    def seeks(self, client: int) -> bool:
        """Whether a search for a client is under way."""
        return client in self._searches

    def clients(self) -> set[int]:
        """The clients that something is remembered of."""
        return {*self._searches, *self._askers}

    def forget_before(self, epoch: int) -> None:
        """Forget who asked in earlier epochs: no answer to them is on its way any more."""
        for client in [client for client, (asked, _) in self._askers.items() if asked < epoch]:
            del self._askers[client]

    def _search(self, client: int, search: _Search, now: float) -> None:
        """Ask the broker that the client names, or all of them, and wait unless all are out of reach."""
        named = search.named
        asked = self._others - self.absent - search.given_up if named is None else {named}
        search.silent = search.silent | {(broker, search.epoch) for broker in asked}
        if named is None or named in self.absent:
            search.deadline_s = now + self._patience_s
        else:
            # A client that comes again and again, and names the same broker, does not wait for ever.
            search.deadline_s = max(search.named_s + self._named_patience_s, now + LAST_PATIENCE_S)
        if self._others:
            destination = EVERYBODY if named is None else named
            self.sends.append(
                Find(destination=destination, sender=self.number, client=client, epoch=search.epoch)
            )
        self._searches[client] = search
        if not search.silent:
            self._end(client, search, Result(client, search.epoch))

    def asked(self, message: Find, held_epoch: int | None) -> None:
        """Somebody asks for a client; `held_epoch` is that of its session here, None if there is none."""
        client, epoch = message.client, message.epoch
        search = self._searches.get(client)
        self._remember(client, epoch, message.sender)
        if held_epoch is not None and held_epoch < epoch:
            self.gives.append(Give(client, epoch, message.sender))
        elif held_epoch is not None:
            self._answer(message, held_epoch)
        elif self._askers[client][0] > epoch:
            self._answer(message, self._askers[client][0])
        elif search is None:
            self._answer(message, 0)
        elif search.heir is None or search.heir[0] < epoch:
            before, search.heir = search.heir, (epoch, message.sender)
            if before is not None:
                self._tell(client, before[0], before[1], held_epoch=epoch)
        else:
            self._answer(message, search.heir[0])

    def _remember(self, client: int, epoch: int, asker: int) -> None:
        if epoch > self._askers.get(client, (0, 0))[0]:
            self._askers[client] = (epoch, asker)
            self._askers.move_to_end(client)
            if len(self._askers) > ASKERS_MAX:
                self._askers.popitem(last=False)

    def give(self, client: int, epoch: int, to: int, state: bytes | None, held_epoch: int) -> None:
        """Send a session to the broker that asked for it."""
        self._tell(client, epoch, to, held_epoch=held_epoch, state=state)

    def answered(self, message: Found, now: float) -> None:
        """An answer came, perhaps to a question that is no longer asked."""
        client = message.client
        search = self._searches.get(client)
        if message.state is not None:  # to whatever question: it is here now, and nowhere else
            result = Result(client, search.epoch if search else message.epoch, message.state, message.holder)
            later = self._askers.get(client)
            if search is not None:
                self._end(client, search, result)
            elif later is not None and later[0] > message.epoch and later[1] != self.number:
                self._tell(client, *later, held_epoch=0, state=message.state, holder=message.holder)
            else:
                self.results.append(result)
            return
        if search is None:
            return
        search.silent.discard((message.sender, message.epoch))
        if message.held_epoch > search.epoch and not search.void:
            search.void = True
            self.results.append(Result(client, search.epoch, superseded=True))
        if not search.silent:
            self._nobody(client, search, now)

    def time_passed(self, now: float) -> None:
        """Give up on brokers that were asked too long ago."""
        for client, search in [item for item in self._searches.items() if item[1].deadline_s <= now]:
            self._nobody(client, search, now)

    def next_moment(self) -> float | None:
        """When `time_passed` has something to do, at the latest."""
        return min((search.deadline_s for search in self._searches.values()), default=None)

    def _nobody(self, client: int, search: _Search, now: float) -> None:
        """The brokers that were asked do not have it, or do not answer: ask all others, or give up."""
        if search.named is None or search.void:
            self._end(client, search, Result(client, search.epoch))
            return
        wider = _Search(search.epoch, set(), None, now)
        wider.given_up = frozenset(broker for broker, _ in search.silent)
        wider.heir = search.heir
        self._search(client, wider, now)

    def _end(self, client: int, search: _Search, result: Result) -> None:
        del self._searches[client]
        if search.heir is None:
            if result.state is not None or not search.void:
                self.results.append(result)
            return
        epoch, heir = search.heir
        self._tell(client, epoch, heir, held_epoch=0, state=result.state, holder=result.holder)
        if not search.void:
            self.results.append(Result(client, search.epoch, superseded=True))

    def _answer(self, message: Find, held_epoch: int) -> None:
        self._tell(message.client, message.epoch, message.sender, held_epoch=held_epoch)

    def _tell(
        self,
        client: int,
        epoch: int,
        to: int,
        *,
        held_epoch: int,
        state: bytes | None = None,
        holder: int | None = None,
    ) -> None:
        self.sends.append(
            Found(
                destination=to,
                sender=self.number,
                client=client,
                epoch=epoch,
                held_epoch=held_epoch,
                holder=self.number if holder is None else holder,
                state=state,
            )
        )
