"""What many overlapping subscriptions keep for their client does not take events times subscriptions."""

from __future__ import annotations

import itertools

import pytest
from mqtt5 import ConnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter

from sojourn.broker import facts
from sojourn.edge.queues import PolicyQueue
from sojourn.mqtt.queue_policies import FITTING_MAX
from tests.broker.alone import Alone

EVENTS = 150


@pytest.mark.parametrize("count", [FITTING_MAX, FITTING_MAX + 1, 500])
def test_more_subscriptions_for_a_topic_than_are_asked_keep_everything(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to that number each is asked about each event; beyond it none is."""
    asked = 0
    add = PolicyQueue.add

    def counting(self: PolicyQueue, *arguments: object) -> object:
        nonlocal asked
        asked += 1
        return add(self, *arguments)  # type: ignore[arg-type]  # as the method it stands for

    monkeypatch.setattr(PolicyQueue, "add", counting)
    hall = Alone()
    reader, publisher = hall.client("reader", session_expiry_interval=600), hall.client("publisher")
    patterns = ["/".join(levels) for levels in itertools.islice(itertools.product("a+", repeat=10), count)]
    wanted = [TopicFilter(one, max_qos=QoS.AT_LEAST_ONCE) for one in patterns]
    hall.send(reader, SubscribePacket(1, wanted, user_properties=[("sojourn-keep", "last:key")]))
    hall.settle()
    hall.tell(facts.ClientLost(reader))
    event = PublishPacket("/".join("a" * 10), b'{"key":1}', qos=QoS.AT_LEAST_ONCE, packet_id=1).write()
    hall.send(publisher, event * EVENTS)
    hall.settle()
    hall.opened += 1
    hall.tell(facts.ClientOpened(hall.opened, "here", "fresh"))
    hall.send(hall.opened, ConnectPacket("reader", clean_start=False, session_expiry_interval=600))
    hall.settle()
    is_asked = count <= FITTING_MAX
    assert (asked > 0) == is_asked
    assert asked <= 3 * EVENTS * FITTING_MAX
    sent = [one for one in hall.packets(hall.opened) if isinstance(one, PublishPacket)]
    assert len(sent) == (1 if is_asked else EVENTS)
