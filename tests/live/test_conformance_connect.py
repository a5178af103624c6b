"""MQTT 5, sections 3.1, 3.2, 3.14, 3.15: connecting and disconnecting, as raw packets over a socket."""

from __future__ import annotations

import time

import mqtt5
import pytest
from mqtt5 import AuthPacket, ConnectPacket, DisconnectPacket, DisconnectReasonCode, PingReqPacket, QoS, Will

from tests.live.raw_client import Raw


def body(flags: int = 2, properties: bytes = b"", rest: bytes = b"\0\3abc", version: int = 5) -> bytes:
    """A CONNECT with these bytes in its variable parts."""
    inner = b"\0\4MQTT" + bytes((version, flags, 0, 60, len(properties))) + properties + rest
    return bytes((0x10, len(inner))) + inner


def refusal(port: int, packet: bytes) -> int | None:
    """The code of the CONNACK that a packet gets; the connection is closed after it."""
    with Raw(port) as client:
        client.send(packet)
        answer = client.receive()
        if answer is None:
            return None
        assert isinstance(answer, mqtt5.ConnAckPacket)
        assert not answer.session_present
        client.expect_end()
        return int(answer.reason_code)


def test_a_connect_is_accepted_and_limits_are_announced(port: int) -> None:
    """3.2: the answer says what the broker allows."""
    with Raw(port) as client:
        answer = client.connect("announce")
        assert int(answer.reason_code) == 0
        assert not answer.session_present
        assert answer.receive_max == 1_000
        assert answer.topic_alias_max == 100
        assert answer.max_packet_size == 2 * 1_048_576
        assert answer.retain_available
        assert answer.wildcard_subscription_available
        assert answer.subscription_id_available
        assert answer.shared_subscription_available
        assert ("sojourn-broker", "B1") in answer.user_properties


def test_an_older_version_is_refused_in_its_own_form(port: int) -> None:
    """MQTT-3.1.2-2: a client of MQTT 3.1 reads an answer of MQTT 3."""
    with Raw(port) as client:
        client.send(b"\x10\x11\0\6MQIsdp\3\2\0\x3c\0\3abc")
        assert client.socket.recv(100) == b"\x20\x02\x00\x01"
        assert client.socket.recv(100) == b""


def test_unknown_versions_and_protocols_are_refused(port: int) -> None:
    """MQTT-3.1.2-1 and -2."""
    assert refusal(port, body(version=6)) == 0x84
    assert refusal(port, bytes((0x10, 16)) + b"\0\4MQTX\5\2\0\x3c\0\0\3abc") == 0x84
    assert refusal(port, bytes((0x10, 14)) + b"\0\2hj\5\2\0\x3c\0\0\3abc") == 0x84


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (body(flags=3), 0x81),  # MQTT-3.1.2-3
        (body(flags=0x0A), 0x81),  # MQTT-3.1.2-11
        (body(flags=0x22), 0x81),  # MQTT-3.1.2-13
        (body(flags=0x1E), 0x81),  # MQTT-3.1.2-12
        (body(properties=b"\x21\0\0"), 0x82),  # receive maximum 0
        (body(properties=b"\x27\0\0\0\0"), 0x82),  # maximum packet size 0
        (body(properties=b"\x17\2"), 0x82),  # request problem information 2
        (body(properties=b"\x21\0\1\x21\0\1"), 0x82),  # a property twice
        (body(properties=b"\x16\0\1x"), 0x82),  # authentication data without a method
        (body(properties=b"\x23\0\1"), 0x81),  # a property of another packet
        (body(properties=b"\x7f\0\1"), 0x81),  # a property that there is none of
        (body(rest=b"\0\3ab\xff"), 0x81),  # MQTT-1.5.4-1
        (body(rest=b"\0\3a\xed\xa0"), 0x81),
        (body(rest=b"\0\3a\0c"), 0x81),  # MQTT-1.5.4-2
        (body(rest=b"\0\3abcd"), 0x81),  # bytes left over
        (body(rest=b"\0\5abc"), 0x81),  # bytes missing
        (body(flags=0x82), 0x81),  # a user name was promised
        (body(flags=6, rest=b"\0\1w\2\1\2\0\1t\0\0"), 0x81),  # a will of payload format 2
        (body(flags=6, rest=b"\0\1w\5\x08\0\2a#\0\1t\0\0"), 0x82),  # its response topic has a wildcard
        (body(flags=6, rest=b"\0\1w\3\x23\0\1\0\1t\0\0"), 0x81),  # it has a property of messages only
    ],
)
def test_a_broken_connect_is_answered_with_its_reason(port: int, packet: bytes, code: int) -> None:
    """MQTT-3.1.4-1 and the statements on each field."""
    assert refusal(port, packet) == code


