"""MQTT 5, sections 3.8 to 3.11, 4.7 and 4.8: subscribing, retained messages, topics, over a socket."""

from __future__ import annotations

import time

import pytest
from mqtt5 import PublishPacket, QoS, RetainHandling, TopicFilter, UnsubAckPacket, UnsubscribePacket

from tests.live.raw_client import Raw


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (b"\x80\x08\0\1\0\0\2ab\0", 0x81),  # MQTT-3.8.1-1: reserved bits of the header
        (b"\x82\x03\0\1\0", 0x82),  # MQTT-3.8.3-2: no topic filter
        (b"\x82\x08\0\1\0\0\2ab\x03", 0x81),  # QoS 3
        (b"\x82\x08\0\1\0\0\2ab\x30", 0x82),  # retain handling 3
        (b"\x82\x08\0\1\0\0\2ab\xc0", 0x81),  # MQTT-3.8.3-5: reserved bits of the options
        (b"\x82\x08\0\0\0\0\2ab\0", 0x82),  # identifier 0
        (b"\x82\x0a\0\1\2\x0b\0\0\2ab\0", 0x82),  # subscription identifier 0
        (b"\x82\x0c\0\1\4\x0b\1\x0b\2\0\2ab\0", 0x82),  # two subscription identifiers
        (b"\x82\x08\0\1\0\0\2a\xff\0", 0x81),  # MQTT-3.8.3-1: not UTF-8
        (b"\x82\x08\0\1\0\0\2a\0\0", 0x81),
        (b"\x82\x12\0\1\0\0\x0c$share/g/top\x04", 0x82),  # MQTT-3.8.3-4: shared and no local
        (b"\xa0\x07\0\1\0\0\2ab", 0x81),  # MQTT-3.10.1-1
        (b"\xa2\x03\0\1\0", 0x82),  # MQTT-3.10.3-2
        (b"\xa2\x07\0\1\0\0\2a\xff", 0x81),  # MQTT-3.10.3-1
    ],
)
def test_a_broken_packet_is_answered_with_its_reason(port: int, packet: bytes, code: int) -> None:
    """MQTT-4.13.1-1."""
    with Raw(port) as client:
        client.connect("")
        client.send(packet)
        client.expect_end(code)


def test_each_topic_filter_is_answered(port: int) -> None:
    """MQTT-3.8.4-6 and 3.9.3: a refused one does not spoil the others."""
    with Raw(port) as client:
        client.connect("each")
        wanted = [
            TopicFilter("a", max_qos=QoS.AT_MOST_ONCE),
            TopicFilter("b", max_qos=QoS.AT_LEAST_ONCE),
            TopicFilter("c/#", max_qos=QoS.EXACTLY_ONCE),
        ]
        assert client.subscribe(*wanted) == [0, 1, 2]


@pytest.mark.parametrize(
    "pattern", ["#a", "a/#/b", "a#", "a+", "+a/b", "a/+b", "$share//x", "$share/g", "$share/+/x"]
)
def test_invalid_topic_filters_are_refused(port: int, pattern: str) -> None:
    """MQTT-4.7.1-1, -2, 4.8.2-1, -2: the session goes on."""
    with Raw(port) as client:
        client.connect("")
        text = pattern.encode()
        inner = b"\0\1\0" + len(text).to_bytes(2) + text + b"\0"
        client.send(bytes((0x82, len(inner))) + inner)
        answer = client.receive()
        assert [int(code) for code in answer.reason_codes] == [0x8F]  # type: ignore[union-attr]  # of its kind
        assert client.subscribe("good") == [2]


