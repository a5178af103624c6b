"""The trace of a live broker: the same tables that simulated runs write, so that one audit reads both.

    tracer = Tracer.open(config.trace, broker, now)
    tracer.published(message, now); tracer.delivered(client, message, now); …
    tracer.seal(now)             # now and then
    tracer.close(now, ends_run=…)
    await tracer.closed()

The disk is a thread's business (`scribe.py`): nothing here waits for it but `open`, before the broker serves,
and `settled`.

All brokers of a run write into one folder, each its own segments. What a time is counted from is agreed by
whoever comes first: it leaves `RUN.json` there. A delivery is noted when the client has acknowledged it, at
QoS 0 when it was handed to the connection. With a `sample` below 1 only that share of the events is traced,
the same ones at every broker.

A store that was lost is a drop of reason `store_lost` without a client, whose source is the broker and whose
sequence is how many events waited there: nobody knows any more which they were. One of which only the end was
lost is a drop of reason `forgotten`, likewise, once for each neighbour that had sent it what it forgot.

How busy a broker was is a row of `broker_load` for each time between two seals: all of them add up.

An interest is written when it is asked for, again when every broker in reach knows of it, which is when the
client is told (SUBACK), and with its end when it has one: the later moments count. What is published between
the first two may be delivered and need not.

A broker that is killed takes with it what it noted since the last `seal`. The next one of its name says so
(`trace/lives.py`), so that an audit counts apart what it cannot know.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import zlib
from collections import deque
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.errors import SojournError
from sojourn.live.seldom import Seldom
from sojourn.mqtt.content import event_of
from sojourn.mqtt.message import Message

if TYPE_CHECKING:
    from sojourn.live.config import TraceConfig
    from sojourn.live.scribe import Scribe

_log = logging.getLogger("sojourn.trace")
_seldom = Seldom(_log)


class TraceError(SojournError):
    """A broker cannot write its trace as the configuration says."""


def agree_on_start(about: Path, now: float) -> float:
    """Return when a run began: now, unless another broker has said so before.

    The file appears whole or not at all, under its name only when all of it is written: who came a moment
    later would else read an empty one.
    """
    about.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = about.with_name(f".{about.name}.{os.getpid()}.{secrets.token_hex(4)}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps({"started_s": now}))
    try:
        os.link(draft, about)  # unlike a renaming, this fails if another broker was faster
    except FileExistsError:
        pass
    except OSError as error:
        raise TraceError(f"The folder {about.parent} takes no trace ({error.strerror}).") from None
    finally:
        draft.unlink()
    try:
        return float(json.loads(about.read_text())["started_s"])
    except (ValueError, KeyError, TypeError):
        raise TraceError(
            f"{about} does not say when the run began; remove it, or give the run another name."
        ) from None


class Tracer:
    """What one broker adds to the trace of a run."""

    def __init__(self, scribe: Scribe, broker: str, started_s: float, sample: float) -> None:
        self._scribe = scribe
        self._broker = broker
        self._started_s = started_s
        self._below = round(sample * 0x1_0000_0000)
        self._came: dict[str, float] = {}
        self._asked: dict[str, list[tuple[str, float]]] = {}
        """By client, the interests that it asked for and nobody has been asked to confirm, and when."""
        self._awaited: dict[int, deque[tuple[str, list[tuple[str, float]]]]] = {}
        """By connection, what its answers that are on their way will say is in force."""
        self._last_s = 0.0

    @classmethod
    def open(cls, wanted: TraceConfig, broker: str, now: float) -> Tracer:
        """Join a run, or begin it."""
        started_s = agree_on_start(_about(wanted), now)
        scribe = _begun(wanted, broker, now - started_s)
        scribe.open()
        return cls(scribe, broker, started_s, wanted.sample)

    @classmethod
    async def opened(cls, wanted: TraceConfig, broker: str, now: float) -> Tracer:
        """Do the same while others of this loop go on."""
        started_s = await asyncio.to_thread(agree_on_start, _about(wanted), now)
        scribe = _begun(wanted, broker, now - started_s)
        await scribe.opened()
        return cls(scribe, broker, started_s, wanted.sample)

    def _add(self, table: str, *values: object) -> None:
        self._scribe.add(table, *values)

    def _at(self, now: float) -> float:
        return now - self._started_s

    def traces(self, message: Message) -> bool:
        """Whether an event is one of those that are traced."""
        return zlib.crc32(f"{message.source}/{message.sequence}".encode()) < self._below

    def published(self, message: Message, now: float) -> None:
        """A local client published an event."""
        if self.traces(message):
            attributes: dict[str, Any] = dict(event_of(message).flat)
            attributes.pop("topic", None)
            self._add(
                "publications",
                message.source,
                message.sequence,
                self._at(now),
                self._broker,
                message.topic,
                json.dumps(attributes),
                None if message.policy is None else str(message.policy),
                len(message.frame),
            )

    def delivered(self, client: str, message: Message, now: float) -> None:
        """A client has an event."""
        if self.traces(message):
            # A loop turn has one time; what was acknowledged in it keeps its order by microseconds.
            self._last_s = max(self._last_s + 1e-6, self._at(now))
            self._add("deliveries", client, message.source, message.sequence, self._last_s, self._broker)

    def dropped(self, client: str, message: Message, reason: str, now: float) -> None:
        """A client will not get an event from this broker."""
        if self.traces(message):
            reason = reason.replace(" ", "_")
            self._add("drops", client, message.source, message.sequence, self._at(now), self._broker, reason)

    def lost(self, broker: str, events: int, reason: str, now: float) -> None:
        """A broker has lost its store or the end of it, and with it events that nobody can name any more."""
        self._add("drops", "", broker, events, self._at(now), self._broker, reason)

    def came(self, client: str, attributes: dict[str, Any], now: float) -> None:
        """A client connected."""
        self._came[client] = self._at(now)
        self._add("clients", client, json.dumps(attributes))

    def went(self, client: str, now: float) -> None:
        """Its connection is gone."""
        self._asked.pop(client, None)
        came = self._came.pop(client, None)
        if came is not None:
            self._add("sojourns", client, self._broker, came, self._at(now))

    def moved(
        self, client: str, origin: str, left_s: float | None, arrived_s: float, ready_s: float, how: str
    ) -> None:
        """A client that was at another broker has all its events here."""
        left, arrived = None if left_s is None else self._at(left_s), self._at(arrived_s)
        cause = f"{client}@{arrived:.6f}"
        self._add("handoffs", client, origin, self._broker, left, arrived, self._at(ready_s), cause, how)

    def wants(self, client: str, interest: str, since: float, until: float | None) -> None:
        """An interest was asked for, or has ended."""
        end = None if until is None else self._at(until)
        asked = self._at(since)
        self._add("interests", client, interest, interest, asked, end, asked)
        if until is None:
            self._asked.setdefault(client, []).append((interest, asked))

    def awaits(self, client: str, connection: int) -> None:
        """A client is to be told that all it asked for is in force, when brokers know."""
        waiting = self._awaited.setdefault(connection, deque())
        waiting.append((client, self._asked.pop(client, [])))

    def in_force(self, connection: int, now: float) -> None:
        """A client was told so, of what it waited for longest."""
        waiting = self._awaited.get(connection)
        if waiting is None:
            return
        client, interests = waiting.popleft()
        if not waiting:
            del self._awaited[connection]
        for interest, asked in interests:
            self._add("interests", client, interest, interest, self._at(now), None, asked)

    def load(self, handled: int, busy_s: float, waiting_max: int, waiting_mean: float) -> None:
        """How busy the broker was for a time: what it was told, for how long that took, and who waited."""
        self._add("broker_load", self._broker, handled, busy_s, waiting_max, waiting_mean)

    def seal(self, now: float) -> None:
        """Have what was noted so far made readable, with the word that nothing before now is missing."""
        self._scribe.seal(self._at(now))

    def settled(self) -> None:
        """Wait until that is done, or cannot be."""
        self._scribe.settled()

    def close(self, now: float, *, ends_run: bool) -> None:
        """Note what is still open, and have all of it written; the last to leave ends the run."""
        last: list[tuple[str, tuple[object, ...]]] = [
            ("sojourns", (client, self._broker, came, None)) for client, came in self._came.items()
        ]
        self._came.clear()
        if ends_run:
            started = datetime.fromtimestamp(self._started_s, UTC)
            last.append(("runs", ("live", None, None, "{}", started, self._at(now), 0.0, None)))
        self._scribe.close(self._at(now), last)

    async def closed(self) -> None:
        """Let others go on until that is written, or cannot be."""
        await self._scribe.closed()


def _about(wanted: TraceConfig) -> Path:
    """Where a run says when it began."""
    return Path(wanted.folder) / f"{wanted.run}.json"


def _begun(wanted: TraceConfig, broker: str, began_s: float) -> Scribe:
    from sojourn.live.scribe import ROWS_MAX, Scribe  # noqa: PLC0415 - pyarrow is large, and few brokers trace
    from sojourn.trace import SegmentWriter  # noqa: PLC0415 - pyarrow is large, and few brokers trace

    folder, run = wanted.folder, wanted.run

    def writer() -> SegmentWriter:
        try:
            return SegmentWriter(folder, run, name=broker, rows_max=ROWS_MAX, mode=0o600, began_s=began_s)
        except OSError as error:
            why = error.strerror or error
            raise TraceError(f"The folder {folder} takes no trace ({why}).") from None

    place = str(Path(folder, run, broker).absolute())
    return Scribe(place, writer, partial(_tell_trouble, broker))


def _tell_trouble(broker: str, error: BaseException) -> None:
    """Say that the trace cannot be written; the broker goes on serving."""
    from sojourn.live.scribe import ROWS_MAX  # noqa: PLC0415 - as above

    if not isinstance(error, (OSError, SojournError)):
        _seldom.error(("trace", broker), "The trace of %s met with a mistake", broker, error=error)
        return
    text = (
        "The trace of %s cannot be written: %s. What is noted waits, of each table up to %d rows; what "
        "is let go beyond that is said to be missing"
    )
    why = (error.strerror if isinstance(error, OSError) else None) or error
    _seldom.warning(("trace", broker), text, broker, why, ROWS_MAX)
