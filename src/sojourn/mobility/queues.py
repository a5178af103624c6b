"""Stored events: each once however many subscribers it is stored for, within a budget; and their queues.

Paper 001's brokers have 1 to 4 MB for messages, and one stored message serves all subscribers that share an
interest. A queue is then a list of references, and what counts is how many distinct events are referred to.

Rules of the budget: an event that is stored already costs nothing more; a new one that finds no room is not
stored for anybody. What was promised is kept until it is consumed, handed on, or its owner's time is up; only
a broker whose scheme says so makes room by giving up the oldest event, and then has to know whose it is
(`owners`).

Rules of one subscriber's queue: what does not fit is refused when it comes, and its owner is not given it
either (`deliveries.py`). What another broker forwards was promised there. It is taken in whatever the limits
say; new events find no room then. So a queue has at most what the limit allows at one broker, and while a
transfer is under way as much again.
"""

from collections.abc import Iterable, Sequence
from operator import is_

from sojourn.mobility.accounts import Account, Accounts
from sojourn.mobility.copies import State
from sojourn.mobility.holdings import Holding, in_order
from sojourn.mobility.schemes import AMPLE_EVENTS, Scheme
from sojourn.routing.effects import Dropped, Effects
from sojourn.routing.messages import Publish

FULL = "queue full"
GIVEN_UP = "session given up"
"""Why what was stored for a session is lost that was out of reach for too long."""
PARTY_FULL = "queue full of the address"
"""The parties of live brokers are addresses: such drops have the name that `mqtt/room.py` gives them."""


class Store:
    """How often each stored event of one broker is referred to, and the bytes of all of them."""

    __slots__ = ("_event_bytes", "_references", "bytes", "bytes_max", "bytes_peak", "events_max", "owners")

    def __init__(
        self, bytes_max: int, event_bytes: int, *, events_max: int = AMPLE_EVENTS, evicts: bool = False
    ) -> None:
        self.bytes = 0
        self.bytes_max = bytes_max
        self.events_max = events_max
        self.bytes_peak = 0
        self._event_bytes = event_bytes
        self._references: dict[Publish, int] = {}
        """By event, the oldest first."""
        self.owners: dict[Publish, list[Holding]] | None = {} if evicts else None
        """By event: the holdings it was stored for, some of which may have let it go."""

    @property
    def events(self) -> int:
        """How many distinct events are stored."""
        return len(self._references)

    def count(self) -> None:
        """Count the bytes anew, after a state was read: an earlier build may have counted less."""
        self.bytes = sum([one.size or self._event_bytes for one in self._references])

    def __contains__(self, publication: Publish) -> bool:
        """Whether an event is stored."""
        return publication in self._references

    def count_of(self, publication: Publish) -> int:
        """From how many queues an event is referred to."""
        return self._references.get(publication, 0)

    def oldest(self) -> Publish | None:
        """The event that has been stored for longest."""
        return next(iter(self._references), None)

    def admit(self, publication: Publish, copies: int, size: int, *, promised: bool = False) -> bool:
        """Refer to an event of that size from so many queues; False, and nothing done, if there is no room.

        For what was promised there always is.
        """
        references = self._references.get(publication)
        if references is None:
            stored = self.bytes + size
            is_full = stored > self.bytes_max or len(self._references) >= self.events_max
            if is_full and not promised:
                return False
            self.bytes = stored
            self.bytes_peak = max(self.bytes_peak, stored)
            references = 0
        self._references[publication] = references + copies
        return True

    def release(self, publications: Iterable[Publish]) -> None:
        """Refer to each of these events from one queue less."""
        known = self._references
        for publication in publications:
            references = known[publication] - 1
            if references:
                known[publication] = references
            else:
                del known[publication]
                if self.owners is not None:
                    self.owners.pop(publication, None)
                self.bytes -= publication.size or self._event_bytes


