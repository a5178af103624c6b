"""How much work with topics one question or one filter may take, counted and not timed.

Topic patterns whose wildcards lie across each other can need a decision diagram that grows with every one of
them (`topicsets.py`). So whoever reads a filter, or compares two, says first how many steps that may take:

    with within(Work(steps)):
        …

A step is one edge of a diagram looked at, about a microsecond. The count depends on nothing but the
filters, never on the clock or on what was asked before: every broker, and one that comes back from its
journal, finds the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from sojourn.errors import SojournError

READING_STEPS = 30_000
READING_STEPS_PER_CHARACTER = 12
"""What reading a filter may take. Those that people write, lists of 200 topics among them, take about half of
it; the longest text may take some 80,000 steps in all."""
COMBINING_STEPS = 4
"""Steps that an edge takes where a diagram is made and not only looked at."""


class TopicsTooComplexError(SojournError):
    """A combination of topic patterns needs more room or work than is allowed."""


class Work:
    """The steps that are left; below 0 when there were not enough."""

    __slots__ = ("left",)

    def __init__(self, left: float) -> None:
        self.left = left

    def spend(self, steps: int) -> None:
        """Take some steps, or raise a `TopicsTooComplexError` when they are not left."""
        self.left -= steps
        if self.left < 0:
            raise TopicsTooComplexError(
                "The topic patterns are too entangled; use fewer of them in one filter."
            )


_current: ContextVar[Work | None] = ContextVar("work", default=None)


def current(otherwise: float) -> Work:
    """The work that is allowed here; some of its own for a question that nobody gave any."""
    return _current.get() or Work(otherwise)


@contextmanager
def within(work: Work) -> Iterator[Work]:
    """Let what is done inside take no more than this, whatever is allowed around it."""
    before = _current.set(work)
    try:
        yield work
    finally:
        _current.reset(before)


def reading(text: str, *, limited: bool) -> AbstractContextManager[object]:
    """Let reading a filter take work in proportion to its text; without limits for what was accepted once.

    Several that are read at once share what is allowed around them.
    """
    if not limited:
        return nullcontext()
    return sharing(READING_STEPS + READING_STEPS_PER_CHARACTER * len(text))


@contextmanager
def sharing(steps: float) -> Iterator[None]:
    """Let what is done inside take no more than this, nor than is left around it, where it counts too."""
    around = _current.get()
    if around is not None:
        steps = max(0.0, min(steps, around.left))
    work = Work(steps)
    try:
        with within(work):
            yield
    finally:
        if around is not None:
            around.left -= steps - work.left
