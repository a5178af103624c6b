"""Brokers that are killed, stopped for a while, or have a full disk: nothing promised is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sojourn.live.client.client import Client
from sojourn.live.client.link import RefusedError
from sojourn.live.config import Config
from tests.live.building import as_toml, building, url
from tests.live.raw_client import BrokerProcess


class Building:
    """Six broker processes with stores."""

    def __init__(self, folder: Path) -> None:
        self.config: Config = building(stores=str(folder))
        self.path = folder / "building.toml"
        self.path.write_text(as_toml(self.config))
        with ThreadPoolExecutor(6) as pool:
            self.brokers = list(pool.map(self._start, range(6)))

    def _start(self, number: int) -> BrokerProcess:
        return BrokerProcess(str(self.path), "--broker", f"B{number + 1}")

    def kill(self, number: int) -> None:
        """End a broker without grace."""
        self.brokers[number].process.kill()
        self.brokers[number].process.wait()

    def restart(self, number: int) -> None:
        """Start a broker again from its store."""
        errors = self.brokers[number].process.stderr
        assert errors is not None
        errors.close()
        self.brokers[number] = self._start(number)

    def stop(self) -> None:
        """Stop them all."""
        for broker in self.brokers:
            broker.process.kill()
            broker.process.wait()
            assert broker.process.stderr is not None
            broker.process.stderr.close()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Building]:
    """A building whose brokers run."""
    running = Building(tmp_path_factory.mktemp("building"))
    yield running
    running.stop()


async def _read(client: Client, got: list[int]) -> None:
    async for event in client:
        got.append(event.attributes["n"])  # noqa: PERF401 - others look at the list meanwhile


async def _publish(client: Client, topic: str, promised: list[int], until: asyncio.Event) -> None:
    number = 0
    while not until.is_set():
        await client.publish(topic, {"n": number}, qos=1)
        promised.append(number)
        number += 1
        await asyncio.sleep(0.01)


def _under_load(brokers: Building, name: str, trouble: list[tuple[str, int]]) -> None:
    """Publish all the time while brokers get into trouble; every reader gets what was promised, in order."""

    async def scenario() -> None:
        config = brokers.config
        got: list[list[int]] = [[] for _ in range(6)]
        readers = [Client(url(config, number), client_id=f"{name}-{number}") for number in range(6)]
        for reader in readers:
            await reader.connect()
            await reader.subscribe(topic=name)
        reading = [asyncio.create_task(_read(reader, got[n])) for n, reader in enumerate(readers)]
        source = Client(url(config, 2), client_id=f"{name}-source")
        await source.connect()
        await asyncio.sleep(0.5)
        promised: list[int] = []
        until = asyncio.Event()
        publishing = asyncio.create_task(_publish(source, name, promised, until))
        loop = asyncio.get_running_loop()
        for what, number in trouble:
            await asyncio.sleep(0.4)
            if what == "kill":
                brokers.kill(number)
                await asyncio.sleep(0.3)
                await loop.run_in_executor(None, brokers.restart, number)
            else:
                os.kill(brokers.brokers[number].process.pid, signal.SIGSTOP)
                await asyncio.sleep(3.0)
                os.kill(brokers.brokers[number].process.pid, signal.SIGCONT)
        await asyncio.sleep(0.5)
        until.set()
        await publishing
        for _ in range(600):
            if all(len(events) >= len(promised) for events in got):
                break
            await asyncio.sleep(0.05)
        for number, events in enumerate(got):
            assert events == promised, f"reader {number}: {len(events)} of {len(promised)}"
        assert len(promised) > 100
        for client in [*readers, source]:
            await client.close()
        for task in reading:
            await task

    asyncio.run(asyncio.wait_for(scenario(), 120))


def test_killing_each_broker_in_turn_loses_no_acknowledged_event(brokers: Building) -> None:
    """Six kills without grace under load; the readers' own broker among them, and the publisher's."""
    _under_load(brokers, "kills", [("kill", number) for number in range(6)])


def test_a_broker_that_stands_still_for_a_while_loses_nothing(brokers: Building) -> None:
    """A partition: the process is stopped, and goes on."""
    _under_load(brokers, "stops", [("stop", 1), ("stop", 2)])


def _fill(path: Path) -> None:
    """Write until there is no room."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(b"x" * 65_536):
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk needs a mount, and a mount needs root")
def test_a_full_disk_refuses_promises_and_goes_on_serving() -> None:
    """QoS 1 is refused with a reason, QoS 0 still flows, and with room again all is well."""
    disk = Path(tempfile.mkdtemp())
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=14m", "tmpfs", str(disk)]
    if mount is None or subprocess.run(command, check=False, capture_output=True).returncode:
        shutil.rmtree(disk)
        pytest.skip("this machine lets nobody mount a small disk")
    config = disk / "one.toml"
    config.write_text(f'[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\nstore = "{disk}/b1.db"\n')
    broker = BrokerProcess(str(config))
    filler = disk / "filler"

    async def scenario() -> None:
        address = f"mqtt://127.0.0.1:{broker.port}"
        async with Client(address) as writer, Client(address) as reader:
            await reader.subscribe()
            await writer.publish("t", b"before")
            _fill(filler)
            kept = 1
            refusal = ""
            while not refusal and kept < 400:
                try:
                    await writer.publish("t", b"y" * 40_000)
                    kept += 1
                except RefusedError as error:
                    refusal = str(error)
            assert "store is full" in refusal
            await writer.publish("t", b"volatile", qos=0)
            got = [await reader.next(5) for _ in range(kept + 1)]
            assert got[-1].payload == b"volatile"
            filler.unlink()
            for _ in range(100):
                try:
                    await writer.publish("t", b"after")
                    break
                except RefusedError:
                    await asyncio.sleep(0.1)
            assert (await reader.next(5)).payload == b"after"

    try:
        asyncio.run(asyncio.wait_for(scenario(), 60))
    finally:
        broker.stop()
        subprocess.run([str(shutil.which("umount")), str(disk)], check=False)
        shutil.rmtree(disk, ignore_errors=True)
