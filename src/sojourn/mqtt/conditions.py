"""What members of shared subscriptions want, as far as it differs, and what it takes to ask about that.

An event that groups want is compared with what their members want until it is known whom it fits, which may
be nobody. So filters count by their length, those of several members once, and a little for each of the
groups that have such a member.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.interest import Filter

EACH = 16
"""Characters that a filter counts for in each group, besides its own."""


class Conditions:
    """Distinct filters by group, and how many members have each."""

    __slots__ = ("_groups", "_members", "size")

    def __init__(self) -> None:
        self._members: Counter[tuple[str, Filter]] = Counter()
        """By text of a group and filter."""
        self._groups: Counter[Filter] = Counter()
        self.size = 0
        """Of all of them together, in characters."""

    def __len__(self) -> int:
        return len(self._groups)

    def further(self, group: str, wanted: Filter) -> int:
        """How much larger all would be with one more member of a group."""
        if (group, wanted) in self._members:
            return 0
        return EACH if wanted in self._groups else EACH + len(str(wanted))

    def add(self, group: str, wanted: Filter) -> bool:
        """Count a member; say whether nobody wanted that before, in any group."""
        self.size += self.further(group, wanted)
        self._members[group, wanted] += 1
        if self._members[group, wanted] == 1:
            self._groups[wanted] += 1
            return self._groups[wanted] == 1
        return False

    def remove(self, group: str, wanted: Filter) -> bool:
        """Count a member less; say whether nobody wants that any more."""
        self._members[group, wanted] -= 1
        if not self._members[group, wanted]:
            del self._members[group, wanted]
            self._groups[wanted] -= 1
            if not self._groups[wanted]:
                del self._groups[wanted]
        self.size -= self.further(group, wanted)
        return wanted not in self._groups
