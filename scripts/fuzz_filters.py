"""Feeds the filter parser random and mutated texts and reports any crash or slow input.

    .venv/bin/python scripts/fuzz_filters.py --count 1000000 --seed 1

Every text must end in a filter, whose canonical text reads back as the same filter, or in a refusal that
names a position inside the text. The seed repeats a run exactly.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time

from rich.progress import track

from sojourn.errors import SojournError
from sojourn.interest import Filter, FilterSyntaxError
from sojourn.interest.syntax import CHARACTERS_MAX

SLOW_MS = 50.0
_WORDS = (
    "AND OR NOT IN BETWEEN LIKE IS NULL TRUE FALSE ( ) , . = <> != < <= > >= - + * / % ; a b topic a.b "
    "1 0 -3.5 1e5 1e999 99999999999999999999 0x1F 1_000 .5 5. 'x' 'x%' 'a/+/#' 'it''s' N'x' x'ff' ' \" "
    "-- /* */ SELECT CASE CAST f( [ ] { } :: || @ $1 ? :x é ` \\ '\\%' \U0001f600"
)
WORDS = [*_WORDS.split(), "\n", "\t", "TRUE OR", "(a = 1 OR b = 1) AND", "topic NOT LIKE '+/b'"]
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
    " AND ".join(f"topic NOT LIKE 'a{i}/+'" for i in range(140)),
    " OR ".join(f"topic LIKE '+/a{i}/#'" for i in range(140)),
    " AND ".join(f"a <> {i}" for i in range(190)),
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
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
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


def try_text(text: str) -> Filter | None:
    """Parse a text; return the filter, or None for a clear refusal. Anything else raises."""
    try:
        return Filter.parse(text)
    except FilterSyntaxError as error:
        if not 0 <= error.position <= len(text):
            raise AssertionError(f"position {error.position} is outside {text!r}") from error
        return None
    except SojournError as error:
        if not str(error).endswith("."):
            raise AssertionError(f"no sentence for {text!r}: {error}") from error
        return None


def check_canonical(text: str, parsed: Filter) -> None:
    """Hold the canonical text to reading back, unless it is longer than a text may be."""
    canonical = str(parsed)
    if len(canonical) > CHARACTERS_MAX:
        return
    try:
        again = Filter.parse(canonical)
    except SojournError as error:
        # Writing a normal form out can take more predicates than the text it came from had.
        if "at most" in str(error):
            return
        raise
    if again != parsed:
        raise AssertionError(f"{text!r} became {canonical!r}, which reads as {again!s}")


def main() -> int:
    """Run the fuzzer; the exit code tells whether a text was slow."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--count", type=int, default=1_000_000, help="how many texts (default 1,000,000)")
    options.add_argument("--seed", type=int, default=1, help="the seed that repeats a run (default 1)")
    chosen = options.parse_args()
    print(f"seed {chosen.seed}, {chosen.count:,} texts", file=sys.stderr)
    rng = random.Random(chosen.seed)  # noqa: S311 - no secret
    accepted = 0
    slowest = (0.0, "")
    try_text("a = 1")
    gc.disable()  # what the collector takes is not the parser's doing; a collection below every so often
    for number in track(range(chosen.count), description="fuzzing", disable=not sys.stderr.isatty()):
        text = random_text(rng)
        started = time.thread_time()  # the processor's time: other programs are not the parser's doing
        try:
            parsed = try_text(text)
            took_ms = (time.thread_time() - started) * 1e3
            if parsed is not None:
                accepted += 1
                check_canonical(text, parsed)
        except Exception:
            print(f"text {number} of seed {chosen.seed}: {text!r}", file=sys.stderr)
            raise
        if took_ms > SLOW_MS:
            # Once is the machine, thrice is the text.
            took_ms = min(took_ms, *(_time_once(text) for _ in range(2)))
        slowest = max(slowest, (took_ms, text))
        if number % 20_000 == 0:
            gc.collect()
    print(
        f"{chosen.count:,} texts: {accepted:,} filters, {chosen.count - accepted:,} refusals, no crash; "
        f"slowest {slowest[0]:.1f} ms: {slowest[1][:100]!r}"
    )
    return int(slowest[0] > SLOW_MS)


def _time_once(text: str) -> float:
    started = time.thread_time()
    try_text(text)
    return (time.thread_time() - started) * 1e3


if __name__ == "__main__":
    raise SystemExit(main())
