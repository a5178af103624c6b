"""Whatever reports something does so as JSON too, and prints nothing else then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sojourn.cli.commands import COMMANDS, load
from sojourn.cli.main import main

NO_REPORTS = {
    "adhoc": "serves, and keeps status.json in its folder",
    "check replay": "tells of each store in sentences",
    "init": "writes a configuration",
    "join": "writes a configuration, and says what to do next",
    "leave": "says what it waits for, and changes a configuration",
    "password": "prints what belongs into a configuration",
    "pub": "publishes",
    "secret": "writes a secret",
    "serve": "has --status and --log json",
    "tour": "is a tour for people",
}


def commands() -> Iterator[tuple[str, Any]]:
    """All commands, those of groups by both names."""
    for name in COMMANDS:
        found = load(name)
        inner = getattr(found, "commands", None)
        if inner is None:
            yield name, found
        else:
            yield from ((f"{name} {word}", one) for word, one in inner.items())


def test_every_command_that_reports_has_json() -> None:
    """Those that have none say why."""
    without = {name for name, one in commands() if not any("--json" in option.opts for option in one.params)}
    assert without <= set(NO_REPORTS), without - set(NO_REPORTS)


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command prints, read as one JSON value."""
    monkeypatch.setattr("sys.argv", ["sojourn", *arguments, "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def test_filters(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What they mean, and how two relate."""
    found = run(monkeypatch, capsys, "filter", "explain", "n > 1 AND n < 3 OR s = 'x'")
    assert len(found["alternatives"]) == 2
    assert found["alternatives"][1] == {"s": "s = 'x'"}
    found = run(monkeypatch, capsys, "filter", "explain", "n > 1 AND n < 1")
    assert (found["example"], found["alternatives"]) == (None, [])
    found = run(monkeypatch, capsys, "filter", "covers", "n > 1", "n > 2")
    assert (found["covers"], found["covered"], found["merged"]) == (True, False, "n > 1")
    assert found["both_match"]["n"] > 2
    assert run(monkeypatch, capsys, "filter", "covers", "n = 1", "n = 2")["both_match"] is None


def test_trees(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Parents, costs and the optimum, as people are told them."""
    nodes = [
        {"x": 0, "y": 0},
        {"x": 50, "y": 0, "interval": [3, 4]},
        {"x": 90, "y": 0, "interval": [3.5, 9]},
    ]
    path = tmp_path / "layout.json"
    path.write_text(json.dumps({"range_m": 60, "nodes": nodes}))
    found = run(monkeypatch, capsys, "tree", str(path), "--publisher", "2")
    assert found["overhead"] == 22.5
    assert found["optimum"] == {"overhead": 22.5, "proved": True}
    assert [node["parent"] for node in found["nodes"]] == [None, 0, 1]
    assert set(found["publishers"]) == {"2"}


def test_checks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """How much was tried, and what failed: nothing."""
    found = run(monkeypatch, capsys, "check", "handoff", "--seeds", "1", "--seconds", "10")
    assert found["worlds"] == 4
    assert found["failure"] is None
    found = run(monkeypatch, capsys, "check", "election", "--seeds", "2", "--workers", "1")
    assert found == {"histories": 2, "healed": 2, "faults": []}
