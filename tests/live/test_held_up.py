"""A broker that cannot reach those who keep its copies: clients and operators hear of it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import mqtt5
import pytest
from mqtt5 import ConnAckPacket, ConnAckReasonCode, ConnectPacket

from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.page.page import readiness
from sojourn.live.seats import watching
from sojourn.mqtt import answers
from tests.live.building import url
from tests.live.copied_network import PATIENCE_S, begun, copied, end, is_well, kill, until

OLD_CONNECT = b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x3c\x00\x03old"


async def _told(server: Server, connect: bytes) -> bytes:
    """All that a client is told that connects, until its connection ends."""
    assert server.listening is not None
    host, _, port = server.listening.clients.rpartition(":")
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(connect)
        said = await reader.read()
        writer.close()
    return said


def test_who_connects_to_a_broker_without_its_copies_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also who came before anybody knew that it lasts; and all goes on when the others are back."""
    monkeypatch.setattr(watching, "HELD_UP_S", 2.0)
    config = copied(tmp_path, brokers=3)

    async def scenario() -> tuple[list[bytes], str]:
        servers = await begun(config)
        alone = servers[0]
        assert alone.observer is not None
        assert not readiness(alone.observer).reasons
        for server in servers[1:]:
            kill(server, wipes=False)
        connect = ConnectPacket(client_id="new", clean_start=True).write()
        early = await asyncio.gather(_told(alone, connect), _told(alone, OLD_CONNECT))
        late = [await _told(alone, connect), await _told(alone, OLD_CONNECT)]
        reasons = " ".join(readiness(alone.observer).reasons)
        servers[1:] = [Server(config, broker.name) for broker in config.brokers[1:]]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(server.start() for server in servers[1:]))
        await until(lambda: all(map(is_well, servers)))
        await until(lambda: "acknowledges again" in caplog.text)
        async with Client(url(config, 0), client_id="after") as client:
            await client.publish("news/a", {"n": 1})
        await until(lambda: not readiness(alone.observer).reasons)  # type: ignore[arg-type]  # it has started
        await end(servers)
        return [*early, *late], reasons

    with caplog.at_level(logging.WARNING, "sojourn.seats"):
        told, reasons = asyncio.run(scenario())
    for said in (told[0], told[2]):
        answer, _ = mqtt5.read(memoryview(said))
        assert isinstance(answer, ConnAckPacket)
        assert answer.reason_code is ConnAckReasonCode.SERVER_UNAVAILABLE
        assert "cannot acknowledge anything at present: B2 should keep a copy" in (answer.reason_str or "")
    assert told[1] == told[3] == b"\x20\x02\x00\x03"
    assert "acknowledges nothing before its copies are whole" in reasons
    assert "1 of 3 processes are here to vote" in reasons
    assert caplog.text.count("B1 acknowledges nothing for 2 s") == 1
    assert caplog.text.count("B1 acknowledges again") == 1


def test_only_an_answer_to_connect_is_replaced() -> None:
    """In the words of the client's version; anything else is left as it is."""
    code = ConnAckReasonCode.SERVER_UNAVAILABLE
    assert answers.instead_of(b"\x20\x02\x01\x00", code, "why") == b"\x20\x02\x00\x03"
    refused = answers.instead_of(ConnAckPacket(reason_code=ConnAckReasonCode.SUCCESS).write(), code, "why")
    assert refused == ConnAckPacket(reason_code=code, reason_str="why").write()
    assert answers.instead_of(b"\xd0\x00", code, "why") is None
