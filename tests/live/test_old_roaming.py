"""Clients of MQTT 3.1.1 move between brokers, and change the version on the way; brokers die meanwhile."""

from __future__ import annotations

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
