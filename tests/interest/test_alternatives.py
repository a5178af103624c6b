"""Filters with many alternatives answer as they would if each was tried, and look at no attribute twice."""

from __future__ import annotations

import random
from typing import Any

from sojourn.interest import Event, Filter
from sojourn.interest.alternatives import test_of_many as quick_test
from sojourn.interest.filter_tests import test_of as plain_test

NAMES = ("a", "b", "c", "o.x")
VALUES = ("1", "2.5", "-3", "1e300", "'x'", "'xy'", "''", "TRUE", "FALSE")
GIVEN = (None, 1, 2.5, -3, 0, 2, 1e300, -1e308, 2**53, "x", "xx", "xy", "", "y", True, False)


def comparison(draw: random.Random) -> str:
    """One of every kind."""
    name, value = draw.choice(NAMES), draw.choice(VALUES)
    if draw.random() < 0.15:
        return f"{name} IS {draw.choice(('', 'NOT '))}NULL"
    if draw.random() < 0.15:
        alike = VALUES[:4] if value in VALUES[:4] else VALUES[4:7]
        return f"{name} IN ({', '.join(draw.sample(alike, 2))})"
    if draw.random() < 0.1:
        return f"{name} LIKE '{draw.choice(('x', 'xy', ''))}%'"
    if value in ("TRUE", "FALSE"):
        return f"{name} {draw.choice(('=', '<>'))} {value}"
    return f"{name} {draw.choice(('=', '<>', '<', '<=', '>', '>='))} {value}"


def conditions(draw: random.Random) -> str:
    """Alternatives with some comparisons each, some of them denied."""
    each = [
        " AND ".join(
            f"{'NOT ' if draw.random() < 0.2 else ''}{comparison(draw)}" for _ in range(draw.randrange(1, 4))
        )
        for _ in range(draw.randrange(1, 9))
    ]
    return " OR ".join(f"({one})" for one in each)


def test_every_filter_answers_alike() -> None:
    """Numbers, strings, booleans, what is missing, and objects; at, beside and between all ends."""
    draw = random.Random(15)
    answers = set()
    for _ in range(300):
        text = conditions(draw)
        wanted = Filter.parse(text)
        quick, plain = quick_test(wanted), plain_test(wanted)
        assert quick is not None
        for _ in range(40):
            said: dict[str, Any] = {
                name: value for name in "abcx" if (value := draw.choice(GIVEN)) is not None
            }
            said["o"] = {"x": said.pop("x")} if "x" in said else draw.choice(GIVEN[1:])
            if draw.random() < 0.2:
                said["a"] = {"deep": 1}
            event = Event(said)
            answer = quick(event.flat, event.objects)
            assert answer == plain(event.flat, event.objects) == wanted.matches(event), (text, said)
            answers.add(answer)
    assert answers == {True, False}


def test_topics_are_left_to_others() -> None:
    """They have no order in which they would be intervals."""
    assert quick_test(Filter.parse("topic LIKE 'a/#' OR topic LIKE 'b/#'")) is None
    assert quick_test(Filter.parse("topic = 'a'")) is None


class Counted(dict[str, object]):
    """Attributes that count how often they are asked for."""

    asked = 0

    def get(self, name: str, default: object = None) -> object:
        """Return one, and count that."""
        self.asked += 1
        return super().get(name, default)


def test_no_attribute_is_looked_at_twice() -> None:
    """However many alternatives speak of it."""
    parts = [f"(a{number} > 1 OR b{number} > 1)" for number in range(6)]
    wanted = Filter.parse(" AND ".join([*parts, *(f"c{number} > 1" for number in range(80))]))
    names = [f"{name}{number}" for name in "ab" for number in range(6)] + [
        f"c{number}" for number in range(80)
    ]
    quick = quick_test(wanted)
    assert quick is not None
    assert len(wanted.conjunctions) == 64
    given = Counted(dict.fromkeys(names, 2))
    assert quick(given, ())  # type: ignore[arg-type]  # as far as it is looked at
    assert given.asked == len(names)
    last = Counted(dict.fromkeys(names, 2) | {"c79": 0})
    assert not quick(last, ())  # type: ignore[arg-type]  # as far as it is looked at
    assert last.asked <= len(names)
