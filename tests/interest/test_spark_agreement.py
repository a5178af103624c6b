"""One language in two places: Spark SQL selects the rows that our filters match."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from sojourn.interest import Event, Filter
from sojourn.interest.render import SPARK_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILTERS, EVENTS = 80, 60
SCHEMA = (
    "id int, price double, count bigint, brand string, flag boolean, topic string, "
    "`odd name` string, pos struct<lat: double, place: string>"
)
NUMBERS = ["0", "1", "-2.5", "1e3", "0.1", "7", ".5", "1600"]
STRINGS = ["", "a", "ab", "IBM", "it's", "b\\c", "50%", "x_y", "ü", "\U0001f600", "￿", "a\nb"]
TOPICS = ["a", "a/b", "a/b/c", "b//c", "$s/a", "a.b/c", "a b/(c)"]
PATTERNS = ["a/+", "a/#", "#", "+/b/#", "$s/+", "a.b/+", "+/+", "+/(c)"]


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _like(text: str) -> str:
    return _literal(text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%")


def _comparison(rng: random.Random) -> tuple[str, bool]:
    """Return a comparison and whether Spark reads it as it is, without MQTT's wildcards."""
    negation = rng.choice(["", "NOT "])
    column = rng.choice(
        ["price", "count", "pos.lat", "brand", "pos.place", "`odd name`", "flag", "topic", "pos"]
    )
    if column in ("price", "count", "pos.lat"):
        values, operators = (
            [rng.choice(["", "-"]) + rng.choice(NUMBERS).lstrip("-") for _ in range(3)],
            "= <> < <= > >=",
        )
    elif column == "topic":
        if rng.random() < 0.5:
            return f"topic {negation}LIKE {_literal(rng.choice(PATTERNS))}", False
        values, operators = [_literal(rng.choice(TOPICS)) for _ in range(3)], "= <>"
    elif column in ("flag", "pos"):
        shapes = [f"{column} IS {negation}NULL"] + (
            ["flag", "flag = FALSE", "flag IS NOT TRUE"] if column == "flag" else []
        )
        return rng.choice(shapes), True
    else:
        values, operators = [_literal(rng.choice(STRINGS)) for _ in range(3)], "= <> < <= > >="
        if rng.random() < 0.3:
            return f"{column} {negation}LIKE {_like(rng.choice(STRINGS))}", True
    shape = rng.randrange(4)
    if shape == 0:
        return f"{column} {negation}IN ({', '.join(values)})", True
    if shape == 1 and column != "topic":
        return f"{column} {negation}BETWEEN {values[0]} AND {values[1]}", True
    if shape == 2:
        return f"{column} IS {negation}NULL", True
    return f"{column} {rng.choice(operators.split())} {values[0]}", True


def _filter(rng: random.Random, depth: int = 3) -> tuple[str, bool]:
    if depth == 0 or rng.random() < 0.3:
        return _comparison(rng)
    if rng.random() < 0.25:
        text, plain = _filter(rng, depth - 1)
        return f"NOT ({text})", plain
    (one, one_plain), (other, other_plain) = _filter(rng, depth - 1), _filter(rng, depth - 1)
    return f"({one}) {rng.choice(['AND', 'OR'])} ({other})", one_plain and other_plain


def _row(rng: random.Random, number: int) -> dict[str, Any]:
    """Return an event as a row, about a third of it missing."""

    def sometimes(value: object) -> object:
        return value if rng.random() < 0.7 else None

    pos = {"lat": sometimes(float(rng.choice(NUMBERS))), "place": sometimes(rng.choice(STRINGS))}
    return {
        "id": number,
        "price": sometimes(float(rng.choice(NUMBERS))),
        "count": sometimes(rng.choice([0, 1, -2, 7, 1600])),
        "brand": sometimes(rng.choice(STRINGS)),
        "flag": sometimes(rng.random() < 0.5),
        "topic": sometimes(rng.choice(TOPICS)),
        "odd name": sometimes(rng.choice(STRINGS)),
        # An object without attributes is a missing one to us, so Spark gets NULL there too.
        "pos": pos if any(value is not None for value in pos.values()) else None,
    }


def test_spark_selects_what_filters_match(spark: SparkSession) -> None:
    """The same texts on the same events give the same answers, missing attributes included."""
    rng = random.Random(20)
    filters = [_filter(rng) for _ in range(FILTERS)]
    rows = [_row(rng, number) for number in range(EVENTS)]
    columns = [
        f"coalesce(({text}), FALSE) AS written_{i}" for i, (text, plain) in enumerate(filters) if plain
    ]
    parsed = [Filter.parse(text) for text, _ in filters]
    columns += [f"coalesce(({f.spark_sql()}), FALSE) AS rendered_{i}" for i, f in enumerate(parsed)]
    for name, value in SPARK_SETTINGS.items():
        assert spark.conf.get(name) == value
    selected = spark.createDataFrame(rows, SCHEMA).selectExpr("id", *columns).collect()

    answers = 0
    hits = 0
    for line in selected:
        event = Event({name: value for name, value in rows[line["id"]].items() if name != "id"})
        for i, f in enumerate(parsed):
            ours = f.matches(event)
            assert line[f"rendered_{i}"] == ours, (str(f), event)
            if filters[i][1]:
                assert line[f"written_{i}"] == ours, (filters[i][0], event)
                answers += 1
            answers += 1
            hits += ours
    assert answers > 5_000
    assert 0.1 < hits / (FILTERS * EVENTS) < 0.9, "the pairs exercise both answers"
