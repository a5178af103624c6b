"""Many connections with one client identifier at once: somebody wins, and everybody else is told so."""

from __future__ import annotations

import random
from typing import Any

import pytest
from mqtt5 import ConnAckPacket, DisconnectPacket

from tests.live.hall import Hall, line


def told(visitor: Any) -> list[tuple[str, int]]:
    """What a connection was told about itself."""
    return [
        (type(packet).__name__, int(packet.reason_code))
        for packet in visitor.inbox
        if isinstance(packet, (ConnAckPacket, DisconnectPacket))
    ]


@pytest.mark.parametrize("seed", range(8))
def test_one_of_a_hundred_connections_at_six_brokers_wins(seed: int) -> None:
    """Without any time passing; the others are told to try again, or that they were taken over."""
    draw = random.Random(seed)
    hall = Hall(line(6))
    visitors = []
    for number in range(100):
        hall.now += 0.0005
        visitors.append(hall.visit(number % 6, "the one", lasts_s=60))
        if draw.random() < 0.3:
            hall.step(draw)
    hall.settle()
    here = [one for one in visitors if not one.is_over]
    assert [told(one) for one in here] == [[("ConnAckPacket", 0)]]
    for one in visitors:
        if one.is_over:
            assert told(one)[-1] in (("ConnAckPacket", 0x89), ("DisconnectPacket", 0x8E)), told(one)
