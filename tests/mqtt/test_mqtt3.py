"""Clients of MQTT 3.1.1 beside those of MQTT 5 in one session core, and what becomes of their packets."""

from __future__ import annotations

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mqtt5 import ConnAckReasonCode, ConnectPacket, PublishPacket, QoS

from sojourn.broker.state_codec import dump_state, load_state
from sojourn.interest import TopicPattern
from sojourn.mqtt import mqtt3
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.core import Core
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.packets import PacketError, decode
from sojourn.mqtt.session import Permissions
from tests.mqtt import old_words as old
from tests.mqtt.world import Client, World

LONG_S = 7 * 86_400


class OldClient(Client):
    """A client that speaks MQTT 3.1.1, and acknowledges nothing by itself."""

    def __init__(self, world: World) -> None:
        number = len(world.clients) + 1
        super().__init__(world, number)
        self.old = old.Inbox()
        world.clients[number] = self
        world.core.opened(number, "here", f"fresh-{number}", world.now)

    def take(self, data: bytes) -> None:
        """Read what the core wrote as 3.1.1."""
        self.old.feed(data)

    def start(self, client_id: str, *, clean: bool = True, **options: object) -> tuple[int, ...]:
        """Connect; return session present and the code."""
        self.send(old.connect(client_id, clean=clean, **options))  # type: ignore[arg-type]  # whatever a case names
        (answer,) = self.old.take(old.CONNACK)
        return answer.codes

    def want(self, pattern: str, qos: int = 2) -> tuple[int, ...]:
        """Subscribe; return the codes."""
        self.send(old.subscribe((pattern, qos), number=9))
        (answer,) = self.old.take(old.SUBACK)
        assert answer.number == 9
        return answer.codes

    def came(self) -> list[old.Read]:
        """Take the messages out."""
        return self.old.take(old.PUBLISH)


def test_both_versions_hear_one_another() -> None:
    """An event goes out in the form that each client reads, at every QoS."""
    world = World()
    reader, other = OldClient(world), world.client()
    assert reader.start("old") == (0, 0)
    other.connect("new")
    assert reader.want("a/#") == (2,)
    other.subscribe("a/#")
    for qos in range(3):
        reader.send(old.publish("a/old", b"%d" % qos, qos, number=qos + 1))
        other.publish("a/new", b"%d" % qos, qos, number=qos + 1, content_type="text/plain")
    assert [(one.topic, one.payload, one.qos) for one in reader.came()] == [
        (topic, b"%d" % qos, qos) for qos in range(3) for topic in ("a/old", "a/new")
    ]
    assert [(one.topic, one.payload, int(one.qos)) for one in other.messages()] == [
        (topic, b"%d" % qos, qos) for qos in range(3) for topic in ("a/old", "a/new")
    ]
    assert [one.kind for one in reader.old.packets] == [old.PUBACK, old.PUBREC]


def test_a_message_of_quality_two_takes_four_packets_both_ways() -> None:
    """PUBREC, PUBREL and PUBCOMP have identifiers and nothing else, also for messages that are not known."""
    world = World()
    client = OldClient(world)
    client.start("c")
    client.want("t")
    client.send(old.publish("t", b"x", 2, number=7))
    client.send(old.publish("t", b"x", 2, number=7, dup=True))  # no second time
    client.send(old.answer(old.PUBREL, 7))
    client.send(old.answer(old.PUBREL, 8))
    assert [one.number for one in client.old.take(old.PUBREC)] == [7, 7]
    assert [one.number for one in client.old.take(old.PUBCOMP)] == [7, 8]
    (message,) = client.came()
    client.send(old.answer(old.PUBREC, message.number))
    client.send(old.answer(old.PUBREC, 999))
    assert [one.number for one in client.old.take(old.PUBREL)] == [message.number, 999]
    client.send(old.answer(old.PUBCOMP, message.number))
    assert not client.closed
    assert not world.core.state.sessions["c"].inflight


