"""In a network, too, the clients of one address have a share of what is stored for clients, and no more."""

from __future__ import annotations

import msgspec
import pytest

from sojourn.broker.live_broker import LiveBroker
from sojourn.mobility.queues import PARTY_FULL
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.room import ADDRESS_FULL
from sojourn.sim.live_check.replaying import broken_rules
from tests.live.hall import Desk, Hall, line

EVENT = bytes(1_000)
LIMITS = Limits(queue_bytes_max=5_000, queue_bytes_address_max=12_000, queue_bytes_max_all=20_000)


def crowded(scheme: str) -> Hall:
    """Eight absent clients of one address at B1, each of which wants as much as one may; then another one."""
    hall = Hall(msgspec.structs.replace(line(2, scheme), limits=LIMITS))
    writer = hall.visit(1, "writer")
    for number in range(8):
        reader = hall.visit(0, f"greedy{number}", lasts_s=1_000, address="greedy")
        hall.settle()
        reader.subscribe(f"t/{number}")
        reader.lose()
        for _ in range(5):
            writer.publish(f"t/{number}", EVENT)
    modest = hall.visit(0, "modest", lasts_s=1_000, address="modest")
    hall.settle()
    modest.subscribe("t/m")
    modest.lose()
    for _ in range(4):
        writer.publish("t/m", EVENT)
    hall.settle()
    return hall


def stored(desk: Desk) -> dict[str, int]:
    """The bytes that are stored for the clients of each address."""
    return {
        party: one.bytes for party, one in desk.network.clients.broker.subscribers.accounts.by_party.items()
    }


def decided(broker: LiveBroker) -> tuple[dict[str, int], dict[int, list[int]]]:
    """What was refused, and which events are stored for each client."""
    assert broker.network is not None
    clients = broker.network.clients
    held = clients.broker.subscribers.main.items()
    return clients.drops, {client: [one.sequence for one in holding.queue] for client, holding in held}


@pytest.mark.parametrize("scheme", ["proactive", "reactive", "durable"])
def test_absent_clients_of_one_address_leave_others_their_room(scheme: str) -> None:
    """What is refused is counted with its reason; a broker that is told everything again decides the same."""
    hall = crowded(scheme)
    desk = hall.desks[0]
    holdings = desk.network.clients.broker.subscribers.main.values()
    size = next(iter(holdings)).queue[0].size
    fits = LIMITS.queue_bytes_address_max // size
    assert stored(desk) == {"greedy": fits * size, "modest": 4 * size}
    assert PARTY_FULL == ADDRESS_FULL
    assert desk.network.clients.drops["queue full"] == 2, "four fit the queue of one client"
    assert desk.network.clients.drops[ADDRESS_FULL] == 8 * 5 - fits - 2
    assert decided(desk.broker) == decided(desk.replayed())
    assert broken_rules(desk.broker) == broken_rules(desk.replayed()) == []
    desk.keep()
    hall.restart("B1")
    assert stored(hall.desks[0]) == {"greedy": fits * size, "modest": 4 * size}
    back = hall.visit(0, "modest", lasts_s=1_000, address="elsewhere")
    hall.settle()
    assert back.got == [EVENT] * 4
    assert stored(hall.desks[0]) == {"greedy": fits * size, "elsewhere": 0}


def test_events_are_counted_however_short_they_are() -> None:
    """Each takes room besides its bytes; of one address, and of all that is stored at a broker."""
    limits = Limits(queue_messages_address_max=3, queue_messages_max_all=5)
    hall = Hall(msgspec.structs.replace(line(2), limits=limits))
    writer = hall.visit(1, "writer")
    for name in ("a1", "a2", "b"):
        reader = hall.visit(0, name, lasts_s=1_000, address=name[0])
        hall.settle()
        reader.subscribe(f"t/{name}")
        reader.lose()
        for _ in range(3 if name == "b" else 2):
            writer.publish(f"t/{name}", b"")
        hall.settle()
    drops = {ADDRESS_FULL: 1, "queue full": 1}
    desk = hall.desks[0]
    assert desk.network.clients.drops == drops
    assert decided(desk.broker) == decided(desk.replayed())
    desk.keep()
    hall.restart("B1")
    writer.publish("t/b", b"")
    hall.settle()
    assert hall.desks[0].network.clients.drops["queue full"] == 2
    back = hall.visit(0, "a1", lasts_s=1_000, address="a")
    hall.settle()
    assert back.got == [b""] * 2
    writer.publish("t/b", b"")
    hall.settle()
    assert hall.desks[0].network.clients.drops["queue full"] == 2


def test_a_session_that_moves_takes_its_part_along() -> None:
    """Also one whose client has gone again before its session came: it knows where its client came from."""
    hall = crowded("reactive")
    before = stored(hall.desks[0])["greedy"]
    moving = hall.visit(1, "greedy0", lasts_s=1_000, address="greedy")
    moving.lose()
    hall.settle()
    assert hall.desks[1].core.state.sessions["greedy0"].address == "greedy"
    assert stored(hall.desks[1])["greedy"] == before - stored(hall.desks[0])["greedy"] > 0


def test_a_member_whose_address_has_no_room_declines() -> None:
    """What it is picked for goes to a member of another address."""
    limits = Limits(queue_bytes_max=50_000, queue_bytes_address_max=3_500, queue_bytes_max_all=100_000)
    hall = Hall(msgspec.structs.replace(line(2), limits=limits))
    for broker, name in ((0, "full"), (1, "other")):
        reader = hall.visit(broker, name, lasts_s=1_000, address="greedy" if broker == 0 else "modest")
        hall.settle()
        reader.subscribe("$share/workers/jobs")
        reader.lose()
    # What waits for the first one takes the room of its address.
    hog = hall.visit(0, "hog", lasts_s=1_000, address="greedy")
    hall.settle()
    hog.subscribe("hog")
    hog.lose()
    writer = hall.visit(1, "writer")
    writer.publish("hog", bytes(2_000))
    sent = [b"%d" % number + EVENT for number in range(4)]
    for payload in sent:
        writer.publish("jobs", payload)
        hall.settle()
    got = []
    for broker, name in ((0, "full"), (1, "other")):
        got.append(hall.visit(broker, name, lasts_s=1_000).got)
        hall.settle()
    assert hall.desks[0].network.clients.drops[PARTY_FULL] > 0
    assert sorted(got[0] + got[1]) == sent
