"""Sessions that a broker has from an earlier life, and may have given away in moments that its store lost.

After a loss of power a broker comes back with what it knew a moment before: also with sessions that it has
given to others since. It does not know that by itself. Its neighbours do, and their hellos say so
(`hello.may_have_lost`). So what it has from before is *in doubt*

- until every neighbour was met in this life, though for no longer than `MEETING_S`: one that is not there by
  then may never come, and clients are not kept waiting for it;
- and from when a neighbour's hello said that something was forgotten, until every broker has said that it has
  no later session of that client (`Arrivals.confront` asks), or `give_up_s` has passed.

Meanwhile a client that comes for such a session waits, and so does a broker that asks for it on behalf of
one. A broker that confronts this one with a session of its own is answered at once: two that are in doubt do
not wait for each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet

from sojourn.mobility.finding_messages import Find, Found

MEETING_S = 3.0
"""How long after a start neighbours are waited for."""
ASK_AGAIN_S = 5.0
"""How long a broker may take to answer before it is asked again: it may have lost the question."""


class Doubts:
    """Which sessions of one broker are in doubt, and who waits for that to end."""

    def __init__(self, number: int, brokers: int, neighbours: Iterable[int], give_up_s: float) -> None:
        self._number = number
        self._others = frozenset(range(brokers)) - {number}
        self._neighbours = frozenset(neighbours)
        self._give_up_s = give_up_s
        self.began_s = 0.0
        """When this life began."""
        self.unmet: set[int] = set()
        """Neighbours whose hello has not come in this life."""
        self.silent: dict[int, set[int]] = {}
        """By client: the brokers that have not said yet whether they have a later session of it."""
        self.since_s: dict[int, float] = {}
        """By client of those: since when that is asked."""
        self.asked_s: dict[int, float] = {}
        """And when it was asked last."""
        self.held: set[int] = set()
        """Clients that have come for a session in doubt, and wait."""
        self.deferred: dict[int, list[Find]] = {}
        """By client: questions for a session in doubt, which wait."""

    def regroup(self, brokers: int, neighbours: Iterable[int], left: Collection[int]) -> None:
        """Go by other brokers from now on; what those think that have left does not matter.

        One that has come may have been given any session since.
        """
        others = frozenset(range(brokers)) - {self._number} - frozenset(left)
        came, self._others = others - self._others, others
        self._neighbours = frozenset(neighbours)
        self.unmet.difference_update(left)
        for silent in self.silent.values():
            silent.difference_update(left)
            silent.update(came)

    def restarted(self, now: float) -> None:
        """A life begins: no client waits any more, and no neighbour has been met."""
        self.began_s = now
        self.unmet = set(self._neighbours)
        self.since_s = dict.fromkeys(self.since_s, now)
        self.held.clear()

    def met(self, neighbour: int) -> None:
        """A neighbour has said hello."""
        self.unmet.discard(neighbour)

    def confronted(self, client: int, now: float) -> None:
        """All brokers are asked whether they have a later session of a client."""
        self.silent.setdefault(client, set(self._others))
        self.since_s.setdefault(client, now)
        self.asked_s[client] = now

    def answered(self, message: Found) -> None:
        """A broker has said what it has of a client."""
        silent = self.silent.get(message.client)
        is_looking = message.held_at == message.sender and message.present and not message.holds
        if silent is None or message.waits_for or is_looking:
            return
        silent.discard(message.sender)
        if message.held_epoch and message.held_at in self._others - {message.sender}:
            silent.add(message.held_at)  # there was a later connection: the finder asks that broker

    def forget(self, client: int) -> None:
        """The session of a client is sure, or gone."""
        for book in (self.silent, self.since_s, self.asked_s):
            book.pop(client, None)

    def is_in_doubt(self, client: int, since_s: float, now: float) -> bool:
        """Whether the session of a client, here since then, may have been given away."""
        if since_s > self.began_s:
            self.forget(client)
            return False
        if client in self.silent:
            if self.silent[client] and now < self.since_s[client] + self._give_up_s:
                return True
            self.forget(client)
        return self.may_have_forgotten(now)

    def may_have_forgotten(self, now: float) -> bool:
        """Whether a neighbour may yet say that this broker has forgotten something."""
        return bool(self.unmet) and now < self.began_s + MEETING_S

    def is_hopeless(self, client: int, out_of_reach: AbstractSet[int]) -> bool:
        """Whether all who might have a later session of a client are out of reach."""
        silent = self.silent.get(client)
        return silent is not None and silent <= out_of_reach

    def to_ask_again(self, out_of_reach: AbstractSet[int], now: float) -> list[tuple[int, int]]:
        """Return clients and brokers in reach that should have answered long ago; they count as asked now."""
        found: list[tuple[int, int]] = []
        for client, silent in self.silent.items():
            if now >= self.asked_s[client] + ASK_AGAIN_S:
                self.asked_s[client] = now
                found += [(client, broker) for broker in sorted(silent - out_of_reach)]
        return found

    def next_moment(self) -> float | None:
        """When doubts may end, or somebody is to be asked again, at the latest."""
        moments = [asked_s + ASK_AGAIN_S for asked_s in self.asked_s.values()]
        if self.unmet and (self.held or self.deferred):
            moments.append(self.began_s + MEETING_S)
        return min(moments, default=None)
