"""A broker loads the kernels of the filter index when it has many filters, and not before."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sojourn import Client
from sojourn.interest.index.compiling import cache_folder
from sojourn.interest.matcher import ONE_BY_ONE_MAX
from sojourn.live.brokers.warming import load_index_kernels
from tests.live.raw_client import BrokerProcess, running_broker

LOADED_S = 120.0
"""On a machine that has to compile the kernels first."""


def has_kernels(broker: BrokerProcess) -> bool:
    """Whether the process has loaded what runs them."""
    return "llvmlite" in Path(f"/proc/{broker.process.pid}/maps").read_text()


async def wait_for_kernels(broker: BrokerProcess) -> None:
    """Until the process has loaded them."""
    until = time.monotonic() + LOADED_S
    while not has_kernels(broker):
        assert time.monotonic() < until, "the broker does without the index"
        await asyncio.sleep(0.05)


async def want_much(broker: BrokerProcess) -> Client:
    """Subscribe to so much that it is worth an index; each filter wants one number."""
    client = Client(f"mqtt://127.0.0.1:{broker.port}", client_id="reader")
    await client.connect()
    for number in range(ONE_BY_ONE_MAX + 1):
        await client.subscribe(f"n = {number}", topic=f"+/{number}")
    return client


async def got(client: Client, number: int) -> str:
    """Publish an event that one filter wants, and return what comes."""
    await client.publish(f"t/{number}", {"n": number})
    return (await client.next(timeout_s=30)).topic


@pytest.mark.parametrize("routes", [False, True])
def test_kernels_come_with_many_filters(tmp_path: Path, routes: bool) -> None:
    """While a broker serves, one by one until then; a broker that starts with many filters has them first."""
    text = '[[brokers]]\nname = "B1"\nstore = "B1"\nlisten = "127.0.0.1:0"\n'
    if routes:  # a broker that writes a trace does so even without neighbours
        text += '[trace]\nfolder = "trace"\n'
    (tmp_path / "config.toml").write_text(text)
    arguments = (str(tmp_path / "config.toml"),)

    async def live() -> None:
        with running_broker(*arguments) as broker:
            assert not has_kernels(broker)
            client = await want_much(broker)
            assert await got(client, 3) == "t/3"
            await wait_for_kernels(broker)
            assert await got(client, 4) == "t/4"
            client.vanish()
        with running_broker(*arguments) as broker:
            assert has_kernels(broker), "what it needs it has before it says that it is ready"
            await client.move_to(f"mqtt://127.0.0.1:{broker.port}")
            assert await got(client, 5) == "t/5"
            await client.close()

    asyncio.run(live())


def test_a_broker_has_another_process_compile_the_kernels(tmp_path: Path) -> None:
    """To compile them takes a quarter of a minute of Python, in which a thread would hold up the loop."""
    ask = (
        "import asyncio, numba, sojourn.live.brokers.warming as it\n"
        "asyncio.run(it.compile_aside()); assert it.load_index_kernels()\n"
        "from sojourn.interest.index import compiling\n"
        "print(sum(sum(one.stats.cache_misses.values()) for one in compiling._kernels))\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == "0\n", "kernels that were not found, and compiled here"


def test_several_processes_fill_one_cache() -> None:
    """Who loads the kernels while others do waits for whoever is first, and all end."""
    folder = cache_folder()
    assert folder is not None
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(2) as pool:
        results = [pool.apply_async(load_index_kernels) for _ in range(4)]
        assert [one.get(LOADED_S) for one in results] == [True] * 4
