"""What the page asks for beside its stream: lists of clients, filters, topics; one client; the event tester.

A view reads the parameters of a request, asks the brokers (`asking.py`), and puts their answers together as
plain data for JSON. Lists are pages: `next` is what to ask for the rows that follow, None at the end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, cast

import msgspec

from sojourn.broker import questions as ask
from sojourn.errors import SojournError
from sojourn.interest.topics import check_topic
from sojourn.live.page.asking import Said
from sojourn.live.page.observer import Observer
from sojourn.mqtt.content import parse_policy

PAGE_ROWS = 50
TOPIC_ROWS = 100
NEEDLE_MAX = 200
EVENT_BYTES_MAX = 4_096
KEY_PARTS = "\x00"
"""Between the topic filter and the content filter of a key: neither can hold it."""

Parameters = Mapping[str, str]


class QueryError(SojournError):
    """A request asks for something that cannot be had; the text says why."""


class Answers(NamedTuple):
    """What brokers said, and who did not answer."""

    said: list[Said]
    missing: list[str]


class Views:
    """The views of one broker's page."""

    def __init__(self, observer: Observer) -> None:
        assert observer.board is not None, "a page shows the board"
        self._observer = observer
        self._board = observer.board
        self.paths: dict[str, Callable[[Parameters], Awaitable[Any]]] = {
            "/clients": self.clients,
            "/client": self.client,
            "/filters": self.filters,
            "/topics": self.topics,
            "/who": self.who,
            "/history": self.history,
        }

    async def _ask(self, question: ask.Question, broker: str = "") -> Answers:
        """Ask one broker, or all; one that is not heard of is missing from the start."""
        names = list(self._board.histories)
        if broker and broker not in names:
            raise QueryError(f"There is no broker {broker[:64]!r}; there are {', '.join(names)}.")
        heard = {*self._board.fresh(self._observer.node.now()), self._board.name}
        wanted = {broker} if broker else {*names}
        only = [broker] if broker else None
        reachable = wanted & heard
        said, missing = await self._observer.enquirer.ask(question, reachable, only if reachable else None)
        return Answers(said, sorted({*missing} | (wanted - heard)))

    # Lists -----------------------------------------------------------------------------------------------

    async def clients(self, given: Parameters) -> Any:
        """A page of clients in order of their names; `q` is contained in them, `state` is here or away."""
        state = given.get("state", "")
        if state not in ("", "here", "away"):
            raise QueryError(f"state is here, away or empty, not {state[:64]!r}.")
        question = ask.AskClients(
            needle=_needle(given), after=given.get("after", ""), state=state, rows=PAGE_ROWS + 1
        )
        said, missing = await self._ask(question, given.get("broker", ""))
        rows: dict[str, dict[str, Any]] = {}
        count = looked = sessions = 0
        for one in said:
            found = cast("ask.ClientsFound", one.found)
            count, looked, sessions = count + found.count, looked + found.looked, sessions + found.sessions
            for row in found.rows:
                # With durable subscriptions a client has a session at several brokers: it is where it is.
                if row.client not in rows or row.here:
                    kept = self._board.kept(one.broker)
                    rows[row.client] = {"broker": one.broker, "kept": kept, **_plain(row)}
        names = sorted(rows)
        return {
            "rows": [rows[name] for name in names[:PAGE_ROWS]],
            "next": names[PAGE_ROWS - 1] if len(names) > PAGE_ROWS else None,
            "count": count,
            "looked": looked,
            "sessions": sessions,
            "missing": missing,
        }

    async def filters(self, given: Parameters) -> Any:
        """A page of what clients subscribe to, each topic filter and content filter once."""
        after = given.get("after", "").partition(KEY_PARTS)
        question = ask.AskFilters(needle=_needle(given), after=(after[0], after[2]), rows=PAGE_ROWS + 1)
        said, missing = await self._ask(question, given.get("broker", ""))
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        for one in said:
            for row in cast("ask.FiltersFound", one.found).rows:
                known = rows.setdefault(
                    (row.topic, row.filter),
                    {"topic": row.topic, "filter": row.filter, "subscribers": 0, "brokers": []}
                    | {"since_s": row.since_s},
                )
                known["subscribers"] += row.subscribers
                known["brokers"].append(one.broker)
                known["since_s"] = min(known["since_s"], row.since_s)
        keys = sorted(rows)
        return {
            "rows": [rows[key] for key in keys[:PAGE_ROWS]],
            "next": KEY_PARTS.join(keys[PAGE_ROWS - 1]) if len(keys) > PAGE_ROWS else None,
            "missing": missing,
        }

    async def topics(self, given: Parameters) -> Any:
        """The busiest topics."""
        question = ask.AskTopics(needle=_needle(given), rows=TOPIC_ROWS)
        said, missing = await self._ask(question, given.get("broker", ""))
        rows: dict[str, dict[str, Any]] = {}
        beyond = count = 0
        since: list[float] = []
        for one in said:
            found = cast("ask.TopicsFound", one.found)
            beyond, count = beyond + found.beyond, max(count, found.count)
            since += [found.since_s] if found.since_s else []
            for row in found.rows:
                known = rows.setdefault(
                    row.topic,
                    {"topic": row.topic, "events": 0, "last_s": 0.0, "brokers": [], "retained_bytes": None},
                )
                known["events"] += row.events
                known["last_s"] = max(known["last_s"], row.last_s)
                known["brokers"].append(one.broker)
                if row.retained_bytes is not None:
                    known["retained_bytes"] = row.retained_bytes
        busiest = sorted(rows.values(), key=lambda row: (-row["events"], row["topic"]))
        return {
            "rows": busiest[:TOPIC_ROWS],
            "count": max(count, len(rows)),
            "beyond": beyond,
            "since_s": min(since, default=None),
            "at_s": self._observer.node.now(),
            "missing": missing,
        }

    # One client, one event -------------------------------------------------------------------------------

    async def client(self, given: Parameters) -> Any:
        """All that brokers know of one client: its session, its copies, and where it was."""
        name = given.get("id", "")
        if not name:
            raise QueryError("id names the client.")
        said, missing = await self._ask(ask.AskClient(client=name))
        sessions, copies, trail = [], [], []
        for one in said:
            found = cast("ask.ClientFound", one.found)
            if found.session is not None:
                kept = self._board.kept(one.broker)
                sessions.append({"broker": one.broker, "kept": kept, **_plain(found.session)})
            if found.copy:
                copies.append({"broker": one.broker, "state": found.copy, "waiting": found.copy_waiting})
            trail += [{"broker": one.broker, **_plain(move)} for move in one.trail]
        sessions.sort(key=lambda row: not row["here"])
        trail.sort(key=lambda move: move["at_s"])
        return {
            "client": name,
            "sessions": sessions,
            "copies": copies,
            "trail": trail[-ask.TRAIL_MAX :],
            "at_s": self._observer.node.now(),
            "missing": missing,
        }

    async def who(self, given: Parameters) -> Any:
        """Who would get an event with this topic and payload; nothing is published."""
        topic, payload, policy = (given.get(name, "") for name in ("topic", "event", "policy"))
        question = ask.AskWho(topic=_topic(topic), payload=_event(payload), policy=policy, qos=_qos(given))
        if policy:
            parse_policy(policy)
        said, missing = await self._ask(question)
        rows: list[dict[str, Any]] = []
        counts: dict[str, int] = {}
        by_broker: dict[str, int] = {}
        attributes: list[str] = []
        for one in said:
            found = cast("ask.WhoFound", one.found)
            attributes = found.attributes
            by_broker[one.broker] = sum(found.counts.values())
            for how, count in found.counts.items():
                counts[how] = counts.get(how, 0) + count
            rows += [{"broker": one.broker, **_plain(row)} for row in found.rows]
        rows.sort(key=lambda row: (row["client"], row["broker"]))
        return {
            "rows": rows[: ask.ROWS_MAX],
            "counts": counts,
            "by_broker": by_broker,
            "attributes": attributes,
            "missing": missing,
        }

    # Time ------------------------------------------------------------------------------------------------

    async def history(self, given: Parameters) -> Any:
        """The last minutes and the last hour, of one broker or of all."""
        name = given.get("broker", "")
        history = self._board.histories.get(name) if name else self._board.history
        if history is None:
            raise QueryError(f"There is no broker {name[:64]!r}.")
        return {"minutes": history.minutes(), "hour": history.hour()}


def _plain(row: msgspec.Struct) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


def _needle(given: Parameters) -> str:
    needle = given.get("q", "").strip()
    if len(needle) > NEEDLE_MAX:
        raise QueryError(f"q has at most {NEEDLE_MAX} characters.")
    return needle


def _topic(topic: str) -> str:
    check_topic(topic)
    return topic


def _event(payload: str) -> str:
    if len(payload.encode()) > EVENT_BYTES_MAX:
        raise QueryError(f"The event has at most {EVENT_BYTES_MAX} bytes here.")
    if payload.strip():
        try:
            fields = msgspec.json.decode(payload)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise QueryError(f"The event is no JSON: {error}.") from None
        if not isinstance(fields, dict):
            raise QueryError('The event is no JSON object: attributes stand in braces, as in {"kind": 3}.')
    return payload


def _qos(given: Parameters) -> int:
    text = given.get("qos", "1")
    if text not in ("0", "1", "2"):
        raise QueryError(f"qos is 0, 1 or 2, not {text[:64]!r}.")
    return int(text)
