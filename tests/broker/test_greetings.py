"""Retained events for a new subscription are looked at in turn with what others ask for."""

from __future__ import annotations

import mqtt5
import pytest
from mqtt5 import ConnectPacket, DisconnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.mqtt import content, costs, greeting
from sojourn.mqtt.limits import Limits
from tests.broker.alone import PING, PINGRESP, Alone
from tests.counting import counted

COUNT = 300
LARGE = b"{" + b",".join(b'"field%d":%d' % (one, one) for one in range(200)) + b"}"
POLICY = " OR ".join(f"(a{one} = 1 AND b{one} = 2)" for one in range(60)) + " OR role IS NULL"
SOME = greeting.WORK // min(len(LARGE), greeting.ALTERNATIVE * 61) + 2
"""How many of these are looked at, at once."""


def retained(number: int, *, payload: bytes = LARGE, policy: str = "") -> PublishPacket:
    """A retained event."""
    said = [("policy", policy)] if policy else []
    return PublishPacket(
        f"r/{number:03}", payload, retain=True, qos=QoS.AT_LEAST_ONCE, packet_id=1, user_properties=said
    )


def wanted(condition: str = "", topic: str = "r/#") -> SubscribePacket:
    """A SUBSCRIBE to all of them."""
    said = [("filter", condition)] if condition else []
    return SubscribePacket(7, [TopicFilter(topic, max_qos=QoS.AT_LEAST_ONCE)], user_properties=said)


def fill(hall: Alone, policy: str = "") -> None:
    """Retain many events."""
    publisher = hall.client("publisher")
    for number in range(COUNT):
        hall.send(publisher, retained(number, policy=policy))
    hall.settle()


def topics(hall: Alone, number: int) -> list[str]:
    """Take the topics of the events that a client was written."""
    return [one.topic for one in hall.packets(number) if isinstance(one, mqtt5.PublishPacket)]


def waiting(broker: LiveBroker, name: str = "reader") -> list[tuple[int, str]]:
    """What a client was sent and has not acknowledged, under which numbers."""
    inflight = broker.core.state.sessions[name].inflight
    return [(number, one.message.topic) for number, one in inflight.items() if one is not None]


