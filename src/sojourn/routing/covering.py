"""Which entries of outAds and outSubs were sent, and which are held back because another covers them.

Paper 000's Table 3 gives every entry of the two out-tables a flag `sent`. Only the entries whose flag is
false are stored here; an entry itself follows from the in-tables (see `router.py`). The rules:

- A new entry is held back if an entry already sent to the same neighbour covers it.
- When a sent entry leaves, what only it had covered is sent, widest first, before the entry is withdrawn:
  the links are FIFO, so the neighbour never sees a gap.
- A wider entry that comes later withdraws nothing; the narrower ones stay sent, as in Figures 2 and 3.

So every entry held back is covered by one that was sent, which is all that correctness asks for.
"""

from collections.abc import Callable

from sojourn.routing.interests import Kin
from sojourn.routing.neighbours import bits


class Covering:
    """The held-back entries of one out-table."""

    __slots__ = ("_kin", "_out", "held")

    def __init__(self, kin: dict[int, Kin | None], out: Callable[[int], int]) -> None:
        self._kin = kin
        self._out = out
        """The neighbours an interest has an entry for, whatever its flag."""
        self.held: dict[int, set[int]] = {}
        """By a neighbour's bit: the interests whose entry for that neighbour has the flag false."""

    def enter(self, interest: int, mask: int, kin: Kin) -> int:
        """Note new entries for the neighbours of a mask; say to which of them the interest is sent."""
        send = 0
        for bit in bits(mask):
            if self._covered(kin, bit):
                self.held.setdefault(bit, set()).add(interest)
            else:
                send |= bit
        return send

    def enter_all(self, interests: list[int], bit: int) -> list[int]:
        """Note several new entries for one neighbour; say which of them are sent, in that order."""
        held = self.held.setdefault(bit, set())
        # None of them counts as sent until its turn: two that cover each other must not hold both back.
        held.update(interests)
        sent = self._let_go(interests, bit, held)
        if not held:
            del self.held[bit]
        return sent

    def leave(self, interest: int, mask: int, kin: Kin) -> tuple[int, list[tuple[int, int]]]:
        """Drop entries that no longer exist.

        The answer says from which neighbours the interest is withdrawn, and which (neighbour, interest)
        must be sent first because they are no longer covered.
        """
        withdraw = 0
        uncovered: list[tuple[int, int]] = []
        for bit in bits(mask):
            held = self.held.get(bit)
            if held is None:
                withdraw |= bit
                continue
            if interest in held:
                held.discard(interest)
            else:
                withdraw |= bit
                waiting = [below for below in kin.below if below in held and self._out(below) & bit]
                uncovered += [(bit, freed) for freed in self._let_go(waiting, bit, held)]
            if not held:
                del self.held[bit]
        return withdraw, uncovered

    def _let_go(self, waiting: list[int], bit: int, held: set[int]) -> list[int]:
        """Of interests held back, those that nothing sent covers; they are held back no longer."""
        # If one covers another it covers more, so the order by how much each covers lets it go first.
        freed = []
        for interest in sorted(waiting, key=lambda one: (-self._width(one), one)):
            kin = self._kin[interest]
            if kin is None or not self._covered(kin, bit):
                held.discard(interest)
                freed.append(interest)
        return freed

    def _width(self, interest: int) -> int:
        family = self._kin[interest]
        return len(family.below) if family is not None else 0

    def _covered(self, kin: Kin, bit: int) -> bool:
        held = self.held.get(bit, ())
        return any(above not in held and self._out(above) & bit for above in kin.above)
