"""The page's server: what it answers, whom it does not answer, and what brokers tell one another."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sojourn.broker import facts
from sojourn.broker.roamers import Handoff
from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import Address, BrokerConfig, Config, ConfigError, read_config, single_broker
from sojourn.live.page.board import Board
from sojourn.live.page.metrics import BrokerMetrics
from sojourn.live.page.page import REQUESTS_MAX, STREAMS_MAX
from sojourn.live.page.status import (
    BUCKETS_S,
    CLIENTS_MAX,
    NAME_MAX,
    Move,
    Report,
    Tally,
    read_report,
    some_of,
)
from tests.live.building import ANY_PORT, address, an_address_folder, building, url
from tests.live.moving import Moving, moving
from tests.live.test_roaming import started, stop

PATIENCE_S = 20.0
WAITED_S = 0.05
TURNS = ("seconds", "processor_seconds")


@pytest.fixture(scope="module")
def world() -> Iterator[Moving]:
    """Six brokers and a dozen clients that move."""
    with moving(12, 0.5) as running:
        yield running


def get(url: str, **headers: str) -> tuple[int, bytes]:
    """Ask for a page."""
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own broker
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - our own page
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def wait_for(state: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    """Ask until the answer is as wanted."""
    until = time.monotonic() + PATIENCE_S
    while not holds(found := state()):
        assert time.monotonic() < until, found
        time.sleep(0.2)
    return found


def test_one_broker_knows_how_all_are_doing(world: Moving) -> None:
    """The state has every broker's numbers, its clients by name, and hand-offs between brokers."""

    def state() -> Any:
        return json.loads(get(world.page + "/state")[1])

    def is_lively(found: Any) -> bool:
        return all(broker["state"] == "up" for broker in found["brokers"]) and len(found["moves"]) > 5

    found = wait_for(state, is_lively)
    assert [broker["name"] for broker in found["brokers"]] == ["B1", "B2", "B3", "B4", "B5", "B6"]
    names = {client for broker in found["brokers"] for client, _ in broker["report"]["present"]}
    assert {f"phone-{number:03d}" for number in range(12)} & names
    assert sum(broker["report"]["handoffs"] for broker in found["brokers"]) > 5
    assert all(move["origin"] != move["broker"] for move in found["moves"])
    assert found["latency"]["p50_s"] <= found["latency"]["p99_s"]
    assert sum(used for _, _, used in found["links"]) == 5, "a tree of six brokers has five links"
    assert found["history"], "there is something to draw"


def test_metrics_are_prometheus_text(world: Moving) -> None:
    """What Prometheus' own parser reads has the counters, the histogram and the link of this broker."""
    wait_for(lambda: world.servers[0].observer, lambda observer: observer.tally.count > 0)
    status, text = get(world.page + "/metrics")
    assert status == 200
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }
    assert samples["sojourn_link_up", "B2"] == 1
    assert samples["sojourn_published_total",] > 0
    assert samples["sojourn_delivered_total",] > 0
    count = samples["sojourn_handoff_seconds_count",]
    assert count == samples["sojourn_handoff_seconds_bucket", "+Inf"] > 0
    by_origin = sum(value for key, value in samples.items() if key[0] == "sojourn_handoffs_total")
    assert by_origin == count
    steps = [samples["sojourn_handoff_seconds_bucket", str(end)] for end in BUCKETS_S]
    assert steps == sorted(steps)
    assert any(key[0] == "sojourn_build_info" for key in samples)
    turns, used = (
        {key: samples[f"sojourn_turn_{kind}{key}",] for key in ("_count", "_sum")} for kind in TURNS
    )
    assert turns["_count"] == used["_count"] > 0
    assert 0 < samples["sojourn_turn_longest_processor_seconds",] <= used["_sum"]


