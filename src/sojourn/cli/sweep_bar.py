"""The bar of a long sweep: runs done, running, failed, and the time left; on standard error, for people.

Where standard error is a file or a pipe, a bar would be noise: a line from time to time says the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from sojourn.cli.heartbeat import Heartbeat, heartbeat
from sojourn.pipeline.progress import Progress


class SweepBar:
    """A listener of a sweep that shows what it hears, and before that how much there is to do."""

    def begin(self, runs: int, doing: str) -> None:
        """Say how many runs there are, and what is done before the first of them."""

    def __call__(self, now: Progress) -> None:
        """Show how far the sweep is."""


@contextmanager
def sweep_bar(console: Console) -> Iterator[SweepBar]:
    """Show a bar, or a line now and then, while the block runs; what it yields moves it."""
    if not console.is_terminal:
        with heartbeat(console) as beat:
            yield _Lines(console, beat)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[runs]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=console) as bar:
        yield _Drawn(bar)


class _Drawn(SweepBar):
    """On a terminal."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._task = bar.add_task("preparing", total=1.0, runs="", left="")

    def begin(self, runs: int, doing: str) -> None:
        self._bar.update(self._task, description=doing, runs=f"0/{runs} runs")

    def __call__(self, now: Progress) -> None:
        self._bar.update(
            self._task,
            description="simulating",
            completed=now.share,
            runs=f"{now.done}/{now.total} runs, {now.running} running, {now.failed} failed",
            left=_left(now),
        )


class _Lines(SweepBar):
    """In a file or a pipe: a line at the beginning, and then from time to time."""

    def __init__(self, console: Console, beat: Heartbeat) -> None:
        self._console, self._beat = console, beat

    def begin(self, runs: int, doing: str) -> None:
        self._console.print(f"{runs} runs; {doing}", highlight=False, soft_wrap=True)
        self._beat.tell(doing)

    def __call__(self, now: Progress) -> None:
        if now.done == now.total:  # all that is left is to sum up and to draw
            self._beat.tell("summing up")
            return
        self._beat.tell(
            "simulating",
            f"{now.done}/{now.total} runs, {now.running} running, {now.failed} failed; {_left(now)}",
        )


def _left(now: Progress) -> str:
    """The time left in words, or why it is not known."""
    return time_left(now.left_s) or ("estimating the time left" if now.done else "no run has ended yet")


def time_left(seconds: float | None) -> str:
    """The time left in words; nothing before it is known."""
    return "" if seconds is None else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s left"
