"""MQTT 5, sections 3.3 to 3.7 and 4.3 to 4.9: publishing, as raw packets over a socket."""

from __future__ import annotations

import time
from typing import Any

import mqtt5
import pytest
from mqtt5 import (
    PubAckPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRecReasonCode,
    PubRelPacket,
    QoS,
    TopicFilter,
)

from tests.live.raw_client import Raw


@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("published", [0, 1, 2])
def test_a_message_comes_at_the_lower_of_both_qualities(port: int, published: int, granted: int) -> None:
    """MQTT-3.8.4-8 and 4.3: all nine pairs."""
    topic = f"quality/{published}/{granted}"
    with Raw(port) as client:
        client.connect(f"quality{published}{granted}")
        assert client.subscribe(TopicFilter(topic, max_qos=QoS(granted))) == [granted]
        number = 5
        client.send(PublishPacket(topic, b"x", qos=QoS(published), packet_id=number if published else None))
        came = [client.receive() for _ in range(1 + (published > 0))]
        message = next(one for one in came if isinstance(one, PublishPacket))
        assert int(message.qos) == min(published, granted)
        assert (message.topic, message.payload, message.duplicate) == (topic, b"x", False)
        assert (message.packet_id is None) == (message.qos == QoS.AT_MOST_ONCE)
        if published:
            answer = next(one for one in came if not isinstance(one, PublishPacket))
            assert isinstance(answer, PubAckPacket if published == 1 else PubRecPacket)
            assert answer.packet_id == number


def test_quality_2_is_released_and_completed(port: int) -> None:
    """MQTT-4.3.3: the four steps, and a repeated publish is not a second message."""
    with Raw(port) as sender, Raw(port) as receiver:
        receiver.connect("q2r")
        receiver.subscribe("q2")
        sender.connect("q2s")
        packet = PublishPacket("q2", b"once", qos=QoS.EXACTLY_ONCE, packet_id=9)
        sender.send(packet)
        assert int(sender.expect(PubRecPacket).reason_code) == 0
        sender.send(PublishPacket("q2", b"once", qos=QoS.EXACTLY_ONCE, packet_id=9, duplicate=True))
        sender.expect(PubRecPacket)
        sender.send(PubRelPacket(9))
        assert int(sender.expect(PubCompPacket).reason_code) == 0
        assert receiver.message().payload == b"once"
        receiver.expect_nothing()
        sender.send(packet)  # the identifier is free again: this is a new message
        sender.expect(PubRecPacket)
        assert receiver.message().payload == b"once"


def test_an_unknown_release_is_completed_with_a_code(port: int) -> None:
    """3.7.2.1: packet identifier not found."""
    with Raw(port) as client:
        client.connect("norel")
        client.send(PubRelPacket(123))
        assert int(client.expect(PubCompPacket).reason_code) == 0x92
        client.send(PubRecPacket(123))
        assert int(client.expect(PubRelPacket).reason_code) == 0x92
        client.send(PubAckPacket(123))
        client.send(PubCompPacket(123))
        client.send(mqtt5.PingReqPacket())
        client.expect(mqtt5.PingRespPacket)


def test_a_receiver_that_refuses_ends_the_exchange(port: int) -> None:
    """MQTT-4.3.3-4: after a PUBREC with an error nothing follows, and the window is free."""
    with Raw(port) as client:
        client.connect("refuse", receive_max=1)
        client.subscribe("refuse")
        for payload in (b"1", b"2"):
            client.publish("refuse", payload, 0)
        for payload in (b"a", b"b"):
            client.send(PublishPacket("refuse", payload, qos=QoS.EXACTLY_ONCE, packet_id=payload[0]))
        seen = []
        for _ in range(6):
            packet = client.receive()
            if isinstance(packet, PublishPacket):
                seen.append(packet.payload)
                if packet.packet_id is not None:
                    code = PubRecReasonCode.UNSPECIFIED_ERROR
                    client.send(PubRecPacket(packet.packet_id, reason_code=code))
        assert seen == [b"1", b"2", b"a", b"b"]
        client.expect_nothing()


