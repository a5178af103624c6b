"""Python's cycle collector has little to look at in a broker, and looks at little at once."""

from __future__ import annotations

import gc
import subprocess
import sys

from mqtt5 import ConnectPacket, DisconnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter

from sojourn.broker import facts
from sojourn.mqtt.conventions import FILTER
from tests.broker.alone import Alone
from tests.live.hall import Hall, line


def come_and_go(number: int) -> tuple[Alone, Hall]:
    """Clients come, subscribe, publish, move and go, at a broker alone and at two linked ones."""
    alone = Alone()
    client = alone.client(f"alone {number}")
    wanted = [TopicFilter("a/+/b", max_qos=QoS.AT_LEAST_ONCE), TopicFilter("$share/g/a/#")]
    condition = f"(v > {number} OR topic LIKE 'a/#') AND NOT topic LIKE 'a/x/#'"
    alone.send(client, SubscribePacket(1, wanted, user_properties=[(FILTER, condition)]))
    alone.send(client, PublishPacket("a/1/b", b"{}", qos=QoS.AT_LEAST_ONCE, packet_id=1, retain=True))
    alone.settle()
    alone.send(client, b"\xff\xff\xff")  # a packet that does not read
    alone.settle()
    alone.tell(facts.ClientLost(client))
    hall = Hall(line(2))
    mover = hall.visit(0, "mover", lasts_s=100)
    mover.subscribe("a/#", condition)
    hall.visit(1, "writer").publish("a/b", b"1", {"v": number + 1})
    hall.settle()
    mover.lose()
    later = hall.visit(1, "mover", lasts_s=0)
    hall.settle()
    later.send(DisconnectPacket())
    later.lose()
    hall.visit(1, "refused", will=None).send(ConnectPacket("again"))
    hall.settle()
    return alone, hall


def test_clients_that_come_and_go_leave_no_circles() -> None:
    """What a broker lets go of is gone at once, so that it may be left alone by the collector."""
    come_and_go(0)
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    keep = [come_and_go(number) for number in range(1, 3)]
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        kinds = [type(one) for one in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if was_enabled:
            gc.enable()
    assert keep, "the brokers are there all the time"
    assert [kind for kind in kinds if kind.__module__.startswith("sojourn")] == []


def test_what_stays_is_not_looked_at_again() -> None:
    """However many objects there are, and however many come, none becomes old enough for a long look."""
    program = """
import gc
from sojourn.live.brokers.collecting import THRESHOLDS, rest_the_collector
looks = []
rest_the_collector()
gc.callbacks.append(lambda phase, info: looks.append(info["generation"]) if phase == "stop" else None)
kept = [[] for _ in range(20 * THRESHOLDS[0])]
assert set(looks) == {0, 1}, looks
assert gc.get_freeze_count() > 10 * THRESHOLDS[0]
assert len(gc.get_objects(generation=2)) < THRESHOLDS[0]
circle = []
circle.append(circle)
del circle
assert gc.collect(0) == 1, "what is new is looked at"
"""
    subprocess.run([sys.executable, "-c", program], check=True)
