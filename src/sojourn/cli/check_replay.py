"""`sojourn check replay`: what live brokers recorded is told again, and must lead to the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sojourn.broker.records import SegmentReader, read_snapshot
from sojourn.errors import SojournError, typed
from sojourn.live.store import generations
from sojourn.live.store.examining import Examination, examine, taken
from sojourn.live.store.folder import StoreFolder
from sojourn.sim.live_check.replaying import Recorded, Replayed, live_on, replay

EXIT_FAILED = 1


class ReplayError(SojournError):
    """What was recorded cannot be read."""


def replay_stores(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A broker's store, or a folder with the stores of several.")
    ],
) -> None:
    """Tell brokers again what live ones recorded, and look whether it leads to the same.

    A store holds a snapshot and the journal since. All facts are told to the broker that live processes run:
    none may be refused. Where the journal before the snapshot is still there, it must lead to the state that
    the snapshot holds. Rules that hold for every broker are checked; and if all brokers of the network are
    there, they live on in a simulated world, in which all links must come up and all that waits between
    brokers must arrive. Nothing is changed; the brokers must not be running.

    Example: sojourn check replay stores
    """
    results: list[tuple[Recorded, Replayed]] = []
    for folder in _stores(path):
        recorded = _recorded(folder)
        found = replay(recorded)
        if found is None:
            typer.echo(f"{recorded.name}: nothing is recorded yet")
            continue
        results.append((recorded, found))
        _tell(recorded, found)
    is_failed = any(found.problems for _, found in results)
    is_failed |= not _live_on(results)
    if is_failed:
        raise typer.Exit(EXIT_FAILED)


def _stores(path: Path) -> list[Path]:
    if path.is_dir():
        below = sorted(one for one in path.iterdir() if (one / "about").is_file())
        if below and not (path / "about").is_file():
            return below
    return [path]


def _recorded(path: Path) -> Recorded:
    """Read a store that is whole, or say in a sentence what to do with it."""
    folder = taken(path)
    try:
        found = examine(folder)
        bad = next((problem for problem in found.problems if problem.is_fatal), None)
        if bad is not None:
            raise ReplayError(
                f"The store {path} is damaged, {bad.file}: {bad.what.removesuffix('.')}; "
                f"`sojourn store repair {typed(path)}` gives up what cannot be read, and keeps a copy."
            )
        return _read(folder, found)
    finally:
        folder.close()


def _read(folder: StoreFolder, found: Examination) -> Recorded:
    first = found.first_batch
    before = None
    older = generations.whole_before(folder, first)
    if older is not None:
        before = _pair(folder.path, "old-snapshot", "old-journal", older)
    if found.falls_back and before is not None:
        _, entries = _pair(folder.path, "snapshot", "journal", first, has_snapshot=False)
        return Recorded(found.broker, before[0], before[1] + entries)
    snapshot, entries = _pair(folder.path, "snapshot", "journal", first)
    return Recorded(found.broker, snapshot, entries, before)


def _pair(
    path: Path, snapshot: str, journal: str, number: int, *, has_snapshot: bool = True
) -> tuple[bytes | None, list[bytes]]:
    kept = path / f"{snapshot}.{number}"
    state = read_snapshot(kept.read_bytes(), number) if has_snapshot and kept.exists() else None
    batches = SegmentReader((path / f"{journal}.{number}").read_bytes(), number)
    return state, [entry for batch in batches for entry in batch.entries]


def _tell(recorded: Recorded, found: Replayed) -> None:
    kinds = ", ".join(f"{count:,} {name}" for name, count in found.facts.most_common())
    state = (
        f"a snapshot of {len(recorded.snapshot):,} bytes" if recorded.snapshot is not None else "no snapshot"
    )
    sessions = len(found.broker.core.state.sessions)
    typer.echo(f"{recorded.name}: {state}, {len(recorded.entries):,} facts since ({kinds or 'none'})")
    if found.compared is not None and not any("snapshot differ" in one for one in found.problems):
        typer.echo(
            f"{recorded.name}: the {found.compared:,} facts before the snapshot lead to the same state"
        )
    for problem in found.problems:
        typer.echo(f"{recorded.name}: {problem}")
    if not found.problems:
        typer.echo(f"{recorded.name}: {sessions:,} sessions; no fact was refused, and all rules hold")


def _live_on(results: list[tuple[Recorded, Replayed]]) -> bool:
    """Let the brokers live on if all of their network are there; return whether that went well."""
    if not results:
        return True
    wanted, there = set(results[0][1].settings.brokers), {found.settings.name for _, found in results}
    if any(found.settings.links != results[0][1].settings.links for _, found in results):
        typer.echo("The brokers did not agree on their links, so they are not let live on together.")
        return True
    if wanted != there or not results[0][1].settings.links:
        missing = ", ".join(sorted(wanted - there)) or "links"
        typer.echo(f"Not all of the network is there ({missing} missing), so it is not let live on.")
        return True
    problem = live_on([(recorded, found.settings) for recorded, found in results])
    typer.echo(problem if problem is not None else f"All {len(there)} brokers live on: every link is up.")
    return problem is None
