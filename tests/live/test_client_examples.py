"""The examples in the client's docstrings do what they say, on two real brokers."""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest

import sojourn.live.client.client
import sojourn.live.client.reading
from sojourn import Client, ClientError
from sojourn.live.brokers.server import Server
from sojourn.live.config import Address, BrokerConfig, Config, single_broker
from tests.live.building import ANY_PORT, address, an_address_folder

MODULES = (sojourn.live.client.client, sojourn.live.client.reading)
EXAMPLES = [found for module in MODULES for found in doctest.DocTestFinder().find(module) if found.examples]


def two_brokers() -> Config:
    """B1 and B2, linked."""
    brokers = [BrokerConfig(name=name, listen=ANY_PORT, peers=ANY_PORT) for name in ("B1", "B2")]
    return Config(brokers=brokers, links=[("B1", "B2")], network=an_address_folder())


async def run_example(example: doctest.DocTest, config: Config) -> None:
    """Run one docstring's examples as `python -m asyncio` would."""
    names: dict[str, Any] = {"Client": Client}
    for step in example.examples:
        source = step.source
        for number in (0, 1):
            source = source.replace(f"127.0.0.1:{1883 + number}", address(config, number))
        said = StringIO()
        with redirect_stdout(said):
            # As the interpreter does: "single" prints what an expression, also inside a block, is worth.
            code = compile(source, example.name, "single", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, names)  # noqa: S307 - our own docstring
            if inspect.isawaitable(result):
                async with asyncio.timeout(20):
                    await result
        assert said.getvalue() == step.want, source


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_is_true(example: doctest.DocTest) -> None:
    """What a docstring shows is what happens."""

    async def scenario() -> None:
        config = two_brokers()
        servers = [Server(config, broker.name) for broker in config.brokers]
        for server in servers:
            await server.start()
        await run_example(example, config)
        await asyncio.gather(*(server.stop() for server in servers))

    asyncio.run(scenario())


def test_there_are_examples() -> None:
    """Connecting, moving, reading, publishing and advertising are all shown."""
    shown = {example.name.rpartition(".")[2] for example in EXAMPLES}
    assert {"Client", "__aiter__", "publish", "advertise"} <= shown


def test_the_client_loads_neither_spark_nor_compilers() -> None:
    """`from sojourn import Client` is quick: a script on a small machine must not load the simulator."""
    code = (
        "import sys; from sojourn import Client; "
        "print(sorted({name.split('.')[0] for name in sys.modules} & "
        "{'pyspark', 'numba', 'numpy', 'pandas', 'pyarrow', 'scipy', 'plotly', 'typer'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_the_root_has_no_other_names() -> None:
    """What is not there is an AttributeError, as with any module."""
    with pytest.raises(AttributeError, match="no attribute 'Broker'"):
        sojourn.Broker  # noqa: B018 - asking is what is tested


def test_who_is_not_connected_is_told_so() -> None:
    """Publishing before `connect` or after `close` is an error, not a wait without end."""

    async def scenario() -> None:
        server = Server(single_broker(Address("127.0.0.1", 0)), "B1")
        client = Client(f"mqtt://{await server.start()}")
        for qos in (0, 1):
            with pytest.raises(ClientError, match="not connected"):
                await client.publish("x", qos=qos)
        async with client:
            await client.publish("x")
        for qos in (0, 1):
            with pytest.raises(ClientError, match="closed"):
                await client.publish("x", qos=qos)
        with pytest.raises(ClientError, match="closed"):
            await client.subscribe(topic="x")
        await client.connect()
        await client.publish("x")
        await client.close()
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 30))
