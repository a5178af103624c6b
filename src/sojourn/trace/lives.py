"""Lives: whether a writer sealed all that it had noted, and from when to when it did not.

A process that is killed takes the rows with it that it had not sealed. So that nobody takes those for losses,
a writer that is told the time leaves ROOT/_manifests/run_id=RUN/WRITER.life: until when everything of it is
sealed, whether it has closed, and the *gaps* of those before it that did not. A life begins by noting the gap
of the one before it: from its last seal until now, which is longer than rows are missing, as nobody saw the
process end. A writer that is open goes on, or has ended without a word; whoever reads must think of both.

Runs that were written at once, and writers of earlier builds, say nothing and have no gaps. Times are seconds
since the run's start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from typing import NamedTuple

from sojourn.trace.places import Place, below

GAPS_MAX = 200
"""Of one writer; of more, the two that are shortest together become one."""


class Gap(NamedTuple):
    """A time of which rows of a writer may be missing."""

    from_s: float
    """Until when all of them were sealed."""
    to_s: float
    """When the next one began."""
    times: int = 1
    """How many lives ended in it."""


class Life(NamedTuple):
    """What a writer says of itself and of those before it."""

    sealed_s: float
    is_open: bool = True
    gaps: tuple[Gap, ...] = ()


class Missing(NamedTuple):
    """A gap, as those who judge a run need it."""

    broker: str
    from_s: float
    to_s: float
    """Not finite where nobody began anew and the end of the run is not known, or before that."""
    times: int = 1
    may_go_on: bool = False
    """Whether the writer may still be writing: the run goes on."""


Lives = Mapping[str, Life | None]
"""By writer; None for one that cannot be read."""


def life_path(manifest: Path) -> Path:
    """Where a writer says of itself how far it is: beside its manifest."""
    return manifest.with_suffix(".life")


def begun(before: Life | None, now_s: float) -> Life:
    """Begin a life after another one, or the first."""
    if before is None:
        return Life(now_s)
    if not before.is_open:
        return before._replace(sealed_s=now_s, is_open=True)
    gap = Gap(before.sealed_s, max(now_s, before.sealed_s))
    return Life(now_s, is_open=True, gaps=_few([*before.gaps, gap]))


def interrupted(life: Life, now_s: float) -> Life:
    """Go on with a life that had to let rows go since it had sealed all, and has sealed the rest now."""
    gap = Gap(life.sealed_s, max(now_s, life.sealed_s))
    return life._replace(sealed_s=now_s, gaps=_few([*life.gaps, gap]))


def _few(gaps: list[Gap]) -> tuple[Gap, ...]:
    while len(gaps) > GAPS_MAX:
        spans = [later.to_s - gap.from_s for gap, later in pairwise(gaps)]
        at = spans.index(min(spans))
        first, second = gaps[at : at + 2]
        gaps[at : at + 2] = [Gap(first.from_s, second.to_s, first.times + second.times)]
    return tuple(gaps)


def write_life(path: Path, life: Life, mode: int = 0o666) -> None:
    """Replace what a writer said of itself, in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name("." + path.name)
    with open(hidden, "w", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        json.dump(life._asdict(), file)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)


def read_life(path: Place) -> Life | None:
    """Read what a writer said of itself; None where there is nothing that can be read."""
    try:
        told = json.loads(path.read_text())
        gaps = tuple(Gap(float(begin), float(end), int(times)) for begin, end, times in told["gaps"])
        return Life(float(told["sealed_s"]), bool(told["is_open"]), gaps)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def read_lives(root: Place, run_id: str = "*") -> dict[str, dict[str, Life | None]]:
    """By run and writer, what writers of a trace, or of one run, say of themselves."""
    found: dict[str, dict[str, Life | None]] = {}
    for path in below(root / "_manifests", f"run_id={run_id}/*.life"):
        if not path.name.startswith("."):
            found.setdefault(path.parent.name.removeprefix("run_id="), {})[path.stem] = read_life(path)
    return found


def fault_of_lives(run_id: str, lives: Lives) -> str:
    """Name what cannot be read; nothing if all is well."""
    for writer, life in lives.items():
        if life is None:
            return (
                f"_manifests/run_id={run_id}/{writer}.life cannot be read and may tell of rows that are "
                "missing; restore it, or remove it to judge without."
            )
    return ""


def missing_of(lives: Lives, duration_s: float | None) -> tuple[Missing, ...]:
    """Return the gaps of a run; an open writer has one from its last seal on.

    A run goes on that has not ended, or of which an open writer sealed something after the end: the first
    broker tells the end whenever it closes, also to begin anew.
    """
    open_s = [life.sealed_s for life in lives.values() if life is not None and life.is_open]
    goes_on = duration_s is None or max(open_s, default=0.0) > duration_s
    found = []
    for writer, life in sorted(lives.items()):
        if life is not None:
            found += [Missing(writer, *gap) for gap in life.gaps]
            if life.is_open:
                found.append(Missing(writer, life.sealed_s, inf, may_go_on=goes_on))
    return tuple(found)


def said_of(missing: Iterable[Missing], duration_s: float | None) -> list[str]:
    """Say of each broker how often it ended without a word, and of a run that goes on who is still open."""
    by_broker: dict[str, list[Missing]] = {}
    for one in missing:
        if not one.may_go_on:
            by_broker.setdefault(one.broker, []).append(one)
    said = [_sentence(broker, gaps, duration_s) for broker, gaps in by_broker.items()]
    going = [one.broker for one in missing if one.may_go_on]
    if going:
        said.append(
            f"the run goes on, and {', '.join(going)} may have noted what {_they(going)} not written "
            "down yet; what that may be counts as unrecorded."
        )
    return said


def _they(names: Sequence[str]) -> str:
    return "they have" if names[1:] else "it has"


def _sentence(broker: str, gaps: Sequence[Missing], duration_s: float | None) -> str:
    times = sum(gap.times for gap in gaps)
    end_s = max(duration_s or 0.0, *(gap.from_s for gap in gaps))
    longest_s = max((gap.to_s if isfinite(gap.to_s) else end_s) - gap.from_s for gap in gaps)
    often, each = ("once", "") if times == 1 else (f"{times} times", " each time")
    return (
        f"{broker} ended {often} without writing down what it noted last: up to {longest_s:.3g} s of its "
        f"rows are missing{each}; what those may have told counts as unrecorded."
    )
