"""The session core by itself: what a socket would make slow or random to test."""

from __future__ import annotations

import random
from typing import Any

import mqtt5
import msgspec
import pytest
from mqtt5 import (
    ConnectPacket,
    PubAckPacket,
    PublishPacket,
    PubRecPacket,
    QoS,
    SubscribePacket,
    TopicFilter,
    Will,
)

from sojourn.interest import Filter, TopicPattern
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.connection import State
from sojourn.mqtt.core import Core
from sojourn.mqtt.effects import Turn
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import new_message
from sojourn.mqtt.session import NEVER, Permissions
from sojourn.mqtt.session_state import SessionState
from tests.mqtt.world import Client, World, again


def pair(world: World, **options: object) -> tuple[Client, Client]:
    """A publisher, and a subscriber to everything."""
    publisher, subscriber = world.client(), world.client()
    publisher.connect("publisher")
    subscriber.connect("subscriber", session_expiry_interval=1_000, **options)
    subscriber.subscribe("#")
    return publisher, subscriber


def test_identifiers_are_used_again_only_when_free() -> None:
    """After a full turn those in use are skipped: reuse of one in use would lose a message."""
    world = World(Limits(inflight_max=10))
    publisher, subscriber = pair(world)
    publisher.publish("t", b"held", 1)
    held = subscriber.next(PublishPacket).packet_id
    frame = PublishPacket("t", b"x", qos=QoS.AT_LEAST_ONCE, packet_id=1).write()
    seen = set()
    for _ in range(7_300):
        publisher.send(frame * 9)
        for message in subscriber.messages():
            assert message.packet_id
            assert message.packet_id != held
            seen.add(message.packet_id)
            subscriber.send(PubAckPacket(message.packet_id))
    assert len(seen) == 65_534


def test_a_full_window_makes_messages_wait_in_order() -> None:
    """QoS 0 waits behind QoS 1 too, once something waits: a client sees one order."""
    world = World()
    publisher, subscriber = pair(world, receive_max=3)
    for number in range(20):
        publisher.publish("t", b"%d" % number, number % 3, number + 1)
    got: list[bytes] = []
    for _ in range(60):
        for packet in list(subscriber.inbox):
            subscriber.inbox.popleft()
            if isinstance(packet, PublishPacket):
                got.append(packet.payload)
                if packet.qos == QoS.AT_LEAST_ONCE:
                    subscriber.send(PubAckPacket(packet.packet_id or 0))
                elif packet.qos == QoS.EXACTLY_ONCE:
                    subscriber.send(PubRecPacket(packet.packet_id or 0))
            elif isinstance(packet, mqtt5.PubRelPacket):
                subscriber.send(mqtt5.PubCompPacket(packet.packet_id))
    assert got == [b"%d" % number for number in range(20)]


def test_time_brings_wills_and_ends_sessions() -> None:
    """A will after its delay, a session after its interval, exactly then."""
    world = World()
    watcher = world.client()
    watcher.connect("watcher")
    watcher.subscribe("will")
    client = world.client()
    will = Will("will", payload=b"gone", will_delay_interval=30)
    client.connect("client", will=will, session_expiry_interval=100, keep_alive=10)
    world.wait(14.9)
    assert not client.closed
    world.wait(0.2)
    assert int(client.next(mqtt5.DisconnectPacket).reason_code) == 0x8D
    world.wait(29)
    assert not watcher.payloads()
    world.wait(1)
    assert watcher.payloads() == [b"gone"]
    assert "client" in world.core.state.sessions
    world.wait(70)
    assert "client" not in world.core.state.sessions


def test_pings_and_messages_keep_a_connection_open() -> None:
    """The keep-alive counts from the last packet."""
    world = World()
    client = world.client()
    client.connect("alive", keep_alive=10)
    for _ in range(20):
        world.wait(14)
        client.send(mqtt5.PingReqPacket())
    assert not client.closed


def test_a_session_can_be_kept_for_good() -> None:
    """An interval of all ones, where the limit allows it."""
    world = World(Limits(session_expiry_max_s=NEVER))
    client = world.client()
    client.connect("ever", session_expiry_interval=NEVER)
    client.lose()
    world.wait(1e9)
    assert "ever" in world.core.state.sessions