def test_waiting_within_a_turn_is_no_work() -> None:
    """A turn that waits for something else, as for a busy processor, is long, and used little."""
    config = Config(brokers=[BrokerConfig(name="B1", listen=ANY_PORT)])

    async def scenario() -> float:
        server = Server(config, "B1")
        await server.start()
        node = server.node
        assert node is not None
        node.tell(facts.SystemDue())
        time.sleep(WAITED_S)  # noqa: ASYNC251  (the loop is to wait)
        await asyncio.sleep(0)
        node.flush()
        node.count_turns()
        await server.stop()
        return node.turns.sum_s - node.turns_cpu.sum_s

    assert asyncio.run(scenario()) >= 0.9 * WAITED_S


def test_a_broker_that_serves_is_healthy_and_ready(world: Moving) -> None:
    """It says how its store and its links are."""
    status, body = get(world.page + "/healthz")
    assert (status, json.loads(body)) == (
        200,
        {"status": "ok", "reasons": [], "broker": "B1", "store": "none"},
    )
    status, body = get(world.page + "/readyz")
    found = json.loads(body)
    assert (status, found["status"], found["links"]) == (200, "ok", {"B2": True})
    assert found["listens"] == address(world.config, 0)


def test_health_is_told_while_many_watch(world: Moving) -> None:
    """Sixty-four streams take no room from other requests; one more stream is refused."""
    host, _, port = world.page.removeprefix("http://").partition(":")
    watching: list[socket.socket] = []
    try:
        for _ in range(STREAMS_MAX):  # each asks at once: who asks nothing has to go in time
            watching.append(socket.create_connection((host, int(port)), PATIENCE_S))
            watching[-1].sendall(b"GET /stream HTTP/1.1\r\n\r\n")
            assert watching[-1].recv(12) == b"HTTP/1.1 200"
        assert get(world.page + "/healthz")[0] == 200
        assert get(world.page + "/stream")[0] == 503
        asking = [socket.create_connection((host, int(port)), PATIENCE_S) for _ in range(REQUESTS_MAX)]
        assert get(world.page + "/readyz")[0] == 200, "who asks nothing makes room"
        for silent in asking:
            silent.close()
    finally:
        for watcher in watching:
            watcher.close()

    def stream() -> bytes:
        with socket.create_connection((host, int(port)), PATIENCE_S) as watcher:
            watcher.sendall(b"GET /stream HTTP/1.1\r\n\r\n")
            return watcher.recv(12)

    wait_for(stream, lambda said: said == b"HTTP/1.1 200")


