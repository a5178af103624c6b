"""What a broker of a network forgets, and when: books of names that would otherwise grow with every stranger.

Clients, subscriptions and advertisements have numbers in the books of `names.py`, at every broker that was
ever told of them. Numbers are a broker's own: on links there are names and texts, and whoever hears of a
forgotten one gives it a new number. So a broker may forget on its own whatever it does not speak of itself.
Once in a while, between two facts, it looks through all that it keeps (`mobility/references.py`, the finder,
its clients) and forgets the rest of the books. That is a consequence of a fact, the passing of time, and
happens again in the same way when the journal is told again. Interests that stay are filed anew then, which
takes so long where there are many that it is done in parts, one each time that time has passed.

Two memories keep names alive for longer than clients are there, and are therefore limited in time too:

- where a departed client went, and which requests about it are late (`Past`), and who asked for a session:
  for `memory_s` after the last word about it. What is stored for a client that is away lives for less than
  that; a request that is still later finds a broker that knows nothing, and is answered so.
- how far each source had come (`Holding.marks`): as long, too. Sequence numbers are dates (`State.number`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.mobility.keeping import COPY_TIMEOUTS
from sojourn.mobility.references import references

if TYPE_CHECKING:
    from sojourn.broker.network import Network

SWEEP_S = 60.0
"""How often a broker looks for what it can forget, while its books hold anything."""
MANY = 20_000
"""With so many names it looks half as often: to look takes about a microsecond a name."""
GROWTH_MAX = 10_000
"""It looks at once when so many names are new, and at least as many as it needed when it last looked."""
MARGIN_S = 600.0
"""How late a message may be because links were down, on top of all timeouts."""
SEQUENCES_A_SECOND = 1_000_000


def memory_s(timeout_s: float) -> float:
    """How long departed clients are remembered where events are stored for `timeout_s`."""
    return (COPY_TIMEOUTS + 1) * timeout_s + MARGIN_S


class Forgetting:
    """When a broker next looks for what it can forget."""

    def __init__(self, timeout_s: float) -> None:
        self._memory_s = memory_s(timeout_s)
        self._due_s = 0.0
        self._entered = 0
        """How many names there had ever been when it last looked."""
        self._needed = 0
        """How many of them it needed."""

    def next_moment(self, network: Network) -> float | None:
        """When to look again; None while there is nothing to forget."""
        if network.links.interests.is_refiling or network.links.interests.leftovers:
            return 0.0
        if not self._has_memories(network):
            return None
        return 0.0 if self._has_grown(network) else self._due_s

    def _has_memories(self, network: Network) -> bool:
        # How far sources had come is remembered also where no client ever was.
        return bool(network.links.names.size or network.seen)

    def _has_grown(self, network: Network) -> bool:
        return network.links.names.entered - self._entered > max(GROWTH_MAX, self._needed)

    def time_passed(self, network: Network, now: float) -> None:
        """Look, if it is time; before that be done with what was forgotten when it last looked."""
        network.links.interests.leftovers.go_on()
        if network.links.interests.is_refiling:
            network.links.interests.refile()
            return
        if now < self._due_s and not self._has_grown(network):
            return
        if self._has_memories(network):
            self._forget_old(network, now - self._memory_s)
            self._forget_unused(network)
        self._entered = network.links.names.entered
        self._needed = network.links.names.size
        self._due_s = now + SWEEP_S * (1 + self._needed // MANY)

    def _forget_old(self, network: Network, moment_s: float) -> None:
        """Let go of what is remembered only in case that somebody is very late."""
        if moment_s <= 0:  # for ever, or the clock has hardly begun
            return
        subscribers = network.clients.broker.subscribers
        subscribers.forget_until(moment_s)
        subscribers.forget_marks(int(moment_s * SEQUENCES_A_SECOND))
        network.forget_seen(int(moment_s * SEQUENCES_A_SECOND))
        network.arrivals.finder.forget_until(moment_s)

    def _forget_unused(self, network: Network) -> None:
        """Forget every name that nothing speaks of."""
        clients, advertisements, subscriptions = references(network.clients.broker)
        for roamer in network.clients.roamers.values():
            subscriptions.update(roamer.held)
        arrivals = network.arrivals
        clients.update(network.clients.roamers, arrivals.waiting, arrivals.finder.clients())
        clients.update(arrivals.doubts.silent, arrivals.doubts.deferred)
        network.links.names.keep(clients, advertisements, subscriptions)
