"""From the text of a filter to a tree of tests.

`words.py` cuts the words. The grammar below reads the subset of SQL that filters are written in, and nothing
else:

    either   := both (OR both)*
    both     := negation (AND negation)*
    negation := NOT negation | '(' either ')' | test
    test     := TRUE | FALSE | path | path operator value | path IS [NOT] (NULL | TRUE | FALSE)
              | path [NOT] BETWEEN value AND value | path [NOT] IN '(' value (',' value)* ')'
              | path [NOT] LIKE string

It is ours because every refusal must point at a character: sqlglot's own parser keeps no position for
operators, names Python classes in its errors and meets deep nesting with a RecursionError. Ours takes one
look at each word, and every limit is checked before the work it limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NoReturn

from sqlglot.tokenizer_core import TokenType

from sojourn.errors import SojournError
from sojourn.interest import comparisons
from sojourn.interest.comparisons import TOPIC, ComparisonError, Meaning
from sojourn.interest.events import EventError, check_name, check_scalar
from sojourn.interest.values import INTEGER_MAX, NUMBER_MAX, Scalar
from sojourn.interest.words import Word, cut

CHARACTERS_MAX = 4_096
PREDICATES_MAX = 200
NESTING_MAX = 64
PATH_NAMES_MAX = 16
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")


class FilterSyntaxError(SojournError):
    """A text is not a filter; `position` is the character at which that shows."""

    def __init__(self, sentence: str, text: str, position: int) -> None:
        self.sentence = sentence
        self.text = text
        self.position = position
        super().__init__(f"{sentence} (at character {position + 1})")

    def pointer(self, width: int = 76) -> str:
        """Return the text around the position with a mark below it."""
        shown = "".join(c if c.isprintable() else " " for c in self.text)
        start = max(0, min(self.position - width // 2, len(shown) - width))
        return f"{shown[start : start + width]}\n{' ' * (self.position - start)}^"


@dataclass(frozen=True, slots=True)
class Test:
    """One comparison: the values it is true for, and those its negation is true for."""

    __test__: ClassVar[bool] = False  # pytest, this is not a test case

    path: str
    meaning: Meaning


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True)
class Not:
    """The negation of an expression."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class All:
    """Expressions joined by AND."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Expressions joined by OR."""

    operands: tuple[Expression, ...]


Expression = Test | Constant | Not | All | Any


_OPERATORS = {
    TokenType.EQ: "=",
    TokenType.NEQ: "<>",
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
}
_SAYS_WHAT_WAS_EXPECTED = "a comparison such as = <> < <= > >= BETWEEN IN LIKE or IS NULL"


def read(text: str, *, limited: bool = True) -> Expression:
    """Read a filter's text, or refuse it with the character that is at fault.

    Without limits on its length a normal form is read that we wrote ourselves, which may be longer than what
    it came from.
    """
    if not isinstance(text, str):
        raise FilterSyntaxError(f"A filter is a text, not a {type(text).__name__}", str(text)[:80], 0)
    if limited and len(text) > CHARACTERS_MAX:
        raise FilterSyntaxError(
            f"A filter has at most {CHARACTERS_MAX} characters; this one has {len(text)}",
            text,
            CHARACTERS_MAX,
        )
    if (unusable := _UNUSABLE.search(text)) is not None:
        at = unusable.start()
        raise FilterSyntaxError("U+0000 and half surrogate pairs cannot stand in a filter", text, at)
    return _Reader(text, limited=limited).filter()


def _cut(text: str) -> list[Word]:
    words = cut(text)
    if words is not None:
        return words
    # sqlglot says that a quote is open, not which: it is the one that an odd count leaves.
    quote, start = "", 0
    characters = iter(enumerate(text))
    for at, character in characters:
        if not quote and character in "'`":
            quote, start = character, at
        elif character == quote:
            quote = ""
        elif quote == "'" and character == "\\":
            next(characters, None)
    what = "name" if quote == "`" else "string"
    raise FilterSyntaxError(f"The {what} that starts here is never closed", text, start)


