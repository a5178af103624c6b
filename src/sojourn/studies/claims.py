"""The ledger of claims and the verdicts on them.

The ledger is data (`claims.toml` beside this file): what a paper says, and what a measurement of ours must
show for it to hold. A verdict is `holds`, `differs` or `not yet`, and always carries the numbers measured
and a sentence of evidence. This module computes no measure; each study's checks do.
"""

import math
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from sojourn.errors import SojournError

VerdictName = Literal["holds", "differs", "not yet"]
Number = float | int | bool | str | None
Measured = Mapping[str, Number]


class UnknownStudyError(SojournError):
    """A study was asked for that the ledger does not know."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One checkable statement of a paper."""

    id: str
    says: str
    check: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What our measurement says about one claim."""

    id: str
    verdict: VerdictName
    measured: dict[str, Number]
    """The numbers the verdict rests on, by name."""
    check: str
    evidence: str
    """One or more sentences with the key numbers and, where the verdict is `differs`, the reason."""


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


def judge(claim: Claim, *, holds: bool | None, measured: Measured, evidence: str) -> Verdict:
    """A verdict on a claim; `holds` is None when the measurement cannot decide yet."""
    verdict: VerdictName = "not yet" if holds is None else "holds" if holds else "differs"
    numbers = {name: _plain(value) for name, value in measured.items()}
    return Verdict(id=claim.id, verdict=verdict, measured=numbers, check=claim.check, evidence=evidence)


def write_verdicts(verdicts: Iterable[Verdict], path: Path) -> None:
    """Write verdicts as a JSON list that a person can read."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(list(verdicts)), indent=2) + b"\n")


def _plain(value: Number) -> Number:
    """Four significant digits: more would pretend a precision that five seeds do not have.

    What is no number is said in words, since JSON has none for it and a reader should not meet "nan".
    """
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return "no figure"
    return float(f"{value:.4g}") if math.isfinite(value) else "infinite"
