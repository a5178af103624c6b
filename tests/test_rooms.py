"""Every package says in its `__init__` what each of its modules is for, so that nobody has to guess."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "sojourn"
SPOKEN_OF = re.compile(r"\b[a-z_0-9]+\.py\b|(?<=`)[a-z_0-9]+/(?=`)")
HAVE_TABLES = {"adhoc", "cli", "edge", "report", "sim", "studies"}
"""The packages that are held to it; this only grows."""
NOT_YET = {"live_check"}
"""Packages within them that lack some rooms in their tables; this only shrinks."""
PACKAGES = sorted({path.parent for path in ROOT.rglob("*.py")} - {ROOT})
HELD = [
    path for path in PACKAGES if path.relative_to(ROOT).parts[0] in HAVE_TABLES and path.name not in NOT_YET
]
COMMANDS_OWN = {"cli"}
"""Where a module is found by the name of its sub-command: only the others are in the table."""


def rooms_of(package: Path) -> set[str]:
    """Return the modules and packages that a package has, as tables name them."""
    modules = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    return modules | {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}


@pytest.mark.parametrize("package", HELD, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_names_its_rooms(package: Path) -> None:
    """All that are there, and none that is not."""
    said = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    named, there = set(SPOKEN_OF.findall(said)), rooms_of(package)
    elsewhere = {path.name for path in ROOT.rglob("*.py")} | {f"{path.name}/" for path in PACKAGES}
    assert not named - there - elsewhere, "a table names what is gone"
    if package.name not in COMMANDS_OWN:
        assert not there - named, "a room is missing from the table"