@pytest.mark.parametrize("size", [1, 4, 12])
def test_who_takes_no_answer_gets_none(port: int, size: int) -> None:
    """MQTT-3.1.2-24: a CONNACK larger than the client takes is not sent, and it cannot be let in."""
    with Raw(port) as client:
        client.send(ConnectPacket("tiny", clean_start=True, max_packet_size=size))
        client.expect_end()
    with Raw(port) as client:  # a refusal neither
        client.send(ConnectPacket("tiny", authentication_method="X", max_packet_size=size))
        answer = client.receive()
        assert (answer is None) == (size < 5)


def test_enhanced_authentication_is_refused(port: int) -> None:
    """MQTT-4.12.0-1: a method the broker does not have."""
    assert refusal(port, ConnectPacket("a", authentication_method="SCRAM").write()) == 0x8C


def test_an_auth_packet_is_a_protocol_error(port: int) -> None:
    """MQTT-4.12.0-6: without a method in CONNECT there is no AUTH."""
    with Raw(port) as client:
        client.connect("auth")
        client.send(AuthPacket(reason_code=mqtt5.AuthReasonCode.RE_AUTHENTICATE, authentication_method="X"))
        client.expect_end(0x82)


def test_something_else_than_connect_comes_first(port: int) -> None:
    """MQTT-3.1.0-1: the connection is closed."""
    with Raw(port) as client:
        client.send(PingReqPacket())
        client.expect_end()


def test_a_second_connect_is_a_protocol_error(port: int) -> None:
    """MQTT-3.1.0-2."""
    with Raw(port) as client:
        client.connect("twice")
        client.send(ConnectPacket("twice"))
        client.expect_end(0x82)


def test_a_client_without_an_identifier_gets_one(port: int) -> None:
    """MQTT-3.1.3-6 and -7: it is unique and told."""
    with Raw(port) as one, Raw(port) as other:
        first = one.connect("").assigned_client_id
        second = other.connect("", clean_start=False).assigned_client_id
        assert first
        assert second
        assert first != second


def test_an_identifier_is_kept_and_not_told(port: int) -> None:
    """3.2.2.3.7: the assigned identifier is for those who had none."""
    with Raw(port) as client:
        assert client.connect("mine").assigned_client_id is None


def test_a_very_long_identifier_is_refused(port: int) -> None:
    """MQTT-3.1.3-8."""
    assert refusal(port, ConnectPacket("x" * 2_000).write()) == 0x85


def test_unusual_identifiers_are_accepted(port: int) -> None:
    """MQTT-3.1.3-4: any UTF-8 text."""
    for client_id in ("ümlaut/+#", "with space", "x" * 1_000, "\U0001f600"):
        with Raw(port) as client:
            assert int(client.connect(client_id).reason_code) == 0


def test_a_will_with_a_wildcard_is_refused(port: int) -> None:
    """3.1.3.3: the will topic is a topic."""
    assert refusal(port, body(flags=6, rest=b"\0\1w\0\0\3a/#\0\0")) == 0x90


def test_a_long_keep_alive_is_shortened(port: int) -> None:
    """MQTT-3.1.2-21 and 3.2.2.3.14: the client is told to use the broker's."""
    with Raw(port) as client:
        assert client.connect("ka", keep_alive=120).server_keep_alive == 60
    with Raw(port) as client:
        assert client.connect("ka", keep_alive=30).server_keep_alive is None
    with Raw(port) as client:
        assert client.connect("ka", keep_alive=0).server_keep_alive is None


def test_a_silent_client_is_disconnected(port: int) -> None:
    """MQTT-3.1.2-22: after one and a half times the keep-alive; a ping puts that off."""
    with Raw(port) as client:
        client.connect("silent", keep_alive=1)
        start = time.monotonic()
        time.sleep(1)
        client.send(PingReqPacket())
        client.expect(mqtt5.PingRespPacket)
        client.expect_end(0x8D)
        assert 2.3 < time.monotonic() - start < 40


def test_a_second_connection_takes_over(port: int) -> None:
    """MQTT-3.1.4-3: the first is told so and closed."""
    with Raw(port) as old, Raw(port) as new:
        old.connect("same", session_expiry_interval=60)
        answer = new.connect("same", clean_start=False, session_expiry_interval=60)
        assert answer.session_present
        old.expect_end(0x8E)


def test_packets_sent_before_the_answer_are_served(port: int) -> None:
    """3.1.4: a client need not wait for CONNACK."""
    with Raw(port) as client:
        client.send(ConnectPacket("hasty", clean_start=True).write() + PingReqPacket().write())
        client.expect(mqtt5.ConnAckPacket)
        client.expect(mqtt5.PingRespPacket)


def test_a_connect_in_single_bytes_is_read(port: int) -> None:
    """4.2: packets have no relation to the pieces they come in."""
    with Raw(port) as client:
        for byte in ConnectPacket("drip", clean_start=True).write():
            client.send(bytes((byte,)))
        assert int(client.expect(mqtt5.ConnAckPacket).reason_code) == 0


def test_a_disconnect_closes_the_connection(port: int) -> None:
    """MQTT-3.14.4-1 and -2."""
    with Raw(port) as client:
        client.connect("bye")
        client.send(DisconnectPacket())
        client.expect_end()


