"""What the parts of the session core share: all sessions, connections, subscriptions, and the counters."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum

from sojourn.mqtt import costs
from sojourn.mqtt.bans import Bans
from sojourn.mqtt.connection import Connection
from sojourn.mqtt.effects import Effects, Refused
from sojourn.mqtt.filter_book import FilterBook
from sojourn.mqtt.input import Input
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.retained import Retained
from sojourn.mqtt.room import AddressUses
from sojourn.mqtt.session import Session, Will
from sojourn.mqtt.topic_counts import TopicCounts
from sojourn.mqtt.topic_tree import TopicTree

REFUSALS_MAX = 1_000
"""Refusals that may wait to be written to an audit log."""
SPARE_MOMENTS = 10_000
"""Reminders of what is over that may wait for their time."""
TIDIED = 8
"""Reminders that are looked at with each new one, once they are many."""

SUBSCRIPTIONS_DUE = 4
"""Subscriptions of a session that is due which count for one more session."""
QUEUED_DUE = 256
"""Events waiting for it that do."""
WILL_DUE = 16
"""What a will may cost that counts for one more session (`costs.py`)."""
UNNOTED_NUMBERS_MAX = 1_000_000
"""How far numbers may go beyond the last that is noted: a second, as they are dates."""


class Due(IntEnum):
    """What a moment in the heap of moments is about."""

    CONNECT = 0
    KEEP_ALIVE = 1
    SESSION = 2
    """A session's end or its will."""
    RIGHTS = 3
    """What a client proved its name by runs out."""
    PACKET = 4
    """A packet that has not come whole."""


Moment = tuple[float, int, Due, int | str]
"""A reminder: when, which, and about what of which connection or session."""


class Counters:
    """What happened since the start, for metrics."""

    __slots__ = ("delivered", "dropped", "received", "refused")

    def __init__(self) -> None:
        self.received = 0
        """Messages published by clients."""
        self.delivered = 0
        """Messages handed to the outputs of connections."""
        self.dropped: Counter[str] = Counter()
        """Messages that a subscriber did not get, by reason."""
        self.refused: Counter[str] = Counter()
        """Connections, subscriptions and publishes refused, by reason."""


