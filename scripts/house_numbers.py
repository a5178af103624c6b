"""What the code measures: lines by package, the longest of each kind, `Any`, and rules that are switched off.

    python scripts/house_numbers.py [--longest 5] [ROOT]

Lines are all lines of a file. `Any` is counted where it is used, not where it is imported. A suppression is
a comment that switches off a rule (`noqa`) or a type error (`type: ignore`); it has a reason if words follow
its codes. `tests/test_house_numbers.py` holds the code to limits.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "scripts", "deploy", "examples", "benchmarks")
SUPPRESSION = re.compile(r"(?<![\"'`])#\s*(?:noqa|type:\s*ignore)\b(?P<rest>.*)$")
CODES = re.compile(r"^(?:\[[\w, -]*\])?(?::\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*)?[\s#(-]*")


class Place(NamedTuple):
    """Something that has a length, and where it is."""

    lines: int
    file: str
    name: str


class Suppression(NamedTuple):
    """A rule that is switched off in one line, and why."""

    file: str
    line: int
    reason: str


class Numbers(NamedTuple):
    """What was counted in one file."""

    file: str
    lines: int
    classes: list[Place]
    functions: list[Place]
    uses_of_any: int
    suppressions: list[Suppression]


def measure(path: Path, root: Path = ROOT) -> Numbers:
    """Count one file."""
    text = path.read_text("utf-8")
    file = str(path.relative_to(root))
    classes, functions, uses_of_any = [], [], 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            classes.append(_place(node, file))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions.append(_place(node, file))
        elif isinstance(node, ast.Name) and node.id == "Any":
            uses_of_any += 1
    return Numbers(file, len(text.splitlines()), classes, functions, uses_of_any, suppressions(path, root))


def suppressions(path: Path, root: Path = ROOT) -> list[Suppression]:
    """Find the rules that one file switches off."""
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        switched = SUPPRESSION.search(line) if "noqa" in line or "ignore" in line else None
        if switched is not None:
            reason = CODES.sub("", switched["rest"].strip(), count=1).strip()
            found.append(Suppression(str(path.relative_to(root)), number, reason))
    return found


def files(root: Path = ROOT, folders: tuple[str, ...] = FOLDERS) -> Iterator[Path]:
    """Every source file below some folders of a checkout, in order."""
    for folder in folders:
        yield from sorted((root / folder).rglob("*.py"))


def package(file: str) -> str:
    """The package of the product that a file is in, or the folder beside it."""
    parts = Path(file).parts
    if parts[:2] == ("src", "sojourn"):
        return parts[2] if len(parts) > 3 else "(top)"
    return parts[0] + "/"


def _place(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, file: str) -> Place:
    assert node.end_lineno is not None
    return Place(node.end_lineno - node.lineno + 1, file, node.name)


def _print_packages(found: list[Numbers]) -> None:
    lines, counts, anys, off, bare = (Counter[str]() for _ in range(5))
    for one in found:
        where = package(one.file)
        lines[where] += one.lines
        counts[where] += 1
        anys[where] += one.uses_of_any
        off[where] += len(one.suppressions)
        bare[where] += sum(not suppression.reason for suppression in one.suppressions)
    row = "{:<12} {:>6} {:>8} {:>6} {:>13} {:>15}"
    print(row.format("package", "files", "lines", "Any", "suppressions", "without reason"))
    inside = [name for name in lines if not name.endswith("/")]
    beside = [name for name in lines if name.endswith("/")]
    rows = [
        *((name, [name]) for name in inside),
        ("the product", inside),
        *((name, [name]) for name in beside),
    ]
    for title, names in rows:
        sums = (sum(kind[name] for name in names) for kind in (counts, lines, anys, off, bare))
        print(row.format(title, *sums))


def main() -> None:
    """Print the numbers of a checkout."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("root", nargs="?", type=Path, default=ROOT, help="A checkout, if not this one.")
    options.add_argument("--longest", type=int, default=3, help="How many of the longest to name.")
    chosen = options.parse_args()
    root = chosen.root.resolve()
    found = [measure(path, root) for path in files(root)]
    _print_packages(found)
    product = [one for one in found if one.file.startswith("src/")]
    for kind, places in (
        ("files", [Place(one.lines, one.file, "") for one in product]),
        ("classes", [place for one in product for place in one.classes]),
        ("functions", [place for one in product for place in one.functions]),
    ):
        print(f"\nlongest {kind} of the product")
        for place in sorted(places, reverse=True)[: chosen.longest]:
            print(f"{place.lines:>6} {place.file} {place.name}")


if __name__ == "__main__":
    main()
