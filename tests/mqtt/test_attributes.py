"""What a user property or a field of a payload is as an attribute."""

from __future__ import annotations

import json
import math

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn import ClientError, EventError, Filter
from sojourn.live.client.inbox import _read
from sojourn.live.client.packets import attribute_properties, publish_packet
from sojourn.mqtt import content
from sojourn.mqtt.content import event_of
from sojourn.mqtt.conventions import text_of, value_of
from sojourn.mqtt.message import Properties, new_message
from tests.counting import counted

SCALARS = (
    st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
    | st.sampled_from(["7", "-1.5", "1e3", "true", '"', '""', '"7"', "nan", "inf", "-inf", "1e999", "A2", ""])
)


@given(SCALARS)
def test_every_value_is_read_back_as_it_was(value: bool | float | str) -> None:
    """Also a text that looks like a number, and one in quotes."""
    found = value_of(text_of(value))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("1.5", 1.5), ("true", True), ('"7"', "7"), ('"true"', "true"), ('"', '"'), ("A2", "A2")],
)
def test_the_rule_for_whoever_writes_properties_by_hand(text: str, value: object) -> None:
    """A number is a number unless it is quoted."""
    assert value_of(text) == value


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "Infinity", "1e999", "-1e999", "1_000"])
def test_what_is_no_finite_number_is_text(text: str) -> None:
    """No comparison with a number ever sees it."""
    assert value_of(text) == text


def event(payload: bytes, *properties: tuple[str, str]) -> mqtt5.PublishPacket:
    """A packet with attributes."""
    return mqtt5.PublishPacket("cars/7", payload, user_properties=list(properties))


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_a_payload_with_what_is_no_number_has_no_fields(number: bytes) -> None:
    """Broker and client agree: it is no JSON; the event travels, and its properties count."""
    packet = event(b'{"speed": %s, "road": "A2"}' % number, ("lane", "2"))
    properties = Properties(user=(("lane", "2"),))
    message = new_message("cars/7", packet.payload or b"", qos=0, now=0.0, properties=properties)
    for wanted in ("speed > 0", "NOT speed > 0", "speed IS NOT NULL", "road = 'A2'"):
        assert not Filter.parse(wanted).matches(event_of(message)), wanted
    assert Filter.parse("lane = 2").matches(event_of(message))
    assert _read(packet).attributes == {"lane": 2}


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**60, [1], {"a": 1}])
def test_a_client_refuses_what_can_be_no_attribute(value: object) -> None:
    """Before anything is sent; None is as if it were not there."""
    with pytest.raises(EventError, match="speed"):
        attribute_properties({"speed": value})
    assert attribute_properties({"speed": None, "road": "7"}) == [("road", '"7"')]


@pytest.mark.parametrize("value", [math.nan, math.inf, object()])
def test_a_client_refuses_a_payload_that_would_be_no_json(value: object) -> None:
    """In one sentence."""
    with pytest.raises(ClientError, match="cannot be JSON"):
        publish_packet("cars/7", {"speed": value}, [])


def test_a_payload_nested_without_end_breaks_no_client() -> None:
    """It has no fields."""
    assert _read(event(b'{"a":' * 100_000)).attributes == {}


