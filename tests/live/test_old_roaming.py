"""Clients of MQTT 3.1.1 move between brokers, and change the version on the way; brokers die meanwhile."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.live.hall import Desk, Hall, Visitor, line
from tests.live.test_strange_clients import remembered
from tests.mqtt import old_words as old


class Words:
    """Bytes that can be sent like a packet."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def write(self) -> bytes:
        """The bytes."""
        return self.data


class OldVisitor(Visitor):
    """A connection that speaks MQTT 3.1.1."""

    def __init__(self, desk: Desk, got: list[bytes], client_id: str, **options: Any) -> None:
        self.old = old.Inbox()
        desk.hall.now += 0.01
        super().__init__(desk, got)
        self.say(old.connect(client_id, **options))

    def say(self, data: bytes) -> None:
        """Send bytes."""
        self.send(Words(data))

    def take(self, data: bytes, *, is_over: bool) -> None:
        """Read what the broker wrote, and answer events."""
        self.is_over = is_over
        for packet in self.old.feed(data):
            if packet.kind == old.PUBLISH:
                self.got.append(packet.payload)
                if packet.qos == 1 and not is_over:
                    self.say(old.answer(old.PUBACK, packet.number))
        if is_over:
            self.lose()

    def is_welcome(self) -> tuple[int, ...]:
        """The answer to the CONNECT: whether there is a session, and the code."""
        self.desk.hall.settle()
        (answer,) = self.old.take(old.CONNACK)
        return answer.codes

    def want(self, pattern: str) -> tuple[int, ...]:
        """Subscribe at QoS 1; return the codes."""
        self.say(old.subscribe((pattern, 1)))
        self.desk.hall.settle()
        (answer,) = self.old.take(old.SUBACK)
        return answer.codes


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
@pytest.mark.parametrize("dies", [False, True])
def test_a_session_follows_its_client_whatever_version_it_speaks(scheme: str, dies: bool) -> None:
    """From 3.1.1 to 3.1.1 to 5 and back: every event once, in order, over restarts of its brokers too."""
    hall = Hall(line(3, scheme))
    got: list[bytes] = []
    sent: list[bytes] = []
    source = OldVisitor(hall.desks[1], [], "source")
    assert source.is_welcome() == (0, 0)

    def publish(count: int) -> None:
        for _ in range(count):
            sent.append(b"%d" % len(sent))
            source.say(old.publish("news/a", sent[-1], 1, number=len(sent)))
            hall.settle()

    reader: Visitor = OldVisitor(hall.desks[0], got, "reader", clean=False)
    assert isinstance(reader, OldVisitor)
    assert reader.is_welcome() == (0, 0)
    assert reader.want("news/#") == (1,)
    publish(3)
    for place, is_old in ((2, True), (0, False), (1, True), (2, False), (0, True)):
        reader.lose()
        publish(3)
        if dies:
            hall.restart(f"B{place + 1}")
            hall.settle()
            if place == 1:
                source = OldVisitor(hall.desks[1], [], "source")
                assert source.is_welcome() == (0, 0)
        if is_old:
            reader = OldVisitor(hall.desks[place], got, "reader", clean=False)
            assert reader.is_welcome() == (1, 0)
        else:
            reader = hall.visit(place, "reader", got=got, lasts_s=1_000)
            hall.settle()
        publish(3)
        hall.wait(1.0)
        assert got == sent


@pytest.mark.parametrize("keeps", [False, True])
def test_a_broker_that_dies_is_what_it_was_with_old_clients(keeps: bool) -> None:
    """Its journal, with a snapshot in it or none, makes the same sessions of packets of 3.1.1."""
    hall = Hall(line(2))
    reader = OldVisitor(hall.desks[0], [], "reader", clean=False, username="u", password=b"geheim")
    reader.is_welcome()
    reader.want("a/#")
    if keeps:
        hall.desks[0].keep()
    source = OldVisitor(hall.desks[0], [], "source", will=("a/will", b"gone", 1, False))
    source.is_welcome()
    source.say(old.publish("a/b", b"1", 1, number=5) + old.publish("a/b", b"2", 2, number=6))
    hall.settle()
    desk = hall.desks[0]
    assert not any(b"geheim" in line for line in desk.store.written)
    if not keeps:
        replayed = desk.replayed()
        assert remembered(replayed) == remembered(desk.broker)
    hall.restart("B1")
    hall.settle()
    again: list[bytes] = []
    reader = OldVisitor(desk, again, "reader", clean=False)
    assert reader.is_welcome() == (1, 0)
    hall.settle()
    assert b"gone" in again


