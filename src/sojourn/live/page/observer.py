"""Looks at a broker once a second: makes its report, tells the other brokers, and keeps what they tell.

The observer stands beside the broker: it changes nothing, keeps nothing that outlives the process, and a
broker without one works the same. What the page shows of the whole network is in `board.py`, which only a
broker with a page has; the others merely pass reports on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from sojourn.broker.facts import StatusMade, SystemDue
from sojourn.broker.roamers import Handoff
from sojourn.live.brokers.node import Node
from sojourn.live.page.asking import Enquirer, is_talk
from sojourn.live.page.board import Board
from sojourn.live.page.status import (
    HANDOFFS_MAX,
    NAME_MAX,
    Move,
    Report,
    Tally,
    clients_connected,
    file_bytes,
    held,
    link_states,
    lost_by_reason,
    read_report,
    refused_by_reason,
    repeated,
    some_of,
    store_state,
    stored,
    unconfirmed,
)

EVERY_S = 1.0
SYSTEM_EVERY = 10
"""After how many reports clients are told the `$SYS` topics anew."""
TRAILS_KEPT = 10_000
"""Hand-offs to this broker that are remembered, for whoever follows one client."""
TRAIL_S = 3_600.0
TOLD_FOR_S = 5.0
"""How long a hand-off is in the reports: one that is lost on the way is not missed by the page."""
INCOMPLETE = "hand-off incomplete"

_log = logging.getLogger("sojourn.observer")


class Observer:
    """One broker's reports, and those it hears."""

    def __init__(self, node: Node, *, keeps_board: bool, listen: str = "") -> None:
        self.node = node
        self.listen = listen or node.place.listen
        self.board = Board(node.config, node.place.name) if keeps_board else None
        self.tally = Tally()
        self.by_origin: dict[tuple[str, str, bool], int] = {}
        """Hand-offs by origin, by how they went, and whether nothing was missing."""
        self.incomplete = 0
        self.lost_with: Counter[str] = Counter()
        """What was lost with the stores of neighbours, by reason."""
        names = [broker.name for broker in node.config.brokers]
        self._reports: dict[str, Report | None] = dict.fromkeys(names)
        """By broker: what it last told."""
        self._lost_memories: deque[str] = deque(maxlen=len(names))
        """The last of those that are known to be lost."""
        self.started_s = node.now()
        self.listeners: list[Callable[[Report], None]] = []
        """Who is told of every report."""
        self._moves: deque[Move] = deque(maxlen=HANDOFFS_MAX)
        self._trails: deque[Move] = deque(maxlen=TRAILS_KEPT)
        """Hand-offs to this broker with clients' whole names, the oldest first."""
        self.enquirer = Enquirer(node, self.trail)
        self._looks = 0
        self._before = (self.started_s, *self._counts())
        self._timer: asyncio.TimerHandle | None = None
        self._encode = msgspec.msgpack.Encoder().encode
        node.watcher = self
        self.last = self._report()

    def start(self) -> None:
        """Look every second from now on."""
        self._timer = self.node.loop.call_later(EVERY_S, self._tick)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        self.enquirer.stop()
        self.node.watcher = None

    def _tick(self) -> None:
        self.start()
        self.look()

    def look(self) -> None:
        """Make a report and tell it."""
        node = self.node
        node.core.state.topics.make_room()
        report = self.last = self._report()
        if node.links is not None:
            node.tell(StatusMade(self._encode(report)))
        if self.board is not None:
            self.board.take(node.place.name, report, report.at_s)
            self.board.tick(report.at_s)
        self._looks += 1
        if self._looks % SYSTEM_EVERY == 0:
            node.tell(SystemDue())
        for listener in self.listeners:
            listener(report)

    # What the network tells ------------------------------------------------------------------------------

    def heard(self, broker: str, report: bytes, now: float) -> None:
        """Another broker told how it is doing, or asks or answers a question."""
        if is_talk(report):
            self.enquirer.heard(broker, report)
            return
        told = read_report(broker, report)
        if told is None:
            return
        before = self._reports.get(broker)
        if before is not None and before.memory != told.memory:
            self.forgot(broker, now)  # of which a neighbour that has forgotten all itself knows nothing
        if broker in self._reports:
            self._reports[broker] = told
        if self.board is not None:
            self.board.take(broker, told, now)

    def forgot(self, neighbour: str, now: float) -> None:
        """A broker has come back without its store: what it last told of is lost, as far as it was there.

        That is what waited there a second or less before its end. All who knew of it log it, once; of its
        neighbours one counts it.
        """
        before = self._reports[neighbour]
        if before is not None:
            if before.memory in self._lost_memories:
                return
            self._lost_memories.append(before.memory)
        sessions, events = (before.sessions, before.held) if before is not None else (0, 0)
        memory = before.memory if before is not None else ""
        _log.warning(
            "%s has lost its store, and with it what only that had: %d sessions and up to %d events",
            neighbour,
            sessions,
            events,
            extra={"lost_store": neighbour, "sessions": sessions, "events": events, "memory": memory},
        )
        if self._counts_for(neighbour):
            self.node.trace_lost_store(neighbour, events, now)
            self.lost_with[f"session lost with the store of {neighbour}"] += sessions
            self.lost_with[f"event lost with the store of {neighbour}"] += events

    def _counts_for(self, neighbour: str) -> bool:
        """Whether this is the first of all brokers that are linked with a neighbour."""
        assert self.node.network is not None, "somebody has a neighbour"
        links = self.node.network.links
        return links.number == min(links.overlay.neighbours[links.numbers[neighbour]])

    def trail(self, client: str) -> list[Move]:
        """The hand-offs of a client to this broker in the last hour, as far as they are remembered."""
        since_s = self.node.now() - TRAIL_S
        return [move for move in self._trails if move.client == client and move.at_s > since_s]

    def handed_off(self, handoff: Handoff) -> None:
        """A client that was at another broker has all its events here."""
        took_s = max(0.0, handoff.ready_s - handoff.arrived_s)
        self.tally.add(took_s)
        key = (handoff.origin, handoff.how, handoff.complete)
        self.by_origin[key] = self.by_origin.get(key, 0) + 1
        self.incomplete += not handoff.complete
        whole = Move(handoff.client, handoff.origin, handoff.ready_s, took_s, handoff.how, handoff.complete)
        self._trails.append(whole)
        self._moves.append(replace(whole, client=handoff.client[:NAME_MAX]))
        _log.debug(
            "hand-off",
            extra={
                "client": handoff.client,
                "origin": handoff.origin,
                "took_s": round(took_s, 6),
                "how": handoff.how,
                "complete": handoff.complete,
            },
        )

    def lost(self) -> dict[str, int]:
        """What subscribers did not get, by reason, as far as it is known.

        A hand-off that was incomplete counts as one event, although more may have been lost with it.
        """
        found = lost_by_reason(self.node)
        found |= {reason: count for reason, count in self.lost_with.items() if count}
        return found | {INCOMPLETE: self.incomplete} if self.incomplete else found

    # The report ------------------------------------------------------------------------------------------

    def _counts(self) -> tuple[int, int, int]:
        counters = self.node.core.state.counters
        return counters.received, counters.delivered, self.tally.count

    def _report(self) -> Report:
        node, now = self.node, self.node.now()
        state = node.core.state
        before_s, *before = self._before
        counts = self._counts()
        self._before = (now, *counts)
        span_s = max(1e-3, now - before_s)
        rates = [
            round(max(0, count - earlier) / span_s, 2) for count, earlier in zip(counts, before, strict=True)
        ]
        names = clients_connected(node)
        return Report(
            listen=self.listen,
            at_s=now,
            started_s=self.started_s,
            clients=len(names),
            sessions=len(state.sessions),
            published=counts[0],
            delivered=counts[1],
            published_rate=rates[0],
            delivered_rate=rates[1],
            handoff_rate=rates[2],
            dropped=self.lost(),
            refused=refused_by_reason(node),
            queue_bytes=state.queued_bytes + stored(node)[0],
            handoffs=self.tally.count,
            handoff_sum_s=self.tally.sum_s,
            handoff_buckets=list(self.tally.buckets),
            handoffs_incomplete=self.incomplete,
            links=link_states(node),
            repeated=repeated(node),
            unconfirmed=unconfirmed(node),
            store=store_state(node),
            store_bytes=file_bytes(node.place.store),
            refusing=state.refusing,
            memory=state.origin,
            held=held(node),
            longest_turn_s=round(node.turns.longest_s, 6),
            moves=[move for move in self._moves if move.at_s > now - TOLD_FOR_S],
            present=some_of(node, names),
        )
