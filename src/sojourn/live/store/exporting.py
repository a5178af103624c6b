"""What a store holds, as lines of JSON that need no broker to be read.

First what the snapshot knows: sessions, their subscriptions, events that wait for them or are stored for
clients that are away, retained events; then the journal's entries, in order. A payload or packet that is no
text is given in base64.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from sojourn.broker.records import RecordError, SegmentReader, Verdict, read_snapshot
from sojourn.broker.state_codec import read_document, rows_of
from sojourn.broker.state_kinds import StateError
from sojourn.live.store.folder import StoreFolder
from sojourn.live.store.journal import JournalError

Line = dict[str, Any]
_SESSION = ("username", "expiry", "expires_s", "stated", "advertisements")
_SUBSCRIPTION = ("qos", "filter_text", "no_local", "retain_as_published", "since_s")


def export(folder: StoreFolder) -> Iterator[Line]:
    """Yield everything in a store, up to the first thing that is damaged."""
    first = folder.first()
    snapshot, segment = folder.snapshot(first), folder.segment(first)
    if snapshot.exists():
        try:
            yield from _state(read_document(read_snapshot(snapshot.read_bytes(), first)))
        except (RecordError, StateError) as error:
            raise _damaged(folder, snapshot.name, str(error)) from None
    if segment.exists():
        reader = SegmentReader(segment.read_bytes(), first)
        for batch in reader:
            for entry in batch.entries:
                yield {"line": "entry", "batch": batch.number, "entry": _entry(entry)}
        if reader.ending.verdict is Verdict.CORRUPT:
            raise _damaged(folder, segment.name, reader.ending.why)


def _damaged(folder: StoreFolder, name: str, why: str) -> JournalError:
    return JournalError(
        f"The store {folder.path} is damaged, {name}: {why.removesuffix('.')}; what came before it was "
        f"written out, and `sojourn store repair {folder.path}` gives up the rest."
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
    names = parts.get("network.names", {}).get("_names", {})
    holdings = parts.get("network.broker.subscribers", {}).get("main", {})
    for client, place in holdings.items():
        for one in (*rows[place][1]["queue"], *rows[place][1]["forwarded"]):
            yield _event(rows, rows[one][1]["message"], client=names.get(client), state="stored")
    for place in parts["core.state.retained"]["messages"]:
        yield _event(rows, place, client=None, state="retained")


def _event(rows: list[tuple[str, Line]], place: int, *, client: str | None, state: str) -> Line:
    message = rows[place][1]
    found = {"line": "event", "state": state, "client": client, "topic": message["topic"]}
    found |= {name: message[name] for name in ("qos", "publisher", "source", "sequence", "arrived_s")}
    return found | {"payload": _plain(message["frame"][message["payload_at"] :])}


def _entry(entry: bytes) -> Any:
    try:
        return _plain(msgspec.msgpack.decode(entry))
    except (msgspec.MsgspecError, RecursionError):
        return _plain(entry)


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
