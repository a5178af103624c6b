"""What the council asks its driver to do, in order: whoever is told something is told after it was noted."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from sojourn.broker.seats.messages import Message, Seat


class Save(NamedTuple):
    """Make the register safe before anything that follows."""

    register: bytes


class Send(NamedTuple):
    """Tell another process something."""

    peer: str
    message: Message


class Close(NamedTuple):
    """End the connection to a process; it is made anew."""

    peer: str
    why: str


class Ship(NamedTuple):
    """Send a process the lines of a journal from a batch on, as they come; with 0, a snapshot first."""

    name: str
    peer: str
    session: int
    number: int


class Unship(NamedTuple):
    """Send it no more of that."""

    name: str
    peer: str


class Take(NamedTuple):
    """Begin another copy beside the one there is, with a snapshot of so many bytes before batch `first`."""

    name: str
    first: int
    size: int


class TakePart(NamedTuple):
    """Write on at its snapshot."""

    name: str
    data: bytes


class Append(NamedTuple):
    """Make a batch safe in the copy, the one that was begun last."""

    name: str
    number: int
    batch: bytes


class Install(NamedTuple):
    """Let the copy that was begun take the place of the one before."""

    name: str


class Drop(NamedTuple):
    """Give up a copy that was begun."""

    name: str


class Forget(NamedTuple):
    """Move what is held of a broker aside: it cannot be read, and nobody is to go on with it."""

    name: str


class Serve(NamedTuple):
    """Play a broker, from what is held of it."""

    name: str
    term: int


class Stop(NamedTuple):
    """Play it no more; nothing that it has in mind leaves."""

    name: str
    why: str


class Noticed(NamedTuple):
    """Something that whoever looks after the network should know."""

    sentence: str


class Regrouped(NamedTuple):
    """There is another roll: these are the processes that there are from now on."""

    roll: Seat


class Seated(NamedTuple):
    """A term was decided; for whoever wants to know."""

    seat: Seat


Effect = (
    Save
    | Send
    | Close
    | Ship
    | Unship
    | Take
    | TakePart
    | Append
    | Install
    | Drop
    | Forget
    | Serve
    | Stop
    | Seated
    | Noticed
    | Regrouped
)


class Logs(Protocol):
    """What a process holds of each broker: its own journal or a copy, as its driver finds it."""

    def next(self, name: str) -> int:
        """Return the number of the batch that comes next; 0 if nothing is held of the broker."""

    def incoming(self, name: str) -> int:
        """Return the same of the copy that was begun beside it; 0 if there is none."""

    def first(self, name: str) -> int:
        """Return the number of the first batch after the snapshot."""

    def check(self, name: str, number: int) -> int | None:
        """Return a checksum of what is before a batch; None if that can no longer be told."""

    def is_trusted(self, name: str) -> bool:
        """Return whether nothing can be missing at its end: power was not lost since it was written."""
