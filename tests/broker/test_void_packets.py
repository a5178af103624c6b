"""Packets that are refused and change nothing are not noted, and no other packet is left out for them."""

from __future__ import annotations

import pytest
from mqtt5 import (
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    UnsubscribePacket,
)

from sojourn.broker import facts
from tests.broker.alone import Alone
from tests.mqtt import old_words as old

FORBIDDEN = "$SYS/broker/version"
NEVER = {
    "publish": old.publish(FORBIDDEN, b"x", 1),
    "publish twice": old.publish(FORBIDDEN, b"x", 2),
    "retain": old.publish(FORBIDDEN, b"x", 1, retain=True),
    "then break the protocol": old.unsubscribe("never/there") + b"\xf0\x00",
}


def refuse_an_old_client(hall: Alone, packets: bytes) -> None:
    """Let a client of MQTT 3.1.1 do what nobody may, for which its connection is closed."""
    hall.opened += 1
    number = hall.opened
    hall.tell(facts.ClientOpened(number, "there", f"fresh-{number}"))
    hall.send(number, old.connect(f"old-{number}"))
    hall.settle()
    hall.send(number, packets)
    hall.settle()
    assert number in hall.closed


@pytest.mark.parametrize("packets", NEVER.values(), ids=NEVER.keys())
def test_what_others_were_promised_is_noted_after_an_old_client_was_refused(packets: bytes) -> None:
    """A message of QoS 2 that was answered to the end stays so after a restart, at both ends."""
    hall = Alone()
    reader = hall.client("reader", session_expiry_interval=600)
    writer = hall.client("writer", session_expiry_interval=600)
    hall.send(reader, SubscribePacket(1, [TopicFilter("ok", max_qos=QoS.EXACTLY_ONCE)]))
    hall.settle()
    hall.send(writer, PublishPacket("ok", b"first", qos=QoS.EXACTLY_ONCE, packet_id=7))
    hall.settle()
    assert isinstance(hall.packets(reader)[0], SubAckPacket)
    refuse_an_old_client(hall, packets)
    hall.send(reader, PubRecPacket(1))
    refuse_an_old_client(hall, packets)
    hall.send(writer, PubRelPacket(7))
    refuse_an_old_client(hall, packets)
    hall.send(reader, PubCompPacket(1))
    refuse_an_old_client(hall, packets)
    hall.settle()
    live, again = hall.broker.core.state.sessions, hall.again().core.state.sessions
    for sessions in (live, again):
        assert not sessions["reader"].inflight
        assert not sessions["writer"].received


def test_what_follows_a_refusal_in_one_piece_is_noted() -> None:
    """Only the refused packets of what a client sends at once are left out."""
    hall = Alone()
    client = hall.client("client", session_expiry_interval=600)
    refused = [
        PublishPacket(FORBIDDEN, b"x", qos=QoS.AT_LEAST_ONCE, packet_id=9),
        UnsubscribePacket(3, ["never/there"]),
    ]
    wanted = [SubscribePacket(10 + n, [TopicFilter(f"t/{n}", max_qos=QoS.AT_LEAST_ONCE)]) for n in range(4)]
    hall.send(client, wanted[0], refused[0], wanted[1], refused[1], wanted[2], refused[0], wanted[3])
    hall.settle()
    again = hall.again().core.state.sessions["client"]
    assert sorted(again.subscriptions) == [f"t/{n}" for n in range(4)]
