"""How much is said or kept at once, in bytes of events."""

from collections.abc import Iterable, Iterator

from sojourn.adhoc.election.messages import Kept

OVERHEAD_BYTES = 256
"""What an event takes besides what the application sent along."""
MESSAGE_BYTES_MAX = 8 << 20
"""Of the events in one message; one that is larger goes by itself."""


def size_of(kept: Kept) -> int:
    """Bytes that an event counts for."""
    return OVERHEAD_BYTES + len(kept.body)


def portion(events: Iterable[Kept]) -> Iterator[Kept]:
    """The first events that have room in one message; who sends them sends the rest when it has an answer."""
    left = MESSAGE_BYTES_MAX
    for kept in events:
        left -= size_of(kept)
        if left < 0 and left + size_of(kept) != MESSAGE_BYTES_MAX:
            return
        yield kept
