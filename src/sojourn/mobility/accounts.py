"""On whose account events are stored: subscribers of one *party* have a share of a broker's room, not all.

Who a party is a driver decides: live brokers take the address that a client came from last. A driver that
names none (the simulator) has no accounts, and a holding of nobody counts for the whole broker only.

An event counts once for a party, however many of its subscribers it is stored for, as it does for the broker.
For that an account with several holdings counts how often they refer to each event. One that has only ever
had a single holding does without: most parties are one subscriber, and an event may be stored for thousands.

What was promised is taken in whatever a party has, as everywhere (`queues.py`); new events find no room then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sojourn.mobility.schemes import AMPLE_EVENTS

if TYPE_CHECKING:
    from sojourn.mobility.holdings import Holding
    from sojourn.routing.messages import Publish


class Account:
    """What is stored at one broker for the subscribers of one party."""

    __slots__ = ("bytes", "holdings", "is_shared", "party", "references")

    def __init__(self, party: str = "") -> None:
        self.party = party
        self.bytes = 0
        """Of the events that are stored for them; of a shared account each event once."""
        self.holdings: set[Holding] = set()
        self.is_shared = False
        """Whether it has had several holdings at once. It stays so, lest a client that comes and goes beside
        one with a long queue has that counted each time."""
        self.references: dict[Publish, int] = {}
        """Of a shared account: by event, in how many places it stands."""

    def add(self, publication: Publish, size: int, copies: int = 1) -> None:
        """Count an event that is stored in so many places more."""
        if self.is_shared:
            before = self.references.get(publication, 0)
            self.references[publication] = before + copies
            if before:
                return
            copies = 1
        self.bytes += copies * size

    def add_all(self, publications: Iterable[Publish], event_bytes: int) -> None:
        """Count many events, each stored in one place more."""
        if not self.is_shared:
            self.bytes += sum([one.size or event_bytes for one in publications])
            return
        known = self.references
        for one in publications:
            before = known.get(one, 0)
            known[one] = before + 1
            if not before:
                self.bytes += one.size or event_bytes

    def remove_all(self, publications: Iterable[Publish], event_bytes: int) -> None:
        """Count many events, each stored in one place less."""
        if not self.is_shared:
            self.bytes -= sum([one.size or event_bytes for one in publications])
            return
        known = self.references
        for one in publications:
            left = known[one] - 1
            if left:
                known[one] = left
            else:
                del known[one]
                self.bytes -= one.size or event_bytes

    def remove(self, publication: Publish, size: int) -> None:
        """Count an event that is stored in one place less."""
        if self.is_shared:
            left = self.references[publication] - 1
            if left:
                self.references[publication] = left
                return
            del self.references[publication]
        self.bytes -= size

    @property
    def events(self) -> int:
        """How many events are stored for them; of a shared account each once."""
        if self.is_shared:
            return len(self.references)
        return sum(len(one.queue) + len(one.forwarded) for one in self.holdings)


class Accounts:
    """The accounts of one broker."""

    __slots__ = ("_event_bytes", "by_party", "bytes_max", "events_max", "little")

    def __init__(self, bytes_max: int, event_bytes: int, events_max: int = AMPLE_EVENTS) -> None:
        self.bytes_max, self.events_max = bytes_max, events_max
        """The share of a party."""
        self.little = min(bytes_max, events_max)
        """Bytes of which there cannot be more, or of more events: each has one at least."""
        self.by_party: dict[str, Account] = {}
        self._event_bytes = event_bytes

    def have_room(self, account: Account, publication: Publish, size: int) -> bool:
        """Whether a party has room for an event; one that is stored for it already takes none."""
        if publication in account.references:
            return True
        return account.bytes + size <= self.bytes_max and account.events < self.events_max

    def enter(self, holding: Holding, party: str | None) -> None:
        """From now on what is stored for a holding is on this party's account."""
        known = holding.account
        if (known.party if known is not None else None) == party:
            return
        self.leave(holding)
        if party is None:
            return
        account = self.by_party.setdefault(party, Account(party))
        if account.holdings and not account.is_shared:
            account.is_shared = True
            self._count(account)
        account.holdings.add(holding)
        holding.account = account
        account.add_all(_stored(holding), self._event_bytes)

    def leave(self, holding: Holding) -> None:
        """What is stored for a holding is on nobody's account any more."""
        account, holding.account = holding.account, None
        if account is None:
            return
        account.remove_all(_stored(holding), self._event_bytes)
        account.holdings.discard(holding)
        if not account.holdings:
            assert not account.bytes, "what is stored goes with those it is stored for"
            del self.by_party[account.party]

    def rebuild(self, holdings: Iterable[Holding]) -> None:
        """Count everything anew, after all holdings and whose they are were read from a state."""
        for account in self.by_party.values():
            account.holdings.clear()
        for holding in holdings:
            if holding.account is not None:
                holding.account.holdings.add(holding)
        for account in self.by_party.values():
            self._count(account)

    def _count(self, account: Account) -> None:
        account.bytes, account.references = 0, {}
        for holding in account.holdings:
            account.add_all(_stored(holding), self._event_bytes)


def _stored(holding: Holding) -> Iterable[Publish]:
    return (*holding.queue, *holding.forwarded)