class State:
    """Everything the core knows."""

    def __init__(
        self,
        name: str,
        limits: Limits,
        *,
        shared_subscriptions: bool = True,
        session_expiry_max_s: float | None = None,
    ) -> None:
        self.name = name
        self.origin = name
        """What sources of events published here are named after. A broker that has forgotten which numbers it
        gave takes another name, so that what it numbers anew is not taken for what was there before."""
        self.limits = limits
        self.shared_subscriptions = shared_subscriptions
        self._session_expiry_max_s = session_expiry_max_s
        """For how long events for absent clients are stored elsewhere, if they are: no session must claim to
        live for longer."""
        self.effects = Effects()
        self.counters = Counters()
        self.topics = TopicCounts()
        self.sessions: dict[str, Session] = {}
        self.connections: dict[int, Connection] = {}
        self.filters = FilterBook()
        self.tree = TopicTree()
        self.retained = Retained(limits.retained_messages_max, limits.retained_bytes_max)
        self.will_bytes = 0
        """Bytes of the wills of all sessions."""
        self.subscriptions = 0
        """Subscriptions of all sessions."""
        self.levels = 0
        """Of their topic filters."""
        self.bans = Bans()
        self.queued = 0
        """Messages waiting for all clients."""
        self.queued_bytes = 0
        """Bytes waiting for all clients."""
        self.inflight_bytes = 0
        """Bytes of what all clients were sent and have not acknowledged."""
        self.put_out = 0
        """Bytes of retained messages, and of what had waited, that were sent in this turn."""
        self.address_uses = AddressUses()
        """The same by address, with wills, and the subscriptions of those who are connected."""
        self.input = Input()
        """What came and cannot be read yet."""
        self.sequence = 0
        """The number of the last message published here."""
        self.numbered_s = 0.0
        self.refusing: str | None = None
        """Why QoS 1 and 2 publishes are refused at present, a full disk perhaps; None when they are not."""
        self.quenches = False
        """Whether somebody tells publishers what is wanted, if they ask for it."""
        self._moments: list[Moment] = []
        self._aged: list[Moment] = []
        """Reminders that were there when they became many: a heap too, which goes over into the other."""
        self.system_values: tuple[float, dict[str, str]] = (-math.inf, {})
        """What was last told of this broker under `$SYS`, and when."""
        self._moments_made = 0
        self._moments_max = SPARE_MOMENTS

    def number_anew(self, now: float, noted_s: float) -> None:
        """Number from beyond every number that was given in an earlier life, the last fact of which is given.

        Events of QoS 0 are not noted, and clocks may be set back. A number that was given twice, or goes
        back, would make a subscriber take a new event of the same source for one that it had. But numbers are
        dates, by which events grow old: they run ahead of the clock only where they must.
        """
        noted = max(self.sequence, int(noted_s * 1e6))
        self.sequence = max(noted + UNNOTED_NUMBERS_MAX if noted else 0, int(now * 1e6))

    def reconfigure(self, limits: Limits, session_expiry_max_s: float | None) -> None:
        """Take in other limits."""
        self.limits = limits
        self._session_expiry_max_s = session_expiry_max_s
        self.retained.reconfigure(limits.retained_messages_max, limits.retained_bytes_max)

    @property
    def session_expiry_max(self) -> int:
        """The longest interval for which a session is kept, in whole seconds; `NEVER` without a limit."""
        limit, further_s = self.limits.session_expiry_max_s, self._session_expiry_max_s
        if further_s is None or further_s >= limit:
            return limit
        return max(1, int(further_s))  # 0 would mean that no session outlives its connection

    def change_will(self, session: Session, will: Will | None) -> None:
        """Give a session another will, or none."""
        before = session.will_bytes
        session.will = will
        size = session.will_bytes - before
        self.will_bytes += size
        if session.address_use is not None:
            session.address_use.will_bytes += size

    def cost_of_will(self, session: Session | None) -> int:
        """What it costs to publish the will of a session, if it has one (`costs.py`)."""
        if session is None or session.will is None:
            return 0
        message = session.will.message
        way = self.tree.route(message.topic).cost + self.effects.weigh(message.topic)
        if message.policy is None:
            return way
        alternatives = len(message.policy.condition.conjunctions)
        return way + costs.of_policy(message.payload_at, alternatives, way)

    def count_wills(self) -> None:
        """Count the bytes of all wills anew."""
        self.will_bytes = sum(session.will_bytes for session in self.sessions.values())

    def note_refusal(self, what: str, why: str, about: str, connection: Connection) -> None:
        """Note a refusal for the audit log, if there is one."""
        refusals = self.effects.refusals
        if refusals is not None and len(refusals) < REFUSALS_MAX:
            refusals.append(Refused(what, why, about, *connection.said, connection.peer))

    def remind(self, moment_s: float, about: Due, whom: int | str) -> None:
        """Note a moment at which to look at a connection or a session again."""
        self._moments_made += 1
        heapq.heappush(self._moments, (moment_s, self._moments_made, about, whom))
        if self._aged:
            self._tidy()
        elif len(self._moments) > self._moments_max:
            self._aged, self._moments = self._moments, []

    def _tidy(self) -> None:
        """Let go what is of no use among a few reminders, for to look at all of them would take long."""
        for _ in range(TIDIED):
            one = self._aged.pop()  # without its last a heap is one still
            if self._is_current(one[0], one[3]):
                heapq.heappush(self._moments, one)
            if not self._aged:
                self._moments_max = 2 * len(self._moments) + SPARE_MOMENTS
                break

    def _is_current(self, moment_s: float, whom: int | str) -> bool:
        """Whether a reminder is still of use: many outlive their session, which ended or went elsewhere."""
        if isinstance(whom, int):
            return whom in self.connections
        session = self.sessions.get(whom)
        return session is not None and session.reminded_s == moment_s

    def next_moment(self) -> float | None:
        """Return the time at which something may be due."""
        first = self._first()
        return first[0][0] if first else None

    def _first(self) -> list[Moment]:
        """Return the heap that has the next reminder."""
        one, other = self._moments, self._aged
        return other if other and (not one or other[0] < one[0]) else one

    def due(self, now: float, most: int) -> list[tuple[Due, int | str]]:
        """Return some of what is due, at most so much, each to be checked: nobody takes back a reminder.

        A session with many subscriptions is much, since it may end, by itself or with its connection; so is
        one for which many events wait, and a will that many get.
        """
        found: list[tuple[Due, int | str]] = []
        while most > 0 and (first := self._first()) and first[0][0] <= now:
            _, _, about, whom = heapq.heappop(first)
            found.append((about, whom))
            session = self.sessions.get(whom) if isinstance(whom, str) else self._leaving(about, whom, now)
            most -= 1 + self.cost_of_will(session) // WILL_DUE
            if session is not None:
                most -= len(session.queue) // QUEUED_DUE
                if isinstance(whom, str) or not session.expiry:
                    most -= len(session.subscriptions) // SUBSCRIPTIONS_DUE
        return found

    def _leaving(self, about: Due, number: int, now: float) -> Session | None:
        """Return the session of a connection, if that is closed now: most have spoken meanwhile."""
        connection = self.connections.get(number)
        if connection is None or connection.session is None:
            return None
        until_s = math.inf
        if about is Due.KEEP_ALIVE:
            until_s = connection.seen_s + 1.5 * connection.keep_alive_s
        elif about is Due.RIGHTS and connection.until_s is not None:
            until_s = connection.until_s
        elif about is Due.PACKET:
            until_s = self.input.since.get(number, math.inf) + self.limits.packet_timeout_s
        return connection.session if until_s <= now else None

    def due_again(self, now: float, sessions: Sequence[str]) -> list[tuple[Due, int | str]]:
        """Return just these sessions as due: others had their turn later, and connections are named."""
        chosen = frozenset(sessions)
        later = []
        while (first := self._first()) and first[0][0] <= now:
            one = heapq.heappop(first)
            moment_s, _, about, whom = one
            if about is Due.SESSION and whom not in chosen and self._is_current(moment_s, whom):
                later.append(one)
        for one in later:
            heapq.heappush(self._moments, one)
        return [(Due.SESSION, whom) for whom in sessions]