def test_a_disconnect_may_not_make_a_session_lasting(port: int) -> None:
    """3.14.2.2.2: from 0 the session expiry cannot be raised."""
    with Raw(port) as client:
        client.connect("raise")
        client.send(DisconnectPacket(session_expiry_interval=10))
        client.expect_end(0x82)


def test_a_client_sends_no_server_reference(port: int) -> None:
    """3.14.2.2.5: that is the broker's."""
    with Raw(port) as client:
        client.connect("ref")
        client.send(DisconnectPacket(server_reference="other"))
        client.expect_end(0x82)


@pytest.mark.parametrize("reason", [0x00, 0x04, 0x80])
def test_the_will_depends_on_how_a_client_leaves(port: int, reason: int) -> None:
    """MQTT-3.14.4-3: only a normal disconnection forgets the will."""
    topic = f"will/{reason}"
    with Raw(port) as watcher, Raw(port) as client:
        watcher.connect(f"watcher{reason}")
        watcher.subscribe(topic)
        client.connect(f"dying{reason}", will=Will(topic, payload=b"gone", qos=QoS.AT_LEAST_ONCE))
        client.send(DisconnectPacket(reason_code=DisconnectReasonCode(reason)))
        client.expect_end()
        if reason:
            assert watcher.message().payload == b"gone"
        else:
            watcher.expect_nothing()


def test_a_lost_connection_publishes_the_will_with_its_properties(port: int) -> None:
    """MQTT-3.1.2-8 and 3.1.3.2."""
    with Raw(port) as watcher:
        watcher.connect("watcher-lost")
        watcher.subscribe("will/lost")
        client = Raw(port)
        will = Will(
            "will/lost",
            payload=b"lost",
            qos=QoS.EXACTLY_ONCE,
            retain=True,
            payload_format_indicator=1,
            content_type="text",
            response_topic="answer",
            correlation_data=b"7",
            message_expiry_interval=100,
            user_properties=[("a", "1"), ("a", "2")],
        )
        client.connect("lost", will=will)
        client.drop()
        got = watcher.message()
        assert (got.payload, got.qos, got.retain) == (b"lost", QoS.EXACTLY_ONCE, False)
        assert (got.payload_format_indicator, got.content_type) == (1, "text")
        assert (got.response_topic, got.correlation_data) == ("answer", b"7")
        assert got.message_expiry_interval == 100
        assert got.user_properties == [("a", "1"), ("a", "2")]
    with Raw(port) as late:  # MQTT-3.1.2-15: the will is retained
        late.connect("late")
        late.subscribe("will/lost")
        assert late.message().retain
        late.publish("will/lost", retain=True)


def test_a_will_waits_for_its_delay(port: int) -> None:
    """MQTT-3.1.3-9: a client that is back in time has no will published."""
    with Raw(port) as watcher:
        watcher.connect("watcher-delay")
        watcher.subscribe("will/delay")
        will = Will("will/delay", payload=b"late", will_delay_interval=1)
        client = Raw(port)
        client.connect("delayed", will=will, session_expiry_interval=60)
        client.drop()
        client = Raw(port)
        client.connect("delayed", clean_start=False, will=will, session_expiry_interval=60)
        watcher.expect_nothing(1.3)
        client.drop()
        start = time.monotonic()
        assert watcher.message().payload == b"late"
        assert 0.8 < time.monotonic() - start < 20


def test_a_will_is_due_when_its_session_ends(port: int) -> None:
    """3.1.2.5: at the latest then, whatever its delay."""
    with Raw(port) as watcher:
        watcher.connect("watcher-end")
        watcher.subscribe("will/end")
        will = Will("will/end", payload=b"now", will_delay_interval=60)
        client = Raw(port)
        client.connect("ending", will=will)
        client.drop()
        assert watcher.message().payload == b"now"
        client = Raw(port)
        client.connect("ending", will=will, session_expiry_interval=60)
        with Raw(port) as again:  # a clean start ends the session of the old connection
            again.connect("ending")
            assert watcher.message().payload == b"now"
        client.drop()


def test_taking_over_publishes_a_will_without_delay(port: int) -> None:
    """MQTT-3.1.4-3: the old connection was closed without a DISCONNECT of its client."""
    with Raw(port) as watcher, Raw(port) as old, Raw(port) as new:
        watcher.connect("watcher-over")
        watcher.subscribe("will/over")
        old.connect("over", will=Will("will/over", payload=b"taken"), session_expiry_interval=60)
        new.connect("over", clean_start=False, session_expiry_interval=60)
        assert watcher.message().payload == b"taken"


def test_a_protocol_error_publishes_the_will(port: int) -> None:
    """3.1.2.5: the broker closed the connection."""
    with Raw(port) as watcher, Raw(port) as client:
        watcher.connect("watcher-error")
        watcher.subscribe("will/error")
        client.connect("error", will=Will("will/error", payload=b"broken"))
        client.send(b"\x00\x00")
        client.expect_end(0x81)
        assert watcher.message().payload == b"broken"
