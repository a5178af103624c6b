"""What a client was handed behind an event that it has not answered is not handed to it again elsewhere."""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from mqtt5 import ConnectPacket, PubAckPacket, PublishPacket, QoS

from tests.live.hall import Hall, Visitor, line


class Slow(Visitor):
    """A client that answers no event before it is asked to."""

    def __init__(self, hall: Hall, broker: int, got: list[bytes]) -> None:
        hall.now += 0.01
        self.unanswered: list[PubAckPacket] = []
        super().__init__(hall.desks[broker], got)
        connect = ConnectPacket("reader", session_expiry_interval=600, keep_alive=0, clean_start=False)
        self.send(connect)
        hall.settle()

    def send(self, packet: Any) -> None:
        """Send a packet, unless it is an answer."""
        if isinstance(packet, PubAckPacket):
            self.unanswered.append(packet)
        else:
            super().send(packet)

    def answer(self) -> None:
        """Answer everything."""
        while self.unanswered:
            super().send(self.unanswered.pop(0))


def _publish(hall: Hall, writer: Visitor, payload: bytes, qos: QoS) -> None:
    hall.now += 0.01
    writer.send(PublishPacket("news", payload, qos=qos, packet_id=1 if int(qos) else None))
    hall.settle()


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_an_event_of_qos_0_comes_once_though_an_earlier_one_waits_for_its_answer(scheme: str) -> None:
    """The unanswered one goes along in the session, and is sent again; the other one is done with."""
    hall = Hall(line(3, scheme=scheme))
    writer = hall.visit(2, "writer", lasts_s=60)
    hall.settle()
    got: list[bytes] = []
    reader = Slow(hall, 0, got)
    reader.subscribe("news")
    _publish(hall, writer, b"sure", QoS.AT_LEAST_ONCE)
    _publish(hall, writer, b"unsure", QoS.AT_MOST_ONCE)
    assert got == [b"sure", b"unsure"]
    reader.lose()
    hall.settle()
    again = Slow(hall, 1, got)
    assert got == [b"sure", b"unsure", b"sure"]
    again.lose()
    hall.settle()
    hall.restart("B2")
    hall.settle()
    Slow(hall, 1, got)
    assert got == [b"sure", b"unsure", b"sure", b"sure"]


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_what_was_answered_stays_answered_whatever_came_before_it(scheme: str) -> None:
    """Events of one source that arrive again in another order do not set back how far the client has come."""
    hall = Hall(line(3, scheme=scheme))
    writer = hall.visit(2, "writer", lasts_s=60)
    hall.settle()
    got: list[bytes] = []
    reader = Slow(hall, 0, got)
    reader.subscribe("news")
    for payload, qos in ((b"1", 1), (b"2", 0), (b"3", 1)):
        _publish(hall, writer, payload, QoS(qos))
    reader.lose()
    hall.settle()
    second = Slow(hall, 1, got)
    del got[:]
    second.answer()
    hall.settle()
    second.lose()
    hall.settle()
    third = Slow(hall, 0, got)
    _publish(hall, writer, b"4", QoS.AT_LEAST_ONCE)
    assert got == [b"4"]
    assert isinstance(third.inbox[0], mqtt5.ConnAckPacket)
    assert third.inbox[0].session_present


@pytest.mark.parametrize("window", [1, 100])
def test_what_is_stored_comes_once_to_a_client_that_was_gone_when_its_session_came(window: int) -> None:
    """A session that is adopted without its client has nothing waiting that a copy has stored too."""
    hall = Hall(line(3))
    writer = hall.visit(2, "writer", lasts_s=60)
    hall.settle()
    for broker in (0, 1, 0):  # so that there is a copy where it goes next
        reader = hall.visit(broker, "reader", lasts_s=600)
        hall.settle()
        reader.subscribe("news")
        reader.lose()
        hall.settle()
    for payload in (b"1", b"2", b"3"):
        _publish(hall, writer, payload, QoS.AT_LEAST_ONCE)
    hall.visit(1, "reader", lasts_s=600).lose()
    hall.settle()
    assert "reader" in hall.desks[1].core.state.sessions
    back = hall.visit(1, "reader", lasts_s=600, receive_max=window)
    hall.settle()
    assert back.got == [b"1", b"2", b"3"]


def test_a_retained_copy_says_nothing_about_earlier_events_of_its_publisher() -> None:
    """A client answers a copy that it was sent for a new subscription, before what is stored for it comes."""
    hall = Hall(line(2, scheme="reactive"))
    writer = hall.visit(0, "writer", lasts_s=60)
    got: list[bytes] = []
    reader = Slow(hall, 0, got)
    reader.subscribe("news")
    reader.lose()
    _publish(hall, writer, b"earlier", QoS.AT_LEAST_ONCE)
    hall.now += 0.01
    writer.publish("last", b"retained", retain=True)
    hall.settle()
    hall.now += 0.01
    away = Visitor(hall.desks[1], got)
    away.send(ConnectPacket("reader", session_expiry_interval=600, keep_alive=0, clean_start=False))
    hall.carry("B2", "B1")
    hall.carry("B1", "B2")  # the session; what is stored has not been asked for yet
    away.send = lambda packet: None if isinstance(packet, PubAckPacket) else Visitor.send(away, packet)  # type: ignore[method-assign]  # for this test
    away.ask("last")
    assert got == [b"retained"]
    away.lose()
    again = Visitor(hall.desks[1], got)
    again.send(ConnectPacket("reader", session_expiry_interval=600, keep_alive=0, clean_start=False))
    assert got == [b"retained", b"retained"]
    hall.settle()
    assert got == [b"retained", b"retained", b"earlier"]
