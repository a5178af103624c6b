"""What a broker that a process plays knows of its copies, and a broker that it plays for another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.live.brokers.node import Node
from sojourn.live.brokers.outbox import CopyState
from sojourn.live.config import Address
from sojourn.live.page.observer import Observer

if TYPE_CHECKING:
    from sojourn.live.seats.chamber import Chamber


class Copied:
    """What a broker that this process plays knows of its copies (`brokers/outbox.Copying`)."""

    def __init__(self, chamber: Chamber, name: str) -> None:
        self._chamber, self._name = chamber, name
        self.store = str(chamber.folders.path(name))

    def logged(self) -> None:
        """More was noted: tell those who keep copies."""
        self._chamber.logged(self._name)

    def released(self) -> int:
        """Return the number of the batch before which everything is safe where it must be."""
        return self._chamber.council.released(self._name)

    def state(self) -> CopyState:
        """Return how the copies are."""
        chamber, seat = self._chamber, self._chamber.council.seat(self._name)
        shipping = chamber.council.shipping
        whole = sum(shipping.is_whole(self._name, one, seat.term) for one in seat.followers)
        sent, count = chamber.mesh.written_bytes, chamber.takeovers
        guests = tuple(sorted(chamber.guests))
        voters = chamber.council.ballot()
        why = chamber.council.why_not(self._name) if chamber.council.at_risk(self._name) else ""
        return CopyState(seat.term, seat.host, seat.followers, whole, sent, count, guests, voters, why)

    def find(self, peer: str, at_home: Address | None) -> Address | None:
        """Return where a neighbour is called: where its process plays it, or by way of another one."""
        return self._chamber.detours.way(self._name, peer, self._chamber.where(peer, at_home))

    def process_of(self, peer: str) -> str:
        """Return the name of the process that plays a neighbour."""
        return self._chamber.council.seat(peer).host


class Guest:
    """A broker of another process, played by this one."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.observer = Observer(node, keeps_board=False)
