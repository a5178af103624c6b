"""The ledger of claims and the verdicts on them.

The ledger is data (`claims.toml` beside this file): what a paper says, and what a measurement of ours must
show for it to hold. A verdict is `holds`, `differs` or `not yet`, and always carries the numbers measured
and a sentence of evidence. This module computes no measure; each study's checks do.
"""

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from sojourn.errors import SojournError
from sojourn.studies.cited import Cited, Told, queries, unmeasured, where_from
from sojourn.studies.statistics import interval95

VerdictName = Literal["holds", "differs", "not yet"]
Number = float | int | bool | str | None
Measured = Mapping[str, Number | Told]
"""Numbers by name, as a check gives them."""


class UnknownStudyError(SojournError):
    """A study was asked for that the ledger does not know."""


class VerdictsError(SojournError):
    """A file of verdicts cannot be read."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One checkable statement of a paper."""

    id: str
    says: str
    check: str
    where: str = ""
    """Where the paper says it, and in what sense, where `says` alone does not tell."""


class Margin(msgspec.Struct, frozen=True, kw_only=True):
    """By how much the number that decides a verdict lies beyond its limit."""

    of: str
    """What is compared with what, at the point where it is closest."""
    value: float | None
    """Above 0 on the side on which the claim holds."""
    half: float | None
    """Half the width of its 95% interval; None where one value cannot tell."""

    @property
    def within(self) -> bool:
        """Whether the other verdict lies within the interval."""
        return self.value is not None and self.half is not None and abs(self.value) <= self.half

    @property
    def said(self) -> str:
        """The margin in words."""
        if self.value is None:
            return ""
        half = "" if self.half is None else f" ± {self.half:.2g}"
        return f"{self.value:+.2g}{half} ({self.of})"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What the verdict would be if the paper were read otherwise; readings stand beside each other."""

    name: str
    verdict: VerdictName
    note: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What our measurement says about one claim."""

    id: str
    verdict: VerdictName
    measured: dict[str, Number]
    """The numbers the verdict rests on, by name; rounded."""
    check: str
    evidence: str
    """One or more sentences with the key numbers and, where the verdict is `differs`, the reason."""
    margin: Margin | None = None
    readings: tuple[Reading, ...] = ()
    cause: str = ""
    """Where the verdict is `differs`: which experiment isolates why, or that none was found."""
    queries: dict[str, str] = {}
    """By the names of numbers measured, the query that gives each from what the runs recorded."""
    unmeasured: dict[str, str] = {}
    """By the names of numbers that no run measured, where they are from; the evidence says so too."""

    @property
    def tied(self) -> bool:
        """Whether the verdict might be the other one within the interval of what decides it."""
        return self.margin is not None and self.margin.within


class _Ledger(msgspec.Struct, frozen=True):
    studies: dict[str, str]
    claim: list[Claim]


def load_ledger() -> dict[str, list[Claim]]:
    """Every study's claims, in the ledger's order."""
    text = resources.files("sojourn.studies").joinpath("claims.toml").read_text(encoding="utf-8")
    ledger = msgspec.convert(tomllib.loads(text), _Ledger)
    by_study: dict[str, list[Claim]] = {study: [] for study in ledger.studies.values()}
    for claim in ledger.claim:
        by_study[ledger.studies[claim.id[0]]].append(claim)
    return by_study


def claims_of(study: str) -> dict[str, Claim]:
    """One study's claims by id."""
    ledger = load_ledger()
    if study not in ledger:
        raise UnknownStudyError(f"study may be {', '.join(ledger)}, not {study!r}.")
    return {claim.id: claim for claim in ledger[study]}


NO_CAUSE = "No experiment of ours isolates why."
TIED = " What decides lies within its 95% interval of the limit: this is a tie."


