"""What is said of a sweep whose output goes to a file."""

import io

from rich.console import Console

from sojourn.cli.sweep_bar import sweep_bar
from sojourn.pipeline.progress import Progress


def test_a_log_gets_a_line_every_half_minute() -> None:
    """Not one a report, which come twice a second."""
    out = io.StringIO()
    with sweep_bar(Console(file=out, width=60)) as listener:
        listener.begin(595, "starting Spark")
        for half_seconds in range(140):
            elapsed_s = half_seconds / 2
            listener(Progress(595, half_seconds, 2, 1, elapsed_s / 300, elapsed_s))
    assert out.getvalue().splitlines() == [
        "595 runs; starting Spark",
        "60/595 runs, 2 running, 1 failed, after 0.5 min; 4 min 30 s left",
        "120/595 runs, 2 running, 1 failed, after 1.0 min; 4 min 00 s left",
    ]


def test_a_bar_knows_its_total_from_the_beginning() -> None:
    """Before Spark has started and the first run has ended."""
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True)
    with sweep_bar(console) as bar:
        bar.begin(595, "starting Spark")
    shown = out.getvalue()
    assert "starting Spark" in shown
    assert "0/595 runs" in shown
    assert "?" not in shown.replace("\x1b[?25", "")
