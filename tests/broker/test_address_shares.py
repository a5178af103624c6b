"""In a network an address has its share of wills; told again, its clients are refused the same."""

from __future__ import annotations

import random

import msgspec
from mqtt5 import Will

from sojourn.broker.live_broker import LiveBroker
from sojourn.mqtt.limits import Limits
from tests.live.hall import Hall, line

WILLS = Limits(will_bytes_max_all=8_000, will_bytes_address_max=4_000)


def wills(broker: LiveBroker) -> tuple[dict[str, int], dict[str, tuple[str | None, int]], dict[str, int]]:
    """What was refused, whose wills there are, and what each address has of them."""
    state = broker.core.state
    uses = {address: use.will_bytes for address, use in state.address_uses.by_address.items()}
    return (
        dict(state.counters.refused),
        {name: (one.address, one.will_bytes) for name, one in state.sessions.items()},
        uses,
    )


def test_clients_with_wills_are_refused_alike_when_a_journal_is_told_again() -> None:
    """They come and go between two brokers, from two addresses; no address has more than its share."""
    draw = random.Random(1)
    hall = Hall(msgspec.structs.replace(line(2), limits=WILLS))
    for _ in range(80):
        will = Will("will", payload=bytes(draw.randrange(1_500)), will_delay_interval=600)
        name, address = f"c{draw.randrange(12)}", draw.choice("ab")
        visitor = hall.visit(draw.randrange(2), name, lasts_s=900, address=address, will=will)
        hall.settle()
        if draw.random() < 0.7 and not visitor.is_over:
            visitor.lose()
    for desk in hall.desks:
        refused, _, uses = found = wills(desk.broker)
        assert refused["address_quota_exceeded"] > 0
        assert all(size <= WILLS.will_bytes_address_max for size in uses.values())
        assert wills(desk.replayed()) == found
