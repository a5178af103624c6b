"""What a displayer lets through when several brokers watch the same subscriptions (paper 003, section 5).

    keep = displayer_filter("ordered")
    if keep.accept(source, sequence): show the event

Three filters, named as in the paper's Table 1: `none` shows everything, `duplicates` shows each event once,
`ordered` shows an event only if it is newer than all that was shown of its source, which removes duplicates
too. Any number of brokers may feed one filter.

Rules: a source numbers its events upwards; `duplicates` remembers at most `remembered_max` numbers a source,
and what is older than all of them counts as shown: a copy so late is rather dropped than doubled. Nothing
here knows who sent a copy, or time.
"""

from collections import deque
from typing import Literal, Protocol

from sojourn.errors import SojournError

FilterName = Literal["none", "duplicates", "ordered"]
FILTER_NAMES: tuple[FilterName, ...] = ("none", "duplicates", "ordered")
REMEMBERED_MAX = 100_000


class DisplayerError(SojournError):
    """A displayer cannot be set up as asked."""


class DisplayerFilter(Protocol):
    """Decides, copy by copy, what is shown."""

    dropped: int
    """Copies that were not shown."""

    def accept(self, source: str, sequence: int) -> bool:
        """Whether this copy of an event is shown."""


class NoFilter:
    """Shows every copy."""

    __slots__ = ("dropped",)

    def __init__(self) -> None:
        self.dropped = 0

    def accept(self, source: str, sequence: int) -> bool:  # noqa: ARG002  the same door as the others
        """Whether this copy of an event is shown."""
        return True


class DuplicateFilter:
    """Shows each event once, whatever the order."""

    __slots__ = ("_remembered_max", "_seen", "dropped")

    def __init__(self, remembered_max: int = REMEMBERED_MAX) -> None:
        if remembered_max < 1:
            raise DisplayerError(f"remembered_max must be at least 1, not {remembered_max}.")
        self._remembered_max = remembered_max
        self._seen: dict[str, _Seen] = {}
        self.dropped = 0

    def accept(self, source: str, sequence: int) -> bool:
        """Whether this copy of an event is shown."""
        seen = self._seen.get(source)
        if seen is None:
            seen = self._seen[source] = _Seen()
        if sequence <= seen.floor or sequence in seen.numbers:
            self.dropped += 1
            return False
        seen.numbers.add(sequence)
        seen.shown.append(sequence)
        if len(seen.shown) > self._remembered_max:
            oldest = seen.shown.popleft()
            seen.numbers.discard(oldest)
            seen.floor = max(seen.floor, oldest)
        return True


class _Seen:
    """The numbers shown of one source, and the one up to which all count as shown."""

    __slots__ = ("floor", "numbers", "shown")

    def __init__(self) -> None:
        self.floor = -1
        self.numbers: set[int] = set()
        self.shown: deque[int] = deque()


class OrderedFilter:
    """Shows an event only if nothing newer of its source was shown."""

    __slots__ = ("_last", "dropped")

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self.dropped = 0

    def accept(self, source: str, sequence: int) -> bool:
        """Whether this copy of an event is shown."""
        if sequence <= self._last.get(source, -1):
            self.dropped += 1
            return False
        self._last[source] = sequence
        return True


def displayer_filter(name: str, remembered_max: int = REMEMBERED_MAX) -> DisplayerFilter:
    """The filter of that name, with nothing shown yet."""
    if name == "none":
        return NoFilter()
    if name == "duplicates":
        return DuplicateFilter(remembered_max)
    if name == "ordered":
        return OrderedFilter()
    raise DisplayerError(f"filter may be {', '.join(FILTER_NAMES)}, not {name!r}.")
