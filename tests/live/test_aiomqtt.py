"""aiomqtt, which many asyncio programs use: both versions, both transports, a session that moves."""

from __future__ import annotations

import asyncio
from typing import Any

import aiomqtt
import msgspec
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from sojourn.live.config import Config
from tests.live.building import ANY_PORT, building
from tests.live.test_roaming import started, stop
from tests.live.web_client import port_in

PATIENCE_S = 30.0


def two() -> Config:
    """Two linked brokers with WebSockets."""
    config = building()
    brokers = [msgspec.structs.replace(one, listen_ws=ANY_PORT) for one in config.brokers[:2]]
    return msgspec.structs.replace(config, brokers=brokers, links=[("B1", "B2")])


def lasting(version: aiomqtt.ProtocolVersion) -> dict[str, Any]:
    """What a client says whose session is kept."""
    if version != aiomqtt.ProtocolVersion.V5:
        return {"clean_session": False}
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho types it not
    properties.SessionExpiryInterval = 600
    return {"clean_start": False, "properties": properties}


@pytest.mark.parametrize("version", [aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5])
@pytest.mark.parametrize("transport", ["tcp", "websockets"])
def test_aiomqtt_moves_with_its_session(version: aiomqtt.ProtocolVersion, transport: Any) -> None:
    """Events of before and between two stays arrive once and in order."""

    async def scenario() -> None:
        servers = await started(two())
        said = [server.listening for server in servers]
        ports = [port_in(one.clients if transport == "tcp" else one.ws) for one in said if one is not None]

        def client(place: int, name: str, **options: Any) -> aiomqtt.Client:
            return aiomqtt.Client(
                "127.0.0.1", ports[place], identifier=name, protocol=version, transport=transport, **options
            )

        kept = lasting(version)
        got: list[bytes] = []
        async with client(1, "source") as source:
            for stay in range(4):
                async with client(stay % 2, "reader", **kept) as reader:
                    if not stay:
                        await reader.subscribe("rooms/#", qos=1)
                    await source.publish("rooms/a", b"%d here" % stay, qos=1)
                    wanted = 1 if not stay else 2
                    async for message in reader.messages:
                        got.append(bytes(message.payload))
                        wanted -= 1
                        if not wanted:
                            break
                await source.publish("rooms/b", b"%d away" % stay, qos=1)
        expected = [b"%d %s" % (stay, where) for stay in range(4) for where in (b"here", b"away")]
        assert got == expected[:-1]
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 4 * PATIENCE_S))


@pytest.mark.parametrize("version", [aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5])
def test_a_member_of_a_group_moves_between_brokers(version: aiomqtt.ProtocolVersion) -> None:
    """Every event reaches it or the member that stays, once, also what comes while it is away."""

    async def scenario() -> None:
        servers = await started(two())
        ports = [port_in(one.clients) for server in servers if (one := server.listening) is not None]

        def client(place: int, name: str, **options: Any) -> aiomqtt.Client:
            return aiomqtt.Client("127.0.0.1", ports[place], identifier=name, protocol=version, **options)

        got: dict[str, list[int]] = {"roams": [], "stays": []}
        came = asyncio.Condition()

        async def read(one: aiomqtt.Client, name: str) -> None:
            async for message in one.messages:
                async with came:
                    got[name].append(int(message.payload))
                    came.notify_all()

        async with client(1, "source") as source, client(0, "stays") as stays:
            await stays.subscribe("$share/crew/jobs/#", qos=1)
            reading = asyncio.ensure_future(read(stays, "stays"))
            published = 0
            for stay in range(4):
                async with client(stay % 2, "roams", **lasting(version)) as roams:
                    if not stay:
                        await roams.subscribe("$share/crew/jobs/#", qos=1)
                    mine = asyncio.ensure_future(read(roams, "roams"))
                    for number in range(published, published + 6):
                        await source.publish("jobs/a", b"%d" % number, qos=1)
                    published += 6
                    async with came:
                        await came.wait_for(lambda: sum(map(len, got.values())) >= published)  # noqa: B023 - called before the next round
                    mine.cancel()
                if stay < 3:  # what comes while it is away is for either of them
                    for number in (published, published + 1):
                        await source.publish("jobs/b", b"%d" % number, qos=1)
                    published += 2
            reading.cancel()
        assert sorted(got["roams"] + got["stays"]) == list(range(published))
        assert got["roams"]
        assert got["stays"]
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 4 * PATIENCE_S))