def test_permissions_on_topics_and_attributes() -> None:
    """What a client may not publish or see."""
    world = World()
    world.admission = Admission(
        username="nurse",
        permissions=Permissions(
            publish=(TopicPattern.parse("ward/+"),),
            subscribe=(TopicPattern.parse("ward/#"),),
            publish_if=Filter.parse("level < 5"),
            subscribe_if=Filter.parse("secret IS NULL"),
        ),
    )
    client = world.client()
    client.connect("nurse")
    assert client.subscribe("#") == 0x87
    assert client.subscribe("ward/1", user_properties=[("filter", "level > 1")]) == 2
    for topic, level, extra in (
        ("ward/1", "3", []),
        ("ward/1", "7", []),
        ("ward/1/x", "3", []),
        ("ward/1", "1", []),
        ("ward/1", "3", [("secret", "yes")]),
    ):
        client.publish(topic, b"x", 1, user_properties=[("level", level), *extra])
    codes = [int(packet.reason_code) for packet in client.inbox if isinstance(packet, PubAckPacket)]
    assert codes == [0, 0x87, 0x87, 0, 0]
    assert len(client.messages()) == 1


def test_policies_decide_who_sees_an_event() -> None:
    """A policy is asked about the subscriber's attributes, vouched for or stated."""
    world = World()
    publisher = world.client()
    publisher.connect("publisher")
    world.admission = Admission(attributes={"role": "medic"}, may_state=False)
    medic = world.client()
    medic.connect("medic", user_properties=[("sojourn-attribute-role", "boss")])
    world.admission = Admission(may_state=True)
    boss = world.client()
    boss.connect(
        "boss", user_properties=[("sojourn-attribute-role", "boss"), ("sojourn-attribute-level", "3")]
    )
    for client in (medic, boss):
        client.subscribe("#")
    for text in ("role = 'medic'", "role = 'boss' AND level >= 3", "client = 'medic' OR client = 'boss'"):
        publisher.publish("t", text.encode(), 1, user_properties=[("policy", text)])
    publisher.publish("t", b"retained", 1, retain=True, user_properties=[("policy", "level > 2")])
    assert medic.payloads() == [b"role = 'medic'", b"client = 'medic' OR client = 'boss'"]
    assert len(boss.payloads()) == 3
    medic.send(SubscribePacket(2, [TopicFilter("t")]))
    assert not medic.messages()
    publisher.inbox.clear()
    publisher.publish("t", b"x", 1, user_properties=[("policy", "level >")])
    ack = publisher.next(PubAckPacket)
    assert int(ack.reason_code) == 0x83
    assert ack.reason_str


def test_advertisements_are_reported() -> None:
    """At CONNECT and through the control topic; one that does not parse is refused."""
    world = World()
    world.core.effects.collects = True
    client = world.client()
    client.connect("adv", user_properties=[("sojourn-advertise", "speed > 0")])
    turns = [change.turn for change in world.core.effects.changes]
    assert turns == [Turn.ADVERTISED, Turn.ARRIVED]
    client.publish("$sojourn/advertise", b"road = 'A2'\nspeed < 300", 1)
    assert int(client.next(PubAckPacket).reason_code) == 0
    session = world.core.state.sessions["adv"]
    assert list(session.advertisements) == ["speed > 0", "road = 'A2'", "speed < 300"]
    client.publish("$sojourn/advertise", b"road =", 1)
    assert int(client.next(PubAckPacket).reason_code) == 0x83
    client.publish("$sojourn/advertise", b"", 1)
    assert list(session.advertisements) == []
    other = world.client()
    answer = other.connect("bad", user_properties=[("sojourn-advertise", "speed >")])
    assert int(answer.reason_code) == 0x83


def test_filters_over_user_properties_and_json() -> None:
    """User properties are read as numbers and booleans and win over fields; nested fields have paths."""
    world = World()
    publisher = world.client()
    publisher.connect("publisher")
    texts = {
        "n > 2": [b"p3", b'{"n": 5}'],
        "ok = true": [b"ok"],
        "car.speed BETWEEN 10 AND 20": [b'{"car": {"speed": 15}}'],
        "n = 'three'": [b"text"],
        "topic LIKE 'a/+' AND n = 1": [b'{"n": 9}1'],
        "car IS NOT NULL": [b'{"car": {"speed": 15}}', b'{"car": {"speed": 99}}'],
    }
    subscribers = {}
    for text in texts:
        client = subscribers[text] = world.client()
        client.connect(f"s{len(subscribers)}")
        assert client.subscribe("#", user_properties=[("filter", text)]) == 2
    publisher.publish("x", b"p3", user_properties=[("n", "3")])
    publisher.publish("x", b"ok", user_properties=[("ok", "true")])
    publisher.publish("x", b'{"n": 5}')
    publisher.publish("x", b'{"car": {"speed": 15}}')
    publisher.publish("x", b'{"car": {"speed": 99}}')
    publisher.publish("x", b"text", user_properties=[("n", "three")])
    publisher.publish("a/b", b'{"n": 9}1', user_properties=[("n", "1")])
    publisher.publish("x", b'{"n": [1, 2], "car": "red"')
    publisher.publish("x", b"{" * 5_000)
    for text, expected in texts.items():
        assert subscribers[text].payloads() == expected, text


