"""What long commands say in a file or a pipe."""

from __future__ import annotations

import io
import itertools
import threading
import time

import pytest
from rich.console import Console

from sojourn.cli import heartbeat as module
from sojourn.cli.heartbeat import EVERY_S, LATER_EVERY_S, LONG_S, SOON_S, Beats, heartbeat, working


def lines_of(beats: Beats, until_s: int, tell: dict[int, tuple[str, str]]) -> dict[int, str]:
    """By second: the lines that are due while things are told."""
    found = {}
    for now_s in range(until_s):
        if now_s in tell:
            beats.tell(*tell[now_s], now_s)
        line = beats.line(now_s)
        if line is not None:
            found[now_s] = line
    return found


def test_a_stage_is_told_when_it_has_lasted_two_seconds_and_then_every_ten() -> None:
    """With how far it is; a short one is not worth a line, and a new one is told soon."""
    told = {
        0: ("opening", ""),
        1: ("walking", ""),
        9: ("walking", "40 moves"),
        20: ("walking", "90 moves"),
        24: ("stopping", ""),
    }
    assert lines_of(Beats(0), 40, told) == {
        3: "walking (2 s)",
        13: "walking: 40 moves (12 s)",
        23: "walking: 90 moves (22 s)",
        26: "stopping (2 s)",
        36: "stopping (12 s)",
    }


def test_many_short_stages_are_not_silent() -> None:
    """A stage a second: something is said as often as in a long one."""
    seconds = {second: (f"part {second}", "") for second in range(60)}
    said = sorted(lines_of(Beats(0), 60, seconds))
    assert said[0] <= EVERY_S
    assert max(after - before for before, after in itertools.pairwise(said)) <= EVERY_S


def test_hours_are_not_told_every_ten_seconds() -> None:
    """After ten minutes a line a minute is enough."""
    said = sorted(lines_of(Beats(0), int(LONG_S) + 600, {0: ("checking", "")}))
    assert said[1] - said[0] == EVERY_S
    assert said[-1] - said[-2] == LATER_EVERY_S
    assert said[0] == SOON_S


def test_nothing_is_said_before_there_is_a_stage() -> None:
    """Whoever has told nothing has nothing to say."""
    assert lines_of(Beats(0), 60, {}) == {}


def test_lines_come_while_the_command_itself_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread writes them; on a terminal there are none."""
    monkeypatch.setattr(module, "SOON_S", 0.0)
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    threads = threading.active_count()
    for is_terminal in (False, True):
        out = io.StringIO()
        console = Console(file=out, force_terminal=is_terminal, width=200)
        with heartbeat(console, "starting [Spark]"):
            until_s = time.monotonic() + 30
            while not is_terminal and out.getvalue().count("\n") < 3 and time.monotonic() < until_s:
                time.sleep(0.01)
        assert out.getvalue().startswith("" if is_terminal else "starting [Spark] (0 s)\n")
        assert (out.getvalue() == "") is is_terminal
    assert threading.active_count() == threads


def test_work_of_unknown_length_is_shown_on_a_terminal_too() -> None:
    """As a line that moves."""
    out = io.StringIO()
    with working(Console(file=out, force_terminal=True, width=80), "looking") as tell:
        tell("7 found")
        time.sleep(0.2)
    assert "looking" in out.getvalue()
