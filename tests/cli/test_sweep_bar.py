"""What is said of a sweep whose output goes to a file."""

import io

import pytest
from rich.console import Console

from sojourn.cli.heartbeat import Heartbeat
from sojourn.cli.sweep_bar import sweep_bar
from sojourn.pipeline.progress import Progress


def test_a_log_is_told_how_many_runs_there_are_and_how_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, and from time to time; what comes after the last run has a name too."""
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(Heartbeat, "tell", lambda _beat, stage, detail="": told.append((stage, detail)))
    out = io.StringIO()
    with sweep_bar(Console(file=out, width=60)) as listener:
        listener.begin(595, "starting Spark")
        listener(Progress(595, 0, 2, 0, 0.0, 5.0))
        listener(Progress(595, 3, 2, 1, 0.1, 30.0))
        listener(Progress(595, 60, 2, 1, 0.1, 30.0, 270.0))
        listener(Progress(595, 595, 0, 1, 1.0, 300.0))
    assert out.getvalue() == "595 runs; starting Spark\n"
    assert told == [
        ("starting Spark", ""),
        ("simulating", "0/595 runs, 2 running, 0 failed; no run has ended yet"),
        ("simulating", "3/595 runs, 2 running, 1 failed; estimating the time left"),
        ("simulating", "60/595 runs, 2 running, 1 failed; 4 min 30 s left"),
        ("summing up", ""),
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
