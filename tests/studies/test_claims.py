import json
from pathlib import Path

import pytest

from sojourn.studies.claims import (
    NO_CAUSE,
    TIED,
    Reading,
    UnknownStudyError,
    VerdictsError,
    claims_of,
    closest,
    judge,
    load_ledger,
    margin_of,
    read_verdicts,
    write_verdicts,
)
from sojourn.studies.conditions import Condition, broken, deciding, read_otherwise
from sojourn.studies.publisher_mobility.study import CHECKS


def test_ledger_is_whole() -> None:
    """The ledger has five studies, every claim says something and can be checked, ids are unique."""
    ledger = load_ledger()
    assert list(ledger) == ["publisher-mobility", "handoff", "adhoc-tree", "architectures", "manet"]
    claims = [claim for study in ledger.values() for claim in study]
    assert len({claim.id for claim in claims}) == len(claims)
    assert all(claim.says and claim.check for claim in claims)
    assert all(ledger.values())


def test_each_claim_of_the_study_has_a_check() -> None:
    """No A-claim is without a check, no check without a claim."""
    assert list(CHECKS) == list(claims_of("publisher-mobility"))


def test_verdicts(tmp_path: Path) -> None:
    """A verdict is one of three words, with numbers that JSON can carry."""
    claim = claims_of("publisher-mobility")["A-table1"]
    infinite = {"x": float("inf"), "v": float("nan"), "y": 1.23456, "z": None, "w": True}
    verdicts = [judge(claim, holds=holds, measured=infinite, evidence="e") for holds in (True, False, None)]
    write_verdicts(verdicts, tmp_path / "claims.json")
    read = json.loads((tmp_path / "claims.json").read_text())
    assert [one["verdict"] for one in read] == ["holds", "differs", "not yet"]
    assert read[0]["measured"] == {"x": "infinite", "v": "no figure", "y": 1.235, "z": None, "w": True}
    assert set(read[0]) == {
        "id", "verdict", "measured", "check", "evidence", "margin", "readings", "cause", "queries",
        "unmeasured",
    }  # fmt: skip
    assert read[1]["cause"] == NO_CAUSE
    assert [one["cause"] for one in read[::2]] == ["", ""]
    assert read_verdicts(tmp_path / "claims.json") == verdicts
    with pytest.raises(VerdictsError, match="sojourn reproduce"):
        read_verdicts(tmp_path / "none.json")


def test_a_margin_within_its_interval_is_a_tie() -> None:
    """A verdict says when the other one lies within the interval of what decides it, and only then."""
    claim = claims_of("publisher-mobility")["A-table1"]
    close, clear = margin_of([0.9, 1.3, 1.1], 1.0, "close"), margin_of([1.9, 2.3, 2.1], 1.0, "clear")
    assert (close.within, clear.within) == (True, False)
    assert judge(claim, holds=True, measured={}, evidence="e", margin=close).evidence == "e" + TIED
    assert judge(claim, holds=True, measured={}, evidence="e", margin=clear).evidence == "e"
    assert judge(claim, holds=None, measured={}, evidence="e", margin=close).evidence == "e"
    assert not margin_of([1.2], 1.0, "one seed cannot tell").within
    assert margin_of([0.4, 0.5], 1.0, "below", above=False).value == pytest.approx(0.55)


def test_what_decides_is_a_clear_failure_or_the_closest_success() -> None:
    """One clear failure makes a verdict clear; among successes a tie is what makes it unsure."""
    tie = margin_of([0.9, 1.3, 1.1], 1.0, "tie")
    clear = margin_of([1.05, 1.05, 1.05], 1.0, "clear")
    failed = margin_of([0.9, 0.9, 0.9], 1.0, "failed")
    failed_closely = margin_of([0.2, 1.3, 0.7], 1.0, "failed closely")
    assert closest([clear, tie]) == tie
    assert closest([tie, failed_closely, failed]) == failed
    assert closest([clear, failed_closely]) == failed_closely
    assert closest([]) is None


def test_a_difference_names_the_readings_that_change_it() -> None:
    """Readings under which a claim holds are its cause; where none does, that is said."""
    claim = claims_of("publisher-mobility")["A-table1"]
    flips, stays = Reading(name="so", verdict="holds"), Reading(name="not so", verdict="differs")

    def cause(*readings: Reading) -> str:
        return judge(claim, holds=False, measured={}, evidence="e", readings=readings).cause

    assert cause(flips, stays) == "It holds if the paper is read so: so."
    assert cause(stays) == f"{NO_CAUSE} The other reading that was run does not change it."


def test_a_condition_is_judged_by_the_ledgers_number_and_its_seeds() -> None:
    """The value decides, the seeds give its interval; what is broken is said, under each reading."""
    holds = Condition("a above b", 1.2, 1.0, [1.1, 1.2, 1.3])
    fails = Condition("c below d", 1.2, 1.0, [1.1, 1.2, 1.3], above=False)
    assert (holds.holds, fails.holds) == (True, False)
    assert not Condition("equal", 1.0, 1.0).holds
    assert Condition("equal", 1.0, 1.0, equal=True).holds
    assert broken([holds, fails]) == ["c below d"]
    margin = deciding([holds, fails])
    assert margin is not None
    assert margin.value == pytest.approx(-0.2)
    judged = {"one": [holds], "two": [fails], "three": None}
    read = read_otherwise(
        {"one": "first", "two": "second", "three": "third", "four": "gone"}, judged.__getitem__
    )
    assert [(reading.name, reading.verdict) for reading in read] == [
        ("first", "holds"),
        ("second", "differs"),
    ]


def test_unknown_study() -> None:
    """Asking for a study that is not there names those that are."""
    with pytest.raises(UnknownStudyError, match="study may be publisher-mobility, handoff"):
        claims_of("weather")


def test_what_is_exactly_as_it_should_be_is_no_tie() -> None:
    """A number that may be its limit, and is in every seed, leaves the margin to the other conditions."""
    exact = Condition("none doubled", 0.0, 0.0, [0.0, 0.0], above=False, equal=True)
    clear = Condition("most", 12.0, 0.0, [11.0, 13.0])
    assert deciding([exact]) is None
    assert deciding([exact, clear]) == clear.margin
    by_one_seed = Condition("none doubled", 0.0, 0.0, [1.0, -1.0], above=False, equal=True)
    assert deciding([by_one_seed, clear]) == by_one_seed.margin
