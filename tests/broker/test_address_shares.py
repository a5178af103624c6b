"""In a network an address has its share of wills and retained values; told again, it is refused the same."""

from __future__ import annotations

import random

import msgspec
import pytest
from mqtt5 import PubAckPacket, Will

from sojourn.broker.live_broker import LiveBroker
from sojourn.mqtt.limits import Limits
from tests.live.hall import Hall, Visitor, line
from tests.live.test_retained_limit import values
from tests.retained_values import values_of

QUOTA = 0x97
WILLS = Limits(will_bytes_max_all=8_000, will_bytes_address_max=4_000)
RETAINED = Limits(retained_messages_max=40, retained_messages_address_max=10)


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


def retain(hall: Hall, who: Visitor, topic: str, payload: bytes = b"x") -> int:
    """Publish to be retained, and let everybody hear of it; return the code."""
    who.publish(topic, payload, retain=True)
    hall.settle()
    answer = who.inbox.pop()
    assert isinstance(answer, PubAckPacket)
    return int(answer.reason_code)


def retained(broker: LiveBroker) -> tuple[dict[str, int], dict[str, tuple[int, int]], dict[str, int]]:
    """What was refused, what each address has, and the number of each topic's value."""
    state = broker.core.state
    numbers = {one.topic: one.sequence for one in values_of(state.retained, broker.now_s)}
    return dict(state.counters.refused), dict(state.retained.shares.by_party), numbers


@pytest.mark.parametrize("how", ["journal", "snapshot"])
def test_an_address_has_one_share_of_the_retained_values_of_all_brokers(how: str) -> None:
    """Wherever it publishes, also after a restart; others can go on everywhere, and all brokers agree."""
    hall = Hall(msgspec.structs.replace(line(3), limits=RETAINED))
    flood = [hall.visit(number, f"flood{number}", address="a") for number in range(3)]
    hall.settle()
    codes = [retain(hall, flood[number % 3], f"r/{number}") for number in range(15)]
    assert codes == [0] * 10 + [QUOTA] * 5
    for desk in hall.desks:
        assert desk.core.state.retained.shares.by_party["a"].messages == 10
        found = retained(desk.broker)
        assert retained(desk.replayed()) == found
        if how == "snapshot":
            desk.keep()
        hall.restart(desk.name)
        hall.settle()
        assert retained(desk.broker)[1:] == found[1:]
    for number in range(3):
        greedy = hall.visit(number, f"again{number}", address="a")
        honest = hall.visit(number, f"honest{number}", address=f"b{number}")
        hall.settle()
        assert retain(hall, greedy, f"further/{number}") == QUOTA
        assert [retain(hall, honest, f"status/{number}/{place}") for place in range(9)] == [0] * 9
    assert len(values(hall.desks[0])) == 37
    assert values(hall.desks[0]) == values(hall.desks[1]) == values(hall.desks[2])


def test_retained_wills_of_a_full_address_leave_the_same_values_everywhere() -> None:
    """Their topics are without a value then, and a journal that is told again says so too."""
    hall = Hall(msgspec.structs.replace(line(3), limits=RETAINED))
    flood = hall.visit(0, "flood", address="a")
    device = hall.visit(1, "device", address="b")
    hall.settle()
    for number in range(10):
        assert retain(hall, flood, f"r/{number}") == 0
    assert retain(hall, device, "status", b"here") == 0
    device.lose()
    will = Will("status", payload=b"gone", retain=True)
    hall.visit(2, "device", address="a", will=will, clean_start=True).lose()
    hall.settle()
    for desk in hall.desks:
        assert {*values(desk)} == {f"r/{number}" for number in range(10)}
        assert retained(desk.replayed()) == retained(desk.broker)
    assert hall.desks[2].core.state.counters.refused == {"publish address_quota_exceeded": 1}