@pytest.mark.parametrize(("condition", "policy"), [("field7 = 7", ""), ("nothing = 1", ""), ("", POLICY)])
def test_a_greeting_that_takes_long_is_cut(
    condition: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the work that it takes; in the end its client has all that it wants, once and in order."""
    hall = Alone()
    fill(hall, policy)
    reader, other = hall.client("reader"), hall.client("other")
    looked: list[tuple[object, ...]] = []
    monkeypatch.setattr(content, "read_json", counted(content.read_json, looked))
    monkeypatch.setattr(
        hall.broker.core.deliverer, "permits", counted(hall.broker.core.deliverer.permits, looked)
    )
    hall.send(reader, wanted(condition))
    assert 0 < len(looked) <= SOME
    hall.send(other, PING)
    hall.turn()
    hall.turn()
    assert hall.came[other] == PINGRESP
    assert len(looked) <= 3 * SOME < COUNT
    hall.settle()
    assert len(looked) == COUNT
    expected = [] if condition.startswith("nothing") else [f"r/{number:03}" for number in range(COUNT)]
    assert topics(hall, reader) == expected


def test_a_greeting_that_was_cut_is_told_again() -> None:
    """From the journal alone, and from a snapshot in its midst: the same events under the same numbers."""
    hall = Alone()
    fill(hall)
    reader, publisher = hall.client("reader", session_expiry_interval=600), hall.client("late")
    hall.send(reader, wanted("field7 = 7"))
    hall.turn()
    snapshot, before = hall.broker.snapshot(), len(hall.entries)
    hall.send(publisher, retained(0, payload=b'{"field7":7}'), retained(COUNT - 1, payload=b"{}"))
    hall.send(publisher, retained(COUNT, payload=b'{"field7":7}'), retained(COUNT - 2, payload=b""))
    hall.settle()
    found = waiting(hall.broker)
    assert len(found) == COUNT - 2 + 2
    assert waiting(hall.again()) == found
    revived = LiveBroker.revived(hall.settings, "next", hall.now, snapshot, hall.entries[before:])
    assert waiting(revived) == found


def test_a_greeting_ends_with_its_subscription() -> None:
    """And what a client sends behind its SUBSCRIBE is read after it."""
    hall = Alone()
    fill(hall)
    reader = hall.client("reader", session_expiry_interval=600)
    hall.send(reader, wanted("field7 = 7"), PING, DisconnectPacket())
    hall.settle()
    assert len(topics(hall, reader)) == COUNT
    session = hall.broker.core.state.sessions["reader"]
    reader = hall.client("reader", clean_start=False, session_expiry_interval=600)
    hall.packets(reader)
    hall.send(reader, wanted("nothing = 1"))
    hall.broker.core.subscriber.remove(session.subscriptions["r/#"])
    hall.settle()
    assert not hall.broker.core.state.connections[reader].greets


def test_no_client_can_send_what_is_left_of_a_greeting() -> None:
    """It is malformed, as any packet of no kind; before a CONNECT, too."""
    hall = Alone()
    fill(hall)
    reader = hall.client("reader")
    hall.send(reader, wanted("field7 = 7", "r/001"))
    rest = greeting.Rest("r/001", (0, "", ""), (1 << 60, "", ""), hall.now).packet()
    hall.settle()
    hall.packets(reader)
    hall.send(reader, rest)
    hall.settle()
    assert reader in hall.closed
    assert topics(hall, reader) == []
    hall.opened += 1
    hall.tell(facts.ClientOpened(hall.opened, "here", "fresh"))
    hall.send(hall.opened, rest, ConnectPacket("late"))
    hall.settle()
    assert hall.opened in hall.closed
    hall.again()


UNREAD = 10_000
"""What a client may leave unread, where that is little."""
SIZE = 3_000
LITERAL = [f"r/{number:03}" for number in range(40)]


def large(hall: Alone, size: int = SIZE) -> None:
    """Retain some events that are large."""
    publisher = hall.client("publisher")
    for number in range(len(LITERAL)):
        hall.send(publisher, retained(number, payload=bytes(size)))
        hall.settle()


def literal(qos: QoS = QoS.AT_MOST_ONCE) -> SubscribePacket:
    """A SUBSCRIBE that names the topic of each."""
    return SubscribePacket(7, [TopicFilter(topic, max_qos=qos) for topic in LITERAL])


def written(hall: Alone) -> dict[int, int]:
    """End a turn, and say how many bytes were written to whom."""
    before = {number: len(data) for number, data in hall.came.items()}
    hall.turn()
    return {number: len(data) - before.get(number, 0) for number, data in hall.came.items()}


@pytest.mark.parametrize("qos", [QoS.AT_MOST_ONCE, QoS.AT_LEAST_ONCE])
def test_one_subscribe_sends_no_more_at_once_than_may_be_left_unread(qos: QoS) -> None:
    """However many topic filters it has; the rest follows in later turns, in order, and in others' turns."""
    hall = Alone(Limits(output_bytes_max=UNREAD))
    large(hall)
    reader, other = hall.client("reader", session_expiry_interval=600), hall.client("other")
    hall.send(reader, literal(qos))
    hall.send(other, PING)
    turns = 0
    while True:
        while hall.broker.has_slices:  # as a driver does that has all the time there is
            hall.broker.handle(facts.ReadyForMore(), hall.now)
        assert written(hall).get(reader, 0) < UNREAD + 2 * SIZE
        if not hall.broker.has_work:
            break
        turns += 1
    assert turns >= len(LITERAL) * SIZE // (UNREAD + SIZE)
    assert hall.came[other] == PINGRESP
    told, live = hall.again(), hall.broker
    assert waiting(told) == waiting(live)
    assert [one[1] for one in waiting(live)] == (LITERAL if int(qos) else [])
    assert topics(hall, reader) == LITERAL


def test_retained_events_wait_while_their_client_does_not_read() -> None:
    """None waits in a queue, none is dropped, and what the client says next is read behind them."""
    hall = Alone(Limits(output_bytes_max=UNREAD, queue_bytes_max=UNREAD))
    large(hall)
    reader, other = hall.client("reader"), hall.client("other")
    hall.send(reader, literal(), PING)
    hall.turn()
    hall.tell(facts.ClientBlocked(reader))
    hall.settle()
    assert len(hall.came[reader]) < 2 * (UNREAD + SIZE)
    hall.send(other, PING)
    hall.settle()
    assert hall.came[other] == PINGRESP
    assert hall.broker.core.state.queued == 0
    for _ in LITERAL:
        hall.tell(facts.ClientDrained(reader))
        hall.turn()
        hall.turn()
        hall.tell(facts.ClientBlocked(reader))
    hall.settle()
    assert hall.came[reader].endswith(PINGRESP)
    hall.came[reader] = hall.came[reader].removesuffix(PINGRESP)
    assert topics(hall, reader) == LITERAL
    assert not hall.broker.core.state.counters.dropped


def test_retained_events_that_find_no_room_are_dropped() -> None:
    """Of QoS 1 no more is on its way to a client than may be; what else it said is read all the same."""
    hall = Alone(Limits(output_bytes_max=UNREAD, queue_bytes_max=2 * UNREAD))
    large(hall)
    reader = hall.client("reader")
    hall.send(reader, literal(QoS.AT_LEAST_ONCE), PING)
    hall.settle()
    assert hall.came[reader].endswith(PINGRESP)
    count = 2 * UNREAD // SIZE
    assert len(waiting(hall.broker)) == count
    assert hall.broker.core.state.counters.dropped == {"queue full": len(LITERAL) - count}


def test_a_client_that_goes_before_it_has_read_leaves_nothing_behind() -> None:
    """Its retained events wait for nobody any more."""
    hall = Alone(Limits(output_bytes_max=UNREAD))
    large(hall)
    reader = hall.client("reader")
    hall.send(reader, literal())
    hall.turn()
    hall.tell(facts.ClientBlocked(reader))
    hall.settle()
    assert reader in hall.broker.core.state.input.unread
    hall.tell(facts.ClientLost(reader))
    hall.settle()
    state = hall.broker.core.state
    assert not state.input.unread
    assert not state.input.ring
    assert reader not in state.connections
    assert "reader" not in hall.again().core.state.sessions


def test_many_that_subscribe_are_sent_retained_events_turn_by_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a turn puts out of them is limited for all clients together."""
    monkeypatch.setattr(costs, "OUTPUT_A_TURN", UNREAD)
    monkeypatch.setattr(costs, "OUTPUT_BYTES", 1)
    hall = Alone(Limits(output_bytes_max=UNREAD))
    large(hall)
    readers = [hall.client(f"reader{number}") for number in range(20)]
    for reader in readers:
        hall.send(reader, SubscribePacket(7, [TopicFilter("r/#")]))
    while True:
        total = sum(written(hall).values())
        assert total < 3 * (UNREAD + SIZE)
        if not hall.broker.has_work:
            break
    for reader in readers:
        assert topics(hall, reader) == LITERAL
