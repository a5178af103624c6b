"""Large structures that nobody needs any more are let go of bit by bit.

To drop the last reference to a tree of a hundred thousand nodes takes as long as to free all of them, and
nobody is served meanwhile. So whoever is done with one leaves it here, and has some of it freed now and then.
What others refer to as well stays as it is. Nothing here is part of any state.
"""

from __future__ import annotations

import gc
import sys

FREED_AT_ONCE = 10_000
"""Objects that are looked at in one part: some milliseconds."""
_HERE_ALONE = 2
"""References to an object that is looked at, and that nothing else refers to."""


class Leftovers:
    """What is to be freed."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left: list[object] = []

    def __bool__(self) -> bool:
        return bool(self._left)

    def leave(self, *structures: object) -> None:
        """Let go of structures, later; the caller keeps no reference to them."""
        self._left.extend(structures)

    def go_on(self, most: int = FREED_AT_ONCE) -> None:
        """Free some of them: what each refers to is left here before it goes, so that it goes alone."""
        left = self._left
        for _ in range(most):
            if not left:
                return
            one = left.pop()
            if sys.getrefcount(one) == _HERE_ALONE:
                left.extend(gc.get_referents(one))
