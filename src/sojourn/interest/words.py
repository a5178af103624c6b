"""The words of a filter's text: names, numbers, strings and signs, each with its place.

They are cut by sqlglot's tokenizer, set to what Spark SQL reads: strings in single quotes with '' for a quote
and two backslashes for one, unusual names in backticks, no comments. Nearly all texts need none of its care:
where every word is plain (ASCII, no escapes, no exponents) one pattern cuts them ten times as fast, to the
same words, and leaves everything else to the tokenizer. Brokers read the filters of all others, so that this
is most of what a subscription takes where it only passes.
"""

from __future__ import annotations

import re
from typing import ClassVar, NamedTuple

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType
from sqlglot.tokens import Tokenizer


class Word(NamedTuple):
    """One word: its kind, what it says, and the places of its first and last character."""

    token_type: TokenType
    text: str
    start: int
    end: int


class _Tokenizer(Tokenizer):
    """Standard SQL words: no comments, no double-quoted names, no string prefixes."""

    QUOTES: ClassVar = ["'"]
    IDENTIFIERS: ClassVar = ["`"]
    STRING_ESCAPES: ClassVar = ["'", "\\"]
    COMMENTS: ClassVar = []
    KEYWORDS: ClassVar = {
        "AND": TokenType.AND,
        "BETWEEN": TokenType.BETWEEN,
        "FALSE": TokenType.FALSE,
        "IN": TokenType.IN,
        "IS": TokenType.IS,
        "LIKE": TokenType.LIKE,
        "NOT": TokenType.NOT,
        "NULL": TokenType.NULL,
        "OR": TokenType.OR,
        "TRUE": TokenType.TRUE,
        "<=": TokenType.LTE,
        ">=": TokenType.GTE,
        "<>": TokenType.NEQ,
        "!=": TokenType.NEQ,
    }


RESERVED = frozenset(word for word in _Tokenizer.KEYWORDS if word.isalpha())

_SIGNS = {
    **{sign: kind for sign, kind in _Tokenizer.KEYWORDS.items() if sign not in RESERVED},
    "=": TokenType.EQ,
    "<": TokenType.LT,
    ">": TokenType.GT,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    ",": TokenType.COMMA,
    ".": TokenType.DOT,
    "-": TokenType.DASH,
}
_PLAIN = re.compile(
    r"[ \t\n]*(?:"
    r"([A-Za-z_][A-Za-z0-9_]*)(?=[ \t\n=<>(),.]|\Z)|"
    r"([0-9]+(?:\.[0-9]+)?)(?=[ \t\n=<>(),]|\Z)|"
    r"'([ !-&(-\[\]-~]*)'(?=[ \t\n(),]|\Z)|"
    r"(<=|>=|<>|!=|[=<>(),.]|-(?!-)))"
)
"""The next word and what it ends at, if both are plain: a name, a number, a string or a sign."""
_NAME, _NUMBER, _STRING = 1, 2, 3


def cut(text: str) -> list[Word] | None:
    """Return the words of a text; None if a string or a name in it is never closed."""
    words = _cut_plain(text)
    if words is None:
        try:
            found = _Tokenizer().tokenize(text)
        except TokenError:
            return None
        words = [Word(word.token_type, word.text, word.start, word.end) for word in found]
    return words


def _cut_plain(text: str) -> list[Word] | None:
    """Return the words of a text if all of them are plain."""
    words: list[Word] = []
    at, until, match = 0, len(text.rstrip(" \t\n")), _PLAIN.match
    kinds = _Tokenizer.KEYWORDS
    while at < until:
        found = match(text, at)
        if found is None:
            return None
        kind, at = found.lastindex, found.end()
        assert kind is not None, "a word is of one of the kinds"
        said = found[kind]
        if kind == _NAME:
            words.append(Word(kinds.get(said.upper(), TokenType.VAR), said, at - len(said), at - 1))
        elif kind == _STRING:
            words.append(Word(TokenType.STRING, said, at - len(said) - 2, at - 1))
        else:
            named = TokenType.NUMBER if kind == _NUMBER else _SIGNS[said]
            words.append(Word(named, said, at - len(said), at - 1))
    return words
