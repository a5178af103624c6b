"""A real standalone cluster on loopback gives what one machine gives, even when it loses an executor."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyspark
import pytest

from sojourn.pipeline.java import find_java
from tests.pipeline.random_traces import audit_by_hand, random_trace

pytestmark = pytest.mark.timeout(3000)  # seconds alone, minutes on a machine that others use too

HERE = Path(__file__).parent
DEPLOY = "org.apache.spark.deploy"
START_S_MAX = 90.0
DRIVER_S_MAX = 900.0


class Cluster(NamedTuple):
    """A master and two workers of one core."""

    url: str
    workers: list[int]
    """Their process ids."""

    def executors(self) -> list[int]:
        """The process ids of all executors that the workers have started."""
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                command = (folder / "cmdline").read_bytes()
            except (OSError, ValueError):  # it ended while we looked
                continue
            if parent in self.workers and b"CoarseGrainedExecutorBackend" in command:
                found.append(int(folder.name))
        return found


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "JAVA_HOME": str(find_java()),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
    }


def _wait_until(true: Callable[[], bool], what: str, seconds: float = START_S_MAX) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One master and two workers, killed at the end whatever happened."""
    folder = tmp_path_factory.mktemp("cluster")
    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    processes: list[subprocess.Popen[bytes]] = []

    def start(log: str, *arguments: str) -> None:
        with (folder / log).open("wb") as output:
            processes.append(
                subprocess.Popen(
                    [spark_class, *arguments, "--host", "127.0.0.1", "--webui-port", "0"],
                    env=_environment(),
                    stdout=output,
                    stderr=output,
                    cwd=folder,
                )
            )

    def said(log: str, words: str) -> bool:
        assert all(process.poll() is None for process in processes), "a process of the cluster ended"
        return words in (folder / log).read_text()

    try:
        start("master.log", f"{DEPLOY}.master.Master", "--port", "0")
        _wait_until(lambda: said("master.log", "New state: ALIVE"), "the master")
        # It takes any port that is free, and says which.
        found = re.search(r"Starting Spark master at (spark://\S+:\d+)", (folder / "master.log").read_text())
        assert found is not None
        url = found[1]
        for name in ("one", "two"):
            work = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / name)]
            start(f"{name}.log", f"{DEPLOY}.worker.Worker", url, *work)
        for name in ("one", "two"):
            _wait_until(lambda log=f"{name}.log": said(log, "Successfully registered"), "a worker")  # type: ignore[misc]  # mypy infers no default of a lambda
        yield Cluster(url, [process.pid for process in processes[1:]])
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _driver(master: str, store: Path, *what: str) -> "subprocess.Popen[str]":
    """A sweep in a process of its own, since a process has one Spark."""
    return subprocess.Popen(
        [sys.executable, str(HERE / "cluster_driver.py"), master, store.as_uri(), *what],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _answer(driver: "subprocess.Popen[str]") -> list[str]:
    try:
        output, complaints = driver.communicate(timeout=DRIVER_S_MAX)
    finally:
        driver.kill()
    assert driver.returncode == 0, complaints
    return output.splitlines()


@pytest.mark.slow
def test_an_executor_may_die_in_the_middle_of_a_sweep(cluster: Cluster, tmp_path: Path) -> None:
    """The runs it had are run again elsewhere, and the answer is the one that undisturbed runs give."""
    log, store = tmp_path / "log", tmp_path / "store"
    driver = _driver(cluster.url, store, "toy", str(log))
    try:
        # Once a few runs have started, the executor of the latest is surely at work for a second.
        _wait_until(lambda: log.exists() and log.read_text().count("\n") >= 4, "four runs", DRIVER_S_MAX)
        victim = int(log.read_text().split()[-1])
        assert victim in cluster.executors()
        os.kill(victim, signal.SIGKILL)
        rows = _answer(driver)
    finally:
        driver.kill()
    started = [line.split()[0] for line in log.read_text().splitlines()]
    assert len(started) > len(set(started)) == 12, "the killed executor was not running anything"
    *runs, mean = map(json.loads, rows)
    roots = [seed**0.5 for seed in range(12)]
    assert [(run["seed"], run["error"], run["numbers"]) for run in runs] == [
        (seed, None, {"root": root}) for seed, root in enumerate(roots)
    ]
    assert mean["mean"] == sum(roots) / 12


@pytest.mark.slow
def test_a_killed_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """What had finished when the driver was killed is not run again; what had not is."""
    log, store = tmp_path / "log", tmp_path / "store"
    driver = _driver("local[2]", store, "toy", str(log))
    try:
        _wait_until(lambda: log.exists() and log.read_text().count("\n") >= 6, "six runs", DRIVER_S_MAX)
    finally:
        driver.kill()
        driver.communicate()
    kept = len(list(store.glob("*/part-*.parquet")))
    before = log.read_text().count("\n")
    assert 3 <= kept < 12
    rows = _answer(_driver("local[2]", store, "toy", str(log)))
    assert log.read_text().count("\n") - before <= 12 - kept
    assert len(rows) == 12 + 1


@pytest.mark.slow  # minutes: three sessions of Spark, and a cluster
def test_the_same_numbers_on_one_core_two_cores_and_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """Runs of the publisher-mobility study and their means are equal to the last bit."""
    masters = {"one": "local[1]", "two": "local[2]", "cluster": cluster.url}
    answers = {name: _answer(_driver(master, tmp_path / name, "study")) for name, master in masters.items()}
    assert answers["one"] == answers["two"] == answers["cluster"]
    assert len(answers["one"]) > 10
    assert all('"error": null' in row for row in answers["one"] if "run_id" in row)


@pytest.mark.slow  # executors compile the kernels anew, from the package they are sent
def test_an_audit_on_a_cluster_finds_what_trying_everything_finds(cluster: Cluster, tmp_path: Path) -> None:
    """The executors read the trace's files themselves, and have our code and the index from the driver."""
    traces = [random_trace(f"r{seed}", seed) for seed in range(2)]
    for trace in traces:
        trace.write(tmp_path)
    rows = [json.loads(line) for line in _answer(_driver(cluster.url, tmp_path, "audit"))]
    for trace, row in zip(traces, rows, strict=True):
        by_hand = audit_by_hand(trace)
        assert {name: row[name] for name in by_hand} == by_hand


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_the_whole_study_is_the_same_everywhere(cluster: Cluster, tmp_path: Path) -> None:
    """`sojourn reproduce publisher-mobility` writes the same means and the same verdicts on all three."""
    tables, verdicts = [], []
    for name, master in (("one", "local[1]"), ("two", "local[2]"), ("cluster", cluster.url)):
        out = tmp_path / name
        command = [
            sys.executable,
            "-m",
            "sojourn.cli.main",
            "reproduce",
            "publisher-mobility",
            "--scale",
            "smoke",
        ]
        subprocess.run([*command, "--master", master, "--out", str(out)], check=True, capture_output=True)
        tables.append(pd.read_parquet(out / "metrics.parquet"))
        verdicts.append((out / "claims.json").read_bytes())
    assert verdicts[0] == verdicts[1] == verdicts[2]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(tables[0], table, check_exact=True)


def _audit(
    master: str, trace: str, folder: Path, *options: str, **environment: str
) -> "subprocess.Popen[str]":
    """`sojourn audit`, called where the trace's folder is a relative path."""
    return subprocess.Popen(
        [sys.executable, "-m", "sojourn.cli.main", "audit", trace, "--json", "--master", master, *options],
        env={**_environment(), **environment},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_executors_with_nothing_of_ours_are_named_and_can_be_sent_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    """A Python without pyarrow is one sentence; with --ship the audit is that of this machine.

    The trace is named by a relative path, and executors work elsewhere.
    """
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    trace = random_trace("r", 3)
    trace.write(tmp_path / "trace")
    small = ("--conf", "spark.executor.memory=600m", "--conf", "spark.driver.memory=600m")
    there = {"PYSPARK_PYTHON": str(bare / "bin" / "python"), "PYSPARK_DRIVER_PYTHON": sys.executable}
    refused = _audit(cluster.url, "trace", tmp_path, *small, **there)
    _, said = refused.communicate(timeout=DRIVER_S_MAX)
    assert refused.returncode != 0
    assert "lack msgspec, numba, numpy, pandas, pyarrow, sqlglot" in " ".join(said.split())
    sent = _audit(cluster.url, "trace", tmp_path, "--ship", *small, **there)
    told, said = sent.communicate(timeout=DRIVER_S_MAX)
    assert sent.returncode == 0, said[-3000:]
    (run,) = json.loads(told)["runs"]
    expected = audit_by_hand(trace)
    assert {name: run[name] for name in expected} == expected
