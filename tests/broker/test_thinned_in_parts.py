"""What a client does not want of what it missed goes while it is given the rest in parts."""

from __future__ import annotations

from typing import Any

import pytest
from mqtt5 import QoS, SubscribePacket, TopicFilter, UnsubscribePacket

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import AtOnce
from sojourn.mqtt import queue_policies
from sojourn.mqtt.content import event_of
from sojourn.mqtt.conventions import BUDGET, EXPIRY, KEEP
from tests.counting import counted
from tests.live.hall import Hall, Visitor, line

STORED, PART = 20, 3
POLICIES = {
    "last": [(KEEP, "last:key")],
    "highest": [(KEEP, "highest:value")],
    "lowest, while fresh": [(KEEP, "lowest:value"), (EXPIRY, "15")],
    "fresh": [(EXPIRY, "9")],
    "budget": [(KEEP, "last:key"), (BUDGET, "150")],
}


def stored(said: list[tuple[str, str]], at_once: AtOnce, scheme: str = "proactive") -> Hall:
    """Events of two publishers, one a second, are stored at B1 for a reader that is away."""
    hall = Hall(line(3, scheme), at_once=at_once)
    reader = hall.visit(0, "reader", lasts_s=1_000)
    reader.send(SubscribePacket(1, [TopicFilter("n/#", max_qos=QoS.AT_LEAST_ONCE)], user_properties=said))
    hall.settle()
    reader.lose()
    hall.settle()
    writers = [hall.visit(at, f"writer {at}") for at in (0, 1)]
    hall.settle()
    for number in range(STORED):
        payload = b'{"key": %d, "value": %d, "n": %d}' % (number % 7, number * 7 % 11, number)
        writers[number % 2].publish("n/x", payload)
        hall.settle()
        hall.wait(1.0)
    return hall


def goes_on(hall: Hall) -> bool:
    """Let every broker that gives something give a part of it; say whether one did."""
    found = False
    for desk in hall.desks:
        if desk.network.clients.broker.subscribers.is_giving:
            desk.tell(facts.TimePassed())
            found = True
    hall.settle()
    return found


def comes(hall: Hall, to: int) -> Visitor:
    """The reader comes to a broker, and is given a part."""
    reader = hall.visit(to, "reader", lasts_s=1_000)
    hall.settle()
    return reader


@pytest.mark.parametrize("happens", ["nothing", "lines", "snapshot", "breaks off", "moves on"])
@pytest.mark.parametrize("to", [0, 1])
@pytest.mark.parametrize("policy", POLICIES)
def test_in_parts_the_same_is_kept_as_at_once(policy: str, to: int, happens: str) -> None:
    """Whatever happens between two parts."""
    expected = comes(stored(POLICIES[policy], AtOnce()), to).got
    assert 0 < len(expected) < STORED
    hall = stored(POLICIES[policy], AtOnce(given=PART))
    reader = comes(hall, to)
    goes_on(hall)
    if happens in ("lines", "snapshot"):
        if happens == "snapshot":
            reader.desk.keep()
        hall.restart(reader.desk.name)
        hall.settle()
    elif happens in ("breaks off", "moves on"):
        reader.lose()
        hall.settle()
    if happens != "nothing":
        reader = hall.visit(2 if happens == "moves on" else to, "reader", lasts_s=1_000, got=reader.got)
        hall.settle()
    while goes_on(hall):
        pass
    hall.wait(0.1)
    assert sorted(reader.got) == sorted(expected)
    hall.visit(0, "late").publish("n/x", b"late")
    hall.settle()
    assert reader.got[-1] == b"late"


def test_no_part_looks_at_more_than_it_brings(monkeypatch: pytest.MonkeyPatch) -> None:
    """All events are looked at once, some with each part."""
    hall = stored(POLICIES["last"], AtOnce(given=PART))
    looked_at: list[tuple[Any, ...]] = []
    monkeypatch.setattr(queue_policies, "event_of", counted(event_of, looked_at))
    calls: list[int] = []
    handle = LiveBroker.handle

    def watching(broker: LiveBroker, fact: facts.Fact, now: float) -> None:
        before = len(looked_at)
        handle(broker, fact, now)
        calls.append(len(looked_at) - before)

    monkeypatch.setattr(LiveBroker, "handle", watching)
    reader = comes(hall, 0)
    while goes_on(hall):
        pass
    assert len(reader.got) == 7
    assert sum(calls) == STORED
    assert max(calls) == PART


@pytest.mark.parametrize("change", ["subscribes", "unsubscribes"])
def test_who_changes_its_subscriptions_meanwhile_is_sent_the_rest(change: str) -> None:
    """What has gone has gone; the next time policies hold again."""
    hall = stored(POLICIES["highest"], AtOnce(given=PART))
    reader = comes(hall, 0)
    reader.send(
        SubscribePacket(2, [TopicFilter("m/#")]) if change == "subscribes" else UnsubscribePacket(2, ["m/#"])
    )
    hall.settle()
    while goes_on(hall):
        pass
    hall.wait(0.1)
    if change == "unsubscribes":  # from nothing
        assert len(reader.got) == 1
        return
    assert len(reader.got) > STORED - PART
    reader.lose()
    hall.settle()
    writer = hall.visit(0, "writer")
    for number in range(5):
        writer.publish("n/x", b'{"value": %d}' % number)
    hall.settle()
    back = comes(hall, 0)
    while goes_on(hall):
        pass
    assert back.got == [b'{"value": 4}']


def test_a_broker_that_is_told_again_has_dropped_as_much() -> None:
    """What its journal says leads to the same queue."""
    hall = stored(POLICIES["last"], AtOnce(given=PART))
    comes(hall, 0)
    for _ in range(3):
        goes_on(hall)
    desk = hall.desks[0]
    live, again = (
        [one.message.payload for one in broker.core.state.sessions["reader"].queue]
        for broker in (desk.broker, desk.replayed())
    )
    assert 0 < len(live) < 4 * PART
    assert live == again