def test_a_broker_alone_or_without_room_is_not_ready() -> None:
    """A link that is down is named with its age, a store that is full fails both checks; metrics go on."""
    brokers = [
        BrokerConfig(name=name, listen=ANY_PORT, peers=ANY_PORT, metrics=ANY_PORT) for name in ("B1", "B2")
    ]
    config = Config(brokers=brokers, links=[("B1", "B2")], network=an_address_folder())

    async def scenario() -> None:
        server = Server(config, "B1")
        await server.start()
        assert server.node is not None
        there = f"http://{address(config, 0, 'metrics')}"

        async def ask(path: str) -> tuple[int, bytes]:
            return await asyncio.to_thread(get, there + path)

        status, body = await ask("/readyz")
        assert status == 503
        assert json.loads(body)["reasons"][0].startswith("The link to B2 is down for ")
        assert (await ask("/healthz"))[0] == 200, "no restart would mend a link"
        server.node.core.state.refusing = "No room."
        status, body = await ask("/healthz")
        assert (status, json.loads(body)["reasons"]) == (503, ["No room."])
        _, text = await ask("/metrics")
        assert b'sojourn_link_up{peer="B2"} 0.0' in text
        assert b'sojourn_link_down_seconds{peer="B2"}' in text
        assert (await ask("/"))[0] == 404
        assert (await ask("/stream"))[0] == 404
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_what_is_known_to_be_lost_is_counted_and_what_was_repeated_is_not() -> None:
    """An incomplete hand-off is not delivered; an event that a neighbour sent twice is told apart."""

    async def scenario() -> None:
        server = Server(building(), "B1")
        await server.start()
        assert server.node is not None
        assert server.node.network is not None
        assert server.observer is not None
        network = server.node.network
        network.clients.drops["repeated by a neighbour"] = 3
        network.clients.drops["no room in a copy"] = 5
        network.clients.drops["queue full"] = 2
        network.reconciling.resets["B2"] = 1
        assert server.node.links is not None
        server.node.links.written_bytes = 6
        network.confirming.unconfirmed = 4
        network.clients.shares.made, network.clients.shares.again = 7, 2
        server.observer.handed_off(Handoff("phone\n", "B2", 1.0, 2.0, "copy", complete=False))
        server.observer.look()
        last = server.observer.last
        assert last.dropped == {"hand-off incomplete": 1, "queue full": 2}
        assert (last.repeated, last.unconfirmed, last.handoffs_incomplete) == (3, 4, 1)
        assert (last.links["B2"].up, last.links["B2"].resets) == (False, 1)
        text = BrokerMetrics(server.observer).text()
        for line in (
            b'sojourn_link_resets_total{peer="B2"} 1.0',
            b"sojourn_link_bytes_total 6.0",
            b"sojourn_repeated_total 3.0",
            b"sojourn_not_copied_total 5.0",
            b"sojourn_unconfirmed_total 4.0",
            b'sojourn_picks_total{what="made"} 7.0',
            b'sojourn_picks_total{what="again"} 2.0',
            b'sojourn_picks_total{what="dropped"} 0.0',
            b"sojourn_picks_waiting 0.0",
            b'sojourn_dropped_total{reason="hand-off incomplete"} 1.0',
        ):
            assert line in text
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_the_stream_goes_on(world: Moving) -> None:
    """Server-sent events: one whole state at once, the next a second later."""
    with urllib.request.urlopen(world.page + "/stream", timeout=PATIENCE_S) as stream:  # noqa: S310 - our own page
        assert stream.headers["Content-Type"] == "text/event-stream"
        first, _, second = stream.readline(), stream.readline(), stream.readline()
    times = [json.loads(line.removeprefix(b"data: "))["at_s"] for line in (first, second)]
    assert 0 < times[1] - times[0] < PATIENCE_S


def test_strangers_get_nothing(world: Moving) -> None:
    """A page on loopback answers to names of this machine only, to GET and HEAD only, and to known paths."""
    assert get(world.page + "/state", Host="evil.example")[0] == 421
    port = world.page.rpartition(":")[2]
    assert get(world.page + "/state", Host=f"localhost:{port}")[0] == 200
    for host in (
        "localhost",
        "localhost:80",
        f"[::1]:{port}",
        f"127.0.0.2:{port}",
        f"127.0.0.1:{port}0",
        "127.evil.com",
        "127.0.0.1.evil.com",
        "localhost.evil.com",
        "localhost@evil.com",
        "127.0.0.1:x",
    ):
        assert get(world.page + "/state", Host=host)[0] == 421, host
    assert get(world.page + "/secret")[0] == 404
    host, _, port = world.page.removeprefix("http://").partition(":")
    for request, answer in [
        (b"POST / HTTP/1.1\r\n\r\n", b"HTTP/1.1 405"),
        (b"HEAD / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200"),
        (b"HEAD / HTTP/1.1\r\nHost : evil.com\r\n\r\n", b"HTTP/1.1 400"),
        (b"HEAD / HTTP/1.1\r\nHost: [::1%evil.com]\r\n\r\n", b"HTTP/1.1 421"),
        (b"x" * 20_000, b""),
        (b"\r\n\r\n", b"HTTP/1.1 405"),
    ]:
        with socket.create_connection((host, int(port)), PATIENCE_S) as stranger:
            stranger.sendall(request)
            got = b""
            try:
                while data := stranger.recv(65_536):
                    got += data
            except ConnectionResetError:
                pass
            assert got.startswith(answer), (request[:20], got[:60])
            assert not (request.startswith(b"HEAD") and b"<html" in got)


