"""The bar of a long sweep: runs done, running, failed, and the time left; on standard error, for people."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from sojourn.pipeline.progress import Listener, Progress


@contextmanager
def sweep_bar(console: Console) -> Iterator[Listener]:
    """Show a bar while the block runs; what it yields moves it. Nothing is shown where nobody looks."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}/{task.fields[all]} runs"),
        TextColumn("{task.fields[running]} running, {task.fields[failed]} failed"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
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


def time_left(seconds: float | None) -> str:
    """The time left in words; nothing before it is known."""
    return "" if seconds is None else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s left"
