import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from tests.pipeline.random_traces import audit_by_hand, random_trace
from typer.testing import CliRunner

from sojourn.cli.audit import AuditError, audit
from sojourn.cli.following import FollowError
from sojourn.pipeline.places import NoTraceError
from sojourn.trace import SegmentWriter

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
        (["--checkpoint", "x"], AuditError),
        (["--follow", "--by", "client"], AuditError),
        (["--follow"], FollowError),
    ):
        with pytest.raises(error):
            CliRunner().invoke(_APP, [str(tmp_path), *arguments], catch_exceptions=False)


def _followed(arguments: list[str], out: Path) -> "subprocess.Popen[str]":
    with out.open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "sojourn.cli.main", "audit", *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.mark.timeout(900)  # half a minute alone, minutes on a machine that others use too
@pytest.mark.slow
def test_follow_ends_tidily_and_goes_on_where_it_was(tmp_path: Path) -> None:
    """Ctrl-C is no error; the same command takes it up again, ends with the run, and has counted all."""
    trace, root = random_trace("r1", 4), tmp_path / "trace"
    checkpoint, lines = tmp_path / "kept", tmp_path / "lines"
    command = [str(root), "--follow", "--json", "--every-s", "0.2", "--checkpoint", str(checkpoint), *_MASTER]
    writer = SegmentWriter(root, "r1")
    for table in ("clients", "interests", "handoffs", "publications", "deliveries"):
        for row in trace.rows[table]:
            writer.add(table, *row)
    writer.seal()
    following = _followed(command, lines)
    deadline = time.monotonic() + 300
    while not lines.read_text():
        assert following.poll() is None, following.communicate()[1]
        assert time.monotonic() < deadline, "waited in vain for a window"
        time.sleep(0.1)
    following.send_signal(signal.SIGINT)
    complaints = following.communicate(timeout=120)[1]
    assert following.returncode == 0, complaints
    assert complaints.startswith("Interrupted; the same command goes on where it stopped"), complaints
    assert "Traceback" not in complaints

    writer.add("runs", *trace.rows["runs"][0])
    writer.seal()
    again = _followed(command, lines)
    complaints = again.communicate(timeout=300)[1]
    assert (again.returncode, complaints.splitlines()[-1][:22]) == (0, "The run r1 has ended; ")
    windows = {row["window_s"]: row for row in map(json.loads, lines.read_text().splitlines())}
    by_hand = audit_by_hand(trace)
    for name in ("expected", "lost", "duplicated", "out_of_order", "unauthorised"):
        assert sum(row[name] for row in windows.values()) == by_hand[name], name
    assert sum(row["handoffs"] for row in windows.values()) == 12

    other = _followed([*command, "--window-s", "30"], lines)
    assert "was begun with window_s 60.0, not 30.0" in other.communicate(timeout=120)[1].replace("\n", " ")
    assert other.returncode == 2
