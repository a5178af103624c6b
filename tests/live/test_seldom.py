"""Lines that can repeat are written once in a while."""

import logging

import pytest

from sojourn.live.seldom import KEYS_MAX, QUIET_S, Seldom


def test_a_line_is_written_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    """The first at once, the next after the quiet time with the number left out; other keys are their own."""
    now = 0.0
    seldom = Seldom(logging.getLogger("test.seldom"), lambda: now)
    with caplog.at_level(logging.INFO):
        for _ in range(400):  # forty lines a second, for a quiet time
            seldom.warning("link", "down %s", "B2", peer="B2")
            now += QUIET_S / 400
        seldom.info("other", "else")
        seldom.warning("link", "down %s", "B2", peer="B2")
    said = [(record.getMessage(), vars(record).get("left_out")) for record in caplog.records]
    assert said == [("down B2", None), ("else", None), ("down B2", 399)]


def test_keys_are_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever invents keys takes no memory."""
    seldom = Seldom(logging.getLogger("test.seldom"), lambda: 0.0, lines_max=3 * KEYS_MAX)
    with caplog.at_level(logging.WARNING):
        for number in range(3 * KEYS_MAX):
            seldom.warning(number, "line")
    assert len(caplog.records) == 3 * KEYS_MAX
    assert len(seldom._said) == KEYS_MAX


def test_whoever_invents_keys_writes_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    """So many in a quiet time whatever the keys are, and the first one after that tells of the rest."""
    now = 0.0
    seldom = Seldom(logging.getLogger("test.seldom"), lambda: now, lines_max=5)
    with caplog.at_level(logging.WARNING):
        for number in range(1_000):
            seldom.warning(number, "line")
        assert len(caplog.records) == 5
        now += QUIET_S
        seldom.warning("another", "line")
    assert vars(caplog.records[-1])["others_left_out"] == 995


def test_what_was_left_out_is_told_although_its_key_was_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    """By the line that took its room."""
    seldom = Seldom(logging.getLogger("test.seldom"), lambda: 0.0, lines_max=2 * KEYS_MAX)
    for _ in range(8):
        seldom.warning("forgotten", "line")
    for number in range(KEYS_MAX):
        seldom.warning(number, "line")
    assert [vars(one)["others_left_out"] for one in caplog.records if "others_left_out" in vars(one)] == [7]