@pytest.mark.parametrize(
    ("qos", "answers"),
    [
        (1, [PubRecPacket]),
        (1, [PubCompPacket]),
        (2, [PubAckPacket]),
        (2, [PubCompPacket]),
        (2, [PubRecPacket, PubAckPacket]),
    ],
)
def test_an_answer_of_the_wrong_kind_is_a_protocol_error(port: int, qos: int, answers: list[Any]) -> None:
    """4.3: each quality of service has its own exchange."""
    with Raw(port) as client, Raw(port) as sender:
        client.connect("wrong")
        client.subscribe("wrong")
        sender.connect("wrongs")
        sender.publish("wrong", b"x", qos)
        number = client.expect(PublishPacket).packet_id
        client.send(b"".join(answer(number).write() for answer in answers))
        if len(answers) > 1:
            client.expect(PubRelPacket)
        client.expect_end(0x82)


@pytest.mark.parametrize("topic", ["own", "own/$" + "x" * 200])
def test_the_answer_comes_before_a_clients_own_message(port: int, topic: str) -> None:
    """4.6 leaves it open; clients that wait for the one need not put the other aside."""
    with Raw(port) as client:
        client.connect("own")
        client.subscribe("own/#")
        for _ in range(2):  # the second time on a topic that is known
            for qos, answer in ((1, PubAckPacket), (2, PubRecPacket)):
                client.send(PublishPacket(topic, b"x", qos=QoS(qos), packet_id=1))
                client.expect(answer)
                client.message()
                client.send(PubRelPacket(1))
                client.expect(PubCompPacket)


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (b"\x36\x07\0\1a\0\1\0x", 0x81),  # MQTT-3.3.1-4: QoS 3
        (b"\x38\x05\0\1a\0x", 0x81),  # MQTT-3.3.1-2: a duplicate of QoS 0
        (b"\x30\x05\0\2a#\0", 0x90),  # MQTT-3.3.2-2
        (b"\x30\x05\0\2a+\0", 0x90),
        (b"\x30\x04\0\0\0x", 0x82),  # no topic, no alias
        (b"\x32\x07\0\1a\0\0\0x", 0x82),  # MQTT-2.2.1-3: identifier 0
        (b"\x30\x08\0\1a\3\x23\0\0x", 0x94),  # MQTT-3.3.2-8: alias 0
        (b"\x30\x08\0\1a\3\x23\0\xc8x", 0x94),  # MQTT-3.3.2-9: alias above the maximum
        (b"\x30\x07\0\0\3\x23\0\5x", 0x82),  # an alias that stands for nothing
        (b"\x30\x07\0\1a\2\x0b\x01x", 0x82),  # MQTT-3.3.4-6: a subscription identifier from a client
        (b"\x30\x07\0\1a\2\x01\2x", 0x81),  # payload format 2
        (b"\x30\x0a\0\1a\5\x08\0\2a#x", 0x82),  # MQTT-3.3.2-14: response topic with a wildcard
        (b"\x30\x0b\0\1a\6\x23\0\1\x23\0\2x", 0x82),  # a property twice
        (b"\x30\x08\0\1a\3\x21\0\1x", 0x81),  # a property of another packet
        (b"\x30\x05\0\1\xff\0x", 0x81),  # MQTT-1.5.4-1
        (b"\x30\x05\0\1\0\0x", 0x81),  # MQTT-1.5.4-2
        (b"\x30\x05\0\x7fa\0x", 0x81),  # a topic longer than the packet
        (b"\x30\x06\0\1a\x09\x23\0", 0x81),  # properties longer than the packet
    ],
)
def test_a_broken_publish_is_answered_with_its_reason(port: int, packet: bytes, code: int) -> None:
    """MQTT-4.13.1-1: a DISCONNECT with the reason, and the connection is closed."""
    with Raw(port) as client:
        client.connect("")
        client.send(packet)
        ended = client.expect_end(code)
        assert ended is not None
        assert ended.reason_str


def test_topic_aliases_of_a_client(port: int) -> None:
    """MQTT-3.3.2-7 and -12: an alias holds for its connection, and can be given a new topic."""
    with Raw(port) as sender, Raw(port) as receiver:
        receiver.connect("aliasr")
        receiver.subscribe("alias/#")
        sender.connect("aliass")
        sender.publish("alias/1", b"a", topic_alias=1)
        sender.publish("", b"b", 1, topic_alias=1)
        sender.publish("alias/2", b"c", topic_alias=1)
        sender.publish("", b"d", 2, topic_alias=1)
        got = [receiver.message() for _ in range(4)]
        assert [one.topic for one in got] == ["alias/1", "alias/1", "alias/2", "alias/2"]
        assert [one.payload for one in got] == [b"a", b"b", b"c", b"d"]
        assert all(one.topic_alias is None for one in got)  # MQTT-3.1.2-27: this client allows none
    with Raw(port) as sender:
        sender.connect("aliass")
        sender.send(PublishPacket("", b"x", topic_alias=1))
        sender.expect_end(0x82)


