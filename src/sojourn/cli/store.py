"""`sojourn store`: look at a broker's store, mend it, or write out what is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from sojourn.errors import typed
from sojourn.live.store.examining import Examination, counts, examine, taken
from sojourn.live.store.examining import repair as mend
from sojourn.live.store.exporting import export as write_out

EXIT_DAMAGED = 1

app = typer.Typer(
    help="Look at a broker's store, mend it, or write out what is in it; the broker must not be running.\n\n"
    "A store is the folder that [bold]store[/bold] names in a broker's configuration. It holds a snapshot of "
    "sessions, subscriptions and stored events, and a journal of all that happened since. Power that fails "
    "leaves a write that was cut short, which the next start cuts off by itself; a disk that forgets or a "
    "file that somebody changed is damage, and the broker then refuses the store until it is repaired.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=False,
)

Store = Annotated[Path, typer.Argument(metavar="PATH", help="The folder of the store.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of sentences.")]


@app.command()
def check(path: Store, *, as_json: AsJson = False) -> None:
    """Read all of a store and tell what is in it and what is wrong; nothing is changed.

    The exit code is 0 if a broker takes the store as it is, and 1 if it is damaged.

    Example: sojourn store check stores/B1
    """
    folder = taken(path)
    try:
        found = examine(folder)
    finally:
        folder.close()
    if as_json:
        typer.echo(json.dumps(counts(found), indent=1))
    else:
        _tell(found)
    if not found.is_usable:
        raise typer.Exit(EXIT_DAMAGED)


def _tell(found: Examination) -> None:
    console = Console(highlight=False)

    def say(name: str, text: str) -> None:
        console.print(f"{name:<9} {text}", markup=False, soft_wrap=True)

    held = f"{found.sessions:,} sessions, {found.subscriptions:,} subscriptions, {found.events:,} events"
    older = ", in the one before the last" if found.falls_back else ""
    say("broker", f"{found.broker or 'unknown'}, made by release {found.release or 'unknown'}")
    say("snapshot", f"{found.snapshot_bytes:,} bytes: {held}{older}" if found.snapshot_bytes else "none")
    say(
        "journal",
        f"{found.journal_bytes:,} bytes: {found.batches:,} batches with {found.entries:,} entries, from "
        f"batch {found.begins_with:,} on",
    )
    if found.leftovers:
        say("leftover", f"{', '.join(found.leftovers)}; they do no harm")
    for problem in found.problems:
        place = f" at byte {problem.at_byte:,}" if problem.at_byte else ""
        say("damaged" if problem.is_fatal else "torn", f"{problem.file}{place}: {problem.what}")
    if found.lost_batches:
        say("lost", f"{found.lost_batches:,} whole batches with {found.lost_entries:,} entries behind that")
    if found.is_usable:
        say("verdict", "a broker takes this store as it is")
    else:
        mend = f"`sojourn store repair {typed(found.path)}`"
        say("verdict", f"a broker refuses this store; {mend} keeps a copy of it")


@app.command()
def repair(
    path: Store,
    *,
    broker: Annotated[
        str | None, typer.Option(help="Whose store it is, where the store itself cannot tell any more.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep a copy of a store beside it, as PATH.broken-1, and give up what is damaged.

    The journal is cut at its first bad batch: the broker comes back as it was before that, and what was
    acknowledged after it is lost. A bad snapshot is dropped only if the journal holds everything from its
    first batch on; if not, nothing is changed.

    Example: sojourn store repair stores/B1
    """
    folder = taken(path)
    try:
        done = mend(folder, broker)
    finally:
        folder.close()
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(done), indent=1))
        return
    console = Console(highlight=False)
    if done.copy is None:
        console.print("There is nothing to repair.")
        return
    console.print(f"copy      {done.copy}", markup=False, soft_wrap=True)
    for one in done.done:
        console.print(f"done      {one}", markup=False, soft_wrap=True)
    console.print(
        f"given up  {done.given_up_bytes:,} bytes, with {done.given_up_entries:,} entries in whole batches",
        soft_wrap=True,
    )


@app.command()
def export(
    path: Store,
    *,
    as_json: Annotated[  # noqa: ARG001 - the only form
        bool, typer.Option("--json", show_default=False, help="Lines of JSON, which is the only form.")
    ] = True,
) -> None:
    """Write sessions, subscriptions, stored and retained events, and the journal's entries as lines of JSON.

    Each line has a field "line" that says what it is: broker, session, subscription, event or entry. An entry
    is a fact, which its field "fact" names. There are no passwords in a store.

    Example: sojourn store export stores/B1 | jq 'select(.line == "session") | .client'
    """
    folder = taken(path)
    try:
        for line in write_out(folder):
            typer.echo(json.dumps(line, ensure_ascii=False))
    finally:
        folder.close()
