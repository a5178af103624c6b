import json
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from tests.pipeline.random_traces import audit_by_hand, random_trace
from typer.testing import CliRunner

from sojourn.cli.audit import AuditError, audit
from sojourn.pipeline.tables import NoTraceError

_APP = typer.Typer()
_APP.command()(audit)
_MASTER = ("--master", "local[2]")


def test_json_holds_the_totals_and_the_sentences(spark: SparkSession, tmp_path: Path) -> None:
    """Standard output is one object; a refused run is in it and makes the exit code 1."""
    good, bad = random_trace("good", 1, 40), random_trace("bad", 2, 40)
    good.write(tmp_path)
    bad.write(tmp_path)
    cut = next((tmp_path / "deliveries" / "run_id=bad").iterdir())
    cut.write_bytes(cut.read_bytes()[:100])
    ran = CliRunner().invoke(_APP, [str(tmp_path), "--json", "--by", "broker", *_MASTER])
    assert ran.exit_code == 1
    told = json.loads(ran.stdout)
    by_hand = audit_by_hand(good)
    assert [{name: run[name] for name in by_hand} for run in told["runs"]] == [by_hand]
    assert {row["broker"] for row in told["brokers"]} >= {"b1"}
    assert [(problem["run_id"], problem["refused"]) for problem in told["problems"]] == [("bad", True)]
    assert "bad: deliveries/run_id=bad/" in ran.stderr
    assert "is cut short" in ran.stderr


def test_without_json_there_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """A table names each measure that is not zero."""
    random_trace("r1", 1, 40).write(tmp_path)
    ran = CliRunner().invoke(_APP, [str(tmp_path), *_MASTER])
    assert ran.exit_code == 0
    assert "out_of_order" in ran.stdout
    assert "latency_p99_s" in ran.stdout


def test_what_cannot_be_asked_is_a_sentence(tmp_path: Path) -> None:
    """A wrong option or directory is refused before anything starts."""
    for arguments, error in (
        (["--by", "colour"], AuditError),
        (["--window-s", "0"], AuditError),
        ([*_MASTER], NoTraceError),
    ):
        with pytest.raises(error):
            CliRunner().invoke(_APP, [str(tmp_path), *arguments], catch_exceptions=False)
