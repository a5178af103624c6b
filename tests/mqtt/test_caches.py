"""What is remembered to save work has a limit in bytes: strangers do not fill memory with it."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mqtt5
import pytest

from sojourn.broker.names import LiveInterests
from sojourn.interest import Event, Filter
from sojourn.mqtt import content, topic_tree
from sojourn.mqtt.message import Message, Properties, new_message
from sojourn.mqtt.packets import PACKET_ID
from sojourn.mqtt.payload import LARGE
from sojourn.mqtt.session import Session, Subscription
from sojourn.mqtt.topic_tree import TopicTree
from tests.counting import counted

MEBIBYTE = 1 << 20


@contextmanager
def costs_at_most(size: int) -> Iterator[None]:
    """What happens here leaves no more than so many bytes behind."""
    tracemalloc.start()
    try:
        yield
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < size


def forms(message: Message, count: int) -> None:
    """Ask for a message in many forms, as subscriptions with other identifiers each do."""
    for number in range(1, count + 1):
        form = message.form(1, 0.0, retain=True, identifiers=(number,))
        assert form.size > len(message.payload)


@pytest.mark.parametrize("size", [10, 1_000, MEBIBYTE])
def test_a_message_s_forms_take_little_room(size: int) -> None:
    """150 SUBSCRIBEs to a retained message of a mebibyte once cost as many mebibytes."""
    message = new_message("topic", b"x" * size, qos=1, now=0.0)
    with costs_at_most(MEBIBYTE):
        forms(message, 150)
        message.form(1, 0.0)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"retain": True},
    {"identifiers": (3, 70_000)},
    {"alias": 5},
    {"alias": 5, "with_topic": False},
    {"numbered": True},
]
FIELDS = (
    "topic",
    "qos",
    "retain",
    "packet_id",
    "subscription_ids",
    "topic_alias",
    "message_expiry_interval",
    "user_properties",
)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("expiry", [None, 60])
def test_a_large_payload_is_shared_by_all_forms(
    options: dict[str, Any], qos: int, expiry: int | None
) -> None:
    """What is written is the packet that a short one would be, and no form copies the payload."""
    payload = random.Random(1).randbytes(LARGE)
    user = Properties(user=(("a", "b"),))
    for own in (0, 2):
        message = new_message("töpic", payload, qos=own, now=0.0, expiry=expiry, properties=user)
        short = new_message("töpic", b"short", qos=own, now=0.0, expiry=expiry, properties=user)
        form = message.form(qos, 1.5, **options)
        assert len(form.head) + len(form.tail) < LARGE or form.head is message.frame
        number = PACKET_ID[7] if qos else b""
        packet, size = mqtt5.read(memoryview(b"".join((form.head, number, form.tail, form.payload))))
        like = short.form(qos, 1.5, **options)
        expected, _ = mqtt5.read(memoryview(like.head + number + like.tail + like.payload))
        assert isinstance(packet, mqtt5.PublishPacket)
        assert isinstance(expected, mqtt5.PublishPacket)
        assert size == form.size
        assert packet.payload == payload
        assert [getattr(packet, name) for name in FIELDS] == [getattr(expected, name) for name in FIELDS]
        old = message.old_form(qos, retain=True)
        assert not old.tail
        assert b"".join((old.head, number, old.payload))[-LARGE:] == payload
        assert old.size == len(old.head) + len(number) + LARGE


def test_a_form_that_many_ask_for_is_made_once() -> None:
    """As long as it is not too large, and not too many others are asked for."""
    message = new_message("topic", b"x" * 1_000, qos=1, now=0.0)
    first = message.form(0, 0.0)
    assert message.form(0, 0.0) is first
    forms(message, 100)
    assert message.form(0, 0.0) == first


def test_long_names_are_not_remembered() -> None:
    """Whether they may be names of attributes is looked at again when they come again."""
    with costs_at_most(MEBIBYTE):
        for number in range(200):
            content._is_name("n" * 60_000 + str(number))


def test_routes_of_long_topics_are_forgotten() -> None:
    """Topics may have 65,535 bytes, and routes are remembered for 50,000 of them."""
    tree = TopicTree()
    with costs_at_most(40 * MEBIBYTE):
        for number in range(1_000):
            tree.route("t" * 60_000 + str(number))


def test_routes_to_many_are_forgotten_by_what_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """400 subscribers of `l/#` and 2,500 topics once took 135 MB, which were kept."""
    monkeypatch.setattr(topic_tree, "ROUTE_BYTES_MAX", 4 * MEBIBYTE)
    tree = TopicTree()
    for number in range(400):
        tree.add(Subscription(Session(f"reader-{number}", 0.0), "l/#", qos=0))
    with costs_at_most(5 * MEBIBYTE):
        for number in range(1_000):
            assert len(tree.route(f"l/{number}").by_session) == 400
    assert tree.route("l/999") is tree.route("l/999")
    assert 20 < len(tree.routes) < 100


def test_matches_of_long_topics_are_forgotten() -> None:
    """The same between brokers."""
    interests = LiveInterests()
    interests.taken_up(interests.subscription(Filter.parse("topic = 'wanted'")))
    with costs_at_most(20 * MEBIBYTE):
        for number in range(1_000):
            interests.match(
                Event(source="s", sequence=number, attributes={"topic": "t" * 60_000 + str(number)})
            )


def nested(number: int, fields: int) -> bytes:
    """A payload whose fields lie below fifteen long names each."""
    names = '":{"'.join("n" * 127 + chr(97 + depth) for depth in range(15))
    below = ",".join(f'"{field}":{number}' for field in range(fields))
    return f'{{"{names}":{{{below}}}{"}" * 15}'.encode()


def test_messages_that_wait_take_no_room_for_their_attributes() -> None:
    """Whether they are queued or retained: 100 payloads of 10 kB once took 190 MB."""
    waiting = [new_message("t", nested(number, 980), qos=1, now=0.0) for number in range(200)]
    wide = [
        new_message("t", b"{%s}" % b",".join(b'"%d":1' % field for field in range(900)), qos=1, now=0.0)
        for _ in range(200)
    ]
    content.event_of(waiting[0])
    with costs_at_most(content.READ_BYTES_MAX + MEBIBYTE):
        for message in waiting + wide:
            content.event_of(message)
    assert sum(message.attributes is not None for message in waiting) == 0


def test_a_message_is_read_once_for_all_who_ask_while_it_is_handed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where a slice of others is read meanwhile; and again, with the same result, much later."""
    read: list[tuple[bytes]] = []
    monkeypatch.setattr(content, "read_json", counted(content.read_json, read))
    slice_of_them = [new_message("t", b'{"a":%d}' % number, qos=1, now=0.0) for number in range(256)]
    for _ in range(3):
        assert [content.event_of(message).flat["a"] for message in slice_of_them] == list(range(256))
    assert len(read) == 256
    for number in range(content.READ_MAX):
        content.event_of(new_message("t", b'{"a":%d}' % number, qos=1, now=0.0))
    assert slice_of_them[7].event is None
    assert content.event_of(slice_of_them[7]).flat == {"a": 7, "topic": "t"}


def test_fields_below_long_names_count_for_more() -> None:
    """The path of each repeats them: the paths of an event have 128 KiB together, about."""
    flat, _ = content.attributes_of(new_message("t", nested(1, 980), qos=0, now=0.0))
    most = content.FIELDS_MAX * content.PREFIX_CHARS
    assert most // 2 < sum(map(len, flat)) <= most + len("topic")
    flat, _ = content.attributes_of(new_message("t", nested(1, 10), qos=0, now=0.0))
    assert len(flat) == 11
