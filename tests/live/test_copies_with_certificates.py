"""Brokers that know one another by certificates play each other, each with the certificate that it has."""

from __future__ import annotations

import asyncio
import itertools
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from sojourn.live.brokers.server import Server
from sojourn.live.config import Config, NetworkConfig, TlsConfig
from sojourn.live.seats import revivals
from tests.live.copied_network import (
    EVENTS,
    PATIENCE_S,
    copied,
    end,
    is_well,
    kill,
    leave_events,
    read_events,
    until,
)
from tests.live.test_security import Authority

NAMES = ("B1", "B2", "B3")


def machines(folder: Path, *, shared: bool = False) -> list[Config]:
    """A configuration for each of three machines, which have their own certificates alone, or all of them."""
    authority = Authority(folder)
    for name in NAMES:
        authority.issue(name)
        (folder / name).mkdir()
        for kind in ("pem", "key"):
            (folder / f"{name}.{kind}").rename(folder / name / f"{name}.{kind}")
    if shared:
        for one, other in itertools.permutations(NAMES, 2):
            for kind in ("pem", "key"):
                (folder / other / f"{one}.{kind}").write_bytes((folder / one / f"{one}.{kind}").read_bytes())
    config = copied(folder / "stores", brokers=len(NAMES))
    network = NetworkConfig(name="certified", addresses=config.network.addresses)
    return [
        replace(
            config,
            network=network,
            tls=TlsConfig(
                certificate=str(folder / name / "{broker}.pem"),
                key=str(folder / name / "{broker}.key"),
                authority=str(authority.path),
            ),
        )
        for name in NAMES
    ]


async def begun(configs: list[Config]) -> list[Server]:
    """All of them at work."""
    servers = [Server(config, name) for config, name in zip(configs, NAMES, strict=True)]
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(server.start() for server in servers))
    await until(lambda: all(map(is_well, servers)))
    return servers


@pytest.mark.parametrize("shared", [False, True], ids=["its own certificate", "all certificates"])
def test_a_broker_that_is_gone_is_played_by_a_process_with_its_own_certificate(
    tmp_path: Path, shared: bool
) -> None:
    """Its neighbours let that one in, and what its sessions were promised comes through it."""
    configs = machines(tmp_path, shared=shared)

    async def scenario() -> list[object]:
        servers = await begun(configs)
        await leave_events(configs[0], at=1, source=0)
        kill(servers[1], wipes=True)
        living = (servers[0], servers[2])
        chambers = [server.chamber for server in living if server.chamber is not None]
        await until(lambda: any("B2" in chamber.guests for chamber in chambers))
        await until(
            lambda: all(
                channel.open
                for server in living
                if server.node is not None and server.node.network is not None
                for channel in server.node.network.links.channels.values()
            )
        )
        found = await read_events(configs[2], 2)
        await end(list(living))
        return found

    assert asyncio.run(scenario()) == [*range(EVENTS), "last"]


def test_a_copy_is_kept_where_its_broker_cannot_be_played_for_another_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A certificate that is not there just now takes nothing from what was promised: it is tried again."""
    configs = machines(tmp_path)
    monkeypatch.setattr(revivals, "AGAIN_S", 0.2)

    async def scenario() -> list[object]:
        servers = await begun(configs)
        await leave_events(configs[0], at=1, source=0)
        moved = []
        for name in ("B1", "B3"):
            path = tmp_path / name / f"{name}.pem"
            path.rename(path.with_suffix(".away"))
            moved.append(path)
        kill(servers[1], wipes=True)
        await until(lambda: "cannot be played here for now" in caplog.text)
        assert not list((tmp_path / "stores").glob("*.copies/B2.damaged"))
        for path in moved:
            path.with_suffix(".away").rename(path)
        found = await read_events(configs[2], 2)
        await end([servers[0], servers[2]])
        return found

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(scenario()) == [*range(EVENTS), "last"]
    assert not list((tmp_path / "stores").glob("*.copies/B2.damaged"))
