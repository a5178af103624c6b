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

Those may be very many: everything, if the one that leaves wanted everything. Where `part_max` says so, they
are looked at in parts (`go_on_leaving`), and the one that leaves is withdrawn after the last part. Until then
the neighbour has it, so it goes on being a witness, also for what comes meanwhile; the neighbour sends too
much, and misses nothing. If it is wanted again before that, it simply stays.
"""

from collections.abc import Callable
from heapq import nsmallest

from sojourn.interest.algebra import Looks
from sojourn.routing.interests import LOOKS_MAX, AboveBook, Covers
from sojourn.routing.neighbours import bits

NOBODY = -1
"""The witness of an entry that is about to leave as well."""


class Covering:
    """The held-back entries of one out-table."""

    __slots__ = ("_above", "_covers", "_dependents", "_out", "held", "leaving", "part_max")

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
        self.part_max: int | None = None
        """How many of those are looked at together; None for all of them."""
        self.leaving: dict[int, dict[int, int]] = {}
        """By a neighbour's bit: the interests without an entry that the neighbour still has, since others are
        held back for their sake, and what caused them to leave."""

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

    def stays(self, interest: int, mask: int) -> int:
        """The neighbours of a mask that still have an interest which was leaving; it does no longer."""
        found = 0
        for bit in bits(mask) if self.leaving else ():
            leaving = self.leaving.get(bit, {})
            if leaving.pop(interest, None) is not None:
                found |= bit
                if not leaving:
                    del self.leaving[bit]
        return found

    def go_on_leaving(self) -> tuple[int, int, int, list[int]]:
        """Look at some of what is held back for the sake of an interest that is leaving.

        Return the neighbour's bit, the interest, why it leaves, and what is to be sent. If nothing is held
        back for its sake after that, it is no longer leaving and is to be withdrawn.
        """
        bit = min(self.leaving)
        interest, cause = next(iter(self.leaving[bit].items()))
        dependents = self._dependents.get(bit, {}).get(interest, {})
        count = len(dependents) if self.part_max is None else max(1, self.part_max)
        sent = self._look_at(nsmallest(count, dependents), dependents, bit)
        if not dependents:
            self._dependents.get(bit, {}).pop(interest, None)
            self.stays(interest, bit)
        if not self.held.get(bit):
            self.held.pop(bit, None)
        return bit, interest, cause, sent

    def _look_at(self, interests: list[int], dependents: dict[int, None], bit: int) -> list[int]:
        """Decide anew about some that were held back; say which are sent. It may decide about others too."""
        held = self.held[bit] if interests else {}
        sent: list[int] = []
        for interest in interests:
            way: list[int] = []
            at = interest
            while at in dependents:
                above = self._find(at, bit, dependents)
                del dependents[at], held[at]
                way.append(at)
                if above is None:
                    break
                at = above
            witness = held.get(at, at)
            for one in way:
                if one == witness:
                    sent.append(one)
                else:
                    self._hold(one, bit, witness)
        return sent

    def leave(self, interest: int, mask: int, cause: int = NOBODY) -> tuple[int, list[tuple[int, int]]]:
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
            if witness is None and self._is_long(interest, bit):
                self.leaving.setdefault(bit, {})[interest] = cause
            elif witness is None:
                withdraw |= bit
                uncovered += [(bit, freed) for freed in self._let_go(interest, bit, held)]
            elif witness != NOBODY:
                dependents = self._dependents[bit]
                del dependents[witness][interest]
                if not dependents[witness]:
                    del dependents[witness]
            if not held:  # what is leaving is withdrawn with the next part
                self.held.pop(bit, None)
                self._dependents.pop(bit, None)
        return withdraw, uncovered

    def _is_long(self, interest: int, bit: int) -> bool:
        """Whether what is held back for the sake of one is too much to be looked at at once."""
        dependents = self._dependents.get(bit, {}).get(interest, ())
        return self.part_max is not None and len(dependents) > self.part_max

    def forget(self, bit: int) -> None:
        """Forget all about a neighbour."""
        self.held.pop(bit, None)
        self._dependents.pop(bit, None)
        self.leaving.pop(bit, None)

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
