"""The way of an event from a socket to a subscriber at another broker stays short."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from types import ModuleType

FILES_MAX, CALLS_MAX, CHANGES_MAX = 18, 92, 62
"""Half of what it took before a live broker was one core (37 files, 187 calls, 148 changes of file), and some
calls to spare for what a kernel delivers in another order."""


def _script() -> ModuleType:
    path = Path(__file__).parents[1] / "scripts" / "walk_publish.py"
    spec = importlib.util.spec_from_file_location("walk_publish", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_event_passes_few_files_on_its_way_to_another_broker(tmp_path: Path) -> None:
    """From the publisher's socket over two journals to the subscriber's, with all answers."""
    found = asyncio.run(_script().walk(tmp_path))
    calls = "\n".join(f"{file:40} {name}" for file, name in found.calls)
    assert len(found.files) <= FILES_MAX, sorted(found.files)
    assert len(found.calls) <= CALLS_MAX, calls
    assert found.changes <= CHANGES_MAX, calls
