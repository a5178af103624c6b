"""Numbers in sentences of a report: one of a thing is not several, and a range of one value is that value."""

from __future__ import annotations

from collections.abc import Iterable


def many(count: int, plural: str) -> str:
    """A number of things, such as "1 layout" and "4 layouts"; the word is given as for several."""
    return f"{count} {one(plural) if count == 1 else plural}"


def one(plural: str) -> str:
    """The word for one of several things."""
    return plural.removesuffix("s")


def numbered(plural: str, count: int) -> str:
    """Which of a numbered thing were used: "seed 1", or "seeds 1 to 5"."""
    return f"{one(plural)} 1" if count == 1 else f"{plural} 1 to {count}"


def span(values: Iterable[float], form: str = ".2f") -> str:
    """From the smallest to the largest of some values; one number where they look alike."""
    found = list(values)
    low, high = format(min(found), form), format(max(found), form)
    return low if low == high else f"{low} to {high}"


def more(share: float) -> str:
    """By how much the worst of some means lies above the least possible, after the words "they cost"."""
    if share < 1e-9:
        return "no more"
    return "less than 0.1% more" if share < 0.0005 else f"up to {share:.1%} more"


def verdicts_in_words(holds: int, differing: list[str], open_: int) -> str:
    """How many claims hold, differ (and which) and are open."""
    total = holds + len(differing) + open_
    which = f" ({', '.join(differing)})" if differing else ""
    if total == 0:
        return "There are no claims to judge."
    if total == 1:
        verdict = "holds" if holds else "differs" if differing else "is not judged yet"
        return f"The one claim{which} {verdict}."
    said = [
        f"{holds or 'none'} {'hold' if holds > 1 else 'holds'}",
        f"{len(differing) or 'none'} {'differ' if len(differing) > 1 else 'differs'}{which}",
    ]
    if open_:
        said.append(f"{open_} {'are' if open_ > 1 else 'is'} not judged yet")
    return f"Of {total} claims {', '.join(said[:-1])} and {said[-1]}."
