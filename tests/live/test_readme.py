"""The programs in the README run, and print what stands beside each line that prints."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from sojourn.live.brokers.server import Server
from tests.live.building import address, building

README = Path(__file__).parent.parent.parent / "README.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
FIRST_PORT = 1883
"""That of B1 in the building of the README."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.split()[1])
def test_a_program_prints_what_it_says(program: str) -> None:
    """As a process of its own, with six brokers that have other ports."""

    async def scenario() -> None:
        config = building()
        servers = [Server(config, broker.name) for broker in config.brokers]
        for server in servers:
            await server.start()
        await asyncio.gather(*(linked(server) for server in servers))
        code = program
        for number in range(len(servers)):
            code = code.replace(f"127.0.0.1:{FIRST_PORT + number}", address(config, number))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, said = await process.communicate()
        await asyncio.gather(*(server.stop() for server in servers))
        assert process.returncode == 0, said.decode()
        expected = re.findall(r"print\(.*\)  # ([^:\n]+)", program)
        assert expected
        assert out.decode().splitlines() == expected

    asyncio.run(asyncio.wait_for(scenario(), 120))


async def linked(server: Server) -> None:
    """Until the links of a broker stand."""
    assert server.node is not None
    network = server.node.network
    assert network is not None
    while not all(channel.open for channel in network.links.channels.values()):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.05)


def test_there_are_programs() -> None:
    """One about filters, one about clients that move."""
    assert len(PROGRAMS) == 2
    assert any("move_to" in program for program in PROGRAMS)
