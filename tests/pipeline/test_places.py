"""A trace at an address is read as one in a folder is, and what is wrong with an address is one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from sojourn.cli.main import app
from sojourn.pipeline.places import NoTraceError
from sojourn.pipeline.tables import open_trace
from sojourn.sim.recorder import Recorder
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.world import RoamingWorld
from sojourn.trace import write_run
from sojourn.trace.places import PlaceError, RemotePath, below, local, place
from tests.pipeline.places_driver import judged
from tests.pipeline.random_traces import random_trace

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A store that speaks S3, on loopback, with an empty bucket; its address but for the folder."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}
    before = {name: os.environ.get(name) for name in keys}
    os.environ.update(keys)
    query = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    files, _ = fs.FileSystem.from_uri(f"s3://traces?{query}&allow_bucket_creation=true")
    files.create_dir("traces")
    yield query
    server.stop()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


def put(folder: Path, query: str, name: str) -> str:
    """Copy a trace to the bucket; return its address."""
    files, at = fs.FileSystem.from_uri(f"s3://traces/{name}?{query}")
    for path in folder.rglob("*"):
        if path.is_file():
            with files.open_output_stream(f"{at}/{path.relative_to(folder)}") as out:
                out.write(path.read_bytes())
    return f"s3://traces/{name}?{query}"


@pytest.mark.slow
def test_what_spark_finds_at_an_address_is_what_it_finds_in_the_folder(
    spark: SparkSession, tmp_path: Path, bucket: str
) -> None:
    """Every number of an audit, of a plan and of what is learnt, with the keys in the environment."""
    random_trace("r5", 5).write(tmp_path / "random")
    recorder = Recorder("roaming")
    changes = {"subscribers": 20, "warmup_s": 10.0, "duration_s": 60.0, "connect_s": 8.0, "sleep_s": 0.2}
    RoamingWorld(
        RoamingScenario(**changes, message_cost_ms=1.0),  # type: ignore[arg-type]  # whatever a case names
        recorder=recorder,
    ).run()
    write_run(tmp_path / "roaming", "roaming", recorder.tables)
    folders = [str(tmp_path / name) for name in ("random", "roaming")]
    addresses = [put(tmp_path / name, bucket, name) for name in ("random", "roaming")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.places_driver", *addresses],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    here = json.loads(json.dumps(judged(spark, *folders)))
    assert json.loads(done.stdout.splitlines()[-1]) == here
    assert here["audit"][0]["deliveries"] > 0
    assert here["learnt"]["edges"]


def test_a_damaged_file_at_an_address_is_named(tmp_path: Path, bucket: str) -> None:
    """As one in a folder is; a missing segment too."""
    random_trace("r6", 6).write(tmp_path)
    victim = next(iter((tmp_path / "deliveries").rglob("*.parquet")))
    victim.write_bytes(victim.read_bytes()[:-20])
    found, here = (open_trace(where) for where in (put(tmp_path, bucket, "damaged"), tmp_path))
    assert [problem.sentence for problem in found.problems] == [problem.sentence for problem in here.problems]
    assert "cut short" in found.problems[0].sentence


def test_an_address_has_the_methods_that_readers_use(tmp_path: Path, bucket: str) -> None:
    """The same answers as a folder with the same files."""
    for name in ("a/run_id=1/x.json", "a/run_id=2/y.json", "a/run_id=2/z.txt", "b.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"[{len(name)}]")
    there, here = place(put(tmp_path, bucket, "files")), place(str(tmp_path))
    assert isinstance(there, RemotePath)
    for root in (there, here):
        found = below(root / "a", "run_id=*/*.json")
        assert [(one.name, one.stem, one.parent.name, one.stat().st_size) for one in found] == [
            ("x.json", "x", "run_id=1", 4),
            ("y.json", "y", "run_id=2", 4),
        ]
        assert json.loads(found[0].read_text()) == [17]
        assert (root / "a").is_dir()
        assert not (root / "a").is_file()
        assert (root / "b.json").is_file()
        assert not (root / "nothing").is_dir()
        assert below(root / "nothing", "*") == []
    assert place(str(there / "a")) == there / "a", "an address can be sent to a task as a text"


def test_what_is_wrong_with_an_address_is_one_sentence(tmp_path: Path, bucket: str) -> None:
    """Who sees it knows what to do."""
    assert place(tmp_path.as_uri() + "/with%20space") == tmp_path / "with space"
    for address, sentence in (
        ("ftp://host/x", "ftp:// cannot be used here"),
        ("hdfs://127.0.0.1:1/x", "hdfs:// cannot be used here"),
        ("file://elsewhere/x", "is on elsewhere"),
        (f"s3://key:secret@traces/x?{bucket}", "ends up in logs"),
    ):
        with pytest.raises(PlaceError, match=sentence) as refused:
            place(address)
        assert "\n" not in str(refused.value)
        assert "secret" not in str(refused.value)
    with pytest.raises(NoTraceError, match="is not there"):
        open_trace(f"s3://traces/none?{bucket}")
    with pytest.raises(PlaceError, match="needs a folder of this machine"):
        local(f"s3://traces/none?{bucket}", "--follow")
    refusal = CliRunner().invoke(app, ["audit", f"s3://traces/none?{bucket}", "--follow"])
    assert "--follow needs a folder of this machine" in str(refusal.exception)
