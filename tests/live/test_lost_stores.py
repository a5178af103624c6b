"""A neighbour without its store is told of: in the log, on the page, in the metrics and in the trace."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mqtt5 import ConnectPacket

from sojourn.broker.effects import Note
from sojourn.errors import SojournError
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import BrokerConfig, Config, TraceConfig
from sojourn.live.page.metrics import BrokerMetrics
from sojourn.live.page.status import Report, held
from tests.live.building import an_address_folder, building, url
from tests.live.hall import Hall, line
from tests.live.test_large_events import Silent
from tests.live.test_roaming import started, stop
from tests.live.test_tracing import rows

PATIENCE_S = 60.0


def fall_silent(server: Server) -> None:
    """Have a broker make no reports by itself any more."""
    assert server.observer is not None
    assert server.observer._timer is not None
    server.observer._timer.cancel()


def held_at(server: Server) -> int:
    """How many events would be lost with a broker's store."""
    assert server.node is not None
    return held(server.node)


async def until(holds: Callable[[], object]) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - brokers tell nobody here
            await asyncio.sleep(0.02)


def test_what_was_only_in_a_lost_store_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A session with three events waits at B5, which comes back without anything; one neighbour counts it.

    B5 is stopped before it could make a report of them: it tells its last figures then.
    """
    trace = TraceConfig(folder=str(tmp_path), run="test")
    config = msgspec.structs.replace(building(), trace=trace)

    async def scenario() -> tuple[dict[str, int], str]:
        servers = await started(config)
        fall_silent(servers[4])
        reader = Client(url(config, 4), client_id="reader", session_expiry_s=600)
        await reader.connect()
        await reader.subscribe(topic="news")
        await reader.close()
        async with Client(url(config, 0), client_id="source") as source:
            for number in range(3):
                await source.publish("news", {"n": number})
        near = servers[2]
        assert near.observer is not None
        observer = near.observer
        await until(lambda: held_at(servers[4]) == 3)
        await servers[4].stop()
        servers[4] = Server(config, "B5")
        await servers[4].start()
        await until(lambda: observer.lost_with)
        found, metrics = observer.lost(), BrokerMetrics(observer).text().decode()
        others = [one.observer.lost() for one in servers if one is not near and one.observer is not None]
        assert not any("lost with the store" in reason for lost in others for reason in lost)
        await stop(servers)
        return found, metrics

    with caplog.at_level(logging.WARNING):
        found, metrics = asyncio.run(scenario())
    assert found["session lost with the store of B5"] == 1
    assert found["event lost with the store of B5"] == 3
    sentence = (
        "B5 has lost its store, and with it what only that had: 1 session and 3 events when it was stopped"
    )
    assert sentence in caplog.text
    assert 'sojourn_dropped_total{reason="event lost with the store of B5"} 3.0' in metrics
    lost = [row for row in rows(tmp_path, "drops") if row["reason"] == "store_lost"]
    assert [(row["broker"], row["source"], row["sequence"]) for row in lost] == [("B3", "B5", 3)]


def test_what_is_on_its_way_to_a_client_counts_once_whether_it_is_here_or_has_left() -> None:
    """It is stored beside its session while it is here, and in its session alone when it has gone."""
    hall = Hall(line(2))
    hall.now += 0.01
    reader = Silent(hall.desks[0], [])
    reader.send(ConnectPacket("reader", clean_start=False, session_expiry_interval=300, keep_alive=0))
    hall.settle()
    reader.subscribe("news")
    writer = hall.visit(0, "writer")
    for number in range(3):
        writer.publish("news", b"%d" % number)
    hall.settle()
    desk: Any = hall.desks[0]  # what is looked at is the same in a broker with sockets
    assert len(reader.got) == held(desk) == 3
    reader.lose()
    hall.settle()
    assert held(desk) == 3


def test_what_came_after_the_last_report_of_a_killed_broker_is_not_claimed_to_be_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its figures are old, and said to be: in the log of its neighbour, and on the page."""
    brokers = [
        BrokerConfig(name=name, listen="127.0.0.1:0", peers="127.0.0.1:0", page=page)
        for name, page in (("B1", "127.0.0.1:0"), ("B2", None))
    ]
    config = Config(brokers=brokers, links=[("B1", "B2")], network=an_address_folder())

    async def scenario() -> list[str]:
        servers = await started(config)
        near, lost = servers[0].observer, servers[1].observer
        assert near is not None
        assert lost is not None
        assert near.board is not None
        fall_silent(servers[1])
        reader = Client(url(config, 1), client_id="reader", session_expiry_s=600)
        await reader.connect()
        await reader.subscribe(topic="news")
        await reader.close()
        lost.look()
        await until(lambda: (told := near.ledger.known.get("B2")) and told.sessions == 1)
        async with Client(url(config, 0), client_id="source") as source:
            await source.publish("news", b"1")
        await until(lambda: held_at(servers[1]) == 1)
        lost.node.fail(SojournError("It is killed, and says nothing."))
        await servers[1].stop()
        servers[1] = Server(config, "B2")
        await servers[1].start()
        await until(lambda: near.lost_stores["B2"])
        near.look()
        found: list[str] = near.board.state(near.node.now())["lost_stores"]
        await stop(servers)
        return found

    with caplog.at_level(logging.WARNING):
        (found,) = asyncio.run(scenario())
    assert found in caplog.text
    assert "1 session and 0 events when it last told" in found
    assert "s before its link went down" in found
    assert found.endswith("what came after that is not counted")


