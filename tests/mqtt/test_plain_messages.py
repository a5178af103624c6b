"""A packet without properties makes the same message, whichever way it was read."""

from __future__ import annotations

import mqtt5
import pytest

from sojourn.mqtt.message import PLAIN, Properties
from sojourn.mqtt.packets import decode
from sojourn.mqtt.publishing import _message


def made_of(qos: mqtt5.QoS, **given: object) -> Properties:
    """The properties of the message that a decoded packet makes."""
    packet = mqtt5.PublishPacket("t", b"x", packet_id=int(qos) or None, qos=qos, **given)  # type: ignore[arg-type]  # as a case names them
    frame = bytes(packet.write())
    again = decode(frame)
    assert isinstance(again, mqtt5.PublishPacket)
    return _message(again, "t", frame, "somebody", None, 0.0).properties


@pytest.mark.parametrize("qos", [mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE])
def test_what_says_nothing_besides_is_plain(qos: mqtt5.QoS) -> None:
    """It is plain in a journal and between brokers, whether its topic was known when it came or not."""
    assert made_of(qos) is PLAIN
    assert made_of(qos, user_properties=[("a", "b")]) == Properties(user=(("a", "b"),))
    assert made_of(qos, message_expiry_interval=5) is not PLAIN