class Queues:
    """What goes into and out of the queues of one broker's holdings."""

    __slots__ = ("_effects", "_scheme", "accounts", "store")

    def __init__(self, scheme: Scheme, effects: Effects) -> None:
        self._scheme = scheme
        self._effects = effects
        self.store = Store(
            scheme.queue_bytes_max,
            scheme.event_bytes,
            events_max=scheme.queue_events_all_max,
            evicts=scheme.evicts,
        )
        self.accounts = Accounts(
            scheme.queue_bytes_party_max, scheme.event_bytes, scheme.queue_events_party_max
        )

    def put(self, holdings: list[Holding], publication: Publish, size: int) -> bool:
        """Store an event for these, each of which has room; False, and nothing done, if there is none."""
        store = self.store
        has_room = store.owners is None and store.admit(publication, len(holdings), size)
        if not has_room and not self._admit(publication, holdings, size):
            return False
        account: Account | None = None
        copies = 0
        for holding in holdings:
            holding.queue.append(publication)
            holding.bytes += size
            if holding.account is account:
                copies += 1
                continue
            if account is not None:
                account.add(publication, size, copies)
            account, copies = holding.account, 1
        if account is None:
            return True
        if account.is_shared:
            account.add(publication, size, copies)
        else:  # nearly all are one subscriber's
            account.bytes += size
        return True

    def within_shares(self, holdings: list[Holding], publication: Publish, size: int) -> list[Holding]:
        """Those of these whose parties have room for an event; for the others it is refused.

        Who is ready gets it all the same, as with the budget of the whole broker (`deliveries.py`).
        """
        accounts, stored = self.accounts, self.store.bytes + size
        if stored <= accounts.little or (
            stored <= accounts.bytes_max and self.store.events < accounts.events_max
        ):
            return holdings  # no party has more than all
        kept: list[Holding] = []
        for holding in holdings:
            account = holding.account
            if account is None or accounts.have_room(account, publication, size):
                kept.append(holding)
            elif not holding.ready:
                self.refuse(holding, (publication,), PARTY_FULL)
        return kept

    def make_room(self, holding: Holding, size: int) -> bool:
        """Let consumed events go that stand behind others in a full queue; say whether so many bytes fit now.

        A queue is only looked through when enough was consumed since the last time to make that worth it.
        """
        if 2 * holding.behind < len(holding.queue) or not holding.behind:
            return False
        self._replace(holding, in_order(holding.queue, holding.marks))
        scheme = self._scheme
        return (
            holding.bytes + size <= scheme.queue_bytes_each_max
            and len(holding.queue) < scheme.queue_events_max
        )

    def take_in(self, holding: Holding, publications: Sequence[Publish]) -> None:
        """Keep what another broker forwards until all of it is there."""
        for publication in publications:
            size = publication.size or self._scheme.event_bytes
            self._admit(publication, [holding], size, promised=True)
            holding.forwarded.append(publication)
            self._charge(holding, publication, size)

    def take_in_late(self, holding: Holding, publication: Publish) -> None:
        """Store what another broker forwards after it was waited for."""
        size = publication.size or self._scheme.event_bytes
        self._admit(publication, [holding], size, promised=True)
        holding.queue.append(publication)
        holding.bytes += size
        self._charge(holding, publication, size)

    def consume(self, holding: Holding, source: str, sequence: int) -> None:
        """The client has consumed a source's events up to this one."""
        marks, queue = holding.marks, holding.queue
        if sequence <= marks.get(source, -1):
            return
        marks[source] = sequence
        done = []
        while queue and queue[0].sequence <= marks.get(queue[0].source, -1):
            done.append(queue.popleft())
        if not done:
            holding.behind += 1
            return
        self._let_go(holding, done)
        if holding.served > 0:
            holding.served = max(0, holding.served - len(done))

    def take_out(self, holding: Holding, most: int) -> list[Publish]:
        """Let go of so many events at the head of a queue, and return them."""
        queue = holding.queue
        taken = [queue.popleft() for _ in range(min(most, len(queue)))]
        self._let_go(holding, taken)
        return taken

    def _let_go(self, holding: Holding, taken: list[Publish]) -> None:
        self._release(holding, taken)
        event_bytes = self._scheme.event_bytes
        holding.bytes -= sum([one.size or event_bytes for one in taken])

    def settle(self, holding: Holding) -> None:
        """Make the queue what was forwarded and what came by itself, less what is consumed or doubled.

        What was forwarded stays; of what came by itself meanwhile, the newest goes where that is too much.
        """
        forwarded = holding.forwarded[:]
        together = [*forwarded, *holding.queue]
        settled = in_order(together, holding.marks)
        is_settled = len(settled) == len(together) and all(map(is_, settled, together))
        if is_settled and not forwarded:
            holding.behind = 0
            return  # it is what it was
        if is_settled and holding.served <= 0:
            self._put_before(holding, forwarded)
        else:
            self._replace(holding, settled)
        scheme = self._scheme
        bytes_over = holding.bytes - scheme.queue_bytes_each_max
        events_over = len(holding.queue) - scheme.queue_events_max
        if not forwarded or (bytes_over <= 0 and events_over <= 0):
            return
        promised = {(one.source, one.sequence) for one in forwarded}
        kept, refused = [], []
        for one in reversed(holding.queue):
            is_own = (one.source, one.sequence) not in promised
            if is_own and (bytes_over > 0 or events_over > 0):
                refused.append(one)
                bytes_over -= one.size or scheme.event_bytes
                events_over -= 1
            else:
                kept.append(one)
        self._replace(holding, kept[::-1])
        self.refuse(holding, refused[::-1], FULL)

    def _put_before(self, holding: Holding, forwarded: list[Publish]) -> None:
        """Put all that was forwarded before the rest of the queue; none of either goes."""
        holding.queue.extendleft(reversed(forwarded))
        holding.forwarded.clear()
        holding.behind = 0
        event_bytes = self._scheme.event_bytes
        holding.bytes += sum([one.size or event_bytes for one in forwarded])

    def _replace(self, holding: Holding, publications: list[Publish]) -> None:
        """Make the queue these events, all of which are stored for the holding already; the rest goes."""
        queue, kept = holding.queue, {id(one) for one in publications}
        gone: list[Publish] = []
        for one in (*holding.forwarded, *queue):
            if id(one) in kept:
                kept.remove(id(one))  # the same event may stand there twice
            else:
                gone.append(one)
        self._release(holding, gone)
        queue.clear()
        queue.extend(publications)
        holding.forwarded.clear()
        holding.behind = 0
        event_bytes = self._scheme.event_bytes
        holding.bytes = sum([one.size or event_bytes for one in publications])
        if holding.served > 0:
            ceiling = holding.ceiling
            holding.served = sum(one.sequence <= ceiling.get(one.source, -1) for one in publications)

    def empty(self, holding: Holding) -> None:
        """Give up all that is stored for a holding."""
        self._release(holding, holding.queue)
        self._release(holding, holding.forwarded)
        holding.queue.clear()
        holding.forwarded.clear()
        holding.bytes = holding.behind = 0

    def drop(self, client: int, publications: Iterable[Publish], reason: str) -> None:
        """Report that events will not reach a client from here."""
        self._effects.drops.extend(Dropped(client, publication, reason) for publication in publications)

    def refuse(self, holding: Holding, publications: Iterable[Publish], reason: str) -> None:
        """Report that there is no room for events; a copy's are no loss yet, and marked as such."""
        by_copy = holding.state is State.ACTIVE
        self._effects.drops.extend(Dropped(holding.client, one, reason, by_copy) for one in publications)

    def _charge(self, holding: Holding, publication: Publish, size: int) -> None:
        """Count an event that is stored for a holding on its party's account."""
        if holding.account is not None:
            holding.account.add(publication, size)

    def _release(self, holding: Holding, publications: Iterable[Publish]) -> None:
        """Have events of a holding referred to once less, and counted so on its party's account."""
        self.store.release(publications)
        account = holding.account
        if account is not None:
            for publication in publications:
                account.remove(publication, publication.size or self._scheme.event_bytes)

    def _admit(
        self, publication: Publish, holdings: list[Holding], size: int, *, promised: bool = False
    ) -> bool:
        """Have room for an event that is to be stored for these; the caller puts it into their queues."""
        store = self.store
        while not store.admit(publication, len(holdings), size):
            oldest = store.oldest()
            if not self._scheme.evicts or oldest is None:
                if not promised:
                    return False
                store.admit(publication, len(holdings), size, promised=True)
                break
            self._evict(oldest)
        if store.owners is not None:
            store.owners.setdefault(publication, []).extend(holdings)
        return True

    def _evict(self, publication: Publish) -> None:
        """Give up a stored event, whoever it is stored for."""
        owners = self.store.owners
        assert owners is not None, "only a store that evicts knows the owners"
        for holding in dict.fromkeys(owners.pop(publication)):
            for place in (holding.queue, holding.forwarded):
                # The oldest event of the broker is as a rule the oldest of its owner.
                if place and (place[0] is publication or publication in place):
                    place.remove(publication)
                    if place is holding.queue:
                        holding.bytes -= publication.size or self._scheme.event_bytes
                    self._release(holding, (publication,))
                    if not holding.ready:
                        self.refuse(holding, (publication,), FULL)
