"""The words of filters: plain texts are cut as the tokenizer cuts them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sojourn.interest import words

PIECES = (
    "x", "Y_2", "price", "and", "AND", "Or", "not", "BETWEEN", "In", "is", "LIKE", "Null", "true", "FALSE",
    "0", "7", "007", "12.5", "1.", ".5", "1e5", "0x1f", "5x", "9_9", "ä", "'a'", "''", "'a b'", "'it''s'",
    r"'a\%'", "'ü'", "'", "`n`", '"', "=", "<", ">", "<=", ">=", "<>", "!=", "!", "<=>", "==", "(", ")",
    ",", ".", "-", "--", "/*", "+", "*", ";", ":", "@", "$1", "N'x'", " ", "  ", "\t", "\n", "\r", "\x0b",
    "\u00a0",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
@example("x BETWEEN 120 AND 219 AND y>=-3")
@example("a.b IN ('p q', 'r')\n")
@example("x = 'a''b'")
@example("x <'a'")
def test_plain_texts_have_the_words_that_the_tokenizer_finds(text: str) -> None:
    """Whatever is cut by the pattern is cut into the same words, with the same places, by the tokenizer."""
    plain = words._cut_plain(text)
    if plain is not None:
        found = words._Tokenizer().tokenize(text)
        assert plain == [(word.token_type, word.text, word.start, word.end) for word in found]


@pytest.mark.parametrize(
    "text", ["x BETWEEN 120 AND 219 AND y BETWEEN 3 AND 9.5", "topic LIKE 'a/+/b' AND NOT (n IN (1, 2))"]
)
def test_what_people_and_brokers_write_is_plain(text: str) -> None:
    """Ordinary filters take the short way."""
    assert words._cut_plain(text) is not None
