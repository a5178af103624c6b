"""Reads what code says of itself: documentation of attributes, and text that goes into tables."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Sequence
from functools import cache


@cache
def attribute_words(kind: type) -> dict[str, str]:
    """The strings below the attributes of a class, by name, as one line each."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for one, below in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(one, ast.AnnAssign)
            and isinstance(one.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[one.target.id] = " ".join(str(below.value.value).split())
    return found


def cell(text: str) -> str:
    """Text that fits into a table: one line, and no bars."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell(text) for text in line)} |" for line in lines) + "\n"


def prose(documentation: str) -> str:
    """A docstring as Markdown: examples in blocks, the rest as it is."""
    lines: list[str] = []
    inside = False
    for line in inspect.cleandoc(documentation).splitlines():
        if line.startswith(">>>") and not inside:
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, *(["```"] if inside else [])]) + "\n"
