"""Rights hold for what a session already has: they are looked at again whenever its client comes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mqtt5 import DisconnectPacket, QoS, UnsubscribePacket, Will

from sojourn.interest import Filter, TopicPattern
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.session import Permissions
from tests.mqtt.world import World

NOT_AUTHORIZED, RUN_OUT = 0x87, 0xA0


def may_see(*topics: str, condition: str | None = None) -> Admission:
    """A client that may subscribe to topics, and see some of their events."""
    patterns = tuple(TopicPattern.parse(topic) for topic in topics)
    allowed = None if condition is None else Filter.parse(condition)
    return Admission(
        username="ann", owner="ann", permissions=Permissions(subscribe=patterns, subscribe_if=allowed)
    )


def test_what_waits_is_not_sent_to_who_may_not_see_it_any_more() -> None:
    """Subscriptions that were allowed once end when their client comes back with fewer rights."""
    world = World()
    publisher = world.client()
    publisher.connect("publisher")
    world.admission = may_see("#")
    client = world.client()
    client.connect("client", session_expiry_interval=600)
    for topic in ("open/#", "closed/#"):
        assert client.subscribe(topic) == 2
    publisher.publish("closed/0", b"unanswered", 1)
    publisher.publish("open/0", b"unanswered too", 1)
    client.inbox.clear()
    client.lose()
    publisher.publish("closed/1", b"secret", 1)
    publisher.publish("open/1", b"public", 1)
    world.admission = may_see("open/#")
    back = world.client()
    assert back.connect("client", clean_start=False, session_expiry_interval=600).session_present
    publisher.publish("closed/2", b"secret", 0)
    publisher.publish("open/2", b"public", 0)
    assert back.payloads() == [b"unanswered too", b"public", b"public"]
    state = world.core.state
    assert set(state.sessions["client"].subscriptions) == {"open/#"}
    assert state.counters.dropped["not allowed"] == 2
    assert state.queued_bytes == 0


def test_the_condition_of_what_may_be_seen_is_that_of_today() -> None:
    """Narrower or wider than when the subscription was made, and with the client's own filter."""
    world = World()
    publisher = world.client()
    publisher.connect("publisher")
    seen = []
    for condition in ("level < 5", "level < 2", None, "level < 9"):
        world.admission = may_see("#", condition=condition)
        client = world.client()
        is_old = client.connect("client", clean_start=False, session_expiry_interval=600).session_present
        if not is_old:
            client.subscribe("a", user_properties=[("filter", "level > 0")])
        for level in (0, 1, 4, 8, 20):
            publisher.publish("a", b"%d" % level, user_properties=[("level", str(level))])
        seen.append(client.payloads())
        client.lose()
    assert seen == [[b"1", b"4"], [b"1"], [b"1", b"4", b"8", b"20"], [b"1", b"4", b"8"]]


def test_wills_keep_to_what_may_be_published() -> None:
    """Its attributes too: a will that could not be published is refused when it is made."""
    world = World()
    world.admission = Admission(
        owner="ann", permissions=Permissions(publish_if=Filter.parse("level < 5"), publish=None)
    )
    codes = []
    for level in ("3", "7"):
        will = Will(topic="a", payload=b"gone", qos=QoS.AT_LEAST_ONCE, user_properties=[("level", level)])
        codes.append(int(world.client().connect(f"client {level}", will=will).reason_code))
    assert codes == [0, NOT_AUTHORIZED]


def test_a_will_that_is_not_allowed_any_more_is_not_published() -> None:
    """Its client is away when its rights change."""
    world = World()
    world.admission = Admission(owner="ann")
    client = world.client()
    client.connect(
        "client", will=Will(topic="a", payload=b"gone", will_delay_interval=60), session_expiry_interval=600
    )
    client.lose()
    session = world.core.state.sessions["client"]
    session.permissions = Permissions(publish=())
    world.core.handshake.reviewer.review(session)
    assert world.core.state.will_bytes == 0
    watcher = world.client()
    watcher.connect("watcher")
    watcher.subscribe("a")
    world.wait(120)
    assert not watcher.payloads()


def test_who_proved_its_name_for_a_time_is_sent_away_then() -> None:
    """With the code for that; its session stays, and waits for it to prove its name again."""
    world = World()
    world.admission = Admission(username="ann", owner="ann", until_s=world.now + 30)
    client = world.client()
    client.connect("client", session_expiry_interval=600)
    client.subscribe("a")
    world.wait(29)
    assert not client.inbox
    world.wait(2)
    assert client.closed
    assert int(client.next(DisconnectPacket).reason_code) == RUN_OUT
    world.admission = Admission(username="ann", owner="ann", until_s=world.now + 30)
    assert world.client().connect("client", clean_start=False).session_present


def test_nobody_takes_a_session_of_another_owner() -> None:
    """Also of a broker alone; the name is free again when the session has run out."""
    world = World()
    world.admission = Admission(username="ann", owner="ann")
    client = world.client()
    client.connect("client", session_expiry_interval=60)
    for owner in ("eve", ""):
        world.admission = Admission(username="ann", owner=owner)
        for clean in (True, False):
            assert int(world.client().connect("client", clean_start=clean).reason_code) == NOT_AUTHORIZED
    assert not client.closed
    client.lose()
    assert int(world.client().connect("client").reason_code) == NOT_AUTHORIZED
    world.now += 61  # nobody has looked at the session since
    assert int(world.client().connect("client").reason_code) == 0


@pytest.mark.parametrize("moves", [False, True], ids=["same broker", "another broker"])
def test_what_is_left_of_subscriptions_that_ended_is_not_sent_to_who_may_not_see_it(*, moves: bool) -> None:
    """What waits, and what would be sent again, also where the client has unsubscribed from everything."""
    world = World()
    publisher = world.client()
    publisher.connect("publisher")
    world.admission = Admission(username="ann", owner="ann")
    client = world.client()
    client.connect("client", session_expiry_interval=600, receive_max=1)
    assert client.subscribe("#") == 2
    for topic in ("closed/0", "closed/1", "open/1", "closed/2"):
        publisher.publish(topic, topic.encode(), 1)
    assert client.payloads() == [b"closed/0"], "the window has room for one"
    client.send(UnsubscribePacket(packet_id=9, patterns=["#"]))
    client.lose()
    assert not world.core.state.sessions["client"].subscriptions
    state = world.core.custody.export_session("client", world.now) if moves else None
    there = World(name="B2") if moves else world
    there.admission = replace(may_see("open/#"), state=state)
    back = there.client()
    assert back.connect("client", clean_start=False, session_expiry_interval=600).session_present
    assert back.payloads() == [b"open/1"]
    assert there.core.state.counters.dropped["not allowed"] == 3
    assert there.core.state.queued_bytes == 0
