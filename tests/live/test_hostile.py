"""Hostile clients and peers: the broker stays up, its memory stays bounded, and others are served."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections import Counter
from pathlib import Path

import mqtt5
import pytest

from sojourn.broker.channel import Channel
from sojourn.broker.hello import ChannelError
from sojourn.live.client.client import Client
from sojourn.live.client.link import ClientError
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.core import Core
from sojourn.mqtt.limits import Limits
from tests.live.raw_client import BrokerProcess, running_broker
from tests.mqtt import old_words as old

MUTATIONS = 30_000
"""In the suite; `make test-slow` does a million."""


def packets() -> list[bytes]:
    """One good packet of every kind that a client may send, of MQTT 5 and of 3.1.1."""
    will = ("w", b"gone", 1, True)
    return [
        old.connect("c", clean=False, keep_alive=10, will=will, username="u", password=b"p"),
        old.publish("a/b", b"x" * 20),
        old.publish("a/b", b"{}", 1, number=3),
        old.publish("a", b"", 2, number=4, retain=True),
        old.subscribe(("a/+/#", 1), ("b", 2), number=5),
        old.unsubscribe("a/b", "c", number=6),
        old.LEAVE,
        mqtt5.ConnectPacket(
            "c", keep_alive=10, session_expiry_interval=9, username="u", password=b"p"
        ).write(),
        mqtt5.PublishPacket("a/b", b"x" * 20, user_properties=[("k", "v")]).write(),
        mqtt5.PublishPacket("a/b", b"{}", qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=3, topic_alias=2).write(),
        mqtt5.PublishPacket("a", b"", qos=mqtt5.QoS.EXACTLY_ONCE, packet_id=4, retain=True).write(),
        mqtt5.SubscribePacket(
            5,
            [mqtt5.TopicFilter("a/+/#")],
            subscription_id=7,
            user_properties=[("filter", "a > 1 AND b = 'x'")],
        ).write(),
        mqtt5.UnsubscribePacket(6, ["a/b", "c"]).write(),
        mqtt5.PubAckPacket(1).write(),
        mqtt5.PubRecPacket(1).write(),
        mqtt5.PubRelPacket(1).write(),
        mqtt5.PubCompPacket(1).write(),
        mqtt5.PingReqPacket().write(),
        mqtt5.DisconnectPacket(session_expiry_interval=3).write(),
        mqtt5.AuthPacket().write(),
    ]


def mutate(packet: bytes, draw: random.Random) -> bytes:
    """A packet with some bytes changed, added, removed or repeated."""
    data = bytearray(packet)
    for _ in range(draw.randrange(1, 5)):
        where = draw.randrange(len(data)) if data else 0
        match draw.randrange(4):
            case 0 if data:
                data[where] = draw.randrange(256)
            case 1:
                data[where:where] = draw.randbytes(draw.randrange(1, 6))
            case 2 if data:
                del data[where : where + draw.randrange(1, 6)]
            case _:
                data += data[where : where + 8]
    return bytes(data)


def feed_mutations(count: int, seed: int) -> Counter[str]:
    """Give a core mutated packets on connections of all ages; return what became of them."""
    draw = random.Random(seed)
    core = Core("B1", Limits(connections_max=1_000))
    good = packets()
    told: Counter[str] = Counter()
    now, number = 0.0, 0
    for _ in range(count):
        now += 0.01
        if number == 0 or draw.random() < 0.2 or number not in core.state.connections:
            number += 1
            core.opened(number, "127.0.0.1", f"auto-{number}", now)
            if draw.random() < 0.8:
                name, clean = f"c{draw.randrange(50)}", draw.random() < 0.5
                hello = mqtt5.ConnectPacket(name, clean_start=clean).write()
                if draw.random() < 0.5:
                    hello = old.connect(name, clean=clean)
                core.received(number, hello, now)
        core.received(number, mutate(draw.choice(good), draw), now)
        while core.effects.knocks:
            core.admit(core.effects.knocks.pop(0).number, Admission(), now)
        while core.effects.unread:
            core.received(core.effects.unread.pop(0), b"", now)
        for connection in core.effects.touched:
            told[f"told {connection.state.name.lower()}"] += 1
            connection.output.clear()
            if connection.state.name == "CLOSED":
                core.lost(connection.number, now)
        core.effects.touched.clear()
        core.time_passed(now)
    told["sessions"] = len(core.state.sessions)
    return told


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_packets_are_refused_or_served(seed: int) -> None:
    """No bytes of a client raise anything, and sessions stay within their limits."""
    told = feed_mutations(MUTATIONS, seed)
    assert told["told closed"] > MUTATIONS / 20
    assert told["told open"] > MUTATIONS / 100
    assert told["sessions"] <= MUTATIONS / 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_million_mutated_packets_are_refused_or_served(seed: int) -> None:
    """The same at length: a hundred thousand a seed."""
    told = feed_mutations(100_000, seed)
    assert told["told closed"] > 5_000


def test_mutated_frames_of_a_peer_end_the_connection_at_worst() -> None:
    """A channel takes a frame, ignores it, or says in one sentence why it ends the connection."""
    draw = random.Random(3)
    ended: list[str] = []
    for _ in range(3_000):
        sender, receiver = Channel("A", "B", "1"), Channel("B", "A", "1")
        list(sender.arrived(receiver.greet()))
        for body in (b"one", b"two" * 30):
            sender.put(body)
        stream = sender.greet() + sender.outgoing()
        try:
            list(receiver.arrived(mutate(stream, draw)))
        except ChannelError as error:
            ended.append(str(error))
    assert len(ended) > 300
    assert all(sentence.endswith(".") for sentence in ended)


def memory_mib(broker: BrokerProcess) -> float:
    """How much memory the broker process holds."""
    for line in Path(f"/proc/{broker.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no such process")


async def still_serves(broker: BrokerProcess) -> float:
    """How long an honest pair of clients waits for an event."""
    address = f"mqtt://127.0.0.1:{broker.port}"
    async with Client(address) as reader, Client(address) as writer:
        await reader.subscribe(topic="honest")
        began = time.perf_counter()
        await writer.publish("honest", b"hello")
        assert (await reader.next(5)).payload == b"hello"
        return time.perf_counter() - began


def test_many_kinds_of_hostile_client_hurt_only_themselves() -> None:
    """Slow connects, a subscriber that never reads, oversized everything, noise, all at once."""
    with running_broker() as broker:
        address = ("127.0.0.1", broker.port)
        before = memory_mib(broker)
        slow = [socket.create_connection(address) for _ in range(200)]
        for connection in slow:
            connection.send(b"\x10")  # the first byte of a CONNECT, and no more
        huge = socket.create_connection(address)
        huge.sendall(b"\x10\xff\xff\xff\x7f" + b"\x00" * 10_000)
        noise = socket.create_connection(address)
        noise.sendall(random.Random(1).randbytes(100_000))
        lazy = _never_reads(address)

        async def scenario() -> None:
            url = f"mqtt://127.0.0.1:{broker.port}"
            async with Client(url) as flooder:
                for _ in range(3_000):
                    await flooder.publish("flood", b"z" * 10_000, qos=0)
                with pytest.raises(ClientError, match="send less"):
                    await flooder.publish("flood", b"z" * 5_000_000)
            assert await still_serves(broker) < 2.0

        asyncio.run(asyncio.wait_for(scenario(), 60))
        assert memory_mib(broker) - before < 200
        assert broker.process.poll() is None
        for connection in [*slow, huge, noise, lazy]:
            connection.close()


def _never_reads(address: tuple[str, int]) -> socket.socket:
    """A client that subscribes to everything and reads nothing."""
    lazy = socket.create_connection(address)
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    lazy.sendall(mqtt5.ConnectPacket("lazy", session_expiry_interval=60).write())
    lazy.sendall(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("#", max_qos=mqtt5.QoS.EXACTLY_ONCE)]).write())
    time.sleep(0.2)
    return lazy
