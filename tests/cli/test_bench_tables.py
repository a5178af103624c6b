"""The tables of benchmarks on a narrow terminal, what is said beside them, and what is not installed."""

import importlib.util
import json
import platform
from typing import Any

import pytest
from typer.testing import CliRunner

from sojourn.cli import bench
from sojourn.cli.bench import _show
from sojourn.cli.bench_live import BenchError
from sojourn.cli.main import app


def test_no_figure_is_cut_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than fit beside one another come in several tables."""
    monkeypatch.setenv("COLUMNS", "80")
    rows = [{"row": f"{100 * number} nodes, b-gpsr-map", "seconds": number + 0.25} for number in range(1, 15)]
    _show("manet", rows)
    printed = capsys.readouterr().out
    assert all(str(row["row"]) in printed for row in rows)
    assert "\u2026" not in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_a_benchmark_that_is_not_installed_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel has no benchmarks beside peers: one sentence, and the way to them."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    result = CliRunner().invoke(app, ["bench", "live"])
    assert result.exit_code != 0
    assert "`sojourn bench live` is part of the sources" in str(result.exception)
    assert "clone the repository" in str(result.exception)


def test_all_benchmarks_go_on_when_one_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could be measured is printed, after what it was measured on; the rest is named at the end."""

    def measure(name: str, title: str, given: dict[str, Any]) -> list[dict[str, Any]]:
        assert title.endswith(f"of {len(bench.BENCHMARKS)})")
        assert given.keys() <= {"path"}
        if name == "network":
            raise BenchError("There is no Mosquitto.")
        return [{"row": name, "ratio": 1.5}]

    monkeypatch.setattr(bench, "_measure", measure)
    with pytest.raises(bench.BenchmarksFailedError, match="network: There is no Mosquitto"):
        bench.bench("all")
    printed = capsys.readouterr().out
    assert printed.startswith("On ")
    assert all(f"bench {name}:" in printed for name in bench.BENCHMARKS if name != "network")
    assert "bench network:" not in printed


def test_a_benchmark_says_what_it_was_measured_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a program reads it."""
    monkeypatch.setattr(bench, "_measure", lambda *_: [{"ratio": 1.5}])
    bench.bench("live", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["machine"]["cores"] >= 1
    assert told["machine"]["python"] == platform.python_version()
    assert told["rows"] == [{"ratio": 1.5}]
