"""Guesses of the page's password: the more an address makes, the longer none of them is looked at."""

from __future__ import annotations

import asyncio
import base64

import pytest

from sojourn.live.config import Address
from sojourn.live.page import guard
from sojourn.live.page.guard import Guard


def _basic(password: str) -> list[str]:
    return ["Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()]


def test_guesses_are_looked_at_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred a handful; the right one from elsewhere comes in, and what is known always does."""
    looked_at: list[bytes] = []

    def fits(_kept: str, given: bytes) -> bool:
        looked_at.append(given)
        return given == b"right"

    monkeypatch.setattr(guard, "password_fits", fits)
    monkeypatch.setattr(guard, "FIRST_PAUSE_S", 600.0)  # no machine is so slow
    monkeypatch.setattr(guard, "LONGEST_PAUSE_S", 3_600.0)

    async def scenario() -> None:
        doors = Guard(Address("127.0.0.1", 0), lambda: "the hash")
        for number in range(100):
            assert not await doors.knows(_basic(f"guess {number}"), "there")
        assert len(looked_at) == guard.FREE_GUESSES + 1
        assert not await doors.knows(_basic("right"), "there"), "it may not even be right for now"
        assert await doors.knows(_basic("right"), "here")
        assert await doors.knows(_basic("right"), "there"), "what was found right is known"
        at_once = [doors.knows(_basic(f"guess {number}"), "elsewhere") for number in range(6)]
        assert not any(await asyncio.gather(*at_once))

    asyncio.run(scenario())
    assert len(looked_at) == 2 * (guard.FREE_GUESSES + 1) + 1


def test_only_so_many_addresses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody fills memory with wrong passwords."""
    monkeypatch.setattr(guard, "password_fits", lambda *_: False)
    monkeypatch.setattr(guard, "ADDRESSES_MAX", 10)

    async def scenario() -> None:
        doors = Guard(Address("127.0.0.1", 0), lambda: "the hash")
        for number in range(50):
            assert not await doors.knows(_basic("guess"), f"10.0.0.{number}")
        assert [*doors._wrong] == [f"10.0.0.{number}" for number in range(40, 50)]

    asyncio.run(scenario())
