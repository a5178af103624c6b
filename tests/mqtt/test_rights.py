"""Rights hold for what a session already has: they are looked at again whenever its client comes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mqtt5 import DisconnectPacket, PubAckPacket, QoS, UnsubscribePacket, Will

from sojourn.interest import Filter, TopicPattern
from sojourn.mqtt import content, readings
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.message import Properties, new_message
from sojourn.mqtt.readings import meets
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


SLOW, FAST = b'{"speed": 10}', b'{"speed": 95}'
MANY = b"".join(b'"f%d": 1,' % number for number in range(5_000))
READINGS = [
    ("alike", SLOW, [("speed", "10")], True),
    ("of another name", SLOW, [("color", "red")], True),
    ("no JSON", b"\x01\x02", [("speed", "10")], True),
    ("JSON without it", b'{"color": "red"}', [("speed", "10")], True),
    ("nothing there", b'{"speed": null}', [("speed", "10")], True),
    ("hidden", FAST, [("speed", "10")], False),
    ("the other way round", SLOW, [("speed", "95")], False),
    ("the first of two", SLOW, [("speed", "95"), ("speed", "10")], False),
    ("a list", b'{"speed": [95]}', [("speed", "10")], False),
    ("an object", b'{"speed": {"kmh": 95}}', [("speed", "10")], False),
    ("a number too large", b'{"speed": 99999999999999999999}', [("speed", "10")], False),
    ("not read by us", b'{"speed": 95, "x": NaN}', [("speed", "10")], False),
    ("behind many", b"{" + MANY + FAST[1:], [("speed", "10")], False),
    ("below an object", b'{"car": {"speed": 95}}', [("car", "10"), ("speed", "10")], True),
]


@pytest.mark.parametrize(
    ("payload", "properties", "is_allowed"),
    [case[1:] for case in READINGS],
    ids=[case[0] for case in READINGS],
)
def test_an_event_must_be_allowed_however_it_is_read(
    payload: bytes, properties: list[tuple[str, str]], *, is_allowed: bool
) -> None:
    """A user property hides no field of the payload from `publish_if`, of an event or of a will."""
    world = World()
    watcher = world.client()
    watcher.connect("watcher")
    watcher.subscribe("a")
    world.admission = Admission(owner="ann", permissions=Permissions(publish_if=Filter.parse("speed < 50")))
    client = world.client()
    client.connect("client")
    client.publish("a", payload, qos=1, user_properties=properties)
    answer = client.inbox.pop()
    assert isinstance(answer, PubAckPacket)
    assert int(answer.reason_code) == (0 if is_allowed else NOT_AUTHORIZED)
    assert watcher.payloads() == [payload] * is_allowed
    will = Will(topic="a", payload=payload, user_properties=properties)
    code = int(world.client().connect("other", will=will).reason_code)
    assert code == (0 if is_allowed else NOT_AUTHORIZED)


UNLESS_FAST = [
    ("no JSON", b"\x01\x02", [], True),
    ("text", b" [info] all is well", [], True),
    ("a list", b'[{"speed": 10}]', [], True),
    ("JSON without it", b'{"color": "red"}', [], True),
    ("behind many, slow", b"{" + MANY + SLOW[1:], [], True),
    ("behind many", b"{" + MANY + FAST[1:], [], False),
    ("after a mark", b"\xef\xbb\xbf" + FAST, [], False),
    ("NaN", b'{"speed": 95, "x": NaN}', [], False),
    ("infinite", b'{"speed": 1e999}', [], False),
    ("something after it", FAST + b"!", [], False),
    ("heavy", b'{"x": [' + b"{}," * 60_000 + b'1], "speed": 95}', [], False),
    ("too large a number", b'{"speed": 99999999999999999999}', [], False),
    ("too large a property", b"", [("speed", "99999999999999999999")], False),
    ("two of three", b"", [("speed", "10"), ("speed", "20"), ("speed", "10")], True),
    ("the second of three", b"", [("speed", "10"), ("speed", "95"), ("speed", "10")], False),
    ("too many to compare", b"", [("speed", str(number)) for number in range(17)], False),
]


@pytest.mark.parametrize(
    ("payload", "properties", "is_allowed"),
    [case[1:] for case in UNLESS_FAST],
    ids=[case[0] for case in UNLESS_FAST],
)
def test_what_is_not_read_as_an_attribute_evades_no_permission(
    payload: bytes, properties: list[tuple[str, str]], *, is_allowed: bool
) -> None:
    """One that allows what does not speak of something holds for those who read what brokers do not."""
    allowed = Filter.parse("speed IS NULL OR speed < 50")
    message = new_message("a", payload, qos=0, now=0.0, properties=Properties(user=tuple(properties)))
    assert meets(allowed, message) == is_allowed
    assert meets(Filter.parse("topic = 'a'"), message), "which speaks of nothing in it"


def test_a_payload_is_read_once_for_a_permission_and_for_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """That may take some milliseconds."""
    read: list[bytes] = []
    decode = content.read_json

    def noted(payload: bytes) -> object:
        read.append(payload)
        return decode(payload)

    for module in (content, readings):
        monkeypatch.setattr(module, "read_json", noted, raising=False)
    message = new_message("a", b'{"speed": 10}', qos=0, now=0.0)
    assert meets(Filter.parse("speed < 50"), message)
    assert content.event_of(message).flat == {"speed": 10, "topic": "a"}
    assert read == [b'{"speed": 10}']


def test_what_lies_below_a_hidden_object_must_be_allowed_too() -> None:
    """The property takes the place of the whole object where events are routed."""
    allowed = Filter.parse("car.speed < 50 OR car = 10")
    for speed, is_allowed in ((10, True), (95, False)):
        payload = b'{"car": {"speed": %d}}' % speed
        message = new_message("a", payload, qos=0, now=0.0, properties=Properties(user=(("car", "10"),)))
        assert meets(allowed, message) == is_allowed


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


def test_who_runs_out_of_what_it_proved_its_name_by_before_it_is_let_in_gets_nothing() -> None:
    """It is refused, and what waits for it goes on waiting."""
    world = World()
    world.admission = Admission(username="ann", owner="ann")
    first, other = world.client(), world.client()
    first.connect("client", session_expiry_interval=600)
    first.subscribe("a")
    first.lose()
    other.connect("other")
    other.publish("a", b"waits", 1)
    world.admission = Admission(username="ann", owner="ann", until_s=world.now)
    late = world.client()
    connack = late.connect("client", clean_start=False)
    assert int(connack.reason_code) == NOT_AUTHORIZED
    assert late.closed
    assert not late.payloads()
    world.admission = Admission(username="ann", owner="ann", until_s=world.now + 30)
    back = world.client()
    assert back.connect("client", clean_start=False).session_present
    assert back.payloads() == [b"waits"]


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
