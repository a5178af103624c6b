"""What is kept for one network connection; it goes when the connection goes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

from sojourn.mqtt.parties import party_of
from sojourn.mqtt.payload import Data
from sojourn.mqtt.room import AddressUse

if TYPE_CHECKING:
    from sojourn.mqtt.greeting import Found
    from sojourn.mqtt.session import Session

ALIASED_CHARS_MAX = 16_384
"""Characters of all topics that a client has aliases for, or that are used towards it."""


class State(IntEnum):
    """How far a connection has got."""

    NEW = 0
    """Nothing has come yet; only a CONNECT may."""
    KNOCKING = 1
    """A CONNECT has come, and somebody decides whether to let the client in."""
    OPEN = 2
    """The client is served."""
    CLOSED = 3
    """Nothing is read any more; what is in the output is still to be sent."""


class Connection:
    """One network connection, as the core sees it."""

    __slots__ = (
        "address_use",
        "aliases_in",
        "aliases_out",
        "aliases_out_max",
        "blocked",
        "connect",
        "deadline_s",
        "direct",
        "fresh_id",
        "greeting",
        "greets",
        "have",
        "is_bridge",
        "is_gone",
        "is_old",
        "keep_alive_s",
        "needed",
        "number",
        "numbered",
        "offset",
        "output",
        "packet_bytes_max",
        "part_codes",
        "part_codes_beyond",
        "part_reasons",
        "parts_left",
        "party",
        "peer",
        "pieces",
        "problem_information",
        "put_out",
        "reminded",
        "rests",
        "said",
        "seen_s",
        "session",
        "state",
        "tokens",
        "tokens_s",
        "translated",
        "unreleased",
        "until_s",
        "waits",
        "window",
    )

    def __init__(  # noqa: PLR0915  (there is much to know of a connection, and one place for it)
        self, number: int, peer: str, fresh_id: str, deadline_s: float
    ) -> None:
        self.number = number
        self.peer, self.party = peer, party_of(peer)
        self.address_use = AddressUse()
        """What the clients of its address take (`room.py`); its own while it has not been let in."""
        self.fresh_id = fresh_id
        """The client identifier that it gets if it brings none."""
        self.is_old = False
        """Whether the client speaks MQTT 3.1.1 (`mqtt3.py`)."""
        self.is_bridge = False
        """Whether it does, and is another broker."""
        self.is_gone = False
        """Whether it was lost, and is read to the end of what had come."""
        self.state = State.NEW
        self.session: Session | None = None
        self.connect: bytes | None = None
        """The CONNECT that waits for an answer, without its password."""
        self.output: list[Data] = []
        """What is to be written; the driver takes it once a loop turn."""
        self.pieces: list[bytes] = []
        """What came of a packet that is not complete."""
        self.offset = 0
        """How many of the first bytes of `pieces` were read already."""
        self.have = 0
        """Bytes in `pieces`, without those."""
        self.translated = 0
        """How many of them are packets of MQTT 3.1.1 that were turned into those of 5 already."""
        self.waits = False
        """Whether they wait their turn (`input.py`); if not, they are part of a packet."""
        self.reminded = False
        """Whether it is looked at again for a packet that has not come whole."""
        self.parts_left = 0
        """Parts of a long packet that are still to be read before it is answered (`cutting.py`)."""
        self.part_codes: list[int] = []
        """What it is answered for the parts that were."""
        self.part_codes_beyond: list[int] = []
        """What it is answered for the rest, which is not read."""
        self.part_reasons: list[str] = []
        self.rests: list[bytes] = []
        """What a packet that was just read leaves to be done in turn (`greeting.py`)."""
        self.greets, self.put_out = 0, 0
        """Such rests before what came of it; bytes of retained events that a turn sends to it."""
        self.greeting: Found | None = None
        """What the first of them goes on with; a cache."""
        self.tokens = 0.0
        """How many events it may publish at once (`rates.py`), as of `tokens_s`."""
        self.tokens_s = 0.0
        self.needed = 0
        """Bytes that are needed before it is worth looking again."""
        self.deadline_s = deadline_s
        """When it is closed unless a CONNECT was accepted before."""
        self.seen_s = 0.0
        """When something last came."""
        self.keep_alive_s = 0
        self.blocked = False
        """Whether the client does not read as fast as it is sent to."""
        self.direct = False
        """Whether messages may go the fast way: straight to the output, in the commonest form."""
        self.window = 65_535
        """QoS 1 and 2 messages that may be on their way to the client."""
        self.packet_bytes_max = 0
        """The largest packet the client takes; 0 for any."""
        self.aliases_in: dict[int, str] = {}
        self.aliases_out: dict[str, int] = {}
        self.aliases_out_max = 0
        self.problem_information = True
        """Whether reason strings are sent in every packet."""
        self.unreleased: set[int] = set()
        """Packet identifiers of QoS 2 messages that came on it and were not released yet."""
        self.said = ("", "")
        """The client identifier and the user name that its CONNECT had, for whoever notes refusals."""
        self.until_s: float | None = None
        """When what its client proved its name by runs out; None for never."""
        self.numbered = False
        """Whether the client asked for the source and number of every event (`conventions.py`)."""

    def takes(self, size: int) -> bool:
        """Whether the client takes a packet of so many bytes (MQTT-3.1.2-24)."""
        return not self.packet_bytes_max or size <= self.packet_bytes_max

    def alias_for(self, topic: str) -> tuple[int, bool]:
        """Return the alias for a topic towards the client, 0 for none, and whether the topic goes along."""
        known = self.aliases_out.get(topic)
        if known is not None:
            return known, False
        if len(self.aliases_out) < self.aliases_out_max and have_room(self.aliases_out, topic):
            return len(self.aliases_out) + 1, True
        return 0, True


def have_room(aliased: Iterable[str], topic: str) -> bool:
    """Whether a further topic may have an alias beside these, which are kept while a connection lasts."""
    return sum(map(len, aliased)) + len(topic) <= ALIASED_CHARS_MAX
