"""Whose requests the page answers; of guesses of its password the more an address makes, the fewer."""

from __future__ import annotations

import asyncio
import base64
import threading

import pytest

from sojourn.live.config import Address
from sojourn.live.page import guard
from sojourn.live.page.guard import Guard, headers_of


def _basic(password: str) -> list[str]:
    return ["Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()]


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("localhost", True),
        ("LOCALHOST:80", True),
        ("127.0.0.1:80", True),
        ("127.0.0.1", True),
        ("localhost:8080", False),
        ("127.0.0.1:8", False),
        ("127.0.0.1:80000000", False),
        ("127.0.0.2", False),
        ("127.0.0.2:80", False),
        ("[::1]", False),
        ("[::1]:80", False),
        ("[::1%evil.com]", False),
        ("[::1%25lo]:80", False),
        ("[::1", False),
        ("[::1:80", False),
        ("[localhost]", False),
        ("[127.0.0.1]:80", False),
        ("[::1]evil.com", False),
        ("[]", False),
        ("::1", False),
        ("127.evil.com", False),
        ("", False),
    ],
)
def test_a_page_on_loopback_answers_to_names_of_this_machine(host: str, is_here: bool) -> None:
    """Written as HTTP writes them, with a port or without, and nothing else beside them."""
    assert Guard(Address("127.0.0.1", 80), lambda: None).is_host([host]) is is_here


def test_a_page_answers_to_where_it_listens() -> None:
    """Whichever port it found, and to the usual name of the usual addresses."""
    page = Guard(Address("::1", 0), lambda: None)
    page.listens_at(Address("::1", 8_080))
    hosts = ("[::1]:8080", "localhost:8080", "127.0.0.1:8080", "[::1]", "[::1]:0")
    assert [page.is_host([one]) for one in hosts] == [True, True, False, False, False]
    named = Guard(Address("localhost", 80), lambda: None)
    assert all(named.is_host([one]) for one in ("localhost", "127.0.0.1:80", "[::1]"))
    other = Guard(Address("127.0.0.9", 80), lambda: None)
    assert [other.is_host([one]) for one in ("127.0.0.9", "localhost", "127.0.0.1")] == [True, False, False]


@pytest.mark.parametrize(
    "line", ["Host : evil.com", " Host: evil.com", "Host\t: x", ": x", "Host", "Ho st: x"]
)
def test_a_line_that_is_no_header_spoils_a_request(line: str) -> None:
    """Some would read it as a header, and others would not."""
    assert headers_of(["Accept: */*", line, ""]) is None
    assert headers_of(["Accept: */*", "Host:\tlocalhost ", "", ""]) == {
        "accept": ["*/*"],
        "host": ["localhost"],
    }


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


def test_all_addresses_of_one_host_pause_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """By IPv6 it has a /64 of them; and IPv4 carried by IPv6 is IPv4."""
    looked_at: list[bytes] = []
    monkeypatch.setattr(guard, "password_fits", lambda _, given: looked_at.append(given))
    monkeypatch.setattr(guard, "FIRST_PAUSE_S", 600.0)
    monkeypatch.setattr(guard, "LONGEST_PAUSE_S", 3_600.0)

    async def scenario() -> None:
        doors = Guard(Address("::", 0), lambda: "the hash")
        for number in range(20):
            assert not await doors.knows(_basic("guess"), f"2001:db8::{number:x}")
        assert len(looked_at) == guard.FREE_GUESSES + 1
        for number in range(10):
            address = "192.0.2.7" if number % 2 else "::ffff:192.0.2.7"
            assert not await doors.knows(_basic("guess"), address)
        assert [*doors._wrong] == ["2001:db8::/64", "192.0.2.7"]

    asyncio.run(scenario())
    assert len(looked_at) == 2 * (guard.FREE_GUESSES + 1)


def test_guesses_of_one_address_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever knows the password is not refused since somebody elsewhere guesses as fast as it can."""
    goes_on = threading.Event()

    def fits(_kept: str, given: bytes) -> bool:
        return goes_on.wait(60) and given == b"right"

    monkeypatch.setattr(guard, "password_fits", fits)

    async def scenario() -> None:
        doors = Guard(Address("127.0.0.1", 0), lambda: "the hash")
        guesses = [asyncio.create_task(doors.knows(_basic(f"{one}"), "there")) for one in range(20)]
        await asyncio.sleep(0)
        right = asyncio.create_task(doors.knows(_basic("right"), "here"))
        await asyncio.sleep(0)
        goes_on.set()
        assert not any(await asyncio.gather(*guesses))
        assert await right
        assert not doors._waiting

    asyncio.run(scenario())
