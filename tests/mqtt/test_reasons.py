"""What refusals say: one line that no client takes for a malformed packet."""

from __future__ import annotations

import unicodedata
from typing import Any

import mqtt5
import pytest
from mqtt5 import DisconnectReasonCode, PubAckPacket, PubRecPacket, SubAckPacket, SubscribePacket, TopicFilter

from sojourn.mqtt.answers import REASON_CHARACTERS_MAX, goodbye, reason_string
from tests.mqtt.world import World

BAD = "x >\n\t\x00\x9f\ufdd0\uffff\u2028"
"""The beginning of a filter, and characters that do not belong into a line."""


def check_line(text: str | None) -> None:
    """It is there, can be encoded, and has no character that is not text."""
    assert text
    assert [one for one in text if unicodedata.category(one) in ("Cc", "Cs", "Cn", "Zl", "Zp")] == []
    text.encode()


@pytest.mark.parametrize("filter_text", ["x >", "x >\n", "x > 'a\x01b' AND\r\n"])
def test_a_refused_filter_is_explained_in_one_line(filter_text: str) -> None:
    """In SUBACK, PUBACK, PUBREC and CONNACK alike, with the place of the mistake."""
    world = World()
    client = world.client()
    client.connect("c")
    client.send(SubscribePacket(1, [TopicFilter("t")], user_properties=[("filter", filter_text)]))
    answers: list[Any] = [client.next(SubAckPacket)]
    for qos, kind in ((1, PubAckPacket), (2, PubRecPacket)):
        client.publish("t", b"x", qos, user_properties=[("policy", filter_text)])
        answers.append(client.next(kind))
    answers.append(world.client().connect("bad", user_properties=[("sojourn-advertise", filter_text)]))
    for answer in answers:
        check_line(answer.reason_str)
        assert "(at character " in answer.reason_str


def test_a_goodbye_is_one_line_whatever_it_quotes() -> None:
    """A DISCONNECT too, and none is longer than all others may be."""
    world = World()
    client = world.client()
    client.connect("c")
    connection = world.core.state.connections[1]
    frame = goodbye(connection, DisconnectReasonCode.MALFORMED_PACKET, f"{BAD}is no name.", None)
    assert frame is not None
    packet, _ = mqtt5.read(memoryview(frame))
    assert isinstance(packet, mqtt5.DisconnectPacket)
    check_line(packet.reason_str)
    assert packet.reason_str == "x > is no name."
    assert len(reason_string("a" * 10_000)) == REASON_CHARACTERS_MAX


def test_every_character_is_either_kept_or_not_to_be_sent() -> None:
    """Letters of all languages stay; a lone half of a pair, which cannot be encoded, does not."""
    assert reason_string("Zürich, 東京, 🚗") == "Zürich, 東京, 🚗"
    assert reason_string("a\ud800b\U0010ffffc") == "a b c"
