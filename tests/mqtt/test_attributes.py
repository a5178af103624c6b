"""What a user property or a field of a payload is as an attribute."""

from __future__ import annotations

import math

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn import ClientError, EventError, Filter
from sojourn.live.client.inbox import _read
from sojourn.live.client.packets import attribute_properties, publish_packet
from sojourn.mqtt.content import event_of
from sojourn.mqtt.conventions import text_of, value_of
from sojourn.mqtt.message import Properties, new_message

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
