import json
from pathlib import Path

import pytest

from sojourn.studies.claims import UnknownStudyError, claims_of, judge, load_ledger, write_verdicts
from sojourn.studies.publisher_mobility.judging import CHECKS


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
    assert set(read[0]) == {"id", "verdict", "measured", "check", "evidence"}


def test_unknown_study() -> None:
    """Asking for a study that is not there names those that are."""
    with pytest.raises(UnknownStudyError, match="study may be publisher-mobility, handoff"):
        claims_of("weather")