def test_what_a_removed_broker_had_is_told_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two brokers, a session with an event at one of them; the other one is started without it."""
    monkeypatch.setattr("sojourn.live.page.ledger.REMOVED_SETTLE_S", 0.0)
    brokers = [
        BrokerConfig(name=name, listen="127.0.0.1:0", peers="127.0.0.1:0", store=str(tmp_path / name))
        for name in ("B1", "B2")
    ]
    config = Config(brokers=brokers, links=[("B1", "B2")], network=an_address_folder())

    async def scenario() -> tuple[dict[str, int], str]:
        servers = await started(config)
        reader = Client(url(config, 1), client_id="reader", session_expiry_s=600)
        await reader.connect()
        await reader.subscribe(topic="news")
        await reader.close()
        async with Client(url(config, 0), client_id="source") as source:
            await source.publish("news", b"1")
        observer = servers[0].observer
        assert observer is not None
        await until(
            lambda: (told := observer.ledger.known.get("B2")) and (told.sessions, told.held) == (1, 1)
        )
        await stop(servers)
        alone = Server(msgspec.structs.replace(config, brokers=brokers[:1], links=[]), "B1")
        await alone.start()
        left = alone.observer
        assert left is not None
        await until(lambda: left.lost_with)
        found = left.lost(), BrokerMetrics(left).text().decode()
        await alone.stop()
        return found

    with caplog.at_level(logging.WARNING):
        found, metrics = asyncio.run(scenario())
    sentence = (
        "B2 is not in the configuration any more, and out of reach is what only its store has: 1 session "
    )
    assert caplog.text.count(sentence) == 1
    assert found["session left in the store of B2, which was removed"] == 1
    assert found["event left in the store of B2, which was removed"] == 1
    assert 'sojourn_lost_stores_total{broker="B2"} 1.0' in metrics


def test_a_loss_is_counted_once_though_another_broker_was_down_as_well(tmp_path: Path) -> None:
    """B5 comes back without its store and B3, the only one linked with it, from its own: both were down."""
    plain = building()
    brokers = [msgspec.structs.replace(one, store=str(tmp_path / one.name)) for one in plain.brokers]
    config = msgspec.structs.replace(plain, brokers=brokers)

    async def scenario() -> list[dict[str, int]]:
        servers = await started(config)
        reader = Client(url(config, 4), client_id="reader", session_expiry_s=600)
        await reader.connect()
        await reader.subscribe(topic="news")
        await reader.close()
        async with Client(url(config, 0), client_id="source") as source:
            for number in range(3):
                await source.publish("news", {"n": number})
        far = servers[0].observer
        assert far is not None
        await until(lambda: (told := far.ledger.known.get("B5")) and (told.sessions, told.held) == (1, 3))
        for place in (2, 4):
            await servers[place].stop()
        shutil.rmtree(tmp_path / "B5")
        (tmp_path / "B5.known").unlink()
        for place in (2, 4):
            servers[place] = Server(config, brokers[place].name)
            await servers[place].start()
        watching = [one.observer for one in servers if one.observer is not None]
        knew = [one for one in watching if one.node.place.name != "B5"]
        await until(lambda: all(one.lost_stores["B5"] for one in knew))
        await until(lambda: all(loss.is_counted for one in watching for loss in one.ledger.losses.values()))
        metrics = BrokerMetrics(knew[2]).text().decode()
        assert 'sojourn_lost_stores_total{broker="B5"} 1.0' in metrics
        found = [one.lost() for one in watching]
        await stop(servers)
        return found

    found = asyncio.run(scenario())
    assert sum(lost.get("session lost with the store of B5", 0) for lost in found) == 1
    assert sum(lost.get("event lost with the store of B5", 0) for lost in found) == 3


def test_events_that_a_neighbour_forgot_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In the log, in reports, in the metrics and in the trace; not as missed, for most were passed on."""
    trace = TraceConfig(folder=str(tmp_path), run="test")
    config = msgspec.structs.replace(building(), trace=trace)

    async def scenario() -> tuple[Report, str]:
        server = Server(config, "B1")
        await server.start()
        assert server.node is not None
        assert server.observer is not None
        server.node.witnesses.tell(Note("forgot_events", ("B2", 7, server.node.now())))
        server.observer.look()
        found, metrics = server.observer.last, BrokerMetrics(server.observer).text().decode()
        await server.stop()
        return found, metrics

    with caplog.at_level(logging.WARNING):
        found, metrics = asyncio.run(scenario())
    assert found.forgotten == 7
    assert not found.dropped
    assert "B2 has forgotten the last that it had made safe: at most 7 events that it had" in caplog.text
    assert 'sojourn_forgotten_events_total{broker="B2"} 7.0' in metrics
    lost = [row for row in rows(tmp_path, "drops") if row["reason"] == "forgotten"]
    assert [(row["broker"], row["source"], row["sequence"]) for row in lost] == [("B1", "B2", 7)]
