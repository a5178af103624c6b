"""Tests that take long begin first, whoever runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ordering


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_every_part_begins_with_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, workers: int, count: int
) -> None:
    """Nothing is lost or doubled; tests of Spark begin the first part, long ones the others."""
    monkeypatch.setattr(ordering, "LONG", ("longest", "long"))
    items = [f"short {number}" for number in range(count)]
    items += ["long 1", "longest", "long 2", "long 3", "spark 1", "spark 2"]
    order = ordering.dealt(items, workers, name=str, together=lambda item: item.startswith("spark"))
    assert sorted(order) == sorted(items)
    assert order[:2] == ["spark 1", "spark 2"]
    if count == 100:
        parts, left = [], order
        for number in range(workers):
            size = len(left) // (workers - number)
            parts.append(left[:size])
            left = left[size:]
        assert not left
        firsts = parts[1:] or [parts[0][2:]]
        dealt = [item for part in firsts for item in part if "long" in item]
        assert sorted(dealt) == ["long 1", "long 2", "long 3", "longest"]
        assert firsts[0][0] == "longest"
        assert all("short" in item for part in firsts for item in part[len(part) // 2 :])


def test_every_long_test_is_there() -> None:
    """A name that no test has any more is left over from something."""
    root = Path(__file__).parents[1]
    for part in (*ordering.LONG, *ordering.SPARK):
        file, _, test = part.partition("::")
        assert (root / file).exists(), part
        assert not test or f"def {test}(" in (root / file).read_text("utf-8"), part
