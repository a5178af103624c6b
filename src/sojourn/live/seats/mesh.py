"""The connections between all processes of a network over which copies are kept.

They are made, accepted, proved and lost as links between neighbours are (`links/peers.py`), but between any
two processes and at an address of their own (`seats`). What they prove is for this purpose alone: a proof of
a link is of no use here, nor the other way round. Who does not prove that it is a process of this network is
told nothing, and heard in nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sojourn.broker.proof import ProofError
from sojourn.live.addresses import AddressBook, true_address
from sojourn.live.config import Address, Config, parse_address
from sojourn.live.links.knowing import proof_of
from sojourn.live.links.peers import Connection, PeerLinks
from sojourn.live.links.proofs import Proof

PURPOSE = " (seats)"
"""What the name of the network has behind it in these proofs."""


class SeatConnection(Connection):
    """One connection: who is at its other end has proved it, so no hello is waited for."""

    silence_s = 3_600.0
    """The council knows sooner who is silent, and who may be."""

    @property
    def backlog(self) -> int:
        """Bytes that were written and have not left."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def _learn(self, data: bytes) -> bytes:
        names = {self._proven, self._certified_name()} - {None}
        if len(names) != 1:
            raise ProofError("its secret and its certificate prove different names.")
        (name,) = names
        if name not in self._links.peers:
            raise ProofError("it says it is {}, which is no broker of this network.", name)
        assert name is not None, "there is one name, and it is one"
        self.peer = name
        self._admit(name)
        return data


class Mesh(PeerLinks):
    """All connections of one process."""

    kind = SeatConnection
    key = "seats"
    port = "for processes that keep copies (`seats`)"
    purpose = " for copies (`seats`)"
    log = logging.getLogger("sojourn.seats")


def book_name(process: str) -> str:
    """Under which name a process says where it listens for others, before its broker listens for clients."""
    return f"{process}.seats"


def for_seats(proof: Proof) -> Proof:
    """Return what proves the same for this purpose."""
    return proof._replace(network=proof.network + PURPOSE)


def make_mesh(config: Config, name: str, book: AddressBook, tell: Callable[..., None]) -> Mesh:
    """Return the connections of a process.

    Of two, the one whose name comes first calls the other; but one that joined calls those that were there.
    """
    joined = config.network.joined

    def calls_other(other: str) -> bool:
        places = [joined.index(one) if one in joined else -1 for one in (name, other)]
        return name < other if places[0] == places[1] else places[0] > places[1]

    def find(peer: str, configured: Address) -> Address | None:
        if configured.port:
            return configured
        said = book.find(book_name(peer))
        return None if said is None else true_address(configured, said.seats, peer)

    others = [broker for broker in config.brokers if broker.name != name]
    calls = {
        broker.name: parse_address(broker.seats, f"seats of {broker.name}")
        for broker in others
        if broker.seats is not None and calls_other(broker.name)
    }
    proof = for_seats(proof_of(config, name))
    return Mesh(name, [broker.name for broker in others], tell, proof, calls=calls, find=find)
