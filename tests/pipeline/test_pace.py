"""The time left of a sweep is estimated from how fast it goes, not from how slowly it began."""

import pytest

from sojourn.pipeline.progress import Pace

WARMING_S = 40.0
RUN_S = 10.0


def test_the_time_left_is_right_from_the_first_word() -> None:
    """Two workers that start slowly and end 40 equal runs: no estimate is far from what it came to."""
    pace = Pace(2)
    end_s = WARMING_S + 20 * RUN_S
    said = []
    for second in range(int(end_s) + 1):
        done = 2 * max(0, int((second - WARMING_S) // RUN_S))
        left_s = pace.left_s(done, done / 40, float(second))
        if left_s is not None:
            said.append(left_s)
            assert left_s == pytest.approx(end_s - second, abs=RUN_S)
    assert len(said) > 150
    assert said[-1] == 0


def test_nothing_is_estimated_without_ground() -> None:
    """Not before every worker has ended two runs; nor from runs that are said to cost nothing."""
    pace = Pace(4)
    assert [pace.left_s(done, done / 100, 10.0 + done) for done in range(8)] == [None] * 8
    assert pace.left_s(8, 0.08, 18.0) is not None
    free = Pace(1)
    assert [free.left_s(done, 0.0, float(done)) for done in range(5)] == [None] * 5
