"""Live brokers of which one is killed with SIGKILL: what was only not sealed is held against nobody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from sojourn.live.client.client import Client
from sojourn.pipeline.audit_job import audit_trace
from sojourn.pipeline.derived_job import make_tables
from sojourn.trace.lives import life_path, read_life
from sojourn.trace.manifests import manifest_path
from tests.live.building import as_toml, building, url
from tests.live.raw_client import BrokerProcess

pytestmark = pytest.mark.timeout(600)

WAIT_S = 60.0


class Traced:
    """Three brokers in a row, processes with stores and one trace."""

    def __init__(self, folder: Path) -> None:
        whole = building(stores=str(folder))
        links = [("B1", "B2"), ("B2", "B3")]
        self.config = msgspec.structs.replace(whole, brokers=whole.brokers[:3], links=links)
        self.trace = folder / "trace"
        self.path = folder / "row.toml"
        self.path.write_text(as_toml(self.config) + f'[trace]\nfolder = "{self.trace}"\nrun = "r1"\n')
        with ThreadPoolExecutor(3) as pool:
            self.brokers = list(pool.map(self._start, range(3)))

    def _start(self, number: int) -> BrokerProcess:
        return BrokerProcess(str(self.path), "--broker", f"B{number + 1}")

    def again(self, number: int) -> None:
        """Kill a broker, and start it again from its store."""
        before = self.brokers[number].process
        before.kill()
        before.wait()
        assert before.stderr is not None
        before.stderr.close()
        self.brokers[number] = self._start(number)

    def sealed_s(self, number: int) -> float:
        """Until when all of a broker is sealed."""
        life = read_life(life_path(manifest_path(self.trace, "r1", f"B{number + 1}")))
        assert life is not None
        return life.sealed_s


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Traced]:
    """A network that is stopped in the end, by the test or after it."""
    running = Traced(tmp_path)
    yield running
    for broker in running.brokers:
        if broker.process.poll() is None:
            broker.stop()


async def _read(reader: Client, got: set[int]) -> None:
    async for event in reader:
        got.add(event.attributes["n"])


async def _publish(source: Client, first: int, until: asyncio.Event) -> int:
    number = first
    while not until.is_set():
        await source.publish("news", {"n": number}, qos=1)
        number += 2
        await asyncio.sleep(0.02)
    return number


async def _under_load(network: Traced) -> None:
    """Kill the middle broker a while after a seal; all readers get all events all the same."""
    loop = asyncio.get_running_loop()
    readers = [Client(url(network.config, n), client_id=f"reader-{n}") for n in range(3)]
    sources = [Client(url(network.config, n), client_id=f"source-{n}") for n in (1, 2)]
    got: list[set[int]] = [set() for _ in readers]
    for client in (*readers, *sources):
        await client.connect()
    for reader in readers:
        await reader.subscribe(topic="news")
    reading = [asyncio.create_task(_read(reader, got[n])) for n, reader in enumerate(readers)]
    until = asyncio.Event()
    publishing = [asyncio.create_task(_publish(source, n, until)) for n, source in enumerate(sources)]
    before_s, deadline = network.sealed_s(1), time.monotonic() + WAIT_S
    while network.sealed_s(1) < before_s + 1.0:
        assert time.monotonic() < deadline, "waited in vain for a seal"
        await asyncio.sleep(0.05)
    await asyncio.sleep(1.5)
    await loop.run_in_executor(None, network.again, 1)
    await asyncio.sleep(1.0)
    until.set()
    ends = [await one for one in publishing]
    promised = {n for first, end in enumerate(ends) for n in range(first, end, 2)}
    while not all(promised <= events for events in got):
        assert time.monotonic() < deadline + WAIT_S, [len(promised - events) for events in got]
        await asyncio.sleep(0.05)
    for client in (*readers, *sources):
        await client.close()
    for one in reading:
        await one


def test_what_a_killed_broker_had_not_sealed_is_no_loss_and_no_leak(
    spark: SparkSession, network: Traced, tmp_path: Path
) -> None:
    """Every reader has every event; so says the audit, and what of it nobody wrote down."""
    asyncio.run(asyncio.wait_for(_under_load(network), 200))
    for broker in reversed(network.brokers):
        broker.stop()
    report = audit_trace(spark, network.trace)
    (run,) = report.runs
    assert (run["lost"], run["unauthorised"]) == (0, 0)
    assert run["unrecorded_deliveries"] > 20
    assert run["unrecorded_publications"] > 20
    (said,) = [problem.sentence for problem in report.problems if "without writing down" in problem.sentence]
    assert said.startswith("B2 ended once without writing down what it noted last: up to ")
    made = make_tables(spark, str(network.trace), tmp_path / "tables")
    assert (made.new, made.faults) == (["r1"], [])