def test_a_session_that_is_not_clean_is_kept_for_long_and_no_longer() -> None:
    """3.1.2.4: subscriptions and messages wait; a clean start ends them, and so does time."""
    world = World(Limits(old_session_expiry_s=1_000))
    reader, source = OldClient(world), world.client()
    source.connect("source")
    assert reader.start("r", clean=False) == (0, 0)
    reader.want("t", 1)
    reader.lose()
    source.publish("t", b"1", 1)
    world.wait(999.0)
    reader = OldClient(world)
    assert reader.start("r", clean=False) == (1, 0)
    assert [one.payload for one in reader.came()] == [b"1"]
    reader.send(old.LEAVE)
    assert reader.closed
    world.wait(1_001.0)
    assert "r" not in world.core.state.sessions
    reader = OldClient(world)
    reader.start("r", clean=False)
    reader.lose()
    reader = OldClient(world)
    assert reader.start("r", clean=True) == (0, 0)
    reader.lose()
    assert "r" not in world.core.state.sessions


def test_a_session_is_handed_from_one_version_to_the_other_and_back() -> None:
    """What is in flight is sent again under its identifier, in the words of whoever is there."""
    world = World()
    source = world.client()
    source.connect("source")
    reader = OldClient(world)
    reader.start("r", clean=False)
    reader.want("t", 2)
    source.publish("t", b"1", 1)
    (first,) = reader.came()
    reader.lose()
    source.publish("t", b"2", 2)
    newer = world.client()
    assert newer.connect("r", clean_start=False, session_expiry_interval=500).session_present
    assert [(one.payload, one.packet_id, one.duplicate) for one in newer.messages()] == [
        (b"1", first.number, True),
        (b"2", first.number + 1, False),
    ]
    newer.send(mqtt5.PubAckPacket(first.number))
    newer.subscribe("by/content", 1, user_properties=[("filter", "n > 1")], subscription_id=5)
    newer.messages()
    newer.lose()
    source.publish("by/content", b'{"n": 2}', 1)
    reader = OldClient(world)
    assert reader.start("r", clean=False) == (1, 0)
    again = reader.came()
    assert [(one.payload, one.dup) for one in again] == [(b"2", True), (b'{"n": 2}', False)]
    assert again[0].number == first.number + 1
    assert world.core.state.sessions["r"].expiry == LONG_S


def test_the_same_client_in_another_version_takes_over() -> None:
    """One of 5 is told why; one of 3.1.1 finds its connection closed."""
    world = World()
    first, second = world.client(), OldClient(world)
    first.connect("c")
    second.start("c")
    assert first.closed
    assert int(first.next(mqtt5.DisconnectPacket).reason_code) == 0x8E
    third = world.client()
    third.connect("c")
    assert second.closed
    assert second.old.packets == []


def test_refusals_are_told_in_the_codes_there_are() -> None:
    """Otherwise the connection is closed without a word; a code of version 5 would be nonsense."""
    codes = [
        (ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, 4),
        (ConnAckReasonCode.NOT_AUTHORIZED, 5),
        (ConnAckReasonCode.SERVER_UNAVAILABLE, 3),
        (ConnAckReasonCode.QUOTA_EXCEEDED, 3),
        (ConnAckReasonCode.CONNECTION_RATE_EXCEEDED, 3),
        (ConnAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, None),
    ]
    for code, number in codes:
        core = Core("B1", Limits())
        connection = core.opened(1, "here", "fresh", 0.0)
        core.received(1, old.connect("c"), 0.0)
        core.refuse(1, code, "No.", "elsewhere:1883")
        assert b"".join(connection.output) == (b"" if number is None else bytes((0x20, 2, 0, number)))
        assert connection.state == 3
        assert core.state.counters.refused == {code.name.lower(): 1}


def test_an_identifier_may_be_missing_only_in_a_clean_start() -> None:
    """3.1.3.1: a broker gives one that nobody is told; without a clean start it refuses with 2."""
    world = World()
    client = OldClient(world)
    assert client.start("") == (0, 0)
    assert f"fresh-{client.number}" in world.core.state.sessions
    client = OldClient(world)
    assert client.start("", clean=False) == (0, 2)
    assert client.closed


