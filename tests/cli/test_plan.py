"""`sojourn plan` answers from a simulated run's trace, in words and as JSON."""

import json
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from sojourn.cli.plan import plan
from sojourn.errors import SojournError
from sojourn.mobility.learnt_graph import decode_graph
from sojourn.sim.publishers.world import World
from sojourn.sim.recorder import Recorder
from sojourn.sim.scenario import scenario_from
from sojourn.trace import write_run

APP = typer.Typer()
APP.command()(plan)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fast publishers in a small city whose brokers take time to route."""
    scenario = scenario_from(
        {
            "seed": 1,
            "protocol": "delayed",
            "computations": "fast",
            "tree_height": 2,
            "publishers": 6,
            "subscribers": 20,
            "speeds_kmh": (100.0,),
            "publish_interval_s": 1.0,
            "warmup_s": 10.0,
            "duration_s": 240.0,
        }
    )
    recorder = Recorder("run-1")
    World(scenario, recorder=recorder).run()
    folder = tmp_path_factory.mktemp("trace")
    write_run(folder, "run-1", recorder.tables)
    return folder


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(APP, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_the_answer_in_words_and_the_graph(spark: SparkSession, trace: Path, tmp_path: Path) -> None:
    """A sentence first, then what it rests on; the graph file is what brokers load."""
    text = _run(str(trace), "-k", "5000", "--master", "local[2]", "--graph", str(tmp_path / "graph.json"))
    assert "brokers for 5000 subscribers" in text
    assert "Measured: 26 clients at 5 brokers" in " ".join(text.split())
    graph = decode_graph((tmp_path / "graph.json").read_bytes())
    leaves = {edge.at for edge in graph.edges}
    assert len(leaves) == 4
    # The leaves stand in a row: only the two inner ones have two neighbours.
    assert sorted(len(graph.neighbours(leaf)) for leaf in leaves) == [1, 1, 2, 2]


def test_the_answer_as_json_grows_with_the_subscribers(spark: SparkSession, trace: Path) -> None:
    """Ten times the subscribers need more brokers, and the busy share keeps within the limit."""
    few, many = (
        json.loads(_run(str(trace), "-k", count, "--master", "local[2]", "--json"))["answer"]
        for count in ("2000", "20000")
    )
    assert 1 <= few[0] < many[0]
    assert few[2] <= 0.7
    assert many[2] <= 0.7


def test_a_directory_without_a_trace_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """It names the directory."""
    with pytest.raises(SojournError, match=tmp_path.name):
        _run(str(tmp_path), "-k", "10")