def test_topic_aliases_of_the_broker(port: int) -> None:
    """MQTT-3.1.2-26: as many as the client allows, the topic sent once."""
    with Raw(port) as client:
        client.connect("aliasb", topic_alias_max=1)
        client.subscribe("out/+")
        for qos in range(3):
            client.send(PublishPacket("out/1", b"x", qos=QoS(qos), packet_id=qos or None))
        client.publish("out/2", b"y")
        packets = [client.receive() for _ in range(6)]
        came = [one for one in packets if isinstance(one, PublishPacket)]
        assert [(one.topic, one.topic_alias) for one in came] == [
            ("out/1", 1),
            ("", 1),
            ("", 1),
            ("out/2", None),
        ]


def test_properties_are_passed_on_unchanged(port: int) -> None:
    """MQTT-3.3.2-4, -15, -16, -17, -18, -20: user properties keep their order too."""
    with Raw(port) as client:
        client.connect("props")
        client.subscribe("props")
        for qos in range(3):
            client.send(
                PublishPacket(
                    "props",
                    "grüße".encode(),
                    qos=QoS(qos),
                    packet_id=qos or None,
                    payload_format_indicator=1,
                    content_type="text/plain; ü",
                    response_topic="answers/here",
                    correlation_data=b"\x00\xff",
                    user_properties=[("b", "2"), ("a", "1"), ("b", "ü"), ("", "")],
                )
            )
            packets = [client.receive() for _ in range(1 + (qos > 0))]
            got = next(one for one in packets if isinstance(one, PublishPacket))
            assert got.payload == "grüße".encode()
            assert (got.payload_format_indicator, got.content_type) == (1, "text/plain; ü")
            assert (got.response_topic, got.correlation_data) == ("answers/here", b"\x00\xff")
            assert got.user_properties == [("b", "2"), ("a", "1"), ("b", "ü"), ("", "")]


def test_a_message_lives_as_long_as_it_says(port: int) -> None:
    """MQTT-3.3.2-5 and -6: what waited is told less time, what waited too long is not sent."""
    with Raw(port) as sender:
        receiver = Raw(port)
        receiver.connect("expiry", session_expiry_interval=100)
        receiver.subscribe("expiry")
        receiver.drop()
        time.sleep(0.1)
        sender.connect("expirys")
        sender.publish("expiry", b"short", 1, message_expiry_interval=1)
        sender.publish("expiry", b"long", 1, message_expiry_interval=10)
        sender.publish("expiry", b"ever", 1)
        time.sleep(2.1)
        with Raw(port) as again:
            assert again.connect("expiry", clean_start=False).session_present
            got = again.message()
            assert got.payload == b"long"
            assert got.message_expiry_interval is not None
            assert 7 <= got.message_expiry_interval <= 8
            assert again.message().payload == b"ever"


def test_a_message_that_lives_for_no_time_is_sent_at_once_or_never(port: int) -> None:
    """3.3.2.3.3: 0 is 0 when it is passed on, by whichever way."""
    with Raw(port) as sender, Raw(port) as plain, Raw(port) as aliased:
        plain.connect("zero")
        aliased.connect("zeroa", topic_alias_max=5)
        sender.connect("zeros")
        for client in (plain, aliased):
            client.subscribe("zero")
        for qos in range(3):
            sender.publish("zero", b"x", qos, message_expiry_interval=0)
        for client in (plain, aliased):
            assert [client.message().message_expiry_interval for _ in range(3)] == [0, 0, 0]