@pytest.mark.parametrize(
    "connect",
    [
        old.connect("c", name="MQIsdp", level=3),
        old.connect("c", level=3),
        old.connect("c", level=0x83),
    ],
    ids=["3.1", "level 3", "a bridge of 3.1"],
)
def test_other_old_versions_are_refused_in_words_they_know(connect: bytes) -> None:
    """Unacceptable protocol version, as MQTT 3 writes it."""
    world = World()
    client = OldClient(world)
    client.send(connect)
    assert client.old.take(old.CONNACK)[0].codes == (0, 1)
    assert client.closed


def test_a_bridge_gets_nothing_of_its_own_back_and_the_retain_flag() -> None:
    """It says so by a bit of its version; what others publish it gets, and its password is not kept."""
    world = World()
    bridge, other = OldClient(world), OldClient(world)
    assert bridge.start("bridge", level=0x84) == (0, 0)
    other.start("other")
    bridge.send(old.subscribe(("a/#", 1), ("$share/g/b", 1), ("c", 2)))
    assert bridge.old.take(old.SUBACK)[0].codes == (1, 1, 2)
    for client in (bridge, other):
        client.send(old.publish("a/b", b"of %d" % client.number, 0, retain=True))
    bridge.send(old.publish("b", b"shared", 0))
    assert [(one.payload, one.retain) for one in bridge.came()] == [
        (b"of %d" % other.number, True),
        (b"shared", False),
    ]
    whole = old.connect("c", level=0x84, username="u", password=b"secret")
    assert mqtt3.without_password(whole) == old.connect("c", level=0x84, username="u")


def test_topic_filters_are_refused_one_by_one() -> None:
    """3.9.3: 0x80, whatever the reason; the others of the packet stand."""
    world = World()
    world.admission = Admission(permissions=Permissions(subscribe=(TopicPattern.parse("mine/#"),)))
    client = OldClient(world)
    client.start("c")
    client.send(old.subscribe(("mine/a", 1), ("yours", 1), ("mine/#/b", 0), ("mine/b", 2)))
    (answer,) = client.old.take(old.SUBACK)
    assert answer.codes == (1, 0x80, 0x80, 2)
    client.send(old.unsubscribe("mine/a", "nothing", number=3))
    assert [one.number for one in client.old.take(old.UNSUBACK)] == [3]
    assert list(world.core.state.sessions["c"].subscriptions) == ["mine/b"]


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_publish_that_is_refused_is_never_acknowledged(qos: int) -> None:
    """3.3.5: there are no words for it, and an answer would be a promise; at QoS 0 nobody waits for one."""
    world = World()
    world.admission = Admission(permissions=Permissions(publish=(TopicPattern.parse("mine/#"),)))
    client = OldClient(world)
    client.start("c")
    client.send(old.publish("yours", b"x", qos))
    assert client.old.packets == []
    assert client.closed == (qos > 0)


def test_a_long_keep_alive_stays_what_it_is() -> None:
    """No answer could tell a client of 3.1.1 to use a shorter one."""
    world = World()
    client = OldClient(world)
    client.start("c", keep_alive=1_000)
    world.wait(1_499.0)
    assert not client.closed
    client.send(old.PINGREQ)
    assert [one.kind for one in client.old.packets] == [old.PINGRESP]
    world.wait(1_501.0)
    assert client.closed


def test_a_will_is_published_when_its_client_is_lost_and_not_when_it_leaves() -> None:
    """3.1.2.5; a session that is kept delays no will of 3.1.1."""
    world = World()
    watcher = world.client()
    watcher.connect("w")
    watcher.subscribe("gone/#")
    for clean in (True, False):
        client = OldClient(world)
        client.start("c", clean=clean, will=("gone/c", b"lost", 1, False))
        client.lose()
        assert watcher.payloads() == [b"lost"]
        client = OldClient(world)
        client.start("c", clean=clean, will=("gone/c", b"lost", 1, False))
        client.send(old.LEAVE)
        assert watcher.payloads() == []


