"""What a broker tells those who only watch: the trace, the page, the log of what it refused."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from sojourn.broker.effects import Note
from sojourn.live.audit import AuditLog
from sojourn.live.config import BrokerConfig, Config
from sojourn.live.seldom import Seldom
from sojourn.mqtt.core import Core

if TYPE_CHECKING:
    from sojourn.broker.witnesses import Watcher
    from sojourn.live.brokers.recording import Recording

_log = logging.getLogger("sojourn.node")


class Witnessed:
    """The part of a broker at work that tells others what happens."""

    config: Config
    place: BrokerConfig
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        self.watcher: Watcher | None = None
        """Who is told what happens between brokers."""
        self.link_changes: dict[tuple[str, bool], float] = {}
        """When the link to a neighbour last came up (True), and when it last went down."""
        self.audit: AuditLog | None = None
        self._recording: Recording | None = None
        self._seldom = Seldom(_log)

    @property
    def core(self) -> Core:
        """The broker's sessions, for whoever reports on them."""
        raise NotImplementedError

    def now(self) -> float:
        """Return the time in seconds since 1970; it never goes back."""
        raise NotImplementedError

    def audit_to(self, folder: str | None) -> None:
        """Write what is refused into a folder from now on; None writes nothing."""
        self.audit = None if folder is None else AuditLog(folder, self.place.name)
        self.core.effects.refusals = None if folder is None else []

    def _note_refusals(self, audit: AuditLog, now: float) -> None:
        refusals = self.core.effects.refusals
        if refusals:
            for one in refusals:
                audit.note(now, one._asdict())
            refusals.clear()

    def _note_stranger(self, peer: str, why: str) -> None:
        if self.audit is not None:
            self.audit.note(self.now(), {"what": "link", "why": "not_proved", "about": why, "peer": peer})

    def witness(self, note: Note) -> None:
        """Tell who watches, and the trace, what they want to know."""
        kind, what = note
        if kind in ("heard", "handed_off", "forgot", "forgot_events", "gave_up"):
            if self.watcher is not None:
                getattr(self.watcher, kind)(*what)
        elif kind == "skipped":
            text = "%s sent a frame that cannot be read; it was skipped, and counted: %s"
            self._seldom.warning(("skipped", what[0]), text, *what)
        elif kind == "link":
            self.link_changes[what[0], what[1]] = what[2]
            self._seldom.info(("link", what[0], what[1]), "link", peer=what[0], up=what[1])
        elif self._recording is not None:
            getattr(self._recording.tracer, kind)(*what)

    def trace_loss(self, broker: str, events: int, reason: str, now: float) -> None:
        """Have the trace say that a broker came back without its store, or without all of it."""
        if self._recording is not None:
            self._recording.tracer.lost(broker, events, reason, now)
