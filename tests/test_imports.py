"""The house's one direction: imports go leftwards, and the protocol packages stay pure."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "sojourn"

RANKS = {
    "errors": 0,
    "interest": 1,
    "routing": 2,
    "mobility": 2,
    "edge": 2,
    "adhoc": 2,
    "mqtt": 2,
    "broker": 3,
    "trace": 3,
    "sim": 4,
    "live": 4,
    "pipeline": 6,
    "studies": 7,
    "report": 7,
    "cli": 8,
}
"""A package imports from lower ranks and from itself; those of one rank that may meet stand below."""
NEIGHBOURS = {
    ("mobility", "routing"),  # a moving client's protocol acts on a broker's tables
    ("mqtt", "edge"),  # a session's queue is thinned by the rules of the edge
    ("edge", "routing"),  # an edge broker is a routing strategy with clients around it
    ("studies", "report"),  # a study hands its figures to the report
}
PURE = {"interest", "routing", "mobility", "edge", "adhoc", "mqtt", "broker"}
IMPURE_MODULES = {
    "asyncio", "concurrent", "ctypes", "datetime", "fcntl", "io", "logging", "multiprocessing", "os",
    "pathlib", "pyspark", "random", "secrets", "select", "selectors", "shutil", "signal", "socket", "sqlite3",
    "ssl", "subprocess", "tempfile", "threading", "time", "urllib", "uuid", "uvloop",
}  # fmt: skip
IMPURE_NAMES = {"open", "input", "print"}

FILES = sorted(ROOT.rglob("*.py"))


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Yield the full name of every module, or member of one, that is imported anywhere in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_of(path: Path) -> str:
    """Return the package of the house that a file belongs to."""
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_leftwards(path: Path) -> None:
    """A module imports only from packages to the left of its own."""
    mine = package_of(path)
    if mine == "__init__":
        return
    assert mine in RANKS, f"{mine} has no place in the house"
    for name in imported_modules(ast.parse(path.read_text())):
        parts = name.split(".")
        if parts[0] != "sojourn" or len(parts) == 1:
            continue
        theirs = parts[1]
        if theirs in (mine, "__version__"):
            continue
        assert RANKS[theirs] < RANKS[mine] or (mine, theirs) in NEIGHBOURS, f"{mine} imports {name}"


@pytest.mark.parametrize(
    "path", [p for p in FILES if package_of(p) in PURE], ids=lambda p: str(p.relative_to(ROOT))
)
def test_protocol_packages_are_pure(path: Path) -> None:
    """No I/O, no clock, no randomness, no Spark left of the drivers."""
    tree = ast.parse(path.read_text())
    for name in imported_modules(tree):
        assert name.split(".")[0] not in IMPURE_MODULES, f"{path.name} imports {name}"
        assert not name.startswith(("numpy.random", "scipy.stats")), f"{path.name} imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in IMPURE_NAMES, f"{path.name} calls {node.func.id}()"
        if isinstance(node, ast.Attribute) and node.attr == "random" and isinstance(node.value, ast.Name):
            assert node.value.id not in ("np", "numpy"), f"{path.name} draws random numbers"


def test_the_rules_would_notice() -> None:
    """The reader of imports finds them wherever they stand, also inside functions."""
    tree = ast.parse("def f():\n    from sojourn.cli import main\n    import os.path\n")
    assert set(imported_modules(tree)) == {"sojourn.cli.main", "os.path"}
    assert len(FILES) > 10
    assert "asyncio" in sys.stdlib_module_names
