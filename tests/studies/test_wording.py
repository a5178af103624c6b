"""Sentences of reports are grammatical whatever the numbers, and say no more than the numbers do."""

from __future__ import annotations

import pytest

from sojourn.studies import wording


@pytest.mark.parametrize(
    ("holds", "differing", "open_", "said"),
    [
        (1, [], 8, "Of 9 claims 1 holds, none differs and 8 are not judged yet."),
        (7, ["A"], 1, "Of 9 claims 7 hold, 1 differs (A) and 1 is not judged yet."),
        (0, ["A", "B"], 0, "Of 2 claims none holds and 2 differ (A, B)."),
        (5, [], 0, "Of 5 claims 5 hold and none differs."),
        (1, [], 0, "The one claim holds."),
        (0, ["A"], 0, "The one claim (A) differs."),
        (0, [], 0, "There are no claims to judge."),
    ],
)
def test_verdicts_are_counted_in_words(holds: int, differing: list[str], open_: int, said: str) -> None:
    """One claim holds, several hold."""
    assert wording.verdicts_in_words(holds, differing, open_) == said


def test_one_of_a_thing_is_not_several() -> None:
    """Neither in a count, nor in a range of numbers."""
    assert [wording.many(count, "layouts") for count in (0, 1, 2)] == ["0 layouts", "1 layout", "2 layouts"]
    assert [wording.numbered("seeds", count) for count in (1, 5)] == ["seed 1", "seeds 1 to 5"]
    assert [wording.span(values) for values in ([1.0, 1.001], [1.2, 1.0])] == ["1.00", "1.00 to 1.20"]


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.0, "no more"),
        (0.0003, "less than 0.1% more"),
        (0.0006, "up to 0.1% more"),
        (0.079, "up to 7.9% more"),
    ],
)
def test_a_little_more_is_not_nothing(share: float, said: str) -> None:
    """What rounds to 0.0% is said in words."""
    assert wording.more(share) == said
