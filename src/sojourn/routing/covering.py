"""Which entries of outAds and outSubs were sent, and which are held back because another covers them.

Paper 000's Table 3 gives every entry of the two out-tables a flag `sent`. Only the entries whose flag is
false are stored here; an entry itself follows from the in-tables (see `router.py`). The rules:

- A new entry is held back if an entry for the same neighbour covers it.
- When a sent entry leaves, what nothing else covers is sent before the entry is withdrawn: the links are
  FIFO, so the neighbour never sees a gap.
- A wider entry that comes later withdraws nothing; the narrower ones stay sent, as in Figures 2 and 3.

So every entry held back is covered by one that was sent, which is all that correctness asks for. One such is
noted with it, its *witness*. Covering is transitive: whatever covers an entry, and is itself held back, lends
it its own witness. Nothing need be known of all others that cover an entry, or that it covers, and when one
leaves only those are looked at whose witness it was.
"""

from collections.abc import Callable

from sojourn.interest.algebra import Looks
from sojourn.routing.interests import LOOKS_MAX, AboveBook, Covers
from sojourn.routing.neighbours import bits

NOBODY = -1
"""The witness of an entry that is about to leave as well."""


class Covering:
    """The held-back entries of one out-table."""

    __slots__ = ("_above", "_covers", "_dependents", "_out", "held")

    def __init__(self, above: AboveBook, covers: Covers, out: Callable[[int], int]) -> None:
        self._above = above
        self._covers = covers
        self._out = out
        """The neighbours an interest has an entry for, whatever its flag."""
        self.held: dict[int, dict[int, int]] = {}
        """By a neighbour's bit: the interests whose entry for that neighbour has the flag false, and for each
        one that covers it and was sent."""
        self._dependents: dict[int, dict[int, dict[int, None]]] = {}
        """By a neighbour's bit and an interest that was sent: those that are held back for its sake."""

    def enter(self, interest: int, mask: int) -> int:
        """Note new entries for the neighbours of a mask; say to which of them the interest is sent."""
        send = 0
        for bit in bits(mask):
            wide = self._find(interest, bit, {})
            if wide is None:
                send |= bit
            else:
                self._hold(interest, bit, self.held.get(bit, {}).get(wide, wide))
        return send

    def enter_all(self, interests: list[int], bit: int) -> list[int]:
        """Note several new entries for one neighbour; say which of them are sent, in that order."""
        # One that is not entered yet covers those that are narrower, whether it will be sent or held back; of
        # two that cover each other, the one entered first counts as the wider.
        undecided = dict.fromkeys(interests)
        wider = {interest: self._find(interest, bit, undecided) for interest in interests}
        sent: set[int] = set()
        for interest in interests:
            way: list[int] = []
            at = interest
            while at in undecided:
                del undecided[at]
                way.append(at)
                above = wider[at]
                if above is None:
                    break
                at = above
            witness = self.held.get(bit, {}).get(at, at)
            # A way that goes in a circle, as it can where some covering was overlooked, ends at one that it
            # came by before: that one is sent.
            for one in way:
                if one == witness:
                    sent.add(one)
                else:
                    self._hold(one, bit, witness)
        return [interest for interest in interests if interest in sent]

    def leave(self, interest: int, mask: int) -> tuple[int, list[tuple[int, int]]]:
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
            witness = held.pop(interest, None)
            if witness is None:
                withdraw |= bit
                uncovered += [(bit, freed) for freed in self._let_go(interest, bit, held)]
            elif witness != NOBODY:
                dependents = self._dependents[bit]
                del dependents[witness][interest]
                if not dependents[witness]:
                    del dependents[witness]
            if not held:
                self.forget(bit)
        return withdraw, uncovered

    def forget(self, bit: int) -> None:
        """Forget all about a neighbour."""
        self.held.pop(bit, None)
        self._dependents.pop(bit, None)

    def find_dependents(self) -> None:
        """Find again what rests on what, given what is held back."""
        self._dependents.clear()
        for bit, held in self.held.items():
            for interest, witness in held.items():
                self._hold(interest, bit, witness)

    def _let_go(self, witness: int, bit: int, held: dict[int, int]) -> list[int]:
        """Of what was held back for the sake of one that leaves, what nothing else covers."""
        waiting = []
        for interest in sorted(self._dependents.get(bit, {}).pop(witness, ())):
            if self._out(interest) & bit:
                del held[interest]
                waiting.append(interest)
            else:
                held[interest] = NOBODY
        return self.enter_all(waiting, bit)

    def _hold(self, interest: int, bit: int, witness: int) -> None:
        self.held.setdefault(bit, {})[interest] = witness
        self._dependents.setdefault(bit, {}).setdefault(witness, {})[interest] = None

    def _find(self, interest: int, bit: int, undecided: dict[int, None]) -> int | None:
        """One that covers an interest and has an entry for a neighbour."""
        above = self._above[interest]
        if above is None:
            return None
        return above.first(lambda wide: self._counts(wide, interest, bit, undecided))

    def _counts(self, wide: int, interest: int, bit: int, undecided: dict[int, None]) -> bool:
        if not self._out(wide) & bit:
            return False
        if wide < interest or wide not in undecided:
            return True
        return not self._covers(interest, wide, Looks(LOOKS_MAX))