def test_retained_messages_greet_every_subscription_with_the_flag() -> None:
    """3.8.4: also one that takes the place of an equal one; what is passed on live has no flag."""
    world = World()
    client = OldClient(world)
    client.start("c")
    client.send(old.publish("t", b"kept", 0, retain=True))
    for _ in range(2):
        client.want("t", 0)
        assert [(one.payload, one.retain) for one in client.came()] == [(b"kept", True)]
    client.send(old.publish("t", b"live", 0, retain=True))
    assert [(one.payload, one.retain) for one in client.came()] == [(b"live", False)]


def test_many_messages_of_quality_two_may_be_open() -> None:
    """A client of 3.1.1 was told no receive maximum."""
    world = World(Limits(receive_max=3))
    client = OldClient(world)
    client.start("c")
    for number in range(1, 11):
        client.send(old.publish("t", b"", 2, number=number))
    assert len(client.old.take(old.PUBREC)) == 10
    assert not client.closed


@pytest.mark.parametrize(
    "wrong",
    [
        old.packet(0xE0, b"\x00"),  # a DISCONNECT with a reason is of version 5
        old.packet(0x40, b"\0\1\x10"),  # so is a PUBACK with one
        old.packet(0x82, b"\0\1" + old.text("t") + b"\x04"),  # no local
        old.packet(0x82, b"\0\1" + old.text("t") + b"\x03"),
        old.packet(0x82, b"\0\1"),
        old.packet(0x80, b"\0\1" + old.text("t") + b"\0"),
        old.packet(0xF0),  # AUTH
        old.packet(0x36, old.text("t") + b"\0\1"),
        old.packet(0x30, b"\0\5t"),
        old.packet(0x30, b"\0"),
        old.packet(0x30, old.text("")),
        old.packet(0x32, old.text("t") + b"\0\0"),
        old.publish("a/+"),
        old.connect("c"),
        b"\x30\xff\xff\xff\xff",
    ],
)
def test_what_breaks_the_protocol_closes_the_connection(wrong: bytes) -> None:
    """What was sent before it counts; nothing is said that 3.1.1 does not know."""
    world = World()
    client = OldClient(world)
    client.start("c")
    client.want("t", 0)
    client.send(old.publish("t", b"before") + wrong + old.publish("t", b"after"))
    assert [one.payload for one in client.came()] == [b"before"]
    assert client.old.packets == []
    assert client.closed


@pytest.mark.parametrize(
    "wrong",
    [
        old.connect("c", password=b"x"),  # without a user name
        old.packet(0x10, old.text("MQTT") + b"\x04\x03\0\0" + old.text("c")),
        old.packet(0x10, old.text("MQTT") + b"\x04\x02\0\0" + old.text("c") + b"more"),
        old.packet(0x10, old.text("MQTT") + b"\x04"),
        old.packet(0x10, old.text("MQTT") + b"\x04\x02\0\0\0\x05c"),
        old.packet(0x11, old.text("MQTT") + b"\x04\x02\0\0" + old.text("c")),
    ],
)
def test_a_broken_connect_gets_no_answer(wrong: bytes) -> None:
    """3.1: the connection is closed without a CONNACK."""
    world = World()
    client = OldClient(world)
    client.send(wrong)
    assert client.old.packets == []
    assert client.closed


@given(st.binary(max_size=60), st.integers(1, 40))
def test_packets_cut_anywhere_are_the_same_packets(payload: bytes, size: int) -> None:
    """What comes in pieces is put together, a large payload with a longer length included."""
    world = World()
    client = OldClient(world)
    client.start("c")
    client.want("t/#", 2)
    stream = b"".join(
        (
            old.publish("t/1", payload, 0),
            old.publish("t/2", payload * 10, 1, number=2),
            old.PINGREQ,
            old.publish("t/3", payload, 2, number=3),
        )
    )
    for at in range(0, len(stream), size):
        client.send(stream[at : at + size])
    assert [(one.topic, one.payload) for one in client.came()] == [
        ("t/1", payload),
        ("t/2", payload * 10),
        ("t/3", payload),
    ]
    assert not client.closed


