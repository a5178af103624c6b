"""A roaming subscriber as the world sees it: its radio, what it has got, and the hand-over it is in.

The radio is a 802.11-like link to whatever broker serves the client: bandwidth, delay, and lost packets that
are sent again after a time-out, in order (TCP over a lossy link). A client's path is drawn ahead, so when its
link will break is known when something is sent to it, and whether that still gets through can be told at
once; the brokers never learn it other than by silence.
"""

from collections.abc import Iterator

import numpy as np

from sojourn.sim.roaming.run import Sojourn

NOWHERE = -1
INFINITY = float("inf")
_RETRIES_DRAWN = 1 << 16
_RETRIES_MAX = 8


class Client:
    """One subscriber."""

    __slots__ = (
        "acked",
        "arrival_s",
        "asked_s",
        "broker",
        "changed",
        "connected_s",
        "epoch",
        "first_asked_s",
        "free_s",
        "got",
        "last",
        "left_s",
        "link",
        "marks",
        "move",
        "name",
        "number",
        "owed_s",
        "path",
        "previous",
        "requested_s",
        "sub",
        "transferred",
        "until_s",
    )

    def __init__(self, number: int, name: str, sub: int, path: Iterator[Sojourn], sources: int) -> None:
        self.number = number
        self.name = name
        self.sub = sub
        """The number of its one subscription."""
        self.path = path
        self.broker = NOWHERE
        """Whom it asked to serve it; `NOWHERE` while its radio hears nobody."""
        self.link = NOWHERE
        """Who has taken it in: only over that connection can anything reach it."""
        self.until_s = -1.0
        """When its link will break; what arrives later does not arrive."""
        self.epoch = 0
        """How many times it has asked to be connected."""
        self.previous: int | None = None
        """The last broker that told it that it was connected."""
        self.last: int | None = None
        """The last broker it asked."""
        self.changed = False
        """Whether that was another one than before."""
        self.owed_s = INFINITY
        """Events published from then on are owed to it: a moment after a broker first took it in."""
        self.first_asked_s = INFINITY
        """When a broker was first asked to store for it: from then on it may get events."""
        self.connected_s = self.left_s = 0.0
        self.move = 0
        """The number of its last broken link: the cause of all that follows from it."""
        self.asked_s = 0.0
        """When it last asked a broker to serve it."""
        self.requested_s = -1.0
        """The same until its first message arrives; negative afterwards."""
        self.free_s = 0.0
        self.arrival_s = 0.0
        """When its radio is free again, and when the last message arrived: TCP keeps order."""
        self.marks = [-1] * sources
        """By source: the last sequence number it consumed."""
        self.acked = [-1] * sources
        """By source: what its present broker was told of that."""
        self.got = [bytearray() for _ in range(sources)]
        """By source: which sequence numbers it has got."""
        self.transferred: set[tuple[int, int, int]] = set()
        """(broker, source, sequence) of events that were transferred for it during its present stay."""


def retry_delays(draw: np.random.Generator, loss: float, retry_s: float) -> list[float]:
    """Extra delays of packets by retransmission, drawn ahead: 0 for most, then a doubling time-out."""
    if loss <= 0:
        return [0.0]
    lost = np.minimum(draw.geometric(1 - loss, size=_RETRIES_DRAWN) - 1, _RETRIES_MAX)
    return [float(delay) for delay in retry_s * (2.0**lost - 1)]


def air_times(draw: np.random.Generator, duplication: float) -> list[float]:
    """How often packets take the air, drawn ahead: a packet that is doubled twice, though TCP keeps one."""
    if duplication <= 0:
        return [1.0]
    return [1.0 + doubled for doubled in (draw.random(_RETRIES_DRAWN) < duplication).tolist()]
