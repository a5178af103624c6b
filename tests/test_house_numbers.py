"""The code keeps to limits of length, and says why wherever it switches a rule off."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE_LINES_MAX, FUNCTION_LINES_MAX = 500, 70
LONGER_FILES: dict[str, int] = {}
LONGER_FUNCTIONS = {
    "src/sojourn/mqtt/core.py _read": 96,  # the hot loop
    "src/sojourn/cli/reproduce.py reproduce": 92,  # one argument an option
    "src/sojourn/cli/check_live.py live": 90,  # one argument an option
    "src/sojourn/cli/audit.py audit": 89,  # one argument an option
    "src/sojourn/live/brokers/node.py __init__": 87,  # puts a broker's parts together
    "src/sojourn/mobility/subscribers.py __init__": 80,  # puts a broker's parts together
    "src/sojourn/mqtt/connection.py __init__": 77,  # what there is to know of a connection
    "src/sojourn/cli/check_election.py election": 72,  # one argument an option
}
"""What is longer today. These tables only shrink: whoever shortens one takes it out, or lowers its number."""

ANY_MAX = 600
"""How often the product may say `Any`: some more than today, and this only falls."""


def _script() -> ModuleType:
    path = Path(__file__).parents[1] / "scripts" / "house_numbers.py"
    spec = importlib.util.spec_from_file_location("house_numbers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["house_numbers"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def numbers() -> list[ModuleType]:
    """What the script measures in the product, file by file."""
    script = _script()
    return [script.measure(path) for path in script.files(folders=("src",))]


def test_every_switched_off_rule_has_its_reason() -> None:
    """A `noqa` or `type: ignore` is followed by the words that say why."""
    script = _script()
    found = [one for path in script.files() for one in script.suppressions(path)]
    bare = [f"{one.file}:{one.line}" for one in found if not one.reason]
    assert not bare


def test_files_stay_short(numbers: list[ModuleType]) -> None:
    """A file of the product has at most 500 lines; those that have more do not grow."""
    longer = {
        one.file: one.lines for one in numbers if one.lines > LONGER_FILES.get(one.file, FILE_LINES_MAX)
    }
    assert not longer


def test_functions_stay_short(numbers: list[ModuleType]) -> None:
    """A function of the product has at most 70 lines; those that have more do not grow."""
    functions = [one for file in numbers for one in file.functions]
    longer = [
        one
        for one in functions
        if one.lines > LONGER_FUNCTIONS.get(f"{one.file} {one.name}", FUNCTION_LINES_MAX)
    ]
    assert not longer


def test_exceptions_are_of_something(numbers: list[ModuleType]) -> None:
    """What is gone is no exception any more."""
    files = {one.file for one in numbers}
    functions = {f"{place.file} {place.name}" for one in numbers for place in one.functions}
    assert set(LONGER_FILES) <= files
    assert set(LONGER_FUNCTIONS) <= functions


def test_any_type_at_all_becomes_rarer(numbers: list[ModuleType]) -> None:
    """The product says `Any` no more often than it did."""
    assert sum(one.uses_of_any for one in numbers) <= ANY_MAX


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("# noqa: S603", ""),
        ("# noqa: S603 - our own", "our own"),
        ("# noqa: C901, PLR0912  (the hot loop)", "the hot loop)"),
        ("# type: ignore[arg-type]", ""),
        ("# type: ignore[arg-type]  # a list", "a list"),
        ("# noqa", ""),
    ],
)
def test_a_reason_is_what_follows_the_codes(tmp_path: Path, comment: str, reason: str) -> None:
    """Codes alone say what is switched off, not why."""
    file = tmp_path / "one.py"
    file.write_text(f"x = 1  {comment}\n", "utf-8")
    (found,) = _script().measure(file, tmp_path).suppressions
    assert found.reason == reason