def test_a_large_packet_in_small_pieces_is_not_looked_at_again_and_again() -> None:
    """Bytes wait until the packet is whole, and count until then."""
    world = World()
    client = OldClient(world)
    client.start("c")
    whole = old.publish("t", bytes(100_000), 0)
    client.send(whole[:10])
    connection = world.core.state.connections[client.number]
    assert connection.needed == len(whole)
    client.send(whole[10:50_000])
    assert len(connection.pieces) == 2
    assert world.core.state.input.bytes == 50_000
    client.send(whole[50_000:])
    assert world.core.state.counters.received == 1
    assert world.core.state.input.bytes == 0


def test_a_packet_that_is_too_large_closes_the_connection() -> None:
    """As soon as its length is known."""
    world = World(Limits(packet_bytes_max=100))
    client = OldClient(world)
    client.start("c")
    client.send(old.publish("t", bytes(200))[:20])
    assert client.closed


def test_what_waits_before_the_admission_is_read_after_it() -> None:
    """A client may send its SUBSCRIBE with its CONNECT."""
    world = World()
    client = OldClient(world)
    client.send(old.connect("c") + old.subscribe(("t", 1)) + old.publish("t", b"x", 1)[:5])
    client.send(old.publish("t", b"x", 1)[5:])
    assert [one.kind for one in client.old.packets] == [old.CONNACK, old.SUBACK, old.PUBACK, old.PUBLISH]


def test_no_password_is_kept_and_the_rest_is() -> None:
    """What a journal holds of a CONNECT makes the same client of the same version."""
    will = ("gone", b"\xff\x00", 1, True)
    whole = old.connect("c", clean=False, keep_alive=9, will=will, username="u", password=b"secret")
    assert mqtt3.without_password(whole) == old.connect(
        "c", clean=False, keep_alive=9, will=will, username="u"
    )
    plain = old.connect("c")
    assert mqtt3.without_password(plain) == plain
    broken = mqtt3.without_password(old.connect("c", password=b"secret"))
    assert b"secret" not in broken
    with pytest.raises(PacketError):
        decode(broken)
    newer = ConnectPacket("c", username="u", password=b"secret").write()
    assert b"secret" not in mqtt3.without_password(newer)


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_journal_brings_an_old_client_back(snapshot: bool) -> None:
    """The packets that were kept make the same session; a snapshot in between changes nothing."""
    world = World()
    world.core.kept = []
    client = OldClient(world)
    client.start("c", clean=False, username="u", password=b"secret")
    client.want("t/#", 2)
    client.send(old.publish("t/1", b"x", 1, number=4))
    client.send(old.publish("t/2", b"y", 2, number=5))
    kept = world.core.take_kept()
    assert not any(b"secret" in packet for _, packet in kept)
    core = Core("B1", Limits())
    core.opened(client.number, "here", f"fresh-{client.number}", world.now)
    for number, one in enumerate(kept):
        core.received_again(client.number, [one], world.now)
        for knock in core.effects.knocks:
            core.admit(knock.number, Admission(), world.now)
        core.effects.knocks.clear()
        if snapshot and number == 1:
            state, core = dump_state(core, None), Core("B1", Limits())
            load_state(state, core, None)
    assert core.state.connections[client.number].is_old
    assert dump_state(core, None) == dump_state(world.core, None)


def test_an_event_is_encoded_once_for_all_old_readers() -> None:
    """Readers of one form share its bytes; those of version 5 get the packet that came."""
    world = World()
    readers = [OldClient(world) for _ in range(3)]
    for number, reader in enumerate(readers):
        reader.start(f"r{number}")
        reader.want("t", 1)
    source = world.client()
    source.connect("s")
    source.publish("t", b"x", 1)
    deliveries = [world.core.state.sessions[f"r{n}"].inflight[1] for n in range(3)]
    messages = {id(one.message) for one in deliveries if one is not None}
    assert len(messages) == 1
    assert deliveries[0] is not None
    message = deliveries[0].message
    assert message.old_form(1, retain=False) is message.old_form(1, retain=False)
    packet, _ = mqtt5.read(memoryview(message.frame))
    assert isinstance(packet, PublishPacket)
    assert packet.qos == QoS.AT_LEAST_ONCE
