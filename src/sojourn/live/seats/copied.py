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
        self.store, self.process = str(chamber.folders.path(name)), chamber.name

    def logged(self) -> None:
        """More was noted: tell those who keep copies."""
        self._chamber.logged(self._name)

    def released(self) -> int:
        """Return the number of the batch before which everything is safe where it must be."""
        return self._chamber.council.released(self._name)

    def state(self) -> CopyState:
        """Return how the copies are."""
        chamber, council = self._chamber, self._chamber.council
        seat, whole = council.seat(self._name), council.whole(self._name)
        sent, count = chamber.mesh.written_bytes, chamber.takeovers
        guests = tuple(sorted(chamber.guests))
        voters = council.ballot()
        why = council.why_not(self._name) if council.at_risk(self._name) else ""
        copies = chamber.copies
        at_risk = [node for node in chamber.nodes if council.whole(node.place.name) < copies]
        return CopyState(
            seat.term,
            seat.host,
            seat.followers,
            whole,
            sent,
            count,
            guests,
            voters,
            why,
            least=min((council.whole(one.place.name) for one in chamber.nodes), default=whole),
            sessions_at_risk=sum(len(one.core.state.sessions) for one in at_risk),
            guests_why=tuple(f"{one}: {council.why_not(one)}" for one in guests if council.at_risk(one)),
            unplayed=council.unplayed(),
        )

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
