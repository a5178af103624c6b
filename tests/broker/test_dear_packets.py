"""Packets that cost more than they look like: what a broker keeps, decodes and does for them."""

from __future__ import annotations

from typing import Any

import pytest
from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    DisconnectPacket,
    PubAckPacket,
    PublishPacket,
    PubRecPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    UnsubscribePacket,
)

from sojourn.broker import facts
from sojourn.mqtt import mqtt3, subscribing
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import new_message
from sojourn.mqtt.rights import NOTHING
from tests.broker.alone import PING, PINGRESP, Alone
from tests.counting import counted
from tests.live.hall import Hall, line
from tests.mqtt import old_words as old
from tests.mqtt.test_weighing import decoded

__all__ = ["decoded"]

OTHERS = [("x", "y" * 1_000)] * 10
"""User properties that say nothing of a subscription."""
FILTERED = [("filter", "a = 1"), *OTHERS]


def wide(count: int, said: list[tuple[str, str]]) -> SubscribePacket:
    """A SUBSCRIBE with many topic filters."""
    return SubscribePacket(
        7,
        [TopicFilter(f"z/{number}", max_qos=QoS.AT_MOST_ONCE) for number in range(count)],
        user_properties=said,
    )


@pytest.mark.parametrize("said", [OTHERS, FILTERED])
def test_parts_of_a_subscribe_have_what_they_need_and_no_more(said: list[tuple[str, str]]) -> None:
    """What a broker notes of a packet is about as long as the packet, however many parts it is cut into."""
    hall = Alone()
    client = hall.client("c", session_expiry_interval=600)
    before = sum(map(len, hall.entries))
    packet = wide(200, said)
    hall.send(client, packet)
    connection = hall.broker.core.state.connections[client]
    assert sum(map(len, connection.pieces)) < len(packet.write())
    hall.settle()
    (answer,) = hall.packets(client)
    assert isinstance(answer, SubAckPacket)
    assert {int(code) for code in answer.reason_codes} == {0}
    assert sum(map(len, hall.entries)) - before < 2 * len(packet.write())
    again = hall.again().core.state.sessions["c"].subscriptions
    assert [one.filter_text for one in again.values()] == [dict(said).get("filter")] * 200


@pytest.mark.parametrize(("count", "code"), [(10, 0x97), (100, None)])
def test_what_goes_with_each_part_is_not_longer_than_four_filters(count: int, code: int | None) -> None:
    """Who sends more is disconnected; without parts it is refused, and the session goes on."""
    hall = Alone()
    client = hall.client("c")
    hall.send(client, wide(count, [("filter", "a = '" + "x" * 20_000 + "'")]))
    hall.settle()
    (answer,) = hall.packets(client)
    if code is None:
        assert isinstance(answer, DisconnectPacket)
        assert answer.reason_code == 0x97
    else:
        assert isinstance(answer, SubAckPacket)
        assert {int(one) for one in answer.reason_codes} == {code}
    assert (client in hall.closed) is (code is None)


def test_topic_filters_beyond_the_number_of_filters_are_not_looked_at() -> None:
    """One client may have so many with a filter; the rest is refused without a part of its own."""
    hall = Alone(Limits(filters_max=10))
    client = hall.client("c")
    hall.send(client, wide(1_000, FILTERED))
    assert hall.settle() < 10
    (answer,) = hall.packets(client)
    assert isinstance(answer, SubAckPacket)
    assert [int(code) for code in answer.reason_codes] == [0] * 10 + [0x97] * 990


