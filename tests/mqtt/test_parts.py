"""Parts of the session core against brute force: topics, retained messages, filters, packets."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar, SupportsIndex
from unittest.mock import patch

import mqtt5
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mqtt5 import ConnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter, UnsubscribePacket, Will

from sojourn.interest import Event, Filter, TopicPattern
from sojourn.interest.filter_tests import test_of as function_of
from sojourn.interest.matcher import ONE_BY_ONE_MAX
from sojourn.mqtt import retained as retaining
from sojourn.mqtt.filter_book import FilterBook
from sojourn.mqtt.message import new_message
from sojourn.mqtt.packets import PacketError, VersionError, decode
from sojourn.mqtt.retained import Retained
from sojourn.mqtt.topic_tree import Shape, TopicTree, pattern_matches
from tests.interest.languages import TOPIC_VALUES, filters_of, flat_events, nested_events
from tests.mqtt.world import World

LEVELS = st.sampled_from(["a", "b", "", "+", "$s"])
PATTERNS = st.builds(
    lambda levels, rest: "/".join([*levels, "#"] if rest else levels) or "+",
    st.lists(LEVELS, max_size=3),
    st.booleans(),
)
TOPICS = [topic for topic in TOPIC_VALUES if set(topic) <= set("ab$s/")]
EVENTS = flat_events() + nested_events()


@given(PATTERNS)
@settings(deadline=None)
def test_topic_filters_match_as_in_the_language(pattern: str) -> None:
    """The session core and the filters of `interest` agree on every topic."""
    language, shape = TopicPattern.parse(pattern), Shape(pattern)
    for topic in TOPICS:
        assert pattern_matches(pattern, topic) == language.matches(topic), topic
        assert shape.meets(topic, topic.split("/")) == language.matches(topic), topic


def test_levels_that_may_be_anything_are_passed_over() -> None:
    """A hundred shared subscriptions of 190 levels, of which two have a name: those two are looked at."""
    tree = TopicTree()
    for number in range(100):
        pattern = f"a/{'+/' * 188}{number}"
        one: Any = SimpleNamespace(session=object(), pattern=pattern, share="g", filter=None)
        tree.add(one)
    topic = CountedTopic(f"a/{'x/' * 188}7")
    assert tree.find(topic).shares == [tree._shares["g", f"a/{'+/' * 188}7"]]
    assert CountedLevels.looked <= 2 * 100 + 190, "and once all of the topic, for other subscriptions"


class CountedLevels(list[str]):
    """Levels, and how many of all were looked at."""

    looked: ClassVar[int] = 0

    def __iter__(self) -> Iterator[str]:
        for level in super().__iter__():
            CountedLevels.looked += 1
            yield level

    def __getitem__(self, place: Any) -> Any:
        CountedLevels.looked += 1
        return super().__getitem__(place)


class CountedTopic(str):
    """A topic of which it is counted how many levels are looked at."""

    __slots__ = ()

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        """Return its levels."""
        return CountedLevels(super().split(sep, maxsplit))


@given(st.lists(st.tuples(st.integers(0, 3), PATTERNS, st.booleans()), max_size=15))
@settings(max_examples=60, deadline=None)
def test_the_tree_finds_what_trying_all_finds(steps: list[tuple[int, str, bool]]) -> None:
    """However subscriptions came and went."""
    tree = TopicTree()
    sessions = [type("S", (), {"number": number})() for number in range(4)]
    held: dict[tuple[int, str], Any] = {}
    for number, pattern, comes in steps:
        key = (number, pattern)
        if key in held and not comes:
            tree.remove(held.pop(key))
        elif comes:
            one: Any = SimpleNamespace(
                session=sessions[number],
                pattern=pattern,
                share="",
                qos=0,
                identifiers=(),
                retain_as_published=False,
                no_local=False,
                filter=None,
            )
            tree.add(one)
            held[key] = one
        for topic in TOPICS[:: max(1, len(TOPICS) // 12)]:
            route = tree.route(topic)
            found = sorted(
                [session.number for group in route.groups for session in group.sessions]  # type: ignore[attr-defined]  # routes of this kind have them
                + [one.session.number for several in route.several for one in several]  # type: ignore[attr-defined]  # routes of this kind have them
            )
            assert found == sorted(owner for owner, text in held if pattern_matches(text, topic))


@given(st.sets(st.sampled_from(TOPICS), max_size=12), st.sets(st.sampled_from(TOPICS), max_size=6), PATTERNS)
@settings(deadline=None)
@pytest.mark.parametrize("depth_max", [1, 2, 8])
def test_retained_messages_are_found_by_topic_filter(
    depth_max: int, kept: set[str], gone: set[str], pattern: str
) -> None:
    """As trying all finds them, however deep the tree is; what was forgotten leaves nothing behind."""
    with patch.object(retaining, "DEPTH_MAX", depth_max):
        _check_retained(kept, gone, pattern)


def _check_retained(kept: set[str], gone: set[str], pattern: str) -> None:
    retained = Retained(1_000, 1_000_000)
    for topic in sorted(kept):
        assert retained.keep(new_message(topic, b"x", qos=0, now=0.0))
    for topic in gone:
        retained.forget(topic)
    left = kept - gone
    found = [message.topic for message in retained.matching(pattern, 1.0)]
    assert sorted(found) == sorted(topic for topic in left if pattern_matches(pattern, topic))
    assert retained.count == len(left)
    for topic in left:
        retained.forget(topic)
    assert (retained.count, retained.bytes) == (0, 0)


@given(filters_of("a", "b", "a.b"))
@settings(max_examples=150, deadline=None)
def test_functions_answer_as_filters_do(text: str) -> None:
    """On every event that filters over these attributes can tell apart."""
    condition = Filter.parse(text)
    function = function_of(condition)
    for event in EVENTS:
        assert function(event.flat, event.objects) == condition.matches(event), event


def test_many_filters_are_found_through_the_index() -> None:
    """The book answers alike with few and with many, also after some have gone."""
    book = FilterBook()
    assert book.use_index()
    filters = [book.add(Filter.parse(f"n BETWEEN {k} AND {k + 10}")) for k in range(3 * ONE_BY_ONE_MAX)]
    for value in (0, 5, 50, 200):
        message = new_message("t", b'{"n": %d}' % value, qos=0, now=0.0)
        expected = [one for one in filters if one.matches(event_at(value))]
        assert book.passed(message, filters, []) == expected, "in their order"
        assert book.passed(message, filters[:5], []) == [one for one in filters[:5] if one in expected]
    for one in filters[::2]:
        book.remove(one)
    again = book.add(Filter.parse("n BETWEEN 1 AND 11"))
    assert again is filters[1]
    message = new_message("t", b'{"n": 5}', qos=0, now=0.0)
    expected = [one for one in filters[1::2] if one.matches(event_at(5))]
    assert book.passed(message, filters[1::2], []) == expected
    assert len(book) == len(filters) // 2


def event_at(value: int) -> Event:
    """An event with one number."""
    return Event({"n": value})


SAMPLES: list[Any] = [
    ConnectPacket(
        "client-ü",
        username="user",
        password=b"\xff\x00",
        will=Will("w/ü", payload=b"\xfe", qos=QoS.AT_LEAST_ONCE, user_properties=[("ü", "x")]),
        session_expiry_interval=0xFFFFFF,
        user_properties=[("a", "ü")],
    ),
    PublishPacket("t", b"x" * 200, qos=QoS.EXACTLY_ONCE, packet_id=200, user_properties=[("n", "1")]),
    PublishPacket("ü", b"\xff", message_expiry_interval=0xFFFF, correlation_data=b"\xff", content_type="ü"),
    SubscribePacket(1, [TopicFilter("a/+"), TopicFilter("ü/#")], subscription_id=200),
    UnsubscribePacket(1, ["a/+", "ü"]),
    mqtt5.PubAckPacket(1, reason_str="ü"),
    mqtt5.PubRecPacket(200),
    mqtt5.PubRelPacket(300),
    mqtt5.PubCompPacket(3),
    mqtt5.DisconnectPacket(reason_str="ü", session_expiry_interval=200),
    mqtt5.AuthPacket(authentication_method="ü"),
    mqtt5.PingReqPacket(),
]


@pytest.mark.parametrize("packet", SAMPLES, ids=lambda packet: type(packet).__name__)
def test_packets_are_decoded_and_their_pieces_refused(packet: Any) -> None:
    """What was written is read; cut anywhere and given its new length, it is a packet or an error."""
    frame = packet.write()
    assert decode(frame) == packet
    body = frame[len(frame) - _length_of(frame) :]
    for end in range(len(body)):
        cut = body[:end]
        try:
            decode(bytes((frame[0],)) + _written_length(len(cut)) + cut)
        except (PacketError, VersionError):
            continue


def _length_of(frame: bytes) -> int:
    value = shift = 0
    for byte in frame[1:5]:
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value


def _written_length(value: int) -> bytes:
    return bytes((value,)) if value < 0x80 else bytes((value & 0x7F | 0x80, value >> 7))


def mutated(chance: random.Random, frame: bytes) -> bytes:
    """A packet with some bytes changed, added or left out; mostly with a fitting length."""
    body = bytearray(frame[len(frame) - _length_of(frame) :])
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(body) + 1)
        kind = chance.randrange(4)
        if kind == 0 and body:
            body[at % len(body)] = chance.randrange(256)
        elif kind == 1:
            body[at:at] = chance.randbytes(chance.randrange(1, 4))
        elif kind == 2 and body:
            del body[at : at + chance.randrange(1, 4)]
        elif body:
            body[at % len(body)] ^= 1 << chance.randrange(8)
    first = frame[0] if chance.random() < 0.9 else chance.randrange(256)
    if chance.random() < 0.05:
        return chance.randbytes(chance.randrange(1, 30))
    return bytes((first,)) + _written_length(len(body)) + bytes(body)


@pytest.mark.parametrize("seed", range(3))
def test_mutated_packets_do_no_harm(seed: int) -> None:
    """Ten thousand a seed; `scripts/fuzz_mqtt.py` sends a million. Others are served all the while."""
    flood(10_000, seed)


def flood(count: int, seed: int) -> World:
    """Send mutated packets on connections that are opened again whenever they are closed."""
    chance = random.Random(seed)
    world = World()
    witness, speaker = world.client(), world.client()
    witness.connect("witness")
    witness.subscribe("witness")
    speaker.connect("speaker")
    frames = [packet.write() for packet in SAMPLES]
    client = world.client()
    for number in range(count):
        # A length that promises more than comes would swallow all that follows: begin anew now and then.
        if client.closed or chance.random() < 0.1:
            client.lose()
            del world.clients[client.number]
            client = world.clients[10 + number] = type(client)(world, 10 + number)
            world.core.opened(client.number, "here", f"fresh-{number}", world.now)
            if chance.random() < 0.9:
                client.connect(f"client-{number % 50}", clean_start=chance.random() < 0.5)
        client.send(mutated(chance, chance.choice(frames)))
        client.inbox.clear()
        if number % 100 == 0:
            world.wait(0.5)
            speaker.publish("witness", b"still here")
            assert witness.payloads() == [b"still here"]
            witness.send(mqtt5.PingReqPacket())
            witness.inbox.clear()
    return world