@pytest.mark.parametrize(
    ("pattern", "topic", "matches"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/#", "sport", True),
        ("#", "any/thing", True),
        ("#", "/finance", True),
        ("sport/tennis/+", "sport/tennis/player1", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("+/tennis/#", "sport/tennis", True),
        ("a//b", "a//b", True),
        ("a/+/b", "a//b", True),
        ("Accounts", "ACCOUNTS", False),
        ("a", "/a", False),
        ("#", "$dollar/x", False),
        ("+/monitor/Clients", "$dollar/monitor/Clients", False),
        ("$dollar/#", "$dollar/x", True),
        ("$dollar/monitor/+", "$dollar/monitor/Clients", True),
        ("x y/ü", "x y/ü", True),
        ("/" * 200, "/" * 200, True),
        ("+/" * 200 + "#", "deep/" * 200, True),
    ],
)
def test_wildcards(port: int, pattern: str, topic: str, matches: bool) -> None:
    """4.7: the examples of the standard, and MQTT-4.7.2-1 on topics with a dollar."""
    with Raw(port) as client:
        client.connect("wild")
        client.subscribe(pattern)
        client.publish(topic, b"hit")
        if matches:
            assert client.message().topic == topic
        else:
            client.expect_nothing(0.05)


def test_overlapping_subscriptions_bring_one_message(port: int) -> None:
    """MQTT-3.3.4-2: at the highest quality, with the identifiers of all."""
    with Raw(port) as client:
        client.connect("overlap")
        client.subscribe(TopicFilter("over/#", max_qos=QoS.EXACTLY_ONCE), subscription_id=2)
        client.subscribe(TopicFilter("over/+", max_qos=QoS.AT_LEAST_ONCE), subscription_id=3)
        client.subscribe(TopicFilter("over/1", max_qos=QoS.AT_MOST_ONCE))
        client.send(PublishPacket("over/1", b"x", qos=QoS.EXACTLY_ONCE, packet_id=1))
        packets = [client.receive() for _ in range(2)]
        got = next(one for one in packets if isinstance(one, PublishPacket))
        assert got.qos == QoS.EXACTLY_ONCE
        assert sorted(got.subscription_ids) == [2, 3]
        client.expect_nothing()


def test_subscription_identifiers(port: int) -> None:
    """MQTT-3.3.4-3 to -5: of the subscription that matched; a new one takes its place."""
    with Raw(port) as client, Raw(port) as other:
        client.connect("ids")
        client.subscribe("ids", subscription_id=456_789)
        other.connect("ids2")
        other.subscribe("ids")
        client.publish("ids", b"x")
        assert client.message().subscription_ids == [456_789]
        assert other.message().subscription_ids == []
        client.subscribe("ids", subscription_id=268_435_455)
        client.publish("ids", b"x")
        assert client.message().subscription_ids == [268_435_455]
        client.subscribe("ids")
        client.publish("ids", b"x")
        assert client.message().subscription_ids == []


def test_no_local(port: int) -> None:
    """MQTT-3.8.3-3: a client does not get what it published itself."""
    with Raw(port) as client, Raw(port) as other:
        client.connect("local")
        client.subscribe(TopicFilter("local", no_local=True))
        other.connect("local2")
        other.subscribe(TopicFilter("local", no_local=True))
        client.publish("local", b"mine", 1)
        assert other.message().payload == b"mine"
        other.publish("local", b"theirs", 1)
        assert client.message().payload == b"theirs"
        client.expect_nothing()


def test_a_new_subscription_replaces_one_of_the_same_filter(port: int) -> None:
    """MQTT-3.8.4-3: its options count from then on, and nothing comes twice."""
    with Raw(port) as client:
        client.connect("replace")
        assert client.subscribe(TopicFilter("replace", max_qos=QoS.EXACTLY_ONCE)) == [2]
        assert client.subscribe(TopicFilter("replace", max_qos=QoS.AT_MOST_ONCE)) == [0]
        client.publish("replace", b"x", 0)
        assert client.message().qos == QoS.AT_MOST_ONCE
        client.expect_nothing()


def test_unsubscribing(port: int) -> None:
    """MQTT-3.10.4-1, -2, -5 and 3.11.3: letter for letter, and each is answered."""
    with Raw(port) as client:
        client.connect("unsub")
        client.subscribe("un/1", "un/2", "un/#")
        client.send(UnsubscribePacket(4, ["un/1", "un/+", "un/#"]))
        answer = client.expect(UnsubAckPacket)
        assert answer.packet_id == 4
        assert [int(code) for code in answer.reason_codes] == [0, 0x11, 0]
        client.publish("un/1", b"x")
        client.publish("un/2", b"y")
        assert client.message().payload == b"y"
        client.expect_nothing()


# Retained messages ---------------------------------------------------------------------------------


@pytest.fixture
def kept(port: int) -> object:
    """Three retained messages of different quality."""
    with Raw(port) as client:
        client.connect("keeper")
        for number in range(3):
            client.publish(
                f"kept/{number}", b"%d" % number, number, retain=True, user_properties=[("a", "2")]
            )
    return None


def test_retained_messages_greet_a_subscriber(port: int, kept: object) -> None:
    """MQTT-3.3.1-5, -9 and 3.3.1.3: with the retain flag, at the quality of both."""
    with Raw(port) as client:
        client.connect("greeted")
        client.subscribe("kept/+")
        got = {one.topic: one for one in (client.message() for _ in range(3))}
        assert sorted(got) == ["kept/0", "kept/1", "kept/2"]
        assert all(one.retain and one.user_properties == [("a", "2")] for one in got.values())
        assert [int(got[f"kept/{number}"].qos) for number in range(3)] == [0, 1, 2]
        client.expect_nothing()


def test_retain_handling(port: int, kept: object) -> None:
    """MQTT-3.3.1-9 to -11: always, only for a new subscription, never."""
    with Raw(port) as client:
        client.connect("handling")
        one = TopicFilter("kept/1", retain_handling=RetainHandling.SEND_IF_SUBSCRIPTION_NOT_EXISTS)
        client.subscribe(one)
        assert client.message().retain
        client.subscribe(one)
        client.expect_nothing()
        client.subscribe(TopicFilter("kept/1", retain_handling=RetainHandling.SEND_ALWAYS))
        assert client.message().retain
        client.subscribe(TopicFilter("kept/2", retain_handling=RetainHandling.SEND_NEVER))
        client.expect_nothing()


def test_an_empty_retained_message_clears_its_topic(port: int, kept: object) -> None:
    """MQTT-3.3.1-6 and -7: it is delivered as usual and not kept."""
    with Raw(port) as client:
        client.connect("clear")
        client.subscribe("kept/1")
        client.message()
        client.publish("kept/1", b"", retain=True)
        got = client.message()
        assert (got.payload, got.retain) == (b"", False)
    with Raw(port) as client:
        client.connect("clear")
        client.subscribe("kept/1")
        client.expect_nothing()


def test_retain_as_published(port: int) -> None:
    """MQTT-3.3.1-12 and -13."""
    with Raw(port) as client, Raw(port) as plain:
        client.connect("rap")
        client.subscribe(TopicFilter("rap", retain_as_published=True))
        plain.connect("norap")
        plain.subscribe(TopicFilter("rap", retain_as_published=False))
        client.publish("rap", b"no")
        client.publish("rap", b"yes", retain=True)
        assert [client.message().retain for _ in range(2)] == [False, True]
        assert [plain.message().retain for _ in range(2)] == [False, False]
        client.publish("rap", b"", retain=True)


def test_a_retained_message_is_replaced_and_expires(port: int) -> None:
    """MQTT-3.3.1-5 and 3.3.2.3.3."""
    with Raw(port) as client:
        client.connect("replaced")
        client.publish("replaced", b"old", 1, retain=True)
        client.publish("replaced", b"new", 1, retain=True, message_expiry_interval=2)
        client.subscribe("replaced")
        got = client.message()
        assert (got.payload, got.message_expiry_interval) == (b"new", 2)
        client.expect_nothing()
        time.sleep(2.1)
        client.subscribe("replaced")
        client.expect_nothing()


def test_wildcards_find_no_retained_message_of_a_dollar_topic(port: int) -> None:
    """MQTT-4.7.2-1 holds for retained messages too."""
    with Raw(port) as client:
        client.connect("dollar")
        client.publish("$mine/x", b"x", 1, retain=True)
        client.subscribe("+/x", "#")
        while True:
            try:
                packet = client.receive(0.1)
            except TimeoutError:
                break
            assert not packet.topic.startswith("$")  # type: ignore[union-attr]  # of its kind
        client.subscribe("$mine/#")
        assert client.message().topic == "$mine/x"


# Shared subscriptions ------------------------------------------------------------------------------


def test_a_shared_subscription_serves_one_member_each_time(port: int) -> None:
    """4.8.2: members take turns, and retained messages do not greet them."""
    with Raw(port) as one, Raw(port) as other, Raw(port) as sender:
        sender.connect("share-s")
        sender.publish("shared/x", b"kept", 1, retain=True)
        for number, client in enumerate((one, other)):
            client.connect(f"share{number}")
            assert client.subscribe("$share/group/shared/+") == [2]
            client.expect_nothing(0.05)
        for number in range(10):
            sender.publish("shared/x", b"%d" % number)
        got = [[client.message().payload for _ in range(5)] for client in (one, other)]
        assert sorted(got[0] + got[1]) == [b"%d" % number for number in range(10)]
        sender.publish("shared/x", b"", 1, retain=True)


def test_plain_and_shared_subscriptions_stand_beside_each_other(port: int) -> None:
    """4.8.2: a member that also subscribes itself gets both."""
    with Raw(port) as one, Raw(port) as other:
        one.connect("both1")
        one.subscribe("$share/g/both", "both")
        other.connect("both2")
        other.subscribe("$share/g/both")
        for _ in range(4):
            other.publish("both", b"x", 0)
        count = 0
        for client in (one, other):
            while True:
                try:
                    client.receive(0.2)
                except TimeoutError:
                    break
                count += 1
        assert count == 8


def test_leaving_a_share(port: int) -> None:
    """4.8.2: who has unsubscribed or gone gets nothing, the others all."""
    with Raw(port) as one, Raw(port) as other:
        one.connect("leave1")
        one.subscribe("$share/l/leave")
        other.connect("leave2")
        other.subscribe("$share/l/leave")
        one.send(UnsubscribePacket(1, ["$share/l/leave"]))
        assert [int(code) for code in one.expect(UnsubAckPacket).reason_codes] == [0]
        for number in range(4):
            one.publish("leave", b"%d" % number)
        assert [other.message().payload for _ in range(4)] == [b"0", b"1", b"2", b"3"]
        one.expect_nothing()


def test_request_and_response(port: int) -> None:
    """4.10: the response topic and the correlation data come through both ways."""
    with Raw(port) as asker, Raw(port) as answerer:
        asker.connect("asker")
        asker.subscribe("answers/asker")
        answerer.connect("answerer")
        answerer.subscribe("questions")
        asker.publish("questions", b"?", 1, response_topic="answers/asker", correlation_data=b"334")
        question = answerer.message()
        assert question.response_topic == "answers/asker"
        answerer.publish(question.response_topic, b"!", 1, correlation_data=question.correlation_data)
        assert asker.message().correlation_data == b"334"