def test_hand_over_to_another_broker() -> None:
    """A session as plain data, through bytes, goes on elsewhere: in flight, waiting, half released."""
    here, there = World(), World(name="B2")
    publisher, subscriber = pair(here, receive_max=3, will=Will("w", payload=b"w", will_delay_interval=5))
    subscriber.subscribe("extra/+", 1, subscription_id=7, user_properties=[("filter", "n > 1")])
    for number in range(8):
        publisher.publish(
            f"t/{number}", b"%d" % number, 1 + number % 2, number + 1, message_expiry_interval=500
        )
    first = subscriber.messages()
    assert [int(one.payload) for one in first] == [0, 1, 2]
    subscriber.send(PubRecPacket(first[1].packet_id or 0))
    subscriber.send(PublishPacket("up", b"up", qos=QoS.EXACTLY_ONCE, packet_id=44))
    subscriber.lose()
    state = here.core.custody.export_session("subscriber", here.now + 100)
    assert state is not None
    encoded = through_bytes(state)
    here.core.custody.end_session("subscriber", here.now)
    assert "subscriber" not in here.core.state.sessions
    there.admission = Admission(state=encoded)
    again = there.client()
    options: dict[str, Any] = {"session_expiry_interval": 1_000, "receive_max": 3}
    assert again.connect("subscriber", clean_start=False, **options).session_present
    packets = list(again.inbox)
    assert [type(one).__name__ for one in packets[:3]] == ["PublishPacket", "PubRelPacket", "PublishPacket"]
    assert [one.packet_id for one in packets[:3]] == [one.packet_id for one in first]  # type: ignore[union-attr]  # of its kind
    assert packets[0].duplicate  # type: ignore[union-attr]  # of its kind
    assert packets[0].message_expiry_interval == 400  # type: ignore[union-attr]  # of its kind
    session = there.core.state.sessions["subscriber"]
    assert [delivery.message.payload for delivery in session.queue] == [b"3", b"4", b"5", b"6", b"7", b"up"]
    assert session.received == {44}
    assert session.subscriptions["extra/+"].identifiers == (7,)
    assert str(session.subscriptions["extra/+"].filter) == "n > 1"
    again.inbox.clear()
    again.send(PublishPacket("up", b"up", qos=QoS.EXACTLY_ONCE, packet_id=44, duplicate=True))
    again.next(PubRecPacket)
    assert len(session.queue) == 6


