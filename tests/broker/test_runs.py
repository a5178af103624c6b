"""Events that came together travel together: in the same frames after a restart, each once and in order."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from mqtt5 import PublishPacket, QoS
from msgspec.structs import replace

from sojourn.broker import facts, live_broker
from sojourn.broker.carried import Carried, RunFrame, WireError
from sojourn.broker.channel import Channel
from sojourn.broker.frame_events import events_in, numbers_in
from sojourn.broker.messages import Run
from sojourn.broker.runs import BYTES_MAX, EVENTS_MAX, runs_of
from sojourn.mqtt.content import parse_policy
from sojourn.mqtt.message import Message, new_message
from tests.broker.crew import Silent
from tests.live.hall import Desk, Hall, Visitor, frames_of, line

ENCODE = msgspec.msgpack.Encoder().encode


def said(number: int, payload: bytes = b"x", **options: Any) -> Message:
    """An event of a publisher, with its number."""
    given: dict[str, Any] = {"qos": 1, "now": 1.0, "publisher": "p", **options}
    message = new_message(given.pop("topic", "t"), payload, **given)
    message.source, message.sequence = "p@B1", number
    return message


def packet(number: int, qos: int = 1, size: int = 4) -> bytes:
    """A packet whose payload says which it is."""
    payload = str(number).encode().rjust(size)
    return PublishPacket("t", payload, qos=QoS(qos), packet_id=number if qos else None).write()


def lengths(messages: list[Message]) -> list[int]:
    """How many events each run has."""
    return [len(run) for run in runs_of(messages)]


# Which events make a run ----------------------------------------------------------------------------------


def test_events_of_one_publisher_on_one_topic_are_a_run() -> None:
    """Also with payloads of lengths that are written in one byte and in two."""
    assert lengths([said(1), said(2, b"x" * 500), said(3)]) == [3]


@pytest.mark.parametrize(
    "other",
    [
        said(2, topic="u"),
        said(2, qos=0),
        said(2, publisher="q"),
        said(2, retain=True),
        said(2, expiry=5),
        said(2, policy=parse_policy("rank > 3")),
        said(3),
        said(1),
    ],
)
def test_what_differs_or_leaves_a_gap_ends_a_run(other: Message) -> None:
    """Where an event goes, and how, is one thing for a whole run; and its numbers leave nothing out."""
    assert lengths([said(1), other]) == [1, 1]


def test_a_run_has_limits() -> None:
    """Of events and of bytes."""
    assert max(lengths([said(number) for number in range(100)])) == EVENTS_MAX
    assert lengths([said(number, b"x" * (BYTES_MAX // 2)) for number in range(3)]) == [1, 1, 1]


# What travels ---------------------------------------------------------------------------------------------


def test_a_run_comes_as_it_went() -> None:
    """With properties or without, whatever the lengths."""
    hall = Hall(line(2))
    wire = hall.desks[0].network.links.wire
    messages = [said(number, b"y" * (100 * number), qos=2) for number in range(1, 6)]
    messages[2].properties = replace(messages[2].properties, user=(("road", "A2"),))
    messages[2] = messages[2].addressed("", "p@B1", 3, ("road", "A2"))
    run = Run(tuple(Carried(message) for message in messages))
    back = wire.decode(wire.encode(run, 1.0), 1.0)
    assert [(one.message.frame, one.source, one.sequence, one.topic) for one in back.publications] == [
        (one.message.frame, one.source, one.sequence, one.topic) for one in run.publications
    ]
    assert back.publications[2].message.properties.user[-1] == ("road", "A2")


@pytest.mark.parametrize(
    "frame",
    [
        RunFrame(2, "p@B1", 1, "p", "t", [packet(1)]),
        RunFrame(0, "p@B1", 1, "p", "t", []),
        RunFrame(1, "p@B1", -1, "p", "t", [packet(1)]),
        RunFrame(1, "p@B1", (1 << 63) - 1, "p", "t", [packet(1)]),
        RunFrame(2, "p@B1", 1, "p", "t", [packet(1), packet(2, qos=0)]),
        RunFrame(1, "p@B1", 1, "p", "u", [packet(1)]),
        RunFrame(1, "p@B1", 1, "p", "t", [packet(1)[:-1]]),
        RunFrame(1, "p@B1", 1, "p", "t", [b"\x10\x0c\x00\x04MQTT\x03\x02\x00\x3c\x00\x00"]),
        RunFrame(1, "p@B1", 1, "p", "t", [b""]),
        RunFrame(1, "p@B1", 1, "p", "t", [b"\x30\xff\xff\xff\xff\xff"]),
        RunFrame(1, "p@B1", 1, "p", "t", [b"\xc0\x00"]),
    ],
)
def test_a_run_that_no_broker_sends_is_refused(frame: RunFrame) -> None:
    """It becomes no message, and nothing worse."""
    wire = Hall(line(2)).desks[0].network.links.wire
    with pytest.raises(WireError):
        wire.decode(ENCODE(frame), 1.0)


def test_bytes_at_random_in_place_of_packets_are_refused() -> None:
    """Whatever a hostile neighbour puts there."""
    wire = Hall(line(2)).desks[0].network.links.wire
    draw = random.Random(7)
    good = packet(1)
    for _ in range(2_000):
        bad = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            bad[draw.randrange(len(bad))] = draw.randrange(256)
        try:
            run = wire.decode(ENCODE(RunFrame(1, "p@B1", 1, "p", "t", [bytes(bad)])), 1.0)
        except WireError:
            continue
        assert [one.topic for one in run.publications] == ["t"]


def test_a_run_counts_for_its_events() -> None:
    """In a channel's numbers and in what a neighbour is said to have forgotten."""
    body = ENCODE(RunFrame(3, "p@B1", 1, "p", "t", [packet(1), packet(2), packet(3)]))
    assert (events_in(body), numbers_in(body)) == (3, 3)
    channel = Channel("B1", "B2", "life")
    channel.put(body)
    assert (channel.last, channel.kept) == (3, 0)


