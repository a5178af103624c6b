"""Looks at a broker once a second: makes its report, tells the other brokers, and keeps what they tell.

The observer stands beside the broker: it changes nothing, and a broker without one works the same. All that
it keeps longer than the process is what it knows of lost stores (`ledger.py`). What the page shows of the
whole network is in `board.py`, which only a broker with a page has; the others merely pass reports on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from sojourn.broker.facts import StatusMade, SystemDue
from sojourn.broker.roamers import Handoff
from sojourn.live.brokers.certificate_watch import CertificateWatch
from sojourn.live.brokers.node import Node
from sojourn.live.config import Config
from sojourn.live.mishaps import Mishaps
from sojourn.live.page import risks
from sojourn.live.page.asking import Enquirer, is_talk
from sojourn.live.page.board import Board
from sojourn.live.page.ledger import Known, Ledger, LedgerFile, Loss, in_words
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
from sojourn.live.seldom import Seldom

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

    def __init__(
        self, node: Node, *, keeps_board: bool, listen: str = "", mishaps: Mishaps | None = None
    ) -> None:
        self.node = node
        self.mishaps = mishaps if mishaps is not None else Mishaps()
        self.listen = listen or node.place.listen
        self.board = Board(node.config, node.place.name) if keeps_board else None
        self.certificate: CertificateWatch | None = None
        """What is known of the certificate that the broker shows."""
        self.tally = Tally()
        self.by_origin: dict[tuple[str, str, bool], int] = {}
        """Hand-offs by origin, by how they went, and whether nothing was missing."""
        self.incomplete = 0
        self.lost_with: Counter[str] = Counter()
        """What was lost with the stores of brokers, by reason."""
        self.forgotten: Counter[str] = Counter()
        """By neighbour: the events that it forgot with the end of its store."""
        self.started_s = node.now()
        self._names = frozenset(broker.name for broker in node.config.brokers)
        self._file = LedgerFile(node.place.store)
        self.ledger = Ledger(
            self._rank, self.started_s, self._file.read(self._names, node.config.network.left)
        )
        self.lost_stores = Counter(broker for broker, _ in self.ledger.losses)
        """By broker: how often this one noticed that its store was lost."""
        for loss in self.ledger.removed:
            self._log_loss(loss)
        self.listeners: list[Callable[[Report], None]] = []
        """Who is told of every report."""
        self._moves: deque[Move] = deque(maxlen=HANDOFFS_MAX)
        self._trails: deque[Move] = deque(maxlen=TRAILS_KEPT)
        """Hand-offs to this broker with clients' whole names, the oldest first."""
        self._seldom = Seldom(_log)
        self.enquirer = Enquirer(node, self.trail)
        self._looks = 0
        self._before = (self.started_s, *self._counts())
        self._timer: asyncio.TimerHandle | None = None
        self._encode = msgspec.msgpack.Encoder().encode
        node.witnesses.watcher = self
        node.witnesses.tell_last = partial(self.look, is_last=True)
        node.regrouping.listeners.append(self.regrouped)
        self.last = self._report()
        self._know(node.place.name, self.last, self.started_s)

    def start(self) -> None:
        """Look every second from now on."""
        self._timer = self.node.loop.call_later(EVERY_S, self._tick)

    def stop(self) -> None:
        """Look once more and no more: others are told the last figures, while links still stand."""
        if self._timer is not None:
            self._timer.cancel()
        if self.node.failure is None:
            self.look(is_last=True)
        self.enquirer.stop()
        self.node.witnesses.watcher = None
        self._file.write(self.ledger.written())

    def _tick(self) -> None:
        self.start()
        self.look()

    def look(self, *, is_last: bool = False) -> None:
        """Make a report and tell it."""
        node = self.node
        node.core.state.topics.make_room()
        now = node.now()
        for loss in self.ledger.due(node.place.name, now):
            self._count(loss, now)
        report = self.last = replace(self._report(), is_last=is_last)
        self._know(node.place.name, report, report.at_s)
        if not is_last:
            self._file.write(self.ledger.written(), partial(node.loop.run_in_executor, None))
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
        if broker in self._names:
            self._know(broker, told, now)
            self.ledger.told(broker, told.losses, now)
        if self.board is not None:
            self.board.take(broker, told, now)

    def regrouped(self, config: Config) -> None:
        """Brokers have joined the network, or left it."""
        self._names = frozenset(broker.name for broker in config.brokers)
        if self.board is not None:
            self.board.regrouped(config)

    def _know(self, broker: str, told: Report, now: float) -> None:
        """Keep what a broker tells of itself; say so if its store is another one than before."""
        if told.memory:
            known = Known(told.memory, told.sessions, told.held, told.at_s, told.is_last)
            self._say(self.ledger.take(broker, known, now, self._went_s(broker)))

    def forgot(self, neighbour: str, now: float) -> None:
        """A neighbour has come back without its store: what it last told of is lost, as far as it was there.

        If it was killed, that is what waited there a second or so before its end.
        """
        assert self.node.network is not None, "somebody has a neighbour"
        memory = self.node.network.reconciling.memories[neighbour]
        self._say(self.ledger.forgot(neighbour, memory, now, self._went_s(neighbour)))

    def _went_s(self, broker: str) -> float:
        """When the link to a broker last went down; 0 where there is none, or it never did."""
        return self.node.witnesses.link_changes.get((broker, False), 0.0)

    def _say(self, loss: Loss | None) -> None:
        """Log a loss: everybody who knew the broker does, once."""
        if loss is not None:
            self.lost_stores[loss.broker] += 1
            self._log_loss(loss)

    def _log_loss(self, loss: Loss) -> None:
        _log.warning(
            "%s",
            in_words(loss),
            extra={
                "lost_store": loss.broker,
                "sessions": loss.sessions,
                "events": loss.events,
                "as_of_s": loss.as_of_s,
                "memory": loss.memory,
            },
        )

    def _count(self, loss: Loss, now: float) -> None:
        """Count a loss, as the only one of all who noticed it."""
        self.node.witnesses.trace_loss(loss.broker, loss.events or 0, "store_lost", now)
        if loss.is_removed:
            self.lost_with[f"session left in the store of {loss.broker}, which was removed"] += (
                loss.sessions or 0
            )
            self.lost_with[f"event left in the store of {loss.broker}, which was removed"] += loss.events or 0
            return
        if loss.events is None:
            self.lost_with[f"unknown number lost with the store of {loss.broker}"] += 1
            return
        self.lost_with[f"session lost with the store of {loss.broker}"] += loss.sessions or 0
        self.lost_with[f"event lost with the store of {loss.broker}"] += loss.events

    def _rank(self, broker: str, lost: str) -> tuple[bool, int]:
        """Who of several that know the same counts a loss: neighbours first, then the lowest number."""
        if self.node.network is None:
            return False, 0
        links = self.node.network.links
        number = links.numbers.get(broker, len(links.numbers))
        lost_number = links.numbers.get(lost)
        beside = () if lost_number is None else links.overlay.neighbours[lost_number]
        return number not in beside, number

    def forgot_events(self, neighbour: str, events: int, now: float) -> None:
        """A neighbour has its store, but not all of it: it has forgotten events that it had or had sent.

        It had passed on most of them, so that is no count of what subscribers did not get.
        """
        _log.warning(
            "%s has forgotten the last that it had made safe: at most %d events that it had been sent or had "
            "sent. Those that waited there are lost; what it had passed on is not. Sessions that began there "
            "since then begin anew, and are not counted",
            neighbour,
            events,
            extra={"forgetful": neighbour, "events": events},
        )
        self.forgotten[neighbour] += events
        self.node.witnesses.trace_loss(neighbour, events, "forgotten", now)

    def gave_up(self, client: str, events: int, _now: float) -> None:
        """A session of a client that was out of reach for too long has ended, and events with it."""
        sentence = "A session of %s was out of reach for so long that it was given up, and with it %d events"
        self._seldom.warning("given up", sentence, client, events, client=client, events=events)

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
        names, kept = clients_connected(node), risks.kept_of(node)
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
            forgotten=self.forgotten.total(),
            store=store_state(node),
            store_bytes=file_bytes(node.place.store),
            refusing=state.refusing,
            memory=state.origin,
            held=held(node),
            losses=list(self.ledger.losses.values()),
            longest_turn_s=round(node.turns.longest_s, 6),
            copies=risks.in_words(node.place.name, kept),
            kept=kept,
            moves=[move for move in self._moves if move.at_s > now - TOLD_FOR_S],
            present=some_of(node, names),
        )
