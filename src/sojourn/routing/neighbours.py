"""A broker's neighbours as bits of an integer.

Bit 0 is the broker's own clients taken together, bit i + 1 its i-th neighbouring broker. A set of
neighbours is then one small integer, which makes a table entry 8 bytes and the rules of paper 000's
Figures 2 and 3 a few machine operations.

The rule both figures share is `targets`: an interest heard from `sources` goes to those of `wanted` that
would hear of it from somebody other than themselves.
"""

from sojourn.errors import SojournError

LOCAL = 1
MEMO_MAX = 4096


class UnknownNeighbourError(SojournError):
    """A message came from a broker that is not a neighbour."""


def targets(sources: int, wanted: int) -> int:
    """The neighbours of `wanted` to be told of an interest heard from `sources`; never the local bit."""
    if sources & (sources - 1):  # two sources or more: even a source hears it from another one
        return wanted & ~LOCAL
    return wanted & ~sources & ~LOCAL if sources else 0


def bits(mask: int) -> list[int]:
    """The single bits of a mask, lowest first."""
    found = []
    while mask:
        bit = mask & -mask
        found.append(bit)
        mask ^= bit
    return found


class Neighbours:
    """The numbered brokers next to one broker, and the bits that stand for them."""

    __slots__ = ("_bit", "_gone", "_named", "brokers", "everyone")

    def __init__(self, brokers: tuple[int, ...]) -> None:
        self.brokers = brokers
        self._gone: set[int] = set()
        """Bits of neighbours that left for good; nobody else gets them."""
        self._bit = {broker: 2 << place for place, broker in enumerate(brokers)}
        if len(self._bit) != len(brokers):
            raise UnknownNeighbourError(f"neighbours must be named once each, not {brokers}.")
        self.everyone = sum(self._bit.values())
        """All neighbouring brokers, without the local bit."""
        self._named: dict[int, tuple[int, ...]] = {}

    def add(self, broker: int) -> int:
        """Take in a new neighbour, in the lowest free place, and return its bit."""
        taken = {*self._bit.values(), *self._gone}
        bit = 2
        while bit in taken:
            bit <<= 1
        if broker in self._bit:
            raise UnknownNeighbourError(f"Broker {broker} is a neighbour already; name it once.")
        self._bit[broker] = bit
        self._changed()
        return bit

    def remove(self, broker: int, *, for_good: bool = False) -> None:
        """Let a neighbour go; its bit may be given to another one later, unless it left for good."""
        bit = self.bit(broker)
        if for_good:
            self._gone.add(bit)
        del self._bit[broker]
        self._changed()

    def _changed(self) -> None:
        self.brokers = tuple(self._bit)
        self.everyone = sum(self._bit.values())
        self._named.clear()

    def bit(self, broker: int) -> int:
        """The bit of a neighbouring broker."""
        try:
            return self._bit[broker]
        except KeyError:
            raise UnknownNeighbourError(
                f"Broker {broker} is not a neighbour; the neighbours are {self.brokers}."
            ) from None

    def named(self, mask: int) -> tuple[int, ...]:
        """The brokers of a mask, in the order in which the neighbours were given."""
        known = self._named.get(mask)
        if known is None:
            known = tuple(broker for broker, bit in self._bit.items() if mask & bit)
            if len(self._named) < MEMO_MAX:
                self._named[mask] = known
        return known