def test_the_window_of_the_client_is_respected(port: int) -> None:
    """MQTT-3.3.4-9 and 4.9: no more than its receive maximum; QoS 0 is not held back."""
    with Raw(port) as client, Raw(port) as sender:
        client.connect("window", receive_max=2)
        client.subscribe("window")
        sender.connect("windows")
        for number in range(5):
            sender.publish("window", bytes((number,)), 1 + number % 2)
        first = client.expect(PublishPacket)
        second = client.expect(PublishPacket)
        client.expect_nothing()
        assert first.packet_id
        assert second.packet_id
        client.send(PubAckPacket(first.packet_id))
        third = client.expect(PublishPacket)
        client.expect_nothing()
        client.send(PubRecPacket(second.packet_id))
        client.expect(PubRelPacket)
        client.expect_nothing()  # QoS 2 holds its place until it is completed
        client.send(PubCompPacket(second.packet_id))
        fourth = client.expect(PublishPacket)
        assert [one.payload for one in (first, second, third, fourth)] == [b"\0", b"\1", b"\2", b"\3"]


def test_the_window_of_the_broker_is_enforced(port: int) -> None:
    """MQTT-3.3.4-7 and -8: more than the announced receive maximum is answered with 0x93."""
    with Raw(port) as client:
        most = client.connect("flood").receive_max
        packets = [
            PublishPacket("flood", b"", qos=QoS.EXACTLY_ONCE, packet_id=number).write()
            for number in range(1, most + 2)
        ]
        client.send(b"".join(packets))
        for _ in range(most):
            client.expect(PubRecPacket)
        client.expect_end(0x93)


def test_a_client_is_sent_no_packet_larger_than_it_takes(port: int) -> None:
    """MQTT-3.1.2-24 and -25: such a message is dropped for it alone, and the exchange goes on."""
    with Raw(port) as small, Raw(port) as large:
        small.connect("small", max_packet_size=64)
        small.subscribe("size")
        large.connect("large")
        large.subscribe("size")
        large.publish("size", b"x" * 100, 0)
        assert len(large.message().payload) == 100
        for qos in range(3):
            small.send(PublishPacket("size", b"x" * 100, qos=QoS(qos), packet_id=qos or None))
            if qos:
                small.receive()
            assert len(large.message().payload) == 100
        small.publish("size", b"fits")
        assert small.message().payload == b"fits"


def test_a_packet_beyond_the_announced_size_is_refused(port: int) -> None:
    """3.2.2.3.6: as soon as its length is known."""
    with Raw(port) as client:
        client.connect("huge")
        client.send(b"\x30\xff\xff\xff\x7f")
        client.expect_end(0x95)
    with Raw(port) as client:  # and the client reads why, though it is still sending
        client.connect("huge")
        client.send(b"\x30\x80\x80\x80\x04" + bytes(8 << 20))
        client.expect_end(0x95)


def test_order_is_kept(port: int) -> None:
    """MQTT-4.6.0-6: messages of one topic and quality arrive in the order they were sent."""
    with Raw(port) as sender, Raw(port) as receiver:
        receiver.connect("orderr", receive_max=7)
        receiver.subscribe("order")
        sender.connect("orders")
        for number in range(200):
            sender.publish("order", b"%d" % number, 1)
        assert [int(receiver.message().payload) for _ in range(200)] == list(range(200))


def test_reserved_topics_are_not_for_clients(port: int) -> None:
    """4.7.2: what the broker speaks about itself."""
    with Raw(port) as client:
        client.connect("sys")
        assert client.publish("$SYS/broker/fake", b"x", 1) == 0x87
        assert client.publish("$SYS/broker/fake", b"x", 2) == 0x87
        assert client.publish("$other/topic", b"x", 1) == 0
        # A bridge tells there that it is connected, and has a will to say that it is not.
        assert client.publish("$SYS/broker/connection/bridge/state", b"1", 1) == 0


@pytest.mark.parametrize("wanted", [True, False])
def test_reason_strings_are_sent_to_those_who_want_them(port: int, wanted: bool) -> None:
    """MQTT-3.1.2-29: request problem information."""
    with Raw(port) as client:
        client.connect("reasons", request_problem_info=wanted)
        client.send(PublishPacket("$SYS/x", b"", qos=QoS.AT_LEAST_ONCE, packet_id=1))
        answer = client.expect(PubAckPacket)
        assert int(answer.reason_code) == 0x87
        assert (answer.reason_str is not None) == wanted


def test_large_and_empty_payloads(port: int) -> None:
    """3.3.3: an application message may have no bytes, or many."""
    with Raw(port) as client:
        client.connect("payloads")
        client.subscribe("payloads")
        for size in (0, 1, 126, 127, 128, 16_383, 16_384, 900_000):
            client.publish("payloads", b"p" * size)
            assert client.message().payload == b"p" * size
