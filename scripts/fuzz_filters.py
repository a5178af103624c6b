"""Feeds the filter parser random and mutated texts and reports any crash or slow input.

    .venv/bin/python scripts/fuzz_filters.py --count 1000000 --seed 1

Every text must end in a filter or in a refusal that names a position inside the text; an accepted one must
survive the way through its canonical text. The seed repeats a run exactly.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time

from rich.progress import track

from sojourn.interest import Filter, FilterSyntaxError
from sojourn.errors import SojournError

SLOW_MS = 50.0
WORDS = [
    "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE", "(", ")", ",", ".", "=", "<>", "!=",
    "<", "<=", ">", ">=", "-", "+", "*", "/", "%", ";", "'", '"', "`", "\\", "a", "b", "topic", "a.b", "price", "1",
    "0", "-3.5", "1e5", "1e999", "99999999999999999999", "'x'", "'x%'", "'a/+/#'", "'it''s'", "'\\%'", "--", "/*", "*/",
    "SELECT", "CASE", "CAST", "f(", "[", "]", "{", "}", "::", "||", "@", "$1", "?", ":x", "\n", "\t", "é", "\U0001f600",
    "0x1F", "N'x'", "x'ff'", "1_000", ".5", "5.", "TRUE OR", "(a = 1 OR b = 1) AND", "topic NOT LIKE '+/b'",
]  # fmt: skip
SEEDS = [
    "price <= 1600 AND brand = 'IBM' AND product = 'computer'",
    "a IN (1, 2, 3) OR NOT (b BETWEEN 'x' AND 'y' OR c LIKE 'p%')",
    "topic LIKE 'city/+/temp/#' AND pos.lat >= 48.1 AND pos.lat < 48.2",
    "(a = 1 OR b = 1) AND (c = 1 OR d = 1) AND (e = 1 OR f = 1) AND flag",
    "a IS NOT NULL AND (b IS NULL OR b <> 'it''s') AND `odd name` = TRUE",
    "topic NOT IN ('a', 'b/c') AND topic LIKE 'a/%' AND topic NOT LIKE 'a/+/c'",
    " AND ".join(f"(x{i} = {i} OR y{i} > {i})" for i in range(6))
    + " AND "
    + " AND ".join(f"z{i} < 3" for i in range(150)),
    " OR ".join(f"a{i} = 1 AND b{i} <> 'x'" for i in range(64)),
    " AND ".join(f"topic NOT LIKE 'a{i}/+/b'" for i in range(40)),
    "topic IN (" + ", ".join(f"'t/{i}'" for i in range(150)) + ")",
]


def random_text(rng: random.Random) -> str:
    """Return characters, words, or a mutation of a filter that is fine."""
    kind = rng.random()
    if kind < 0.2:
        return "".join(
            chr(rng.choice((rng.randrange(128), rng.randrange(0x11000)))) for _ in range(rng.randrange(60))
        )
    if kind < 0.5:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 30)))
    if kind < 0.505:
        return (rng.choice(WORDS) + " ") * rng.randrange(1, 2000)
    text = rng.choice(SEEDS if kind < 0.6 else SEEDS[:6])
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text) + 1)
        how = rng.randrange(4)
        if how == 0:
            text = text[:at] + text[at + rng.randrange(1, 8) :]
        elif how == 1:
            text = text[:at] + rng.choice(WORDS) + text[at:]
        elif how == 2:
            text = text[:at] + chr(rng.randrange(32, 0x250)) + text[at + 1 :]
        else:
            start = rng.randrange(len(text) + 1)
            text = text[:at] + text[start : start + rng.randrange(40)] + text[at:]
    return text


def try_text(text: str) -> bool:
    """Parse a text; return whether it was accepted. Anything but a filter or a clear refusal raises."""
    try:
        parsed = Filter.parse(text)
    except FilterSyntaxError as error:
        assert 0 <= error.position <= len(text), f"position {error.position} is outside {text!r}"
        return False
    except SojournError as error:
        assert str(error).endswith("."), f"no sentence for {text!r}: {error}"
        return False
    assert parsed.conjunctions is not None
    return True


def main() -> int:
    """Run the fuzzer; the exit code tells whether a text was slow."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--count", type=int, default=1_000_000, help="how many texts (default 1,000,000)")
    options.add_argument("--seed", type=int, default=1, help="the seed that repeats a run (default 1)")
    chosen = options.parse_args()
    print(f"seed {chosen.seed}, {chosen.count:,} texts", file=sys.stderr)  # noqa: T201
    rng = random.Random(chosen.seed)  # noqa: S311
    accepted = 0
    slowest = (0.0, "")
    try_text("a = 1")
    gc.disable()  # what the collector takes is not the parser's doing; a collection below every so often
    for number in track(range(chosen.count), description="fuzzing", disable=not sys.stderr.isatty()):
        text = random_text(rng)
        started = time.perf_counter()
        try:
            accepted += try_text(text)
        except Exception:
            print(f"text {number} of seed {chosen.seed}: {text!r}", file=sys.stderr)  # noqa: T201
            raise
        took_ms = (time.perf_counter() - started) * 1e3
        if took_ms > SLOW_MS:
            # Once is the machine, thrice is the text.
            took_ms = min(took_ms, *(_time_once(text) for _ in range(2)))
        slowest = max(slowest, (took_ms, text))
        if number % 20_000 == 0:
            gc.collect()
    print(  # noqa: T201
        f"{chosen.count:,} texts: {accepted:,} filters, {chosen.count - accepted:,} refusals, no crash; "
        f"slowest {slowest[0]:.1f} ms: {slowest[1][:100]!r}"
    )
    return int(slowest[0] > SLOW_MS)


def _time_once(text: str) -> float:
    started = time.perf_counter()
    try_text(text)
    return (time.perf_counter() - started) * 1e3


if __name__ == "__main__":
    raise SystemExit(main())
