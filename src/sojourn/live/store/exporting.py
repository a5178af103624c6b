"""What a store holds, as lines of JSON that need no broker to be read.

First what the snapshot knows: sessions, their subscriptions, events that wait for them or are stored for
clients that are away, retained events; then the journal's entries, in order: facts, by name, with their
fields (`broker/facts.py`). Where the last snapshot is bad and the one before it is there, that and both
journals are what a broker comes back from, and what is written out. A payload or packet that is no text is
given in base64. There are no passwords in a store.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from sojourn.broker import facts
from sojourn.broker.records import LATER, RecordError, SegmentReader, Verdict, read_snapshot
from sojourn.broker.snapshot import Snapshot
from sojourn.broker.state_codec import read_document, rows_of
from sojourn.broker.state_kinds import StateError
from sojourn.errors import typed
from sojourn.live.store import generations
from sojourn.live.store.errors import JournalError
from sojourn.live.store.folder import StoreFolder

Line = dict[str, Any]
_SESSION = ("username", "expiry", "expires_s", "stated", "advertisements")
_SUBSCRIPTION = ("qos", "filter_text", "no_local", "retain_as_published", "since_s")


def export(folder: StoreFolder) -> Iterator[Line]:
    """Yield everything in a store, up to the first thing that is damaged."""
    first = folder.first()
    snapshot, segment = folder.snapshot(first), folder.segment(first)
    older = None
    try:
        if snapshot.exists():
            yield from _snapshot(snapshot, first)
        elif first != 1:
            older = generations.before(folder, first)
    except (RecordError, StateError) as error:
        older = None if LATER in str(error) else generations.before(folder, first)
        if older is None:
            raise _damaged(folder, snapshot.name, str(error)) from None
    if older is not None:  # as the next start does
        if older.snapshot is not None:
            yield from _snapshot(older.snapshot, older.number)
        yield from _entries(folder, older.journal, older.number)
    if segment.exists():
        yield from _entries(folder, segment, first)


def _snapshot(path: Path, number: int) -> Iterator[Line]:
    """Yield what a snapshot holds; nothing before all of it was read."""
    found = Snapshot.read(read_snapshot(path.read_bytes(), number))
    lines = list(_state(read_document(found.state)))
    yield {"line": "broker", "now": found.now, "settings": msgspec.to_builtins(found.settings)}
    yield from lines


def _entries(folder: StoreFolder, path: Path, first: int) -> Iterator[Line]:
    reader = SegmentReader(path.read_bytes(), first)
    for batch in reader:
        for entry in batch.entries:
            yield {"line": "entry", "batch": batch.number} | _entry(entry)
    if reader.ending.verdict is Verdict.CORRUPT:
        raise _damaged(folder, path.name, reader.ending.why)


def _damaged(folder: StoreFolder, name: str, why: str) -> JournalError:
    return JournalError(
        f"The store {folder.path} is damaged, {name}: {why.removesuffix('.')}; what came before it was "
        f"written out, and `sojourn store repair {typed(folder.path)}` gives up the rest."
    )


def _state(document: Mapping[str, Any]) -> Iterator[Line]:
    rows = list(rows_of(document))
    parts: Mapping[str, Any] = document["parts"]
    for place in parts["core.state"]["sessions"].values():
        _, session = rows[place]
        client = session["client_id"]
        yield {"line": "session", "client": client} | {name: session[name] for name in _SESSION}
        for one in session["subscriptions"].values():
            fields = rows[one][1]
            condition = rows[fields["filter"]][1]["text"] if fields["filter"] is not None else None
            line = {"line": "subscription", "client": client, "topic": fields["text"], "filter": condition}
            yield line | {name: fields[name] for name in _SUBSCRIPTION}
        for state, deliveries in (("sent", session["inflight"].values()), ("waiting", session["queue"])):
            for one in deliveries:
                if one is not None:
                    yield _event(rows, rows[one][1]["message"], client=client, state=state)
    names = parts.get("network.links.names", {}).get("_names", {})
    shelf = parts.get("network.clients.broker.subscribers._shelf", {"main": {}, "older": {}})
    for client in shelf["main"] | shelf["older"]:
        latest = [shelf["main"][client]] if client in shelf["main"] else []
        for holding in (*shelf["older"].get(client, ()), *latest):
            for one in (*rows[holding][1]["forwarded"], *rows[holding][1]["queue"]):
                yield _event(rows, rows[one][1]["message"], client=names.get(client), state="stored")
    for place in parts["core.state.retained"]["_kept"].values():
        yield _event(rows, place, client=None, state="retained")


def _event(rows: list[tuple[str, Line]], place: int, *, client: str | None, state: str) -> Line:
    message = rows[place][1]
    found = {"line": "event", "state": state, "client": client, "topic": message["topic"]}
    found |= {name: message[name] for name in ("qos", "publisher", "source", "sequence", "arrived_s")}
    return found | {"payload": _plain(message["frame"][message["payload_at"] :])}


def _entry(data: bytes) -> Line:
    """Return a line of a journal by the name of its fact; one that this release does not know as it is."""
    try:
        entry = facts.read_entry(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {"fact": None, "bytes": _plain(data)}
    fields = {name: getattr(entry.fact, name) for name in entry.fact.__struct_fields__}
    plain: Line = _plain(msgspec.to_builtins(fields, builtin_types=(bytes,)))
    return {"fact": type(entry.fact).__name__, "now": entry.now, "sequence": entry.sequence} | plain


def _plain(value: Any) -> Any:
    """Return data as JSON has it; bytes as text, or in base64."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return value
