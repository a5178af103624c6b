"""The bar of a long sweep: runs done, running, failed, and the time left; on standard error, for people.

Where standard error is a file or a pipe, a bar would be noise: a line from time to time says the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from sojourn.pipeline.progress import Listener, Progress

LINE_EVERY_S = 30.0


@contextmanager
def sweep_bar(console: Console) -> Iterator[Listener]:
    """Show a bar, or a line now and then, while the block runs; what it yields moves it."""
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}/{task.fields[all]} runs"),
        TextColumn("{task.fields[running]} running, {task.fields[failed]} failed"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("simulating", total=1.0, done=0, all="?", running=0, failed=0, left="")

        def listener(now: Progress) -> None:
            bar.update(
                task,
                completed=now.share,
                done=now.done,
                all=now.total,
                running=now.running,
                failed=now.failed,
                left=time_left(now.left_s),
            )

        yield listener


def _lines(console: Console) -> Listener:
    """A listener that writes a line every half minute."""
    written_s = 0.0

    def listener(now: Progress) -> None:
        nonlocal written_s
        if now.elapsed_s - written_s < LINE_EVERY_S:
            return
        written_s = now.elapsed_s
        console.print(
            f"{now.done}/{now.total} runs, {now.running} running, {now.failed} failed, "
            f"after {now.elapsed_s / 60:.1f} min; {time_left(now.left_s) or 'no run has ended yet'}",
            highlight=False,
            soft_wrap=True,
        )

    return listener


def time_left(seconds: float | None) -> str:
    """The time left in words; nothing before it is known."""
    return "" if seconds is None else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s left"
