"""Links: latency, bandwidth, first in first out.

A message occupies a directed link while its bits go onto it, one message after the other, and arrives one
latency after its last bit. Nothing is lost (paper 000, section 5.2.1 assumes a reliable transport). Links
between brokers are all alike, and so are those of clients; each client has one up and one down.
"""

from sojourn.routing.messages import Kind
from sojourn.sim.scenario import Scenario

BITS_A_BYTE = 8


class Links:
    """Directed links of one class, by number: when each is free again, and what a message takes."""

    __slots__ = ("free_s", "latency_s", "transmit_s")

    def __init__(self, count: int, latency_s: float, bandwidth_bps: float, scenario: Scenario) -> None:
        self.latency_s = latency_s
        self.free_s = [0.0] * count
        """By link: when the last bit of the last message is on it."""
        self.transmit_s = [
            message_bytes(kind, scenario) * BITS_A_BYTE / bandwidth_bps for kind in range(len(Kind))
        ]
        """By kind of message: how long it occupies a link."""

    def send(self, link: int, kind: int, now: float) -> float:
        """Put a message onto a link; say when it arrives."""
        free = self.free_s[link]
        last_bit = max(free, now) + self.transmit_s[kind]
        self.free_s[link] = last_bit
        return last_bit + self.latency_s


def message_bytes(kind: int, scenario: Scenario) -> int:
    """The length of a message on the wire."""
    return scenario.event_bytes if kind == Kind.PUBLISH else scenario.control_bytes