def test_who_may_subscribe_to_nothing_has_no_filter_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its topic filters are refused before its filter is looked at, in as few parts as plain ones."""
    hall = Alone()
    client = hall.client("c")
    hall.broker.core.state.sessions["c"].permissions = NOTHING
    read: list[str] = []
    monkeypatch.setattr(subscribing, "parse_filter", read.append)
    hall.send(client, wide(200, FILTERED))
    assert hall.settle() <= 200 // 32 + 2
    assert read == []
    (answer,) = hall.packets(client)
    assert isinstance(answer, SubAckPacket)
    assert {int(code) for code in answer.reason_codes} == {0x87}


@pytest.mark.parametrize("is_old", [False, True])
def test_parts_of_a_client_that_has_gone_are_let_go(is_old: bool) -> None:
    """What it sent after its SUBSCRIBE is taken all the same, but for further ones; a restart agrees."""
    hall = Alone(traces=True)
    other = hall.client("other", session_expiry_interval=600)
    hall.send(other, SubscribePacket(1, [TopicFilter("t")]))
    hall.settle()
    hall.packets(other)
    if is_old:
        number = hall.opened = hall.opened + 1
        hall.tell(facts.ClientOpened(number, "here", "fresh"))
        hall.send(number, old.connect("c", clean=False))
        hall.settle()
        long = old.subscribe(*[(f"z/{one}", 0) for one in range(1_000)], number=7)
        event: Any = old.publish("t", b"x")
    else:
        number = hall.client("c", session_expiry_interval=600)
        long, event = wide(1_000, []).write(), PublishPacket("t", b"x").write()
    hall.send(number, long, event, long, event)
    hall.turn()
    taken = len(hall.broker.core.state.sessions["c"].subscriptions)
    assert taken < 200
    hall.tell(facts.ClientLost(number))
    assert hall.settle() < 5
    assert len(hall.broker.core.state.sessions["c"].subscriptions) <= taken + 32
    assert hall.broker.core.state.counters.received == 2
    assert number not in hall.broker.core.state.connections
    assert len(hall.packets(other)) == 2
    before, after = (one.core.state.sessions["c"] for one in (hall.broker, hall.again()))
    assert before.subscriptions.keys() == after.subscriptions.keys()


def test_a_connect_is_decoded_once_before_its_password_is_compared(decoded: list[tuple[bytes]]) -> None:
    """However many read it: the journal, which must not have the password, and who compares it."""
    hall = Alone()
    hall.tell(facts.ClientOpened(1, "here", "fresh"))
    decoded.clear()
    hall.broker.handle(
        facts.ClientSent(1, ConnectPacket("c", username="u", password=b"secret").write()), hall.now
    )
    assert len(hall.broker.knocks) == 1
    assert len(decoded) == 1
    hall.turn()
    assert not any(b"secret" in entry for entry in hall.entries)


def test_dear_connects_are_not_taken_in_one_turn() -> None:
    """Of many that come at once, each with much to read, some wait their turn; a ping does not wait long."""
    hall = Alone()
    other = hall.client("other")
    dear = ConnectPacket("", user_properties=[("x", "y" * 60_000)] * 4).write()
    for number in range(100, 120):
        hall.broker.handle(facts.ClientOpened(number, "here", f"fresh-{number}"), hall.now)
        hall.broker.handle(facts.ClientSent(number, dear), hall.now)
    assert len(hall.broker.knocks) == 1
    hall.send(other, PING)
    while other not in hall.came:
        hall.turn()
    assert hall.came[other] == PINGRESP
    hall.settle()
    answers = [hall.packets(number)[0] for number in range(100, 120)]
    assert [one.reason_code for one in answers if isinstance(one, ConnAckPacket)] == [0] * 20


def retain(hall: Alone, count: int) -> None:
    """Have a broker keep some retained messages."""
    for number in range(count):
        message = new_message(f"r/{number % 10}/{number}", b"x", qos=0, now=hall.now, retain=True)
        message.sequence = number
        hall.broker.core.state.retained.keep(message)


def test_wildcards_over_many_retained_messages_are_parts_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A short SUBSCRIBE may ask for all of them several times: others are answered in between."""
    hall = Alone()
    retain(hall, 6_000)
    greedy, other = hall.client("greedy"), hall.client("other")
    wanted = [TopicFilter("r/" * (depth > 0) + "+/" * (2 - depth) + "#") for depth in range(2)]
    packet = SubscribePacket(1, [*wanted, TopicFilter("#"), TopicFilter("r/1/11")])
    assert len(packet.write()) < 128
    found: list[tuple[str, float]] = []
    retained = hall.broker.core.state.retained
    monkeypatch.setattr(retained, "matching", counted(retained.matching, found))
    hall.send(greedy, packet)
    assert len(found) == 1
    hall.send(other, PING)
    while other not in hall.came:
        hall.turn()
    assert len(found) < 4
    hall.settle()
    packets = hall.packets(greedy)
    (answer,) = [one for one in packets if isinstance(one, SubAckPacket)]
    assert len(answer.reason_codes) == 4
    assert sum(isinstance(one, PublishPacket) for one in packets) == 3 * 6_000 + 1


