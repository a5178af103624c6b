"""A retained event that is on its way through the network while somebody subscribes."""

from __future__ import annotations

import random

import mqtt5
import pytest

from sojourn.broker.carried import Carried
from sojourn.broker.messages import Retain
from tests.broker.crew import Silent
from tests.live.hall import Hall, Visitor, line
from tests.retained_values import values_of

OLD, NEW = b"closed", b"open"


class Door:
    """A line of brokers, a client at each, and a topic whose retained value was acknowledged at the first."""

    def __init__(self, brokers: int) -> None:
        self.hall = Hall(line(brokers))
        self.readers = [self.fresh(number) for number in range(brokers)]
        self.writer = self.hall.visit(0, "writer")
        self.hall.settle()
        self.publish(OLD)
        self.hall.settle()

    def fresh(self, broker: int) -> Visitor:
        """A client that wants no session, and waits for nobody."""
        return self.hall.visit(broker, f"reader {broker}", clean_start=True)

    def publish(self, payload: bytes) -> None:
        """Publish a value, and have the answer before any other broker hears of it."""
        self.writer.inbox.clear()
        self.writer.publish("door/1", payload, retain=True)
        assert isinstance(self.writer.inbox.pop(), mqtt5.PubAckPacket)


@pytest.mark.parametrize("seed", range(5))
def test_who_subscribes_while_a_value_is_on_its_way_is_given_it_once(seed: int) -> None:
    """It was acknowledged before, and no subscription had reached the broker where it was published."""
    door, draw = Door(4), random.Random(seed)
    door.publish(NEW)
    for reader in door.readers:
        reader.ask("door/+")
        door.hall.step(draw)
    door.hall.settle()
    for reader in door.readers:
        assert reader.got in ([NEW], [OLD, NEW]), "it has the old value for ever"


def test_an_end_that_is_on_its_way_is_told_too() -> None:
    """An empty event ends what is retained, and is an event of its own."""
    door = Door(3)
    door.publish(b"")
    door.readers[2].ask("door/+")
    door.hall.settle()
    assert door.readers[2].got == [OLD, b""]
    assert all(desk.core.state.retained.count == 0 for desk in door.hall.desks)


def test_a_value_that_waited_for_a_broken_link_comes_to_who_subscribed_meanwhile() -> None:
    """Wherever it waited, and though others were started again meanwhile."""
    door = Door(3)
    door.hall.unlink("B2")
    door.publish(NEW)
    door.readers[2].ask("door/+")
    assert door.readers[2].got == [OLD]
    door.hall.restart("B1")
    door.hall.restart("B2")
    door.hall.settle()
    assert door.readers[2].got == [OLD, NEW]


def test_a_broker_that_forgot_all_values_gives_them_to_who_subscribed_before_it_is_told() -> None:
    """Its store was deleted."""
    door = Door(3)
    hall = door.hall
    hall.unlink("B3")
    hall.by_name["B3"].delete_store()
    hall.by_name["B3"].restart()
    reader = door.fresh(2)
    reader.ask("door/+")
    assert reader.got == []
    hall.relink()
    hall.settle()
    assert reader.got == [OLD]


def test_who_has_a_value_from_another_broker_is_not_given_it_by_one_that_hears_of_it_late() -> None:
    """Its subscription is older than its stay there."""
    door = Door(3)
    hall = door.hall
    got: list[bytes] = []
    traveller = hall.visit(1, "traveller", lasts_s=500, got=got)
    hall.settle()
    traveller.subscribe("door/+")
    traveller.leave()
    hall.visit(2, "traveller", lasts_s=500, got=got)
    hall.settle()
    network = hall.by_name["B3"].network
    (value,) = values_of(network.core.state.retained, hall.now)
    network.core.state.retained.forget("door/1")
    network.receive(Retain((Carried(value),)), "B2", hall.now)
    assert network.core.state.retained.count == 1
    assert got == [OLD]


def test_no_restart_makes_a_second_event_of_it() -> None:
    """A broker that is killed and comes back passes on what it had not, and nothing twice."""
    door = Door(4)
    hall, reader = door.hall, door.readers[3]
    reader.subscribe("door/+")
    door.publish(NEW)
    hall.carry("B1", "B2")
    hall.carry("B2", "B3")
    hall.restart("B2")
    hall.settle()
    hall.restart("B3")
    hall.settle()
    assert reader.got == [OLD, NEW]


def test_retained_events_that_wait_go_with_a_client_to_its_next_broker() -> None:
    """It takes them one by one, and moves in the middle; nobody but its session has them."""
    hall = Hall(line(3))
    writer = hall.visit(0, "writer")
    for number in range(5):
        writer.publish(f"door/{number}", b"%d" % number, retain=True)
    slow = Silent(hall, 1, "slow", receive_max=1)
    slow.subscribe("door/+")
    slow.acknowledge()
    slow.lose()
    hall.settle()
    got: list[bytes] = []
    hall.visit(2, "slow", lasts_s=500, got=got, receive_max=1)
    hall.settle()
    assert slow.got + got == [b"%d" % number for number in range(5)]
