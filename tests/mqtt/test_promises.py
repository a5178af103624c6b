"""What a broker tells a client and holds to: answers, expiry, receive maximum, numbers of its own events."""

from __future__ import annotations

import mqtt5
import pytest
from mqtt5 import (
    ConnectPacket,
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    UnsubAckPacket,
    UnsubscribePacket,
)

from sojourn.mqtt.effects import SubAckDue, Turn
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import new_message
from sojourn.mqtt.session import NEVER
from tests.mqtt.world import Client, World

# SUBACK ------------------------------------------------------------------------------------------------


def waiting() -> tuple[World, Client]:
    """A broker that routes, whose answers to SUBSCRIBE wait for somebody to send them."""
    world = World()
    world.core.effects.collects = True
    world.answers = False
    client = world.client()
    client.connect("c")
    return world, client


def test_whoever_routes_answers_a_subscribe() -> None:
    """The subscription stands, and retained messages come; the answer goes out when it is released."""
    world, client = waiting()
    kept = new_message("t", b"kept", qos=0, now=world.now, retain=True)
    kept.sequence = 1
    world.core.retain(kept)
    client.send(SubscribePacket(7, [TopicFilter("t"), TopicFilter("a/" * 300)]))
    assert client.payloads() == [b"kept"]
    assert [one.turn for one in world.core.effects.changes] == [Turn.ARRIVED, Turn.SUBSCRIBED]
    (due,) = world.core.effects.subacks
    assert isinstance(due, SubAckDue)
    assert (due.number, due.client_id) == (client.number, "c")
    world.core.answer(due.number, due.packet)
    world.carry_out()
    answer = client.next(SubAckPacket)
    assert (answer.packet_id, [int(code) for code in answer.reason_codes]) == (7, [2, 0x8F])


def test_an_answer_comes_only_on_the_connection_that_asked() -> None:
    """One that is closed or lost in the meantime gets none, and the next of the client neither."""
    world, client = waiting()
    client.send(SubscribePacket(7, [TopicFilter("t")]))
    (due,) = world.core.effects.subacks
    again = world.client()
    again.connect("c", clean_start=False)
    for _ in range(2):
        world.core.answer(due.number, due.packet)
        world.carry_out()
        assert not any(isinstance(one, SubAckPacket) for one in (*client.inbox, *again.inbox))
        world.core.lost(due.number, world.now)


def test_an_unsubscribe_is_answered_at_once() -> None:
    """It needs nobody else."""
    world, client = waiting()
    client.send(SubscribePacket(7, [TopicFilter("t")]))
    client.send(UnsubscribePacket(8, ["t"]))
    assert client.next(UnsubAckPacket).packet_id == 8
    assert len(world.core.effects.subacks) == 1


def test_a_single_broker_answers_a_subscribe_at_once() -> None:
    """Before anything that it asked for."""
    world = World()
    world.answers = False
    client = world.client()
    client.connect("c")
    client.publish("t", b"kept", retain=True)
    client.send(SubscribePacket(7, [TopicFilter("t")]))
    client.next(SubAckPacket)
    assert client.payloads() == [b"kept"]
    assert not world.core.effects.subacks


# Expiry ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "further", "asked", "granted"),
    [
        (100, None, 1_000, 100),
        (100, 60.9, 1_000, 60),
        (100, 60.9, NEVER, 60),
        (100, 600.0, NEVER, 100),
        (100, 60.0, 10, 10),
        (NEVER, 60.0, NEVER, 60),
        (NEVER, None, NEVER, NEVER),
        (NEVER, float("inf"), NEVER, NEVER),
        (100, 0.5, 10, 1),
        (100, 60.0, 0, 0),
    ],
)
def test_the_smaller_limit_on_expiry_is_told_and_holds(
    limit: int, further: float | None, asked: int, granted: int
) -> None:
    """A client is told if it gets less than it asked for, and its session ends then."""
    world = World(Limits(session_expiry_max_s=limit), session_expiry_max_s=further)
    client = world.client()
    told = client.connect("c", session_expiry_interval=asked).session_expiry_interval
    assert told == (None if granted == asked else granted)
    client.lose()
    if granted:
        world.wait(min(granted, 10**6) - 0.5)
        assert "c" in world.core.state.sessions
    if granted != NEVER:
        world.wait(1)
        assert "c" not in world.core.state.sessions