def test_short_retained_messages_are_not_all_sent_at_once() -> None:
    """What is left goes out in later turns, in order and without a gap."""
    hall = Alone()
    retain(hall, 10_000)
    client = hall.client("c")
    hall.send(client, SubscribePacket(1, [TopicFilter("#")]))
    hall.turn()
    first = [one.topic for one in hall.packets(client) if isinstance(one, PublishPacket)]
    assert 0 < len(first) <= 2 * 4_096
    hall.settle()
    rest = [one.topic for one in hall.packets(client) if isinstance(one, PublishPacket)]
    assert first + rest == [f"r/{number % 10}/{number}" for number in range(10_000)]


@pytest.mark.parametrize("traces", [False, True])
def test_events_of_old_clients_are_translated_a_slice_at_a_time(
    traces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of thousands that come at once no more are turned into another version than are taken in."""
    hall = Alone(traces=traces)
    hall.tell(facts.ClientOpened(1, "here", "fresh"))
    hall.opened = 1
    hall.send(1, old.connect("c"))
    hall.settle()
    other = hall.client("other")
    translated: list[tuple[object, ...]] = []
    monkeypatch.setattr(mqtt3, "_packet", counted(mqtt3._packet, translated))
    hall.send(1, old.publish("t", b"x") * 5_000 + old.publish("t", b"last")[:-2])
    assert len(translated) <= 256
    hall.send(other, PING)
    while other not in hall.came:
        hall.turn()
    assert len(translated) <= 1_024
    hall.settle()
    assert hall.broker.core.state.counters.received == 5_000
    assert len(translated) == 5_000
    hall.send(1, b"st", old.publish("t", b"x"))
    hall.settle()
    assert hall.broker.core.state.counters.received == 5_002


def test_old_clients_have_no_more_topic_filters_looked_at_than_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A SUBSCRIBE of 3.1.1 with more than a packet may have is not even translated."""
    hall = Alone(Limits(topic_filters_max=100))
    for level in (4, 0x84):
        number = hall.opened = hall.opened + 1
        hall.tell(facts.ClientOpened(number, "here", f"fresh-{number}"))
        hall.send(number, old.connect(f"c{number}", level=level))
        hall.settle()
        read: list[bytes] = []
        monkeypatch.setattr(mqtt3, "_of_bridge", read.append)
        hall.send(number, old.subscribe(*[("t", 0)] * 101))
        hall.settle()
        assert number in hall.closed
        assert read == []
    assert hall.broker.core.state.counters.refused["quota_exceeded"] == 2


@pytest.mark.parametrize("brokers", [1, 2])
def test_what_somebody_without_rights_is_refused_is_not_noted(brokers: int) -> None:
    """Refused events, subscriptions and ends of them leave no trace in a journal, and are counted."""
    hall = Hall(line(brokers), lambda knock: facts.ClientAdmitted(knock.number, publish=[], subscribe=[]))
    guest = hall.visit(0, "guest", lasts_s=900)
    hall.settle()
    desk = hall.desks[0]
    before = len(desk.store.written)
    for number in range(1, 20):
        options: dict[str, Any] = {"packet_id": 1, "qos": QoS(number % 3)} if number % 3 else {}
        guest.send(PublishPacket("t" * 99, bytes(99), retain=number % 2 == 0, **options))
        guest.send(wide(40, OTHERS))
        guest.send(UnsubscribePacket(8, [f"z/{one}" for one in range(40)]))
    hall.settle()
    noted = [facts.read_entry(one).fact for one in desk.store.written[before:]]
    assert not [one for one in noted if isinstance(one, facts.PacketsTaken)]
    assert desk.core.state.counters.refused == {
        "publish not_authorized": 19,
        "subscribe not_authorized": 19 * 40,
    }
    codes = [int(one.reason_code) for one in guest.inbox if isinstance(one, (PubAckPacket, PubRecPacket))]
    assert codes == [0x87] * 13
    refused = [{*map(int, one.reason_codes)} for one in guest.inbox if isinstance(one, SubAckPacket)]
    assert refused == [{0x87}] * 19
