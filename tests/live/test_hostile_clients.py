"""Hostile and clumsy clients: the broker stays up, its memory bounded, others are served."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import mqtt5
import pytest
from mqtt5 import ConnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter

from tests.live.raw_client import BrokerProcess, Raw, running_broker, single_config
from tests.mqtt.test_parts import SAMPLES, mutated

MIB = 1_048_576


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with small limits."""
    config = single_config(
        tmp_path_factory.mktemp("strict"),
        connect_timeout_s=1,
        queue_bytes_max=MIB,
        output_bytes_max=MIB // 4,
        packet_bytes_max=MIB // 4,
        connections_max=300,
    )
    with running_broker(config) as broker:
        yield broker


def resident_mib(broker: BrokerProcess) -> float:
    """The memory that the broker takes."""
    text = Path(f"/proc/{broker.process.pid}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def check_service(broker: BrokerProcess) -> None:
    """Somebody else is served, and soon."""
    start = time.monotonic()
    with Raw(broker.port) as client:
        client.connect("")
        client.subscribe("service")
        client.publish("service", b"still here", 1)
        assert client.message().payload == b"still here"
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("qos", [0, 1])
def test_a_subscriber_that_never_reads_hurts_only_itself(strict: BrokerProcess, qos: int) -> None:
    """40 MiB are published to it and to one that reads: that one gets all, and memory hardly grows."""
    with Raw(strict.port) as deaf, Raw(strict.port) as reader, Raw(strict.port) as publisher:
        deaf.connect("deaf")
        deaf.subscribe(TopicFilter("flood", max_qos=QoS(qos), retain_as_published=False))
        reader.connect("reader")
        reader.subscribe("flood")
        publisher.connect("publisher")
        before = resident_mib(strict)
        frame = PublishPacket("flood", bytes(10_000), qos=QoS(qos), packet_id=1 if qos else None).write()
        for _ in range(80):
            publisher.send(frame * 50)
            for _ in range(50):
                assert len(reader.message().payload) == 10_000
                if qos:
                    publisher.expect(mqtt5.PubAckPacket)
        assert resident_mib(strict) - before < 16
        check_service(strict)


def test_a_publisher_that_never_reads_its_answers_is_not_read_either(strict: BrokerProcess) -> None:
    """Its answers pile up to a limit; then it feels it, and memory does not grow."""
    with Raw(strict.port) as client:
        client.connect("chatter")
        before = resident_mib(strict)
        client.socket.settimeout(1.0)
        frames = PublishPacket("$SYS/refused", b"", qos=QoS.AT_LEAST_ONCE, packet_id=1).write() * 10_000
        sent = 0
        try:
            while sent < 400:
                client.socket.sendall(frames)
                sent += 1
        except TimeoutError:
            pass
        assert sent < 400, "the broker read four million packets whose answers nobody took"
        assert resident_mib(strict) - before < 16
        check_service(strict)


def test_retained_messages_that_nobody_reads_take_no_memory(strict: BrokerProcess) -> None:
    """Ten clients ask for 10 MB each in one SUBSCRIBE, and do not read; one that does gets all in order."""
    topics = [f"kept/{number}" for number in range(40)]
    with Raw(strict.port) as publisher:
        publisher.connect("publisher")
        for topic in topics:
            publisher.publish(topic, topic.encode().ljust(250_000), 1, retain=True)
        before = resident_mib(strict)
        deaf = [Raw(strict.port) for _ in range(10)]
        for number, client in enumerate(deaf):
            client.connect(f"deaf-{number}")
            wanted = [TopicFilter(topic, max_qos=QoS.AT_MOST_ONCE) for topic in topics]
            client.send(SubscribePacket(1, wanted))
        check_service(strict)
        assert resident_mib(strict) - before < 16
        came: list[object] = [deaf[0].receive() for _ in range(len(topics) + 1)]
        assert [one.topic for one in came if isinstance(one, PublishPacket)] == topics
        for topic in topics:
            publisher.publish(topic, b"", 1, retain=True)
        for client in deaf:
            client.drop()
        check_service(strict)


@pytest.mark.parametrize("qos", [0, 1])
def test_a_large_event_is_kept_once_for_all_who_do_not_read(strict: BrokerProcess, qos: int) -> None:
    """A hundred subscribers of different identifiers have it in a hundred forms; they share its payload."""
    with Raw(strict.port) as publisher:
        publisher.connect("publisher")
        deaf = [Raw(strict.port) for _ in range(100)]
        for number, client in enumerate(deaf):
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            client.connect(f"deaf-{number}")
            client.subscribe(TopicFilter("large", max_qos=QoS(qos)), subscription_id=number + 1)
        before = resident_mib(strict)
        sent = [bytes((number,)) * 250_000 for number in range(20)]
        for payload in sent:
            publisher.publish("large", payload, 1)
        check_service(strict)
        assert resident_mib(strict) - before < 24
        for _ in range(3):
            assert deaf[7].message().payload == sent.pop(0)
        for client in deaf:
            client.drop()
        check_service(strict)


def test_slow_connects_are_dropped(strict: BrokerProcess) -> None:
    """Two hundred connections that drip bytes are closed in time; others get in meanwhile."""
    frame = ConnectPacket("drip").write()
    drips = [socket.create_connection(("127.0.0.1", strict.port), 5) for _ in range(200)]
    for byte in frame[:10]:
        for drip in drips:
            try:
                drip.sendall(bytes((byte,)))
            except OSError:
                continue
        check_service(strict)
        time.sleep(0.15)
    for drip in drips:
        drip.settimeout(50)
        with contextlib.suppress(ConnectionResetError):
            assert drip.recv(10) == b""
        drip.close()


def test_too_many_connections_are_told_so(strict: BrokerProcess) -> None:
    """Beyond the limit: server busy; room again when some have gone."""
    many = [Raw(strict.port) for _ in range(300)]
    for number, client in enumerate(many):
        client.send(ConnectPacket(f"many-{number}", clean_start=True))
    for client in many:
        assert int(client.expect(mqtt5.ConnAckPacket).reason_code) == 0
    with Raw(strict.port) as late:
        assert int(late.connect("late").reason_code) == 0x89
    for client in many:
        client.drop()
    time.sleep(0.2)
    check_service(strict)


@pytest.mark.parametrize(
    "text",
    [
        " AND ".join(f"(a{n} = 1 OR b{n} = 2 OR c{n} = 3)" for n in range(40)),
        "NOT " * 500 + "a = 1",
        "(" * 1_000 + "a = 1" + ")" * 1_000,
        "a LIKE '" + "%" * 2_000 + "'",
        "a IN (" + ", ".join(str(n) for n in range(800)) + ")",
        "a = '" + "x" * 60_000 + "'",
        "\x01",
        "",
    ],
    ids=["distribution", "negations", "parentheses", "wildcards", "list", "length", "control", "empty"],
)
def test_a_filter_bomb_is_defused(strict: BrokerProcess, text: str) -> None:
    """It is accepted or refused with a code, quickly, and the session goes on."""
    with Raw(strict.port) as client:
        client.connect("bomber")
        start = time.monotonic()
        client.send(SubscribePacket(1, [TopicFilter("x")], user_properties=[("filter", text)]))
        answer = client.expect(mqtt5.SubAckPacket)
        assert int(answer.reason_codes[0]) in (0x02, 0x83, 0x97)
        assert time.monotonic() - start < 20
        client.publish("y", b"z", 1)


def test_json_bombs_are_just_payloads(strict: BrokerProcess) -> None:
    """Deep, broken and wide JSON travels as it is; filters see no attributes in it."""
    with Raw(strict.port) as client:
        client.connect("json")
        client.subscribe("j", user_properties=[("filter", "n > 0 OR n IS NULL")])
        payloads = [
            b"[" * 50_000,
            b'{"n": ' * 20_000,
            b'{"n": 1e999}',
            b'{"n": NaN}',
            b'{"' + b"k" * 60_000 + b'": 1}',
            b"{" + b",".join(b'"k%d": %d' % (n, n) for n in range(5_000)) + b"}",
            b'{"n": "\xff"}',
        ]
        for payload in payloads:
            client.publish("j", payload)
            assert client.message().payload == payload


def test_mutated_packets_over_a_socket(strict: BrokerProcess) -> None:
    """Two thousand of them, on connections made anew when they are closed."""
    chance = random.Random(5)
    frames = [packet.write() for packet in SAMPLES]
    client = Raw(strict.port)
    client.connect("mutant")
    for _ in range(2_000):
        try:
            client.send(mutated(chance, chance.choice(frames)))
            client.socket.settimeout(0.0005)
            closed = not client.socket.recv(65_536)
        except TimeoutError:
            continue
        except OSError:
            closed = True
        if closed:
            client.drop()
            client = Raw(strict.port)
            client.connect("mutant")
    client.drop()
    check_service(strict)


def test_an_oversized_packet_is_refused_at_its_header(strict: BrokerProcess) -> None:
    """No byte of its body is waited for."""
    with Raw(strict.port) as client:
        client.connect("large")
        client.send(b"\x30" + b"\x81\x80\x10")
        client.expect_end(0x95)
    with Raw(strict.port) as client:
        client.send(b"\x10\xff\xff\xff\x7f")
        client.expect_end()


def test_very_many_filters_on_one_topic(strict: BrokerProcess) -> None:
    """Three hundred different ones: each gets what it asked for, before and after the index is there."""
    clients = []
    for number in range(10):
        client = Raw(strict.port)  # not sooner: who has not said who it is within a second is closed
        clients.append(client)
        client.connect(f"many-filters-{number}")
        for part in range(30):
            text = f"n BETWEEN {number * 30 + part} AND {number * 30 + part + 1}"
            client.subscribe("many/+" if part == 0 else f"many/{part}", user_properties=[("filter", text)])
    until = time.monotonic() + 4
    while time.monotonic() < until:
        clients[0].publish("many/x", b"", user_properties=[("n", "61")])
        assert clients[2].message().user_properties == [("n", "61")]
        clients[0].publish("many/7", b"", user_properties=[("n", "8")])
        assert clients[0].message().user_properties == [("n", "8")]
    for client in clients[1:2] + clients[3:]:
        client.expect_nothing(0.02)
    for client in clients:
        client.drop()
