"""Those who only watch a broker, and what they are told: the trace, the page, the log of what it refused."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from sojourn.broker.effects import Note
from sojourn.live.audit import AuditLog
from sojourn.live.config import Config
from sojourn.live.seldom import Seldom
from sojourn.mqtt.core import Core

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.broker.settings import Settings
    from sojourn.broker.witnesses import Watcher
    from sojourn.live.brokers.recording import Recording

_log = logging.getLogger("sojourn.node")


class Witnesses:
    """All that watch one broker."""

    def __init__(self, config: Config, name: str, core: Core) -> None:
        self.watcher: Watcher | None = None
        """Who is told what happens between brokers."""
        self.link_changes: dict[tuple[str, bool], float] = {}
        """When the link to a neighbour last came up (True), and when it last went down."""
        self.on_regrouped: Callable[[Settings], None] = lambda _settings: None
        """Is told when brokers have joined or left."""
        self.tell_last: Callable[[], None] = lambda: None
        """Tells other brokers how this one is, for the last time."""
        self.audit: AuditLog | None = None
        self._lost_before = 0
        """Lines that logs before this one could not write."""
        self.recording: Recording | None = None
        """The trace, if there is to be one."""
        self._name, self._core = name, core
        self._seldom = Seldom(_log)
        self.audit_to(config.security.audit)

    def audit_to(self, folder: str | None) -> None:
        """Write what is refused into a folder from now on; None writes nothing."""
        self._lost_before = self.audit_lost
        self.audit = None if folder is None else AuditLog(folder, self._name)
        self._core.effects.refusals = None if folder is None else []
        if why := self.audit_trouble():
            _log.warning("%s serves, but %s", self._name, why)

    def audit_trouble(self) -> str | None:
        """Return why the log of refusals cannot be written; None if it can, or is not wanted."""
        return None if self.audit is None else self.audit.trouble()

    @property
    def audit_lost(self) -> int:
        """How many lines of logs of refusals could not be written."""
        return self._lost_before + (0 if self.audit is None else self.audit.lost)

    def note_refusals(self, now: float) -> None:
        """Write down what the last turn refused, if that is wanted."""
        refusals = self._core.effects.refusals
        if self.audit is not None and refusals:
            for one in refusals:
                self.audit.note(now, one._asdict())
            refusals.clear()

    def note_stranger(self, now: float, peer: str, why: str) -> None:
        """Write down who is no neighbour."""
        if self.audit is not None:
            self.audit.note(now, {"what": "link", "why": "not_proved", "about": why, "peer": peer})

    def shut_out(self, now: float, peer: str, why: str, sentence: str) -> None:
        """Write down and say now and then why a handshake of TLS came to nothing."""
        self._seldom.warning(sentence, "%s refused a client at %s: %s", self._name, peer, sentence)
        if self.audit is not None:
            self.audit.note(now, {"what": "connect", "why": why, "about": sentence, "peer": peer})

    def out_of_files(self, count: int) -> None:
        """Say now and then that there is no file left for a client."""
        self._seldom.warning(
            "files",
            "%s has %d connections, as many as the limit on open files leaves room for: further ones are "
            "closed at once; raise that limit (ulimit -n)",
            self._name,
            count,
        )

    def tell(self, note: Note) -> None:
        """Tell who watches, and the trace, what they want to know."""
        kind, what = note
        if kind in ("heard", "handed_off", "forgot", "forgot_events", "gave_up"):
            if self.watcher is not None:
                getattr(self.watcher, kind)(*what)
        elif kind == "regrouped":
            self.on_regrouped(*what)
        elif kind == "skipped":
            text = "%s sent a frame that cannot be read; it was skipped, and counted: %s"
            self._seldom.warning(("skipped", what[0]), text, *what)
        elif kind == "link":
            self.link_changes[what[0], what[1]] = what[2]
            self._seldom.info(("link", what[0], what[1]), "link", broker=self._name, peer=what[0], up=what[1])
        elif self.recording is not None:
            getattr(self.recording.tracer, kind)(*what)

    def trace_loss(self, broker: str, events: int, reason: str, now: float) -> None:
        """Have the trace say that a broker came back without its store, or without all of it."""
        if self.recording is not None:
            self.recording.tracer.lost(broker, events, reason, now)

    def close(self, *, goes_on: bool) -> None:
        """End the trace of this broker; of the first one it ends that of the run, unless that goes on."""
        if self.recording is not None:
            self.recording.close(may_end_run=not goes_on)

    async def closed(self) -> None:
        """Wait until the trace is written, after `close`."""
        if self.recording is not None:
            await self.recording.tracer.closed()
