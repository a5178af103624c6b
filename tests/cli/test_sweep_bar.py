"""What is said of a sweep whose output goes to a file."""

import io

from rich.console import Console

from sojourn.cli.sweep_bar import sweep_bar
from sojourn.pipeline.progress import Progress


def test_a_log_gets_a_line_every_half_minute() -> None:
    """Not one a report, which come twice a second."""
    out = io.StringIO()
    with sweep_bar(Console(file=out, width=60)) as listener:
        for half_seconds in range(140):
            elapsed_s = half_seconds / 2
            listener(Progress(595, half_seconds, 2, 1, elapsed_s / 300, elapsed_s))
    assert out.getvalue().splitlines() == [
        "60/595 runs, 2 running, 1 failed, after 0.5 min; 4 min 30 s left",
        "120/595 runs, 2 running, 1 failed, after 1.0 min; 4 min 00 s left",
    ]