def through_bytes(state: SessionState) -> SessionState:
    """A state after a journey as bytes."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=SessionState)


def test_all_state_can_be_kept_and_goes_on() -> None:
    """A core that was stored and read answers as the original does, whatever happens next."""
    world = World()
    publisher, subscriber = pair(world)
    subscriber.subscribe("f", user_properties=[("filter", "n > 1")])
    publisher.publish("f", b"x", 1, user_properties=[("n", "2")])
    publisher.publish("r", b"kept", 1, retain=True)
    subscriber.lose()
    publisher.publish("f", b"y", 2, user_properties=[("n", "3")])
    copy = World()
    copy.core = again(world.core)
    copy.clients = {number: Client(copy, number) for number in world.clients}
    for each in (world, copy):
        back = each.client()
        assert back.connect("subscriber", clean_start=False).session_present
        assert [(one.payload, one.duplicate) for one in back.messages()] == [
            (b"x", True),
            (b"kept", True),
            (b"y", False),
        ]


def test_the_same_facts_have_the_same_effects() -> None:
    """Two cores that are told the same write the same bytes."""
    outputs = []
    for _ in range(2):
        world = World()
        chance = random.Random(7)
        clients = [world.client() for _ in range(5)]
        for number, client in enumerate(clients):
            client.connect(f"c{number}", session_expiry_interval=10, receive_max=3)
            client.subscribe("#", number % 3, user_properties=[("filter", f"n > {number}")])
        for step in range(400):
            client = chance.choice(clients)
            client.publish(
                f"t/{chance.randrange(3)}",
                b"%d" % step,
                chance.randrange(3),
                step % 600 + 1,
                user_properties=[("n", str(chance.randrange(6)))],
            )
            for packet in list(client.inbox):
                if isinstance(packet, PublishPacket) and packet.qos == QoS.AT_LEAST_ONCE:
                    client.send(PubAckPacket(packet.packet_id or 0))
            client.inbox.clear()
            world.wait(chance.random())
        outputs.append(world.written)
    assert outputs[0] == outputs[1]


def test_a_client_is_redirected() -> None:
    """For now or for good, with the address of the other server."""
    world = World()
    for moved, code in ((False, 0x9C), (True, 0x9D)):
        client = world.client()
        client.connect("redirected")
        world.core.custody.redirect("redirected", "10.0.0.2:1883", world.now, moved=moved)
        world.carry_out()
        ended = client.next(mqtt5.DisconnectPacket)
        assert (int(ended.reason_code), ended.server_reference) == (code, "10.0.0.2:1883")
        assert client.closed


def test_a_client_is_refused_with_a_reference() -> None:
    """USE_ANOTHER_SERVER in CONNACK."""
    core = Core("B1", Limits())
    core.opened(1, "here", "fresh", 0.0)
    core.received(1, ConnectPacket("x").write(), 0.0)
    assert core.effects.knocks.pop().number == 1
    core.refuse(1, mqtt5.ConnAckReasonCode.USE_ANOTHER_SERVER, "Go there.", "there:1883")
    connection = core.effects.touched.pop()
    answer, _ = mqtt5.read(memoryview(b"".join(connection.output)))
    assert isinstance(answer, mqtt5.ConnAckPacket)
    assert (int(answer.reason_code), answer.server_reference) == (0x9C, "there:1883")
    assert connection.state is State.CLOSED


def test_a_held_session_waits_until_it_is_released() -> None:
    """What comes during a hand-off goes out after it, in order."""
    world = World()
    publisher, subscriber = pair(world)
    world.core.custody.hold("subscriber")
    for number in range(5):
        publisher.publish("t", b"%d" % number, number % 2)
    assert not subscriber.inbox
    world.core.custody.release("subscriber", world.now)
    world.carry_out()
    assert subscriber.payloads() == [b"%d" % number for number in range(5)]


def test_numbered_clients_are_told_source_and_sequence() -> None:
    """Only those that asked; sequences of a source grow."""
    world = World()
    publisher, plain = pair(world)
    numbered = world.client()
    numbered.connect("numbered", user_properties=[("sojourn-numbered", "1")])
    numbered.subscribe("#")
    for _ in range(3):
        publisher.publish("t", b"x", user_properties=[("a", "b")])
    assert all(one.user_properties == [("a", "b")] for one in plain.messages())
    told = [dict(one.user_properties) for one in numbered.messages()]
    assert len({each["sojourn-source"] for each in told}) == 1
    numbers = [int(each["sojourn-sequence"]) for each in told]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("qos", [0, 1])
def test_a_retained_will_comes_as_published_to_those_who_ask(qos: int) -> None:
    """Its packet was written here, without the flag; whoever wants it as published gets it with."""
    world = World()
    clients = {wants: world.client() for wants in (False, True)}
    for wants, client in clients.items():
        client.connect(f"watcher-{wants}")
        client.send(SubscribePacket(1, [TopicFilter("will", max_qos=QoS(qos), retain_as_published=wants)]))
    dying = world.client()
    dying.connect("dying", will=Will("will", payload=b"x", qos=QoS(qos), retain=True))
    dying.lose()
    for wants, client in clients.items():
        assert [message.retain for message in client.messages()] == [wants]


def test_reserved_topics_stay_reserved_when_they_are_known() -> None:
    """The quick way for known topics is not open to those that only a broker may use."""
    world = World()
    publisher, subscriber = pair(world)
    subscriber.subscribe("$SYS/+")
    world.core.publish(new_message("$SYS/x", b"own", qos=1, now=world.now), world.now)
    publisher.publish("$SYS/x", b"fake", 1)
    assert int(publisher.next(PubAckPacket).reason_code) == 0x87
    world.carry_out()
    assert subscriber.payloads() == [b"own"]


def test_quality_0_changes_nobodys_turn_at_the_rest() -> None:
    """The members of a share take turns at what is promised, whatever else they share."""
    world = World()
    members = [world.client(), world.client()]
    for number, member in enumerate(members):
        member.connect(f"member-{number}")
        member.subscribe("$share/group/news")
    writer = world.client()
    writer.connect("writer")
    for number in range(1, 5):
        writer.publish("news", b"sure", qos=1, number=number)
        writer.publish("news", b"unsure")
    got = [member.payloads() for member in members]
    assert [payloads.count(b"sure") for payloads in got] == [2, 2]
    assert [payloads.count(b"unsure") for payloads in got] == [2, 2]
