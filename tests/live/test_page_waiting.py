"""A broker that waits for others before it serves says so where its page, metrics and health will be."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sojourn.live.brokers.server import Server
from tests.live.building import ANY_PORT
from tests.live.copied_network import PATIENCE_S, copied, end, is_well, until


async def _get(address: str, path: str) -> tuple[int, str]:
    """The status and the body of an answer."""
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        said = (await reader.read()).decode()
        writer.close()
    head, _, body = said.partition("\r\n\r\n")
    return int(head.split()[1]), body


def test_who_waits_for_others_says_so_before_it_serves(tmp_path: Path) -> None:
    """Page, metrics and health are there at once, and name who is missing; then come the broker's own."""
    config = copied(tmp_path, brokers=3)
    first = replace(config.brokers[0], page=ANY_PORT, metrics=ANY_PORT)
    config = replace(config, brokers=[first, *config.brokers[1:]])

    async def scenario() -> None:
        servers = [Server(config, broker.name) for broker in config.brokers]
        starting = [asyncio.create_task(servers[0].start())]
        await until(lambda: len(servers[0].waiting_at) == 2)
        page, metrics = servers[0].waiting_at["page"], servers[0].waiting_at["metrics"]
        for path in ("/healthz", "/readyz"):
            for address in (page, metrics):
                status, body = await _get(address, path)
                found = msgspec.json.decode(body)
                assert (status, found["status"], found["broker"]) == (503, "starting", "B1")
                assert "B1 does not serve yet" in found["reasons"][0]
                assert "B2, B3 cannot be reached" in found["reasons"][0]
        assert "B2, B3 cannot be reached" in (await _get(page, "/"))[1]
        assert "sojourn_serving 0.0" in (await _get(metrics, "/metrics"))[1]
        assert "sojourn_copies_voters 0.0" in (await _get(metrics, "/metrics"))[1]
        starting += [asyncio.create_task(server.start()) for server in servers[1:]]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*starting)
        await until(lambda: all(map(is_well, servers)))
        assert str(servers[0].page) == page, "whoever looks there goes on looking there"
        assert (await _get(page, "/healthz"))[0] == 200
        assert "sojourn_serving 1.0" in (await _get(metrics, "/metrics"))[1]
        await end(servers)

    asyncio.run(scenario())


def test_who_is_stopped_while_it_waits_lets_its_addresses_go(tmp_path: Path) -> None:
    """Nothing listens any more for whom nobody waits."""
    config = copied(tmp_path, brokers=3)
    config = replace(config, brokers=[replace(config.brokers[0], page=ANY_PORT), *config.brokers[1:]])

    async def scenario() -> bool:
        server = Server(config, "B1")
        starting = asyncio.create_task(server.start())
        await until(lambda: server.waiting_at)
        starting.cancel()
        await asyncio.wait({starting})
        await server.stop()
        try:
            await _get(server.waiting_at["page"], "/healthz")
        except OSError:
            return True
        return False

    assert asyncio.run(scenario())
