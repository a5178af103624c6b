"""What is kept for one network connection; it goes when the connection goes."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.mqtt.session import Session


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
        "aliases_in",
        "aliases_out",
        "aliases_out_max",
        "blocked",
        "connect",
        "deadline_s",
        "direct",
        "fresh_id",
        "have",
        "is_old",
        "keep_alive_s",
        "needed",
        "number",
        "numbered",
        "output",
        "packet_bytes_max",
        "peer",
        "pieces",
        "problem_information",
        "seen_s",
        "session",
        "state",
        "unreleased",
        "until_s",
        "window",
    )

    def __init__(self, number: int, peer: str, fresh_id: str, deadline_s: float) -> None:
        self.number = number
        self.peer = peer
        self.fresh_id = fresh_id
        """The client identifier that it gets if it brings none."""
        self.is_old = False
        """Whether the client speaks MQTT 3.1.1 (`mqtt3.py`)."""
        self.state = State.NEW
        self.session: Session | None = None
        self.connect: bytes | None = None
        """The CONNECT that waits for an answer, without its password."""
        self.output: list[bytes] = []
        """What is to be written; the driver takes it once a loop turn."""
        self.pieces: list[bytes] = []
        """What came of a packet that is not complete."""
        self.have = 0
        """Bytes in `pieces`."""
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
        self.until_s: float | None = None
        """When what its client proved its name by runs out; None for never."""
        self.numbered = False
        """Whether the client asked for the source and number of every event (`conventions.py`)."""

    def takes(self, size: int) -> bool:
        """Whether the client takes a packet of so many bytes (MQTT-3.1.2-24)."""
        return not self.packet_bytes_max or size <= self.packet_bytes_max