def test_a_page_can_ask_for_a_password() -> None:
    """For everything but the health checks; and where others can reach it, it must."""
    config = single_broker(Address("127.0.0.1", 0))
    broker = msgspec.structs.replace(config.brokers[0], page=ANY_PORT, page_password=hash_password("open"))

    def basic(password: str) -> str:
        return "Basic " + base64.b64encode(f"me:{password}".encode()).decode()

    async def scenario() -> None:
        server = Server(msgspec.structs.replace(config, brokers=[broker]), "B1")
        await server.start()
        assert server.page is not None
        page = f"http://{server.page}"

        async def code(path: str, **headers: str) -> int:
            return (await asyncio.to_thread(get, page + path, **headers))[0]

        assert await code("/healthz") == await code("/readyz") == 200
        for path in ("/", "/state", "/metrics", "/clients", "/secret"):
            assert await code(path) == 401
        for wrong in (basic("shut"), "Basic", "Basic x", "Bearer " + basic("open")[6:]):
            assert await code("/state", Authorization=wrong) == 401
        for _ in range(3):
            assert await code("/state", Authorization=basic("open")) == 200
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))
    with pytest.raises(ConfigError, match="page_password"):
        read_config('[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:1"\npage = "0.0.0.0:2"\n')


def test_a_broker_whose_page_has_no_room_still_serves(world: Moving) -> None:
    """A port that is taken costs the page, not the broker."""
    taken = Address("127.0.0.1", int(world.page.rpartition(":")[2]))
    config = single_broker(Address("127.0.0.1", 0))
    broker = msgspec.structs.replace(config.brokers[0], page=str(taken))

    async def start() -> tuple[Address, Address | None]:
        server = Server(msgspec.structs.replace(config, brokers=[broker]), "B1")
        address = await server.start()
        await server.stop()
        return address, server.page

    address, page = asyncio.run(start())
    assert address.port
    assert page is None


def test_what_waits_for_a_client_that_is_away_is_counted() -> None:
    """Events stored for somebody who has gone are in the report and in the metrics until it has them."""

    async def scenario() -> None:
        servers = await started(building())
        config, observer = servers[0].config, servers[0].observer
        assert observer is not None
        client = Client(url(config, 0), client_id="away")
        await client.connect()
        await client.subscribe(topic="news")
        client.vanish()
        async with Client(url(config, 0)) as source:
            for _ in range(10):
                await source.publish("news", b"x" * 1_000)
        observer.look()
        assert 10_000 < observer.last.queue_bytes < 20_000
        assert b"sojourn_stored_events 10.0" in BrokerMetrics(observer).text()
        await client.connect()
        for _ in range(10):
            await client.next(timeout_s=5)
        for _ in range(250):  # until the broker has heard that the client has them
            observer.look()
            if not observer.last.queue_bytes:
                break
            await asyncio.sleep(0.02)
        assert observer.last.queue_bytes == 0
        await client.close()
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 60))


# Without a network -----------------------------------------------------------------------------------------


def report(at_s: float, **changes: Any) -> Report:
    """A report of a broker that does nothing, but for the changes."""
    quiet = Report(
        at_s=at_s, started_s=0.0, clients=0, sessions=0, published=0, delivered=0, published_rate=0.0,
        delivered_rate=0.0, handoff_rate=0.0, dropped={}, refused={}, queue_bytes=0, handoffs=0,
        handoff_sum_s=0.0, handoff_buckets=[], links={}, store="none", store_bytes=0, refusing=None,
    )  # fmt: skip
    return msgspec.structs.replace(quiet, **changes)


def move(number: int, took_s: float = 0.1) -> Move:
    """The hand-off of a client."""
    return Move(f"c{number}", "B1", 10.0, took_s, "copy", complete=True)


@pytest.fixture
def board() -> Board:
    """What the first of six brokers shows."""
    config: Config = building()
    return Board(config, "B1")