def test_of_a_payload_with_many_fields_the_first_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many names there are that can be no attribute, at whatever depth."""
    looked: list[tuple[str]] = []
    monkeypatch.setattr(content, "_is_name", counted(content._is_name, looked))
    wrong = ",".join(f'"{number}.":1' for number in range(3_000))
    payload = f'{{"a":1,{wrong},"b":{{"c":2,{wrong}}},"late":3}}'.encode()
    assert event_of(new_message("t", payload, qos=0, now=0.0)).flat == {"a": 1, "b.c": 2, "topic": "t"}
    assert len(looked) == content.FIELDS_MAX


@pytest.mark.parametrize("digits", [41, 4_299, 5_000])
def test_a_text_of_very_many_digits_is_no_number(digits: int) -> None:
    """Reading one took as long as a hundred events; what others write as a number is far shorter."""
    assert value_of("9" * digits) == "9" * digits
    assert value_of("1." + "0" * 38) == 1.0


LONG_NUMBERS = [
    *(b"9e307", b"-1.5E+300", b"4e-0324", b"9" * 4_000, b"0." + b"0" * 330 + b"1"),
    *(b"15000000000000001458e98", b"1.5000000000000001458E+117", b"1e23", b"100e+21"),
]


@pytest.mark.parametrize("number", LONG_NUMBERS)
def test_a_payload_with_many_numbers_that_take_long_is_not_read(
    number: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it has next to no names and lists; one with some of them, and any number of others, is."""
    read: list[tuple[bytes]] = []
    monkeypatch.setattr(content, "read_json", counted(content.read_json, read))
    many = b",".join([number] * (1_000_000 // min(len(number), 50)))
    assert event_of(new_message("t", b'{"a":1,"b":[%s]}' % many, qos=0, now=0.0)).flat == {"topic": "t"}
    assert read == []
    few = b",".join([number] * 5 + [b"0.125", b"-3", b"2.5e-07", b"1e22"] * 20_000)
    assert event_of(new_message("t", b'{"a":1,"b":[%s]}' % few, qos=0, now=0.0)).flat["a"] == 1
    assert len(read) == 1


@pytest.mark.parametrize("piece", [b'{"a" :1}', b"[]", b'{"a.":[]}', b"1,1,1,1"])
def test_a_payload_with_too_much_in_it_is_not_looked_into(
    piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not even read; one that is only long is, also where its text looks like structure."""
    read: list[tuple[bytes]] = []
    monkeypatch.setattr(content, "read_json", counted(content.read_json, read))
    payload = b'{"a":1,"b":[' + b",".join([piece] * 60_000) + b"]}"
    message = new_message("t", payload, qos=0, now=0.0, properties=Properties(user=(("p", "7"),)))
    assert event_of(message).flat == {"p": 7, "topic": "t"}
    assert read == []
    payload = b'{"a":1,"b":"' + b":x" * 20_000 + b"y" * 100_000 + b'","c":[' + b"1," * 50_000 + b"1]}"
    assert event_of(new_message("t", payload, qos=0, now=0.0)).flat["a"] == 1
    assert read == [(payload,)]


NAMES = st.sampled_from(["a", "b", "topic", "x"])
OBJECTS = st.recursive(
    st.dictionaries(NAMES, st.integers(0, 3), max_size=3),
    lambda below: st.dictionaries(NAMES, below),
    max_leaves=8,
)
USER = st.lists(st.tuples(st.sampled_from(["a", "b", "a.b", "x.a", "topic"]), st.just("7")), max_size=4)


@given(OBJECTS, USER)
def test_a_user_property_wins_over_an_object_with_all_that_is_in_it(
    fields: dict[str, object], user: list[tuple[str, str]]
) -> None:
    """As if each object that has the name of a property had not been there."""
    payload = json.dumps(fields).encode()
    message = new_message("t", payload, qos=0, now=0.0, properties=Properties(user=tuple(user)))
    flat, objects = content.attributes_of(message)
    bare, bare_objects = content.attributes_of(new_message("t", payload, qos=0, now=0.0))
    gone = {name for name, _ in user} & bare_objects

    def is_left(path: str) -> bool:
        return not any(path == name or path.startswith(f"{name}.") for name in gone)

    plain = {name: 7 for name, _ in user if "." not in name}
    kept = {path: value for path, value in bare.items() if is_left(path) or path in plain}
    assert flat == kept | plain | {"topic": "t"}
    assert objects == {path for path in bare_objects if is_left(path)}


def test_many_user_properties_over_as_many_objects_are_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one pass for each of them."""
    passes: list[tuple[object, ...]] = []
    monkeypatch.setattr(content, "_displace", counted(content._displace, passes))
    fields = {f"o{number}": {"a": 1} for number in range(900)}
    user = tuple((name, "1") for name in fields)
    message = new_message("t", json.dumps(fields).encode(), qos=0, now=0.0, properties=Properties(user=user))
    flat, objects = content.attributes_of(message)
    assert (flat, objects) == (dict.fromkeys(fields, 1) | {"topic": "t"}, set())
    assert len(passes) == 1


@pytest.mark.parametrize("digits", ["9" * 5_000, "9" * 19, "\u0663", "\u00b2", "-1", "", "x"])
@pytest.mark.parametrize("name", ["sojourn-sequence", "sojourn-number"])
def test_a_number_that_is_none_breaks_no_client(name: str, digits: str) -> None:
    """Any publisher may write one; its event is an event without that number."""
    said = [("sojourn-source", "s"), (name, digits if name == "sojourn-sequence" else f"p:{digits}")]
    read = _read(event(b'{"a":1}', *said))
    assert (read.sequence, read.number, read.attributes) == (0, 0, {"a": 1})
    assert _read(event(b"{}", ("sojourn-sequence", "7"), ("sojourn-number", "p:8"))).number == 8


def test_a_client_reads_no_payload_that_takes_long() -> None:
    """As brokers do not: its program is told the payload, and waits for nothing."""
    payload = b'{"a":1,"b":[' + b"9e307," * 20_000 + b"1]}"
    assert _read(event(payload)).attributes == {}
    assert _read(event(payload)).payload == payload
