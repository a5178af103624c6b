"""The questions and answers that a broker writes when sessions are looked for (`finding.py`)."""

from __future__ import annotations

from sojourn.mobility.finding_messages import Find, Found
from sojourn.mobility.trails import Pair, Trail


class Letters:
    """What one broker has to send to others about sessions, in order."""

    def __init__(self, number: int) -> None:
        """Write letters in the name of the broker with this number."""
        self.number = number
        self.sends: list[Find | Found] = []
        """Messages to be sent towards their destination, or to every neighbour; who sends them clears it."""

    def find(self, client: int, destination: int, epoch: int) -> None:
        """Ask a broker for a client's session, or every other broker (`EVERYBODY`)."""
        self.sends.append(Find(destination=destination, sender=self.number, client=client, epoch=epoch))

    def pass_on(self, client: int, pair: Pair, destination: int) -> None:
        """Ask a broker for a client's session in the name of the broker that has, or had, the connection."""
        epoch, broker = pair
        self.sends.append(Find(destination=destination, sender=broker, client=client, epoch=epoch))

    def answer(self, client: int, trail: Trail, pair: Pair, *, present: bool) -> None:
        """Say that there is no session here, and whether a later connection is known."""
        if trail.latest > pair:
            is_here = trail.latest[1] == self.number
            self.tell(client, pair, later=trail.latest, present=present and is_here)
        else:
            self.tell(client, pair)

    def tell(
        self,
        client: int,
        to: Pair,
        *,
        later: Pair | None = None,
        present: bool = False,
        holds: bool = False,
        waits_for: tuple[int, ...] = (),
        state: bytes | None = None,
        holder: int | None = None,
    ) -> None:
        """Answer the connection `to`; each field is as in `Found`, and `later` a later connection."""
        held_epoch, held_at = later or (0, self.number)
        self.sends.append(
            Found(
                destination=to[1],
                sender=self.number,
                client=client,
                epoch=to[0],
                held_epoch=held_epoch,
                held_at=held_at,
                present=present,
                holds=holds,
                waits_for=waits_for,
                holder=self.number if holder is None else holder,
                state=state,
            )
        )