def test_the_limit_on_expiry_holds_for_disconnect_and_for_sessions_from_elsewhere() -> None:
    """Whatever was promised there."""
    world = World(session_expiry_max_s=60.0)
    client = world.client()
    client.connect("c", session_expiry_interval=10)
    client.send(mqtt5.DisconnectPacket(session_expiry_interval=NEVER))
    assert world.core.state.sessions["c"].expiry == 60
    there = World(Limits(session_expiry_max_s=NEVER))
    other = there.client()
    other.connect("other", session_expiry_interval=NEVER)
    state = there.core.custody.export_session("other", there.now)
    assert state is not None
    assert state.expiry == NEVER
    world.core.custody.adopt(state, world.now)
    world.wait(61)
    assert not world.core.state.sessions


# Receive maximum ---------------------------------------------------------------------------------------


def burst(qos: int, first: int, count: int) -> bytes:
    """Many messages in one piece."""
    return b"".join(
        PublishPacket("t", b"x", qos=QoS(qos), packet_id=number).write()
        for number in range(first, first + count)
    )


def test_a_client_that_overruns_the_receive_maximum_is_told_why() -> None:
    """After the answers to what it may send; nothing of the rest is taken."""
    world = World(Limits(receive_max=10))
    client = world.client()
    assert client.connect("c", session_expiry_interval=9).receive_max == 10
    client.send(burst(2, 1, 12))
    assert [client.next(PubRecPacket).packet_id for _ in range(10)] == list(range(1, 11))
    ended = client.next(mqtt5.DisconnectPacket)
    assert int(ended.reason_code) == 0x93
    assert client.closed
    assert not client.inbox
    assert world.core.state.sessions["c"].received == set(range(1, 11))


def test_messages_of_quality_1_are_answered_as_they_are_read() -> None:
    """So that none is unanswered, however many come in one piece, between others of QoS 2."""
    world = World(Limits(receive_max=10))
    client = world.client()
    client.connect("c")
    client.send(burst(2, 1, 10) + burst(1, 100, 500) + burst(2, 1, 10))
    kinds = [type(one) for one in client.inbox]
    assert kinds == [PubRecPacket] * 10 + [PubAckPacket] * 500 + [PubRecPacket] * 10
    client.inbox.clear()
    client.send(PubRelPacket(3))
    client.next(PubCompPacket)
    client.send(burst(2, 50, 1))
    client.next(PubRecPacket)
    client.send(burst(2, 51, 1))
    assert int(client.next(mqtt5.DisconnectPacket).reason_code) == 0x93


def test_the_receive_maximum_counts_anew_on_each_connection() -> None:
    """What the last connection left unreleased takes nothing from what the next one may send."""
    world = World(Limits(receive_max=10))
    client = world.client()
    client.connect("c", session_expiry_interval=9)
    client.send(burst(2, 1, 10))
    client.lose()
    again = world.client()
    again.connect("c", clean_start=False, session_expiry_interval=9)
    again.send(burst(2, 101, 10))
    assert [again.next(PubRecPacket).packet_id for _ in range(10)] == list(range(101, 111))
    assert not again.closed
    again.send(burst(2, 1, 1))
    assert int(again.next(mqtt5.DisconnectPacket).reason_code) == 0x93


def test_a_refused_message_does_not_count_as_unanswered() -> None:
    """Its PUBREC was the last word about it."""
    world = World(Limits(receive_max=2))
    client = world.client()
    client.connect("c")
    for number in range(1, 20):
        client.publish("$SYS/x", b"x", 2, number)
        assert int(client.next(PubRecPacket).reason_code) == 0x87


# Numbers of the client's own ---------------------------------------------------------------------------


