"""MQTT 5, sections 3.1.2.4, 3.1.2.11.2, 4.1, 4.4: sessions that outlive connections, over a socket."""

from __future__ import annotations

import time

import mqtt5
import pytest
from mqtt5 import DisconnectPacket, PubAckPacket, PublishPacket, PubRecPacket, PubRelPacket, QoS

from tests.live.raw_client import Raw, running_broker


def leave(client: Raw, expiry: int | None = None) -> None:
    """Disconnect normally and wait for the end."""
    client.send(DisconnectPacket(session_expiry_interval=expiry))
    client.expect_end()
    client.drop()


def test_a_session_ends_with_its_connection_unless_asked_otherwise(port: int) -> None:
    """3.1.2.11.2: an absent interval is 0."""
    client = Raw(port)
    client.connect("short")
    client.subscribe("short")
    leave(client)
    with Raw(port) as again:
        assert not again.connect("short", clean_start=False).session_present
        again.publish("short", b"x", 0)
        again.expect_nothing()


def test_a_session_is_kept_for_its_interval(port: int) -> None:
    """MQTT-3.1.2-23 and 3.2.2-2, -3: present until it expires."""
    client = Raw(port)
    assert not client.connect("kept", session_expiry_interval=1).session_present
    client.subscribe("kept")
    leave(client)
    client = Raw(port)
    assert client.connect("kept", clean_start=False, session_expiry_interval=1).session_present
    leave(client)
    time.sleep(1.3)
    with Raw(port) as again:
        assert not again.connect("kept", clean_start=False).session_present


def test_disconnect_changes_the_interval(port: int) -> None:
    """3.14.2.2.2: longer, or to nothing."""
    client = Raw(port)
    client.connect("change", session_expiry_interval=1)
    leave(client, 60)
    time.sleep(1.3)
    client = Raw(port)
    assert client.connect("change", clean_start=False, session_expiry_interval=1).session_present
    leave(client, 0)
    with Raw(port) as again:
        assert not again.connect("change", clean_start=False).session_present


def test_a_clean_start_forgets_the_session(port: int) -> None:
    """MQTT-3.1.2-4: subscriptions and what waited."""
    client = Raw(port)
    client.connect("clean", session_expiry_interval=60)
    client.subscribe("clean")
    leave(client)
    with Raw(port) as again:
        assert not again.connect("clean", clean_start=True).session_present
        again.publish("clean", b"x", 0)
        again.expect_nothing()


def test_an_interval_beyond_the_limit_is_shortened_and_told(port: int) -> None:
    """3.2.2.3.2."""
    with Raw(port) as client:
        assert (
            client.connect("long", session_expiry_interval=0xFFFF_FFFF).session_expiry_interval == 2_592_000
        )


def test_messages_wait_for_an_absent_client(port: int) -> None:
    """MQTT-4.5.0-1: QoS 1 and 2, in order; subscriptions stand."""
    client = Raw(port)
    client.connect("absent", session_expiry_interval=60)
    client.subscribe("absent/#")
    leave(client)
    with Raw(port) as sender:
        sender.connect("absents")
        for number in range(20):
            sender.publish(f"absent/{number % 3}", b"%d" % number, 1 + number % 2)
    with Raw(port) as again:
        assert again.connect("absent", clean_start=False, session_expiry_interval=60).session_present
        got = [again.message() for _ in range(20)]
        assert [int(one.payload) for one in got] == list(range(20))
        assert not any(one.duplicate for one in got)
        assert [int(one.qos) for one in got] == [1 + number % 2 for number in range(20)]


def test_what_was_not_acknowledged_is_sent_again(port: int) -> None:
    """MQTT-4.4.0-1 and 3.3.1-1: with DUP, the same identifiers, in order, then what is new."""
    client = Raw(port)
    client.connect("again", session_expiry_interval=60)
    client.subscribe("again")
    with Raw(port) as sender:
        sender.connect("agains")
        for number in range(3):
            sender.publish("again", b"%d" % number, 1 + number % 2)
    first = [client.expect(PublishPacket) for _ in range(3)]
    assert first[0].packet_id
    client.send(PubAckPacket(first[0].packet_id))
    client.send(mqtt5.PingReqPacket())
    client.expect(mqtt5.PingRespPacket)
    client.drop()
    client = Raw(port)
    assert client.connect("again", clean_start=False, session_expiry_interval=60).session_present
    second = [client.expect(PublishPacket) for _ in range(2)]
    assert [one.packet_id for one in second] == [one.packet_id for one in first[1:]]
    assert all(one.duplicate for one in second)
    assert [one.payload for one in second] == [b"1", b"2"]
    client.drop()


