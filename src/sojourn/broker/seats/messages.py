"""What processes say to one another about seats, and as which bytes.

    data = write_message(Held("B1", 7, 120))
    reader = MessageReader()
    for message in reader.arrived(data): …      # raises SeatError for what no process says

Each message is its length in four bytes and a MessagePack array that begins with its tag.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from sojourn.errors import SojournError

MESSAGE_BYTES_MAX = 96 << 20
"""More than the largest batch that a broker commits in one turn."""
PART_BYTES = 1 << 20
"""Of a snapshot in one message."""

Ballot = tuple[int, str]
"""The number of an attempt at a term, and who makes it; the larger one wins."""
NO_BALLOT: Ballot = (0, "")
ROLL = ""
"""The name of the seat that says who votes: its members are the processes on the roll, its term is the number
of the roll. No broker has that name."""

_LENGTH = struct.Struct(">I")


class SeatError(SojournError):
    """Somebody said about seats what no process says; its connection is to be closed."""


class Joined(msgspec.Struct, frozen=True, array_like=True):
    """A process that joined those that were there."""

    name: str
    links: tuple[str, ...]
    """The brokers that its own is linked to."""
    birth: str
    """What it said of its memory then: one that says something else has lost that."""


class Seat(msgspec.Struct, frozen=True, array_like=True):
    """Who plays a broker in one term, and who holds the copies."""

    name: str
    """Of the broker, and of the process that is its home."""
    term: int
    host: str
    followers: tuple[str, ...] = ()
    joined: tuple[Joined, ...] = ()
    """Of a roll: who has joined since the first, in order."""
    left: tuple[str, ...] = ()
    """Of a roll: who was on an earlier one; they do not come back."""
    seats: tuple[Seat, ...] = ()
    """Of a roll: all seats as they were when it began; nothing else was decided before, or can be since."""

    @property
    def members(self) -> tuple[str, ...]:
        """All that hold what was promised."""
        return (self.host, *self.followers)

    def seats_like(self, other: Seat) -> bool:
        """Whether both name the same processes, whatever the term."""
        return self.host == other.host and sorted(self.followers) == sorted(other.followers)


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """What a process says of itself about one seat."""

    name: str
    term: int
    """The latest term that it knows."""
    whole: int
    """Up to which term it holds all that was promised; 0 for not at all."""
    sealed: int
    """In which term it acknowledges nothing more."""


class _Message(msgspec.Struct, frozen=True, array_like=True, tag_field="kind"):
    """One message."""


class Hello(_Message, frozen=True, tag="hello"):
    """The first thing on a new connection."""

    generation: int
    """Which memory of this process this is, counted from 1; 0 before it has enrolled."""
    enrols: bool
    """Whether it does not vote, since it may have voted and lost its memory."""
    seats: tuple[Seat, ...]
    standings: tuple[Standing, ...]
    keeps: bool = True
    """Whether it has room for what others tell it."""
    birth: str = ""
    """When it began, in a word that no other memory of it has; it matters to those whom it joins."""


class Known(_Message, frozen=True, tag="known"):
    """The answer to somebody who does not vote: which memory of it was known here."""

    generation: int
    is_enrolled: bool
    """Whether who answers remembers all votes of its own, and goes on voting under its roll."""
    roll: int = 1
    remembers: bool = False
    """The same of one that has sealed its roll, which is enough when all others have to tell."""


class Enrol(_Message, frozen=True, tag="enrol"):
    """Note that this is my memory from now on, and tell me what you have voted for."""

    generation: int
    round: int = 0
    """How often this was asked."""


class Ballots(msgspec.Struct, frozen=True, array_like=True):
    """What a process knows of the votes about one seat."""

    seat: Seat
    promised: Ballot
    voted: tuple[Ballot, Seat] | None


class Enrolled(_Message, frozen=True, tag="enrolled"):
    """I have noted it, and this is what I know."""

    generation: int
    is_enrolled: bool
    ballots: tuple[Ballots, ...]
    round: int = 0
    forgetful: tuple[str, ...] = ()
    """Processes that are connected with this one now and have said that they do not remember their votes."""
    roll: int = 1
    known: dict[str, int] = {}
    """Which memories of others I know of."""
    remembers: bool = False
    """Whether I remember my votes, although I may have sealed the roll."""


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """Which memory of a voter an answer comes from, and which ones of others it knew."""

    generation: int
    known: dict[str, int]


class Standings(_Message, frozen=True, tag="standings"):
    """What has changed of the sender's standing; nothing, when it only says that it is there."""

    standings: tuple[Standing, ...] = ()
    votes: bool = True
    """Whether the sender remembers what it voted for."""
    keeps: bool = True
    """Whether it has room for what others tell it."""


class Busy(_Message, frozen=True, tag="busy"):
    """I begin to play a broker, and may be silent for so long because of that."""

    seconds: float