def numbered(client: Client, number: int, qos: int, **options: bool) -> None:
    """Publish an event under a number of the client's own, with that as its payload."""
    client.publish(
        "t", b"%d" % number, qos, number, user_properties=[("sojourn-number", f"p:{number}")], **options
    )


def numbering() -> tuple[World, Client, Client]:
    """A publisher `p` and a subscriber."""
    world = World()
    world.core.kept = []
    publisher, subscriber = world.client(), world.client()
    publisher.connect("p", session_expiry_interval=9)
    subscriber.connect("s")
    subscriber.subscribe("t")
    world.core.take_kept()
    return world, publisher, subscriber


def test_an_event_that_comes_again_is_known() -> None:
    """Of any QoS, also at the broker that the session moved to."""
    world, publisher, subscriber = numbering()
    for number, qos in ((1, 0), (2, 1), (3, 0), (3, 0), (1, 0), (2, 1), (4, 2)):
        numbered(publisher, number, qos)
    assert subscriber.payloads() == [b"1", b"2", b"3", b"4"]
    numbered(publisher, 5, 0)
    state = world.core.custody.export_session("p", world.now)
    assert state is not None
    assert (state.last_number, state.last_unsure) == (4, 5)


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("retain", [False, True])
def test_nobody_numbers_the_events_of_another(qos: int, retain: bool) -> None:
    """Subscribers would take those for old that come of the other; what else was said is passed on."""
    _, publisher, subscriber = numbering()
    own = [("sojourn-number", "p:1"), ("a", "b")]
    for number, text in enumerate(("q:9", "9", ":9"), 1):
        others = ("sojourn-number", text)
        publisher.publish("t", b"x", qos, number, retain=retain, user_properties=[others, ("a", "b"), others])
    publisher.publish("t", b"x", qos, 4, retain=retain, user_properties=[*own, ("sojourn-number", "q:9")])
    assert [one.user_properties for one in subscriber.messages()] == [[("a", "b")]] * 3 + [own]


def test_nor_does_a_will() -> None:
    """It is published under the name of its client, too."""
    world, _, subscriber = numbering()
    client = world.client()
    said = [("sojourn-number", "p:9"), ("sojourn-number", "c:1"), ("a", "b")]
    client.connect("c", will=mqtt5.Will("t", payload=b"x", user_properties=said))
    client.lose()
    assert [one.user_properties for one in subscriber.messages()] == [said[1:]]


def test_an_event_that_had_to_wait_is_not_old_after_one_of_quality_0() -> None:
    """It was to be delivered in any case, and nothing of its number came before."""
    _, publisher, subscriber = numbering()
    for number, qos in ((1, 1), (3, 0), (2, 1)):
        numbered(publisher, number, qos)
    assert subscriber.payloads() == [b"1", b"3", b"2"]


def test_events_are_judged_alike_when_they_are_told_again() -> None:
    """Events of QoS 0 are not told again, and change nothing for the rest."""
    world, publisher, subscriber = numbering()
    for number, qos in ((1, 1), (9, 0), (5, 1), (7, 2), (6, 1)):
        numbered(publisher, number, qos)
    numbered(publisher, 8, 0, retain=True)
    live = [payload for payload in subscriber.payloads() if payload != b"9"]
    packets = world.core.take_kept()
    again, publisher, subscriber = numbering()
    again.core.received_again(publisher.number, packets, again.now)
    again.carry_out()
    assert subscriber.payloads() == live == [b"1", b"5", b"7", b"8"]


def test_a_client_that_is_refused_is_not_in() -> None:
    """Whoever lets clients in hears whether that came to anything."""
    world = World()
    for number, expected in ((1, True), (2, False)):
        world.core.opened(number, "here", "fresh", world.now)
        world.core.received(number, ConnectPacket("c").write(), world.now)
        world.core.effects.knocks.clear()
        if not expected:
            world.core.refuse(number, mqtt5.ConnAckReasonCode.SERVER_BUSY, "Later.")
        assert world.core.admit(number, world.admission, world.now) is expected