def test_a_release_is_sent_again(port: int) -> None:
    """MQTT-4.4.0-1: PUBREL too, and the message is not sent a second time."""
    client = Raw(port)
    client.connect("rel", session_expiry_interval=60)
    client.subscribe("rel")
    client.send(PublishPacket("rel", b"x", qos=QoS.EXACTLY_ONCE, packet_id=1))
    packets = [client.receive() for _ in range(2)]
    got = next(one for one in packets if isinstance(one, PublishPacket))
    assert got.packet_id
    client.send(PubRecPacket(got.packet_id))
    client.expect(PubRelPacket)
    client.drop()
    with Raw(port) as again:
        again.connect("rel", clean_start=False, session_expiry_interval=60)
        assert again.expect(PubRelPacket).packet_id == got.packet_id
        again.send(mqtt5.PubCompPacket(got.packet_id))
        again.expect_nothing()


def test_a_quality_2_publish_goes_on_after_a_reconnect(port: int) -> None:
    """MQTT-4.3.3-10: the broker remembers what it received and not yet saw released."""
    with Raw(port) as watcher:
        watcher.connect("goes-on-w")
        watcher.subscribe("goes-on")
        client = Raw(port)
        client.connect("goes-on", session_expiry_interval=60)
        packet = PublishPacket("goes-on", b"x", qos=QoS.EXACTLY_ONCE, packet_id=4)
        client.send(packet)
        client.expect(PubRecPacket)
        client.drop()
        client = Raw(port)
        client.connect("goes-on", clean_start=False, session_expiry_interval=60)
        client.send(PublishPacket("goes-on", b"x", qos=QoS.EXACTLY_ONCE, packet_id=4, duplicate=True))
        client.expect(PubRecPacket)
        client.send(PubRelPacket(4))
        assert int(client.expect(mqtt5.PubCompPacket).reason_code) == 0
        client.drop()
        assert watcher.message().payload == b"x"
        watcher.expect_nothing()


def test_a_smaller_window_holds_for_what_is_sent_again(port: int) -> None:
    """MQTT-3.3.4-9 holds on the new connection too."""
    client = Raw(port)
    client.connect("smaller", session_expiry_interval=60)
    client.subscribe("smaller")
    with Raw(port) as sender:
        sender.connect("smallers")
        for number in range(5):
            sender.publish("smaller", b"%d" % number, 1)
    for _ in range(5):
        client.expect(PublishPacket)
    client.drop()
    with Raw(port) as again:
        again.connect("smaller", clean_start=False, session_expiry_interval=60, receive_max=2)
        got = [again.expect(PublishPacket) for _ in range(2)]
        again.expect_nothing()
        for _ in range(3):
            assert got[-2].packet_id
            again.send(PubAckPacket(got[-2].packet_id))
            got.append(again.expect(PublishPacket))
        assert [one.payload for one in got] == [b"0", b"1", b"2", b"3", b"4"]
        assert all(one.duplicate for one in got)


def test_messages_of_quality_0_do_not_wait(port: int) -> None:
    """4.1: whether they do is the broker's choice; this one says no."""
    client = Raw(port)
    client.connect("zero", session_expiry_interval=60)
    client.subscribe("zero")
    leave(client)
    with Raw(port) as sender:
        sender.connect("zeros")
        sender.publish("zero", b"0", 0)
        sender.publish("zero", b"1", 1)
    with Raw(port) as again:
        again.connect("zero", clean_start=False)
        assert again.message().payload == b"1"
        again.expect_nothing()


def test_a_stopping_broker_says_so() -> None:
    """3.14.2.1: server shutting down; it exits with 0."""
    with running_broker() as broker:
        with Raw(broker.port) as client:
            client.connect("stopped")
            broker.process.terminate()
            client.expect_end(0x8B)
        assert broker.process.wait(10) == 0


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (b"\x00\x00", 0x81),  # type 0
        (b"\xc1\x00", 0x81),  # MQTT-2.1.3-1: reserved bits
        (b"\xc0\x01\x00", 0x81),  # a ping with a body
        (b"\xd0\x00", 0x82),  # a packet that only a broker sends
        (b"\x20\x03\x00\x00\x00", 0x82),
        (b"\x90\x04\0\1\0\0", 0x82),
        (b"\x60\x02\0\1", 0x81),  # MQTT-3.6.1-1: PUBREL's reserved bits
        (b"\x41\x02\0\1", 0x81),  # those of its three sisters
        (b"\x58\x02\0\1", 0x81),
        (b"\x72\x02\0\1", 0x81),
        (b"\x40\x02\0\0", 0x81),  # MQTT-2.2.1-3: identifier 0
        (b"\x50\x02\0\0", 0x81),
        (b"\x62\x02\0\0", 0x81),
        (b"\x70\x02\0\0", 0x81),
        (b"\x40\x01\0", 0x81),  # a PUBACK without identifier
        (b"\x40\x03\0\1\x77", 0x81),  # a reason code there is none of
        (b"\xe0\x01\x77", 0x81),
        (b"\xe1\x00", 0x81),  # MQTT-3.14.1-1
        (b"\xc0\x80\x80\x80\x80\x01", 0x81),  # a length of five bytes
    ],
)
def test_broken_packets_end_the_connection(port: int, packet: bytes, code: int) -> None:
    """4.13: malformed packet or protocol error, with the right reason."""
    with Raw(port) as client:
        client.connect("")
        client.send(packet)
        client.expect_end(code)
