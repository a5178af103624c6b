"""Counts work by calls, where a test about cost would otherwise look at a clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def counted(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> Callable[..., Any]:
    """Return a function that does the same, and notes the arguments of each call."""

    def noting(*arguments: Any) -> Any:
        calls.append(arguments)
        return function(*arguments)

    return noting
