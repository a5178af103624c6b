"""What a subscription wants: its topic filter and its condition as one filter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.interest import Filter
from sojourn.mqtt.content import ContentError, check_tellable, interest_of, is_tellable
from tests.interest.languages import filters_of, quote

TOPIC_FILTERS = ("a", "a/b", "a/+/c", "+/b", "#", "a/#", "$SYS/+", "a_b/+")


@given(st.sampled_from(TOPIC_FILTERS), filters_of("n", "s", "a.b", "zz"))
def test_a_condition_on_a_topic_filter_is_what_both_are_as_one_text(topic: str, text: str) -> None:
    """The short way of simple ones ends where reading one text of both does, and others can read it."""
    condition = Filter.parse(text)
    comparison = "LIKE" if "+" in topic or "#" in topic else "="
    wanted = interest_of(topic, condition)
    assert wanted == Filter.parse(f"topic {comparison} {quote(topic)} AND ({condition})")
    if is_tellable(topic, condition):
        check_tellable(wanted)


def test_a_condition_that_is_too_long_beside_its_topics_is_refused() -> None:
    """What is near a limit is read as one text, and refused where that is too long."""
    values = ", ".join(str(10_000_000 + number) for number in range(190))
    condition = Filter.parse(f"n IN ({values}) AND s <> '{'y' * 1_900}'")
    assert not is_tellable("a/b", condition)
    with pytest.raises(ContentError):
        interest_of("a/b" + "/c" * 300, condition)