def test_an_old_client_whose_session_is_out_of_reach_is_told_that_nobody_serves_it_now() -> None:
    """0x88 of version 5 is 3 of 3.1.1: server unavailable; it tries again and finds its session."""
    hall = Hall(line(3))
    reader = OldVisitor(hall.desks[0], [], "reader", clean=False)
    reader.is_welcome()
    reader.want("a/#")
    reader.lose()
    hall.unlink("B1")
    hall.wait(10.0)
    reader = OldVisitor(hall.desks[2], [], "reader", clean=False)
    hall.wait(10.0)
    assert reader.old.take(old.CONNACK)[0].codes == (0, 3)
    hall.relink()
    hall.settle()
    hall.wait(10.0)
    reader = OldVisitor(hall.desks[2], [], "reader", clean=False)
    hall.wait(10.0)
    assert reader.is_welcome() == (1, 0)


class Crowd:
    """Readers of both versions that move at random, a writer at every broker, and brokers that die."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.hall = Hall(line(3, self.draw.choice(("proactive", "reactive"))))
        self.got: dict[str, list[bytes]] = {}
        self.readers: dict[str, Visitor] = {}
        self.sent: list[list[bytes]] = [[], [], []]
        self.writers = [self.writer(place) for place in range(3)]
        for number in range(4):
            self.come(f"reader {number}")
            self.hall.settle()
            reader = self.readers[f"reader {number}"]
            if isinstance(reader, OldVisitor):
                assert reader.want("all/#") == (1,)
            else:
                reader.subscribe("all/#")

    def writer(self, place: int) -> Visitor:
        """A client that publishes at a broker, of either version."""
        self.hall.now += 0.01
        name = f"writer {place}"
        if self.draw.random() < 0.5:
            return OldVisitor(self.hall.desks[place], [], name)
        return self.hall.visit(place, name, clean_start=True)

    def come(self, name: str) -> None:
        """Let a reader connect somewhere, in either version."""
        place, got = self.draw.randrange(3), self.got.setdefault(name, [])
        if self.draw.random() < 0.5:
            self.readers[name] = OldVisitor(self.hall.desks[place], got, name, clean=False)
        else:
            self.readers[name] = self.hall.visit(place, name, got=got, lasts_s=100_000)

    def step(self) -> None:
        """Let something happen."""
        draw, hall = self.draw, self.hall
        what = draw.random()
        if what < 0.6:
            place = draw.randrange(3)
            number = len(self.sent[place])
            payload = b"%d-%d" % (place, number)
            writer = self.writers[place]
            if isinstance(writer, OldVisitor):
                writer.say(old.publish("all/x", payload, 1, number=1 + number))
            else:
                writer.publish("all/x", payload)
            self.sent[place].append(payload)
        elif what < 0.85:
            name = draw.choice(list(self.readers))
            if draw.random() < 0.7:
                self.readers[name].lose()
                hall.settle()
            self.come(name)
        elif what < 0.9:
            place = draw.randrange(3)
            hall.settle()
            hall.restart(f"B{place + 1}")
            hall.settle()
            self.writers[place] = self.writer(place)
            for name, reader in list(self.readers.items()):
                if reader.desk is hall.desks[place]:
                    self.come(name)
        if draw.random() < 0.7:
            hall.settle()


@pytest.mark.parametrize("seed", range(12))
def test_readers_of_both_versions_miss_nothing_on_the_way(seed: int) -> None:
    """Every event of every writer, in its order; one that was answered too late may come twice."""
    crowd = Crowd(seed)
    for _ in range(120):
        crowd.step()
    crowd.hall.settle()
    for name in crowd.readers:
        if crowd.readers[name].is_over:
            crowd.come(name)
    crowd.hall.settle()
    crowd.hall.wait(5.0)
    assert sum(map(len, crowd.sent)) > 40
    for name, got in crowd.got.items():
        for place, sent in enumerate(crowd.sent):
            mine = [payload for payload in got if payload.startswith(b"%d-" % place)]
            assert list(dict.fromkeys(mine)) == sent, name
