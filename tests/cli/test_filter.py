"""`sojourn filter` and the command line's manners."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def sojourn(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "sojourn.cli.main", *arguments], capture_output=True, text=True, check=False
    )


def test_explain_shows_normal_form_and_an_example() -> None:
    """A curious user sees what a filter means."""
    result = sojourn("filter", "explain", "price<=1600 and brand='IBM'")
    assert result.returncode == 0
    assert "brand = 'IBM' AND price <= 1600" in result.stdout
    assert json.dumps({"brand": "IBM", "price": 0}) in result.stdout


def test_a_malformed_filter_points_at_the_character() -> None:
    """One sentence, the text, a mark below the character, exit code 2, no traceback."""
    result = sojourn("filter", "explain", "price <= 1600 AND brand == 'IBM'")
    assert result.returncode == 2
    assert result.stdout == ""
    lines = result.stderr.rstrip("\n").splitlines()
    assert lines[0].startswith("sojourn: Expected a number, a string")
    assert lines[1] == "price <= 1600 AND brand == 'IBM'"
    assert lines[2] == " " * 25 + "^"
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        ("price <= 1600", "price <= 1500 AND brand = 'IBM'", "A covers B"),
        ("price <= 1500 AND brand = 'IBM'", "price <= 1600", "B covers A"),
        ("a = 1", "b = 1", "Neither covers the other"),
        ("a > 1 AND a < 1", "a = 1", "No event matches both"),
        ("a IN (1)", "a = 1", "same events"),
    ],
)
def test_covers_tells_how_two_filters_relate(one: str, other: str, says: str) -> None:
    """Both directions are judged and an event in common is shown."""
    result = sojourn("filter", "covers", one, other)
    assert result.returncode == 0
    assert says in result.stdout


def test_unknown_names_are_refused_with_the_names_there_are() -> None:
    """A wrong word leads to the right ones."""
    result = sojourn("bench", "nope")
    assert result.returncode == 2
    assert "match" in result.stderr
    assert sojourn("nonsense").returncode == 2
    assert sojourn("--version").stdout.startswith("sojourn 0.")