class Prepare(_Message, frozen=True, tag="prepare"):
    """Asks to take part in an attempt at the term after this one."""

    base: Seat
    ballot: Ballot
    roll: int = 1
    """Under which roll; who goes by another one does not answer."""


class Promise(_Message, frozen=True, tag="promise"):
    """Yes, and this is what I voted for before."""

    name: str
    term: int
    ballot: Ballot
    voted: tuple[Ballot, Seat] | None
    stamp: Stamp


class Refuse(_Message, frozen=True, tag="refuse"):
    """No: I know of a later attempt, or term, or have no vote."""

    name: str
    ballot: Ballot
    promised: Ballot
    seat: Seat


class Accept(_Message, frozen=True, tag="accept"):
    """Vote for this."""

    base: Seat
    ballot: Ballot
    seat: Seat
    roll: int = 1


class Accepted(_Message, frozen=True, tag="accepted"):
    """I have."""

    name: str
    term: int
    ballot: Ballot
    stamp: Stamp


class Decided(_Message, frozen=True, tag="decided"):
    """A majority has."""

    seat: Seat


class Seal(_Message, frozen=True, tag="seal"):
    """Somebody is to join or to leave: vote about no seat under this roll any more, and say how you stand."""

    roll: int


class Sealed(_Message, frozen=True, tag="sealed"):
    """I have noted that; this is what I know of seats, and what I voted for."""

    roll: int
    ballots: tuple[Ballots, ...]
    stamp: Stamp


class Parting(_Message, frozen=True, tag="parting"):
    """These brokers have left the network: let others have the copies that their processes keep."""

    names: tuple[str, ...]


class At(_Message, frozen=True, tag="at"):
    """Where neighbours of a broker find it that is played by this process and is not at home."""

    name: str
    term: int
    address: str


class Where(_Message, frozen=True, tag="where"):
    """How far does your copy of this broker go? From now on you are told its lines."""

    name: str
    term: int
    session: int
    """What follows from this question says so: what was asked before is of no use any more."""


class Here(_Message, frozen=True, tag="here"):
    """As far as this: the number of the batch that it lacks next, and a checksum of the last one."""

    name: str
    session: int
    next: int
    check: int


class Begin(_Message, frozen=True, tag="begin"):
    """Your copy cannot be gone on with: here comes all of it, a snapshot of so many bytes first."""

    name: str
    session: int
    first: int
    size: int


class Part(_Message, frozen=True, tag="part"):
    """The next bytes of the snapshot."""

    name: str
    session: int
    data: bytes


class Line(_Message, frozen=True, tag="line"):
    """The next batch of the journal, as the store has it."""

    name: str
    session: int
    number: int
    batch: bytes


class Held(_Message, frozen=True, tag="held"):
    """My copy has all batches before this number."""

    name: str
    session: int
    next: int


class Whole(_Message, frozen=True, tag="whole"):
    """With all batches before this number you hold everything that was promised."""

    name: str
    session: int
    next: int


class IsWhole(_Message, frozen=True, tag="is whole"):
    """I have noted that."""

    name: str
    session: int


class Ended(_Message, frozen=True, tag="ended"):
    """You are told no more lines of this broker."""

    name: str
    session: int


class Detour(_Message, frozen=True, tag="detour"):
    """A broker that I play cannot reach this neighbour: pass on its calls, if you can."""

    caller: str
    name: str


class DetourAt(_Message, frozen=True, tag="detour at"):
    """I can, and wait for its call at this address for a while."""

    caller: str
    name: str
    address: str
    word: bytes = b""
    """What the caller has to say there first; earlier builds ask for nothing."""


Message = (
    Hello
    | Known
    | Enrol
    | Enrolled
    | Standings
    | Busy
    | Prepare
    | Promise
    | Refuse
    | Accept
    | Accepted
    | Decided
    | Seal
    | Sealed
    | Parting
    | At
    | Where
    | Here
    | Begin
    | Part
    | Line
    | Held
    | Whole
    | IsWhole
    | Ended
    | Detour
    | DetourAt
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Message).decode


def write_message(message: Message) -> bytes:
    """Return a message as bytes."""
    body = _encode(message)
    return _LENGTH.pack(len(body)) + body


class MessageReader:
    """The messages of one connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def arrived(self, data: bytes) -> Iterator[Message]:
        """Take bytes; yield every message that is whole by now."""
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, at)
            if length > MESSAGE_BYTES_MAX:
                raise SeatError(f"It says something of {length} bytes, over {MESSAGE_BYTES_MAX}.")
            end = at + _LENGTH.size + length
            if len(buffer) < end:
                break
            body = bytes(memoryview(buffer)[at + _LENGTH.size : end])
            at = end
            try:
                message: Message = _decode(body)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise SeatError(f"It says something that cannot be read: {error}.") from None
            yield message
        del buffer[:at]
