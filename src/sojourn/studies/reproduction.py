"""What was found about each paper, as one page of Markdown that people can read and cite.

The page is made from what studies wrote: `claims.json` (verdicts with margins, readings and causes) and
`study.json` (how much was run, on what). It adds no number and no judgement of its own: the same files give
the same text. A study that wrote nothing is said to be missing.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from sojourn.studies.claims import (
    Claim,
    Reading,
    Verdict,
    VerdictsError,
    claims_of,
    load_ledger,
    read_verdicts,
)
from sojourn.studies.papers import paper_of
from sojourn.studies.wording import many, verdicts_in_words

INTRODUCTION = """\
# What we found about the papers

Each study of Sojourn measures what one paper claims, on the code that ships, in simulated worlds that repeat
themselves from a seed. A claim *holds* or *differs* by the check that `claims.toml` states; where the number
that decides lies within its 95% interval of the limit, the verdict is marked as a tie. What a paper
leaves open was read in the way that its text supports best, and other readings were run beside it: none was
chosen for its verdict. Where a claim differs, this says what was done to find out why.

This page is written by `scripts/docs/reproduction.py` from the results of `sojourn reproduce all`.
"""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a study was run, and on what."""

    study: str
    scale: str
    seeds: int
    runs: int
    failed: int
    processor_s: float
    """What all runs took together, each in a process of its own, whenever it was carried out."""
    wall_s: float
    """From the start to the end of the last command; less than the whole where it took up an older one."""
    processors: int
    code: str
    """A digest of all code and data of the package."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One study's results."""

    about: About
    verdicts: list[Verdict]


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_found(folder: Path) -> Found:
    """What a study wrote into a directory."""
    path = folder / "study.json"
    try:
        about = msgspec.json.decode(path.read_bytes(), type=About)
    except (OSError, msgspec.MsgspecError) as error:
        raise VerdictsError(f"{path} cannot be read ({error}); run `sojourn reproduce` first.") from None
    return Found(about=about, verdicts=read_verdicts(folder / "claims.json"))


def read_all(results: Path) -> dict[str, Found]:
    """What all studies wrote that have results below a directory, by name."""
    return {
        study: read_found(results / study)
        for study in load_ledger()
        if (results / study / "study.json").is_file()
    }


def page(found: Mapping[str, Found]) -> str:
    """The whole page."""
    parts = [INTRODUCTION, _summary(found)]
    for study in load_ledger():
        parts += [f"## Paper {paper_of(study).number}: {study}\n", f"{paper_of(study).cited}.\n"]
        if study in found:
            parts += _study(study, found[study])
        else:
            parts.append("This study has not been run on the code of the others.\n")
    parts.append(_how(found))
    return "\n".join(parts).rstrip() + "\n"


# ------------------------------------------------------------------------------ parts


def _tally(verdicts: Iterable[Verdict]) -> str:
    every = list(verdicts)
    differing = [verdict.id for verdict in every if verdict.verdict == "differs"]
    holds = sum(verdict.verdict == "holds" for verdict in every)
    tied = sum(verdict.tied and verdict.verdict != "not yet" for verdict in every)
    said = verdicts_in_words(holds, differing, len(every) - holds - len(differing))
    return said + (
        f" Of these, {many(tied, 'verdicts')} {'is a tie' if tied == 1 else 'are ties'}." if tied else ""
    )


def _summary(found: Mapping[str, Found]) -> str:
    if not found:
        return "No study has results yet.\n"
    tally = _tally(verdict for one in found.values() for verdict in one.verdicts)
    return f"{tally}\n\n{_scales(found)}\n"


def _scales(found: Mapping[str, Found]) -> str:
    """At which scale what was run, and what that means for the verdicts."""
    small = [study for study, one in found.items() if one.about.scale != "paper"]
    if not small:
        return "All studies ran at the scale `paper`: the papers' durations and populations."
    who = "All studies" if len(small) == len(found) else ", ".join(small)
    scales = " and ".join(sorted({f"`{found[study].about.scale}`" for study in small}))
    return (
        f"{who} ran at the scale {scales}, with few seeds and shorter runs than the papers': intervals are "
        "wide, and a verdict that is a tie, or near its limit, may be another one at the scale `paper`."
    )


def _study(study: str, found: Found) -> list[str]:
    claims = claims_of(study)
    rows = [(f"`{one.id}`", _named(one), _margin(one), _changing(one)) for one in found.verdicts]
    parts = [
        _tally(found.verdicts) + "\n",
        _table(("claim", "verdict", "margin", "readings that change it"), rows),
    ]
    for verdict in found.verdicts:
        if verdict.verdict == "differs":
            parts += _difference(claims[verdict.id], verdict)
    table = readings_table(found.verdicts)
    if table:
        parts += ["### Readings against claims\n", _table(*table)]
    return parts


def _named(verdict: Verdict) -> str:
    return f"{verdict.verdict}, a tie" if verdict.tied and verdict.verdict != "not yet" else verdict.verdict


def _margin(verdict: Verdict) -> str:
    return verdict.margin.said if verdict.margin is not None else ""


def _changing(verdict: Verdict) -> str:
    return "; ".join(one.name for one in verdict.readings if one.verdict != verdict.verdict) or (
        "none of those run" if verdict.readings else ""
    )


def _difference(claim: Claim, verdict: Verdict) -> list[str]:
    where = f" ({claim.where})" if claim.where else ""
    return [
        f"### {claim.id} differs\n",
        f"*What the paper says*{where}: {claim.says}\n",
        f"*What we measured*: {verdict.evidence}\n",
        f"*Why*: {verdict.cause}\n",
    ]


def readings_table(verdicts: Sequence[Verdict]) -> tuple[tuple[str, ...], list[tuple[str, ...]]] | None:
    """Each reading's verdict on each claim that it touches, under the study's own; None without readings."""
    touched = [verdict for verdict in verdicts if verdict.readings]
    if not touched:
        return None
    names = dict.fromkeys(reading.name for verdict in touched for reading in verdict.readings)
    by_claim: dict[str, dict[str, Reading]] = {
        verdict.id: {reading.name: reading for reading in verdict.readings} for verdict in touched
    }
    rows = [("ours", *(_named(verdict) for verdict in touched))]
    rows += [(name, *(_cell(by_claim[verdict.id].get(name)) for verdict in touched)) for name in names]
    return ("reading", *(verdict.id for verdict in touched)), rows


def _cell(reading: Reading | None) -> str:
    if reading is None:
        return ""
    return f"{reading.verdict}, a tie" if reading.note.endswith("a tie") else reading.verdict


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines) + "\n"


def _how(found: Mapping[str, Found]) -> str:
    if not found:
        return ""
    rows = [
        (
            study,
            one.about.scale,
            str(one.about.seeds),
            f"{one.about.runs:,}",
            str(one.about.failed),
            f"{one.about.processor_s / 3600:.2f} h",
            f"{one.about.wall_s / 3600:.2f} h",
            str(one.about.processors),
            one.about.code,
        )
        for study, one in found.items()
    ]
    columns = ("study", "scale", "seeds", "runs", "failed", "work", "last command", "processors", "code")
    same = len({one.about.code for one in found.values()}) == 1
    note = "All studies ran on the same code." if same else "The studies ran on different states of the code."
    return f"## How it was run\n\n{note}\n\n" + _table(columns, rows)