def judge(
    claim: Claim,
    *,
    holds: bool | None,
    measured: Measured,
    evidence: str,
    margin: Margin | None = None,
    readings: Iterable[Reading] = (),
    cause: str = "",
) -> Verdict:
    """A verdict on a claim; `holds` is None when the measurement cannot decide yet.

    A verdict whose margin is within its interval says so, and one that differs without a cause says that.
    """
    numbers = {
        name: _plain(value.value if isinstance(value, Told) else value) for name, value in measured.items()
    }
    elsewhere = unmeasured(measured)
    readings = tuple(readings)
    tied = holds is not None and margin is not None and margin.within
    return Verdict(
        id=claim.id,
        verdict=named(holds=holds),
        measured=numbers,
        check=claim.check,
        evidence=evidence + where_from(elsewhere) + (TIED if tied else ""),
        margin=margin,
        readings=readings,
        cause=_cause(cause, readings) if holds is False else "",
        queries=queries(measured),
        unmeasured=elsewhere,
    )


def _cause(known: str, readings: Sequence[Reading]) -> str:
    """What is known of why a verdict is `differs`: the experiment that isolates it, and other readings."""
    flips = [reading.name for reading in readings if reading.verdict == "holds"]
    if flips:
        said = f"It holds if the paper is read so: {'; '.join(flips)}."
    elif readings:
        others = "The other reading that was run does not change it."
        said = others if len(readings) == 1 else f"None of the {len(readings)} other readings changes it."
    else:
        said = ""
    return " ".join(part for part in (known or ("" if flips else NO_CAUSE), said) if part)


def named(*, holds: bool | None) -> VerdictName:
    """The verdict's name."""
    return "not yet" if holds is None else "holds" if holds else "differs"


def margin_of(
    values: Sequence[float], limit: float, of: str, *, above: bool = True, at: float | None = None
) -> Margin:
    """How far the mean of one value per seed lies beyond a limit, with its interval.

    `at` stands for the mean where the check compares another number of the same kind, such as a ratio of
    means instead of a mean of ratios.
    """
    found = [float(value) for value in values if math.isfinite(value)]
    mean = float(at) if at is not None else sum(found) / len(found) if found else math.nan
    if not math.isfinite(mean):
        return Margin(of=of, value=None, half=None)
    half = interval95(found)
    beyond = float(mean - limit if above else limit - mean)
    return Margin(of=of, value=beyond, half=half if math.isfinite(half) else None)


def closest(margins: Iterable[Margin]) -> Margin | None:
    """Of several conditions that must all hold, the one that decides.

    Where one fails clearly, that is it; where one holds by no more than its interval, that one.
    """
    known = [margin for margin in margins if margin.value is not None]
    failing = [margin for margin in known if _value(margin) < 0]
    clear = [margin for margin in failing if not margin.within]
    close = [margin for margin in known if margin.within]
    return min(clear or failing or close or known, key=_value, default=None)


def _value(margin: Margin) -> float:
    return margin.value if margin.value is not None else math.inf


def read_verdicts(path: Path) -> list[Verdict]:
    """Verdicts that a study wrote."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Verdict])
    except (OSError, msgspec.MsgspecError) as error:
        raise VerdictsError(f"{path} holds no verdicts ({error}); run `sojourn reproduce` first.") from None


def write_verdicts(verdicts: Iterable[Verdict], path: Path) -> None:
    """Write verdicts as a JSON list that a person can read."""
    encoded = msgspec.json.encode(list(verdicts), enc_hook=_uncited)
    path.write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")


def _uncited(value: object) -> float:
    """A margin may be made of numbers that carry queries; only those of `measured` are written with them."""
    assert isinstance(value, Cited), f"{type(value).__name__} is no part of a verdict"
    return float(value)


def _plain(value: Number) -> Number:
    """Four significant digits: more would pretend a precision that five seeds do not have.

    What is no number is said in words, since JSON has none for it and a reader should not meet "nan".
    """
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return "no figure"
    return float(f"{value:.4g}") if math.isfinite(value) else "infinite"
