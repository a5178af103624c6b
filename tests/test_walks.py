"""The ways that events, clients and rows take through the code stay short."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest


class Limits(NamedTuple):
    """What a walk may take."""

    files: int
    calls: int
    changes: int


PUBLISH = Limits(23, 108, 72)
"""Little more than half of what it took before a live broker was one core (37 files, 187 calls, 148 changes
of file), and some calls to spare for what a kernel delivers in another order. One file and
three calls are there since what a turn puts out is written in rounds (`writing.py`), and one file since
what an event is on its way (`carried.py`) is a room beside that of all messages (`wire.py`)."""
HAND_OFF = Limits(110, 1500, 900)
"""Less than twice of what it takes today (78 files, 795 calls, 440 changes of file): on a busy machine timers
of brokers fall into every walk. It took 55 files, 902 calls and 437 changes before brokers agreed on where a
session is, and on who may enter."""
SIMULATED_MOVE = Limits(14, 930, 229)
"""As it is today."""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that walks."""
    path = Path(__file__).parents[1] / "scripts" / "walks.py"
    spec = importlib.util.spec_from_file_location("walks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _hold(found: ModuleType, limits: Limits) -> None:
    calls = "\n".join(f"{file:40} {name}" for file, name in found.calls)
    assert len(found.files) <= limits.files, sorted(found.files)
    assert 0 < len(found.calls) <= limits.calls, calls
    assert found.changes <= limits.changes, calls


def test_an_event_passes_few_files_on_its_way_to_another_broker(script: ModuleType, tmp_path: Path) -> None:
    """From the publisher's socket over two journals to the subscriber's, with all answers."""
    _hold(asyncio.run(script.walk_publish(tmp_path)), PUBLISH)


def test_a_client_that_comes_to_another_broker_passes_few_files(script: ModuleType, tmp_path: Path) -> None:
    """From its CONNECT over its session at the other broker to the event that was stored for it."""
    _hold(asyncio.run(script.walk_hand_off(tmp_path)), HAND_OFF)


def test_a_simulated_move_passes_few_files(script: ModuleType) -> None:
    """From leaving one broker until the tree is built at the next, the same at every run."""
    _hold(script.walk_simulated_move(), SIMULATED_MOVE)
