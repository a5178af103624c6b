"""Runs: events of one publisher that came together, and that brokers send one another in one frame.

A publisher that says much at once is routed once for all of it, as far as its topic decides where events go;
and the frame that carries them is written, numbered, noted and acknowledged as one.

Which events make a run depends on nothing but themselves, and where each of them goes. So a broker that is
told its packets again puts the same events into the same frames, whatever it has at hand to find out quickly
where they go, and though events of QoS 0 are not told again: these leave a gap in the numbers of the others,
and no run goes over a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sojourn.broker.carried import PLAIN_HEADS
from sojourn.mqtt.message import Message

EVENTS_MAX = 16
"""Events of one run. A frame is taken in at once, and each of them may go to thousands."""
BYTES_MAX = 1 << 16


def runs_of(published: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield the runs in what was published, in order; an event that fits into none is one of its own."""
    run: list[Message] = []
    size = 0
    for message in published:
        length = len(message.frame)
        if run and (not _follows(run[-1], message) or len(run) == EVENTS_MAX or size + length > BYTES_MAX):
            yield run
            run, size = [], 0
        run.append(message)
        size += length
    if run:
        yield run


def _follows(last: Message, message: Message) -> bool:
    """Whether a message is one more of what its publisher says on a topic."""
    return (
        message.sequence == last.sequence + 1
        and message.topic == last.topic
        and message.publisher == last.publisher
        and message.qos == last.qos
        and _is_ordinary(message)
        and _is_ordinary(last)
    )


def _is_ordinary(message: Message) -> bool:
    return (
        message.expiry is None
        and message.policy is None
        and not message.retain
        and not message.address
        and message.frame[:1] in PLAIN_HEADS
    )