# Through brokers ------------------------------------------------------------------------------------------


def talk(hall: Hall, writer: Visitor, data: bytes) -> None:
    """Let a publisher say something in one breath, and its broker do what follows."""
    desk = hall.desks[0]
    desk.broker.handle(facts.ClientSent(writer.number, data), hall.now)
    desk.carry_out()


def reader_of(hall: Hall, broker: int, name: str = "reader", *, lasts_s: int = 0) -> Visitor:
    """A client that subscribes to the topic, and stays or may move."""
    reader = hall.visit(broker, name, lasts_s=lasts_s)
    hall.settle()
    reader.subscribe("t")
    hall.settle()
    return reader


def payloads(visitor: Visitor) -> list[int]:
    """Which events a client was given."""
    return [int(payload) for payload in visitor.got]


@pytest.mark.parametrize("lasts_s", [0, 500])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_is_said_in_one_breath_crosses_brokers_in_few_frames(qos: int, lasts_s: int) -> None:
    """And arrives once and in order, at clients that stay and at clients that may move."""
    hall = Hall(line(3))
    reader = reader_of(hall, 2, lasts_s=lasts_s)
    writer = hall.visit(0, "writer")
    hall.settle()
    talk(hall, writer, b"".join(packet(number, qos, size=number) for number in range(1, 41)))
    assert len(frames_of(bytes(hall.desks[0].peer_writes["B2"]))) <= 40 // EVENTS_MAX + 2
    hall.settle()
    assert payloads(reader) == list(range(1, 41))


def channels(desk: Desk) -> dict[str, tuple[int, list[bytes]]]:
    """The number of the last frame for each neighbour, and what is on its way to it."""
    return _channels(desk.broker)


def _channels(broker: Any) -> dict[str, tuple[int, list[bytes]]]:
    found = broker.network.links.channels
    return {
        peer: (one.last, [frame.data for frame in one._out if not frame.position.rank])
        for peer, one in found.items()
    }


@pytest.mark.parametrize("condition", ["", "value > 0"])
def test_a_broker_that_is_told_again_puts_the_same_events_into_the_same_frames(condition: str) -> None:
    """Events of QoS 0 are not told again, and what is known of a topic is not either."""
    hall = Hall(line(2))
    reader = hall.visit(1, "reader")
    hall.settle()
    reader.subscribe("t", condition)
    hall.settle()
    writer = hall.visit(0, "writer")
    hall.settle()
    draw = random.Random(3)
    for start in range(1, 200, 20):
        levels = [draw.choice((0, 1, 1, 1, 2)) for _ in range(20)]
        talk(hall, writer, b"".join(packet(start + at, qos) for at, qos in enumerate(levels)))
        hall.now += 0.1
    desk = hall.desks[0]
    assert channels(desk)["B2"][0] > 0 or condition
    assert _channels(desk.replayed()) == channels(desk)


@pytest.mark.parametrize("dies", [False, True])
def test_a_run_that_was_taken_in_by_half_comes_again_for_the_rest(
    monkeypatch: pytest.MonkeyPatch, *, dies: bool
) -> None:
    """The receiver dies, or its link breaks, while events of a run wait their turn one by one."""
    monkeypatch.setattr(live_broker, "DELIVERIES_A_FRAME", 1)
    hall = Hall(line(2))
    reader = Silent(hall, 1, "reader")
    reader.subscribe("t")
    hall.settle()
    writer = hall.visit(0, "writer")
    hall.settle()
    talk(hall, writer, b"".join(packet(number) for number in range(1, 17)))
    near, far = hall.desks
    far.broker.handle(facts.PeerSent("B1", bytes(near.peer_writes.pop("B2"))), hall.now)
    turn = far.broker.turn(hall.now)
    far.store.written += turn.entries
    taken = far.network.links.channels["B1"].taken.number
    assert 0 < taken - near.network.links.channels["B2"].kept < 16
    if dies:
        hall.restart("B2")
        reader = Silent(hall, 1, "reader")
    else:
        reader.take(bytes(dict(turn.writes)[reader.number]), is_over=False)
        hall.unlink("B2")
        hall.relink()
    hall.settle()
    assert [int(event.payload) for event in reader.events] == list(range(1, 17))
    sent, took = near.network.links.channels["B2"], far.network.links.channels["B1"]
    assert took._taken_events == sent._sent_events == 16