def test_a_hand_off_told_twice_is_one(board: Board) -> None:
    """Reports repeat hand-offs of the last seconds; the count tells which are new, also after a restart."""
    board.take("B2", report(10.0, handoffs=2, moves=[move(1), move(2)]), 10.0)
    board.take("B2", report(11.0, handoffs=3, moves=[move(1), move(2), move(3)]), 11.0)
    board.take("B2", report(12.0, handoffs=3, moves=[move(2), move(3)]), 12.0)
    assert [one["client"] for one in board.state(12.0)["moves"]] == ["c1", "c2", "c3"]
    board.take("B2", report(13.0, started_s=12.5, handoffs=1, moves=[move(4)]), 13.0)
    assert [one["client"] for one in board.state(13.0)["moves"]] == ["c1", "c2", "c3", "c4"]


def test_percentiles_are_of_the_last_minute(board: Board) -> None:
    """A hundred hand-offs: half took up to p50, all but one up to p99, and old ones do not count."""
    for first in (0, 50):
        moves = [move(number, (number + 1) / 1000) for number in range(first, first + 50)]
        board.take("B2", report(10.0, handoffs=first + 50, moves=moves), 10.0)
    assert board.latency(11.0) == (0.05, 0.099, 100)
    assert board.latency(71.0) == (None, None, 0)


def test_a_silent_broker_is_left_out(board: Board) -> None:
    """After four seconds without a report a broker is silent, and its rates are no longer summed."""
    board.take("B1", report(10.0, clients=1, published_rate=3.0), 10.0)
    board.take("B2", report(10.0, clients=5, published_rate=7.0), 10.0)
    board.take("B1", report(14.5, clients=1, published_rate=3.0), 14.5)
    board.tick(14.5)
    state = board.state(14.5)
    assert [broker["state"] for broker in state["brokers"]] == ["up", "silent", *["unknown"] * 4]
    assert state["moment"].published_rate == 3.0
    assert state["moment"].clients == 1


def test_what_is_no_report_is_left_alone(board: Board) -> None:
    """Bytes that are no report, or far too many, or of a broker that there is none of, change nothing."""
    body = msgspec.msgpack.encode(report(1.0))
    for broker, data in [("B2", body[:-3]), ("B2", b"\xc1" * 40), ("B2", bytes(300_000)), ("B9", body)]:
        told = read_report(broker, data)
        assert (told is None) == (data != body)
        if told is not None:
            board.take(broker, told, 1.0)
    assert all(broker["state"] == "unknown" for broker in board.state(1.0)["brokers"])
    board.take("B2", report(1.0), 1.0)
    assert board.state(1.0)["brokers"][1]["state"] == "up"


def test_latencies_are_counted_in_classes() -> None:
    """A latency lies in the class whose upper end it does not exceed; the slowest have one of their own."""
    tally = Tally()
    for took_s in (0.0, 0.001, 0.0011, 10.0, 11.0):
        tally.add(took_s)
    assert tally.count == 5
    assert tally.buckets[:2] == [2, 1]
    assert tally.buckets[-2:] == [1, 1]
    assert tally.sum_s == pytest.approx(21.0021)


def test_a_report_is_small_whatever_happens() -> None:
    """A broker with a crowd names some of its clients, the same ones as any other broker would."""
    names = [f"client-{number}-{'x' * 200}" for number in range(5_000)]
    alone = SimpleNamespace(network=None)
    chosen = some_of(alone, names)  # type: ignore[arg-type]  # nothing but its network is looked at
    assert len(chosen) == CLIENTS_MAX
    assert all(len(name) <= NAME_MAX for name, _ in chosen)
    fewer = [name for name in names if name[:NAME_MAX] not in dict(chosen[:50])]
    assert len(set(chosen[50:]) & set(some_of(alone, fewer))) == CLIENTS_MAX - 50  # type: ignore[arg-type]  # names alone
