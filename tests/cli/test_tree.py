"""`sojourn tree`: a layout in, a tree out, and one sentence for whatever cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from sojourn.cli.tree import tree
from sojourn.errors import SojournError

APP = typer.Typer()
APP.command()(tree)

ROOT = {"x": 0, "y": 0}
ONE, OTHER = {"x": 50, "y": 0, "interval": [3, 4]}, {"x": 90, "y": 0, "interval": [3.5, 9]}


def _run(folder: Path, given: Any, *options: str) -> str:
    path = folder / "layout.json"
    path.write_text(given if isinstance(given, str) else json.dumps(given))
    result = CliRunner().invoke(APP, [str(path), *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


@pytest.mark.parametrize("metric", ["combo", "nhop", "cool"])
def test_a_tree_and_its_optimum(tmp_path: Path, metric: str) -> None:
    """The overhead of a chain is printed, and proved to be the best there is."""
    text = _run(tmp_path, {"range_m": 60, "nodes": [ROOT, ONE, OTHER]}, f"--metric={metric}")
    # The root forwards 6 units it does not want; node 1 forwards 5.5, half a unit of which it wants.
    assert "overhead 22.5" in text
    assert "22.5 is the optimum, proved." in text


def test_several_publishers(tmp_path: Path) -> None:
    """A node's own events cost what the chain takes: over the shared tree they climb to the root as well."""
    text = " ".join(_run(tmp_path, {"range_m": 60, "nodes": [ROOT, ONE, OTHER]}, "--publisher=2").split())
    # Node 2 says all 6 units upwards and wants 5.5 of them, node 1 passes all on and wants 1, the root hears
    # 6 for nothing: 6.5 + 11 + 6. Over its own tree only the unit that node 1 wants goes out: 1, and 0.5 that
    # node 2 does not want itself.
    assert "Node 2 publishing the same events: overhead 23.5 over this tree" in text
    assert "; 1.5 over a tree of its own." in text


def test_topics(tmp_path: Path) -> None:
    """A topic stands for its leaves."""
    nodes = [ROOT, {"x": 5, "y": 0, "topic": "news"}]
    given = {"range_m": 60, "topics": {"names": ["sports", "news", "art"], "levels": 2}, "nodes": nodes}
    assert "overhead 6 " in _run(tmp_path, given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"range_m": 30, "nodes": [ROOT, ONE]}, "the layout is not connected"),
        ({"range_m": 0, "nodes": [ROOT, ONE]}, "range_m must be above 0"),
        ({"range_m": 60, "nodes": [ROOT, {**ONE, "interval": [4, 3]}]}, "4.0 > 3.0; swap them"),
        ({"range_m": 60, "nodes": [ROOT, {"x": 1, "y": 1, "topic": "golf"}]}, "topic 'golf' needs the names"),
        (
            {
                "range_m": 60,
                "topics": {"names": ["art"], "levels": 1},
                "nodes": [ROOT, {"x": 1, "y": 1, "topic": "golf"}],
            },
            "topic 'golf' is unknown",
        ),
        ({"range_m": 60, "nodes": [ROOT, {**ONE, "topic": "art"}]}, "an interval or a topic, not both"),
        ({"range_m": 60, "nodes": []}, "at least one node"),
        ({"range_m": 60}, "missing required field `nodes`"),
        ("{", "is not as it should be"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, given: Any, sentence: str) -> None:
    """Each mistake is named."""
    with pytest.raises(SojournError, match=sentence.replace("(", r"\(")) as raised:
        _run(tmp_path, given)
    assert "\n" not in str(raised.value)


def test_no_file_and_no_metric(tmp_path: Path) -> None:
    """A file that is not there and a metric that does not exist are named."""
    with pytest.raises(SojournError, match="cannot be read: No such file"):
        tree(tmp_path / "none.json")
    with pytest.raises(SojournError, match="publisher must be a node between 1 and 1, not 2"):
        _run(tmp_path, {"range_m": 60, "nodes": [ROOT, ONE]}, "--publisher=2")
    with pytest.raises(SojournError, match="publisher goes with any metric but cool"):
        _run(tmp_path, {"range_m": 60, "nodes": [ROOT, ONE]}, "--publisher=1", "--metric=cool")
    with pytest.raises(SojournError, match="metric may be"):
        _run(tmp_path, {"range_m": 60, "nodes": [ROOT, ONE]}, "--metric=best")
