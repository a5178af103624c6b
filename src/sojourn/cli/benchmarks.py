"""What benchmarks share: a row of their tables, and whom they tell how far they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
"""What was measured, by name: numbers, texts and lists of them, as each benchmark has its own columns."""

Progress = Callable[[str], None]
"""Told what is being measured now."""
