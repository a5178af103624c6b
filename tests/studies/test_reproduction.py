"""The page that tells what was found about each paper: made from files, with nothing of its own."""

from pathlib import Path

import msgspec
import pytest

from sojourn.studies.claims import Margin, Reading, VerdictsError, claims_of, judge, write_verdicts
from sojourn.studies.reproduction import About, page, processors, read_all, read_found, readings_table

ABOUT = About(
    study="manet", scale="quick", seeds=2, runs=10, failed=0, processor_s=7200.0, wall_s=60.0,
    processors=processors(), code="abc",
)  # fmt: skip


def _write(folder: Path, study: str) -> None:
    folder.mkdir(parents=True)
    claims = list(claims_of(study).values())
    tie = Margin(of="a | b", value=0.1, half=0.2)
    readings = [
        Reading(name="otherwise", verdict="holds", note="a tie"),
        Reading(name="so", verdict="differs"),
    ]
    verdicts = [
        judge(claims[0], holds=True, measured={}, evidence="It does.", margin=tie),
        judge(claims[1], holds=False, measured={}, evidence="It does not.", readings=readings),
        *(judge(claim, holds=None, measured={}, evidence="Not run.") for claim in claims[2:]),
    ]
    write_verdicts(verdicts, folder / "claims.json")
    about = msgspec.structs.replace(ABOUT, study=study)
    (folder / "study.json").write_bytes(msgspec.json.encode(about))


def test_the_page_tells_verdicts_ties_readings_and_causes(tmp_path: Path) -> None:
    """Every claim of a study with results stands in a table; each difference says where, what and why."""
    _write(tmp_path / "manet", "manet")
    text = page(read_all(tmp_path))
    assert all(f"`{claim}`" in text for claim in claims_of("manet"))
    assert "| `E-void` | holds, a tie | +0.1 ± 0.2 (a / b) |" in text
    assert "### E-map differs" in text
    assert claims_of("manet")["E-map"].says in text
    assert "It holds if the paper is read so: otherwise." in text
    assert "| otherwise | holds, a tie |" in text
    assert "2.00 h" in text
    assert text.count("has not been run") == 4
    assert page(read_all(tmp_path)) == text


def test_studies_on_different_code_are_told_apart(tmp_path: Path) -> None:
    """One table is only one table if all of it ran on the same code."""
    for study in ("manet", "handoff"):
        _write(tmp_path / study, study)
    assert "All studies ran on the same code." in page(read_all(tmp_path))
    other = msgspec.structs.replace(ABOUT, code="def")
    (tmp_path / "handoff" / "study.json").write_bytes(msgspec.json.encode(other))
    assert "different states of the code" in page(read_all(tmp_path))


def test_the_page_says_at_which_scale_what_was_run(tmp_path: Path) -> None:
    """Two seeds of short runs are not what the papers ran, and the page does not let anybody think so."""
    for study in ("manet", "handoff"):
        _write(tmp_path / study, study)
    assert "All studies ran at the scale `quick`" in page(read_all(tmp_path))
    for study, beginning in (
        ("handoff", "manet ran at the scale `quick`"),
        ("manet", "the papers' durations"),
    ):
        about = msgspec.structs.replace(ABOUT, study=study, scale="paper")
        (tmp_path / study / "study.json").write_bytes(msgspec.json.encode(about))
        assert beginning in page(read_all(tmp_path))


def test_a_directory_without_results_is_told_so(tmp_path: Path) -> None:
    """Nothing was run: the page says so for each paper; a broken file is one sentence."""
    assert page(read_all(tmp_path)).count("has not been run") == 5
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(VerdictsError, match="sojourn reproduce"):
        read_found(tmp_path)


def test_readings_that_do_not_touch_a_claim_leave_its_cell_empty() -> None:
    """A reading has a row; claims without readings have no column."""
    first, second, third = list(claims_of("manet").values())[:3]
    one, other = Reading(name="one", verdict="holds"), Reading(name="other", verdict="differs")
    table = readings_table(
        [
            judge(first, holds=True, measured={}, evidence="e", readings=[one]),
            judge(second, holds=True, measured={}, evidence="e", readings=[other]),
            judge(third, holds=True, measured={}, evidence="e"),
        ]
    )
    assert table is not None
    assert table[0] == ("reading", first.id, second.id)
    assert table[1] == [("ours", "holds", "holds"), ("one", "holds", ""), ("other", "", "differs")]
