"""Loads the scripts that make pages from code."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent.parent


def script(name: str) -> ModuleType:
    """A module of `scripts/docs`."""
    folder = str(ROOT / "scripts" / "docs")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)