class _Reader:
    """Reads the words once, from left to right."""

    def __init__(self, text: str, *, limited: bool) -> None:
        self.text = text
        self.limited = limited
        self.words = _cut(text)
        self.next = 0
        self.predicates = 0
        self.depth = 0

    # ------------------------------------------------------------------ grammar

    def filter(self) -> Expression:
        if not self.words:
            raise FilterSyntaxError("A filter is empty here; write TRUE to ask for everything", self.text, 0)
        expression = self.either()
        if self.next < len(self.words):
            self.expected("AND, OR or the end")
        return expression

    def either(self) -> Expression:
        operands = [self.both()]
        while self.take(TokenType.OR):
            operands.append(self.both())
        return operands[0] if len(operands) == 1 else Any(tuple(operands))

    def both(self) -> Expression:
        operands = [self.negation()]
        while self.take(TokenType.AND):
            operands.append(self.negation())
        return operands[0] if len(operands) == 1 else All(tuple(operands))

    def negation(self) -> Expression:
        if self.kind() not in (TokenType.NOT, TokenType.L_PAREN):
            return self.test()
        if self.depth == NESTING_MAX:
            self.fail(f"Parentheses and NOT nest at most {NESTING_MAX} deep")
        self.depth += 1
        expression: Expression
        if self.take(TokenType.NOT):
            expression = Not(self.negation())
        else:
            self.next += 1
            expression = self.either()
            self.need(TokenType.R_PAREN, "AND, OR or a closing parenthesis")
        self.depth -= 1
        return expression

    def test(self) -> Expression:
        self.count_predicate()
        if self.kind() in (TokenType.TRUE, TokenType.FALSE):
            return Constant(self.advance().token_type is TokenType.TRUE)
        path = self.path()
        kind = self.kind()
        if kind in _OPERATORS:
            self.next += 1
            at = self.next
            return self.meaning(
                at, path, lambda v: comparisons.compare(path, _OPERATORS[kind], v), self.value()
            )
        if kind is TokenType.IS:
            return self.is_test(path)
        if kind in (TokenType.NOT, TokenType.BETWEEN, TokenType.IN, TokenType.LIKE):
            negated = self.take(TokenType.NOT)
            test = self.membership(path)
            return Not(test) if negated else test
        if kind in (None, TokenType.AND, TokenType.OR, TokenType.R_PAREN):
            return self.meaning(self.next - 1, path, lambda v: comparisons.compare(path, "=", v), True)  # noqa: FBT003 - the value
        return self.expected(_SAYS_WHAT_WAS_EXPECTED)

    def is_test(self, path: str) -> Expression:
        self.next += 1
        negated = self.take(TokenType.NOT)
        at = self.next
        test: Expression
        if self.take(TokenType.NULL):
            test = Test(path, comparisons.is_null(path))
        elif self.kind() in (TokenType.TRUE, TokenType.FALSE):
            wanted = self.advance().token_type is TokenType.TRUE
            equal = self.meaning(at, path, lambda v: comparisons.compare(path, "=", v), wanted)
            # IS TRUE is never unknown: a missing attribute is simply not true.
            test = Test(path, Meaning(equal.meaning.true_for, lambda: ~equal.meaning.true_for))
        else:
            self.expected("NULL, TRUE or FALSE")
        return Not(test) if negated else test

    def membership(self, path: str) -> Test:
        kind = self.kind()
        self.next += 1
        at = self.next
        if kind is TokenType.LIKE:
            word = self.need(TokenType.STRING, "a string in single quotes")
            return self.meaning(at, path, lambda v: comparisons.like(path, str(v)), self.string(word))
        if kind is TokenType.BETWEEN:
            low = self.value()
            self.need(TokenType.AND, "AND and the upper end")
            return self.meaning(at, path, lambda v: comparisons.between(path, low, v), self.value())
        if kind is TokenType.IN:
            self.need(TokenType.L_PAREN, "a list in parentheses")
            values = [self.value()]
            while self.take(TokenType.COMMA):
                self.count_predicate()
                values.append(self.value())
            self.need(TokenType.R_PAREN, "a comma or a closing parenthesis")
            return self.meaning(at, path, lambda _: comparisons.one_of(path, values), values[0])
        self.next -= 1
        return self.expected("BETWEEN, IN or LIKE after NOT")

    def meaning(self, at: int, path: str, of: Callable[[Scalar], Meaning], value: Scalar) -> Test:
        """Build a test; what the language does not have is refused at the word numbered `at`."""
        try:
            return Test(path, of(value))
        except (ComparisonError, SojournError) as error:
            sentence = str(error).rstrip(".")
            return self.fail(sentence[:1].upper() + sentence[1:], at)

    # ------------------------------------------------------------------ words

    def path(self) -> str:
        at = self.next
        names = [self.name()]
        while self.take(TokenType.DOT):
            names.append(self.name())
        if len(names) > PATH_NAMES_MAX:
            self.fail(f"A path has at most {PATH_NAMES_MAX} names", at)
        if names[0] == TOPIC and len(names) > 1:
            self.fail("The topic is a string and has no attributes below it", at)
        if self.kind() is TokenType.L_PAREN:
            self.fail(f"Filters have no functions, so {names[-1]} cannot be called", at)
        return ".".join(names)

    def name(self) -> str:
        if self.kind() not in (TokenType.VAR, TokenType.IDENTIFIER):
            self.expected("the name of an attribute")
        word = self.advance()
        try:
            return check_name(word.text)
        except EventError as error:
            return self.fail(str(error).rstrip("."), self.next - 1)

    def value(self) -> Scalar:
        at = self.next
        negative = self.take(TokenType.DASH)
        if self.kind() is TokenType.NUMBER:
            return self.number(self.advance(), negative=negative)
        if self.kind() is TokenType.DOT and self.take(TokenType.DOT) and self.kind() is TokenType.NUMBER:
            return self.number(self.advance(), negative=negative, start=".")
        if negative:
            self.expected("a number after the minus sign")
        if self.kind() is TokenType.STRING:
            return self.string(self.advance())
        if self.kind() in (TokenType.TRUE, TokenType.FALSE):
            return self.advance().token_type is TokenType.TRUE
        if self.kind() is TokenType.NULL:
            self.fail("A comparison with NULL is never true; write IS NULL or IS NOT NULL", at)
        return self.expected("a number, a string in single quotes, TRUE or FALSE")

    def number(self, word: Word, *, negative: bool, start: str = "") -> Scalar:
        text = start + word.text
        try:
            value = float(text)
            exact: float = int(text) if text.isdecimal() else value
        except ValueError:
            self.fail(f"{text[:40]} is not a number", self.next - 1)
        if value > NUMBER_MAX:
            self.fail("This number is beyond the largest there is, 1.8e308", self.next - 1)
        if isinstance(exact, int) and exact > INTEGER_MAX:
            self.fail(
                "This number is beyond 2**53, where numbers lose digits; compare strings", self.next - 1
            )
        return -exact if negative else exact

    def string(self, word: Word) -> str:
        """Read a string as Spark does: a backslash stays before % and _, where LIKE needs it."""
        inside = self.text[word.start + 1 : word.end]
        if "'" not in inside and "\\" not in inside:
            return self.checked(inside)
        text: list[str] = []
        characters = iter(range(word.start + 1, word.end))
        for at in characters:
            character = self.text[at]
            if character == "'":
                next(characters)  # the second of two quotes
            elif character == "\\":
                escaped = self.text[next(characters)]
                if escaped not in "\\'%_":
                    raise FilterSyntaxError(r"Write \\ for a backslash in a string", self.text, at)
                character = escaped if escaped in "\\'" else character + escaped
            text.append(character)
        return self.checked("".join(text))

    def checked(self, text: str) -> str:
        try:
            return str(check_scalar("this place", text))
        except EventError as error:
            self.fail(str(error).rstrip("."), self.next - 1)

    def kind(self) -> TokenType | None:
        return self.words[self.next].token_type if self.next < len(self.words) else None

    def advance(self) -> Word:
        self.next += 1
        return self.words[self.next - 1]

    def take(self, kind: TokenType) -> bool:
        if self.kind() is not kind:
            return False
        self.next += 1
        return True

    def need(self, kind: TokenType, what: str) -> Word:
        if self.kind() is not kind:
            self.expected(what)
        return self.advance()

    def count_predicate(self) -> None:
        self.predicates += 1
        if self.limited and self.predicates > PREDICATES_MAX:
            self.fail(f"A filter has at most {PREDICATES_MAX} predicates")

    # ------------------------------------------------------------------ refusals

    def expected(self, what: str) -> NoReturn:
        if self.next >= len(self.words):
            self.fail(f"The filter ends where {what} was expected")
        found = self.text[self.words[self.next].start : self.words[self.next].end + 1]
        if found == '"':
            self.fail("Strings stand in single quotes and unusual names in backticks, not in double quotes")
        self.fail(f"Expected {what}, found {found[:40]}")

    def fail(self, sentence: str, word: int | None = None) -> NoReturn:
        at = self.next if word is None else word
        position = self.words[at].start if at < len(self.words) else len(self.text)
        raise FilterSyntaxError(sentence, self.text, position)
