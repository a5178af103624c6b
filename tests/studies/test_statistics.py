import math

import pandas as pd
import pytest

from sojourn.studies.statistics import (
    crossing,
    figure,
    give_or_take,
    interval95,
    rank_correlation,
    straight_line,
    with_intervals,
)


def test_student_interval() -> None:
    """Five values have the half-width that t with four degrees of freedom gives; one value has none."""
    # s = sqrt(2.5), t(0.975, 4) = 2.776, divided by sqrt(5)
    assert interval95([1, 2, 3, 4, 5]) == pytest.approx(2.7764 * math.sqrt(2.5) / math.sqrt(5), rel=1e-4)
    assert math.isnan(interval95([3.0]))


def test_means_by_configuration() -> None:
    """Each configuration and measure gets its own mean over the runs that have a value."""
    runs = pd.DataFrame({"x": [1, 1, 2], "a": [1.0, 3.0, 5.0], "b": [None, 4.0, None]})
    table = with_intervals(runs, ["x"], ["a", "b"]).set_index(["x", "measure"])
    assert table.loc[(1, "a"), "mean"] == 2
    assert table.loc[(1, "a"), "runs"] == 2
    assert table.loc[(1, "b"), "mean"] == 4
    assert (2, "b") not in table.index


def test_fits() -> None:
    """A straight line has R2 of 1; a rise has rank correlation 1."""
    assert straight_line([1, 2, 3], [2, 4, 6]).r2 == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [1, 10, 11]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)


def test_crossing() -> None:
    """The crossing lies on the straight line between the points around it."""
    assert crossing([0, 1, 2], [0.0, 0.5, 1.5]) == pytest.approx(1.5)
    assert crossing([0, 1], [2.0, 3.0]) == 0
    assert crossing([0, 1], [0.1, 0.2]) == math.inf


def test_an_interval_that_is_not_known_is_not_said() -> None:
    """One value has no interval, and no sentence says "± nan"."""
    assert give_or_take(0.1234, ".2f") == " ± 0.12"
    assert give_or_take(math.nan, ".2f") == ""


def test_a_fit_that_is_not_to_be_had_says_why() -> None:
    """Two points and a level line have no R2, and sentences and records say so in words."""
    assert straight_line([1, 2, 3], [2, 4, 6]).said() == "R2 = 1.00"
    assert straight_line([1, 2], [2, 4]).said() == "no R2 (too few points: 2)"
    level = straight_line([1, 2, 3], [2, 2, 2])
    assert level.recorded == "no R2 (no variance: all points are alike)"
    assert level.bare() == "none (no variance: all points are alike)"
    assert straight_line([1, 1, 1], [1, 2, 3]).missing == level.missing
    assert [figure(value, ".1f", "nowhere") for value in (0.25, math.inf)] == ["0.2", "nowhere"]
