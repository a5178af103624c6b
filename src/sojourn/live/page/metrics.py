"""A broker's numbers for Prometheus, made when they are asked for.

Names follow Prometheus' own advice: seconds and bytes, `_total` for what only grows. Counters of events live
as long as the broker's store, those of hand-offs as long as the process.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from sojourn import __version__
from sojourn.live.page.observer import Observer
from sojourn.live.page.status import (
    BUCKETS_S,
    Tally,
    clients_connected,
    file_bytes,
    link_states,
    not_copied,
    picks,
    picks_waiting,
    refused_by_reason,
    repeated,
    stored,
    unconfirmed,
)


class BrokerMetrics(Collector):
    """Everything that is known of one broker, as metrics."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing ahead of time: the registry need not collect in order to learn the names."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Look at the broker now."""
        about = InfoMetricFamily("sojourn_build", "The broker and its release.")
        broker = self._observer.node.place.name
        about.add_metric([], {"broker": broker, "version": __version__, "python": platform.python_version()})
        yield about
        yield GaugeMetricFamily("sojourn_serving", "Whether the broker serves clients yet.", 1)
        lost = self._observer.node.witnesses.audit_lost
        yield CounterMetricFamily("sojourn_audit_lost", "Lines of the audit log that were not written.", lost)
        yield from self._clients()
        yield from self._events()
        yield from self._handoffs()
        yield from self._turns()
        yield from self._links()
        yield from self._store()
        yield from self._copies()

    def _clients(self) -> Iterator[Metric]:
        state = self._observer.node.core.state
        clients = len(clients_connected(self._observer.node))
        yield GaugeMetricFamily("sojourn_clients", "Clients connected.", clients)
        yield GaugeMetricFamily(
            "sojourn_connections", "Connections, of clients or not.", len(state.connections)
        )
        yield GaugeMetricFamily("sojourn_sessions", "Sessions kept, connected or not.", len(state.sessions))
        yield GaugeMetricFamily("sojourn_queue_bytes", "Bytes in the queues of sessions.", state.queued_bytes)
        put_out = self._observer.node.writing.bytes
        yield GaugeMetricFamily("sojourn_output_bytes", "Bytes sent to clients and not taken yet.", put_out)
        size, events = stored(self._observer.node)
        yield GaugeMetricFamily("sojourn_stored_bytes", "Bytes stored for clients that move.", size)
        yield GaugeMetricFamily("sojourn_stored_events", "Events stored for clients that move.", events)

    def _events(self) -> Iterator[Metric]:
        node = self._observer.node
        counters = node.core.state.counters
        yield CounterMetricFamily("sojourn_published", "Events that clients published.", counters.received)
        yield CounterMetricFamily(
            "sojourn_delivered", "Events handed to clients' connections.", counters.delivered
        )
        dropped = CounterMetricFamily(
            "sojourn_dropped",
            "Events that a subscriber did not get, each counted at one broker of its network; of a lost "
            "store what its broker last told of (log and page say when), and not what came after that.",
            labels=["reason"],
        )
        for reason, count in self._observer.lost().items():
            dropped.add_metric([reason], count)
        yield dropped
        lost = CounterMetricFamily(
            "sojourn_lost_stores",
            "Stores that this broker noticed to be lost or removed; others may have noticed the same. What "
            "was in them is in sojourn_dropped_total, as their brokers last told of it.",
            labels=["broker"],
        )
        for broker, count in sorted(self._observer.lost_stores.items()):
            lost.add_metric([broker], count)
        yield lost
        mishaps = CounterMetricFamily(
            "sojourn_unexpected_errors",
            "Errors that nobody expected, which are mistakes of the broker's; its log has tracebacks.",
            labels=["kind"],
        )
        for kind, count in sorted(self._observer.mishaps.counts.items()):
            mishaps.add_metric([kind], count)
        yield mishaps
        refused = CounterMetricFamily(
            "sojourn_refused", "Connections, subscriptions and publishes refused.", labels=["reason"]
        )
        for reason, count in refused_by_reason(node).items():
            refused.add_metric([reason], count)
        yield refused
        yield from self._groups()
        yield CounterMetricFamily(
            "sojourn_repeated", "Events that a neighbour sent again and that were let go.", repeated(node)
        )
        yield CounterMetricFamily(
            "sojourn_not_copied",
            "Events that did not fit a copy of a session; the session's own broker counts what is dropped.",
            not_copied(node),
        )
        forgotten = CounterMetricFamily(
            "sojourn_forgotten_events",
            "Events that a neighbour forgot with the end of its store, at most so many of which are lost: "
            "what it had passed on is not. Sessions that it forgot are in no count.",
            labels=["broker"],
        )
        for neighbour, count in self._observer.forgotten.items():
            forgotten.add_metric([neighbour], count)
        yield forgotten
        yield CounterMetricFamily(
            "sojourn_unconfirmed", "SUBACKs given before every broker in reach confirmed.", unconfirmed(node)
        )

    def _groups(self) -> Iterator[Metric]:
        """How it went with events of shared subscriptions."""
        node = self._observer.node
        picked = CounterMetricFamily(
            "sojourn_picks",
            "Members that this broker chose for events of QoS 1 and 2 of shared subscriptions in a network: "
            "made; again, as the one before had ended or declined; dropped, as nobody was left; forgotten, "
            "for want of room, so that they would not be made again.",
            labels=["what"],
        )
        for what, count in picks(node).items():
            picked.add_metric([what], count)
        yield picked
        yield GaugeMetricFamily(
            "sojourn_picks_waiting",
            "Events for which this broker chose a member that has not acknowledged or declined them: it is "
            "away, or slow.",
            picks_waiting(node),
        )

    def _handoffs(self) -> Iterator[Metric]:
        observer = self._observer
        counted = CounterMetricFamily(
            "sojourn_handoffs",
            "Clients that came from another broker and have all their events.",
            labels=["origin", "how", "complete"],
        )
        for (origin, how, complete), count in sorted(observer.by_origin.items()):
            counted.add_metric([origin, how, "true" if complete else "false"], count)
        yield counted
        yield _histogram(
            "sojourn_handoff_seconds",
            "From a client's arrival to the last event that waited elsewhere.",
            observer.tally,
        )

    def _turns(self) -> Iterator[Metric]:
        turns, used = self._observer.node.turns, self._observer.node.turns_cpu
        yield _histogram("sojourn_turn_seconds", "Turns of the loop, in which nobody else is served.", turns)
        yield GaugeMetricFamily(
            "sojourn_turn_longest_seconds", "The longest turn since the start.", turns.longest_s
        )
        yield _histogram(
            "sojourn_turn_processor_seconds",
            "What turns used of the processor, without waiting for it.",
            used,
        )
        yield GaugeMetricFamily(
            "sojourn_turn_longest_processor_seconds", "The most that a turn used of it.", used.longest_s
        )
        logins = self._observer.node.logins_waiting
        yield GaugeMetricFamily("sojourn_waiting_logins", "Passwords that wait to be compared.", logins)
        waiting = self._observer.node.core.state.input
        yield GaugeMetricFamily(
            "sojourn_waiting_clients", "Clients with packets that wait their turn.", len(waiting.ring)
        )
        yield GaugeMetricFamily(
            "sojourn_unfinished_bytes", "Bytes of packets that have not come whole.", waiting.bytes
        )

    def _links(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("sojourn_link_up", "Whether a link is connected.", labels=["peer"])
        queue = GaugeMetricFamily(
            "sojourn_link_queue_bytes", "Bytes that the peer has not acknowledged.", labels=["peer"]
        )
        frames = GaugeMetricFamily(
            "sojourn_link_queue_frames", "Frames that the peer has not acknowledged.", labels=["peer"]
        )
        down = GaugeMetricFamily(
            "sojourn_link_down_seconds", "For how long a link has had no connection.", labels=["peer"]
        )
        resets = CounterMetricFamily(
            "sojourn_link_resets", "How often all was told anew on a link.", labels=["peer"]
        )
        for peer, link in link_states(self._observer.node).items():
            up.add_metric([peer], link.up)
            down.add_metric([peer], link.down_s)
            resets.add_metric([peer], link.resets)
            queue.add_metric([peer], link.queue_bytes)
            frames.add_metric([peer], link.queue_frames)
        yield from (up, down, resets, queue, frames)
        certificate = self._observer.certificate
        yield GaugeMetricFamily(
            "sojourn_certificate_seconds_left",
            "Until the broker's own certificate runs out; nothing where it has none.",
            None if certificate is None else certificate.left_s,
        )
        links = self._observer.node.links
        if links is not None:
            yield CounterMetricFamily("sojourn_link_bytes", "Sent over links to peers.", links.written_bytes)

    def _store(self) -> Iterator[Metric]:
        node = self._observer.node
        refusing = node.core.state.refusing is not None
        yield GaugeMetricFamily(
            "sojourn_refusing", "Whether QoS 1 and 2 publishes are refused at present.", float(refusing)
        )
        if node.keeper is None:
            return
        journal = node.keeper.journal
        yield GaugeMetricFamily(
            "sojourn_journal_bytes", "Journal written since its last snapshot.", journal.bytes
        )
        yield GaugeMetricFamily(
            "sojourn_journal_entries", "Entries in the journal since its last snapshot.", journal.entries
        )
        yield GaugeMetricFamily(
            "sojourn_store_bytes", "The store's files on disk.", file_bytes(node.place.store)
        )

    def _copies(self) -> Iterator[Metric]:
        outbox = self._observer.node.outbox
        if outbox is None:
            return
        state = outbox.copying.state()
        yield GaugeMetricFamily(
            "sojourn_copies_wanted", "Other processes that are to hold a copy.", len(state.followers)
        )
        yield GaugeMetricFamily(
            "sojourn_copies_whole",
            "Those of them that hold everything, of the broker played here that has the fewest; "
            "while it is fewer, what is promised waits.",
            state.least,
        )
        yield GaugeMetricFamily(
            "sojourn_copies_sessions_at_risk",
            "Sessions here with fewer whole copies than there should be; what is promised to them waits.",
            state.sessions_at_risk,
        )
        yield GaugeMetricFamily(
            "sojourn_copies_unplayed",
            "Brokers of the network that nobody plays, as far as this process knows.",
            len(state.unplayed),
        )
        yield GaugeMetricFamily(
            "sojourn_copies_guests",
            "Brokers of other processes that this one plays, as theirs are away.",
            len(state.guests),
        )
        yield GaugeMetricFamily(
            "sojourn_copies_voters",
            "Processes in reach that remember what they voted for about copies, this one among them.",
            len(state.voters.here),
        )
        yield GaugeMetricFamily(
            "sojourn_copies_voters_needed",
            "How many of them decide who plays a broker; with fewer, what is away waits.",
            state.voters.needed,
        )
        yield GaugeMetricFamily("sojourn_term", "The term of the broker's seat.", state.term)
        yield GaugeMetricFamily(
            "sojourn_waiting_turns", "Turns that wait for copies before they leave.", outbox.turns
        )
        yield GaugeMetricFamily("sojourn_waiting_bytes", "What these would send.", outbox.bytes)
        yield CounterMetricFamily(
            "sojourn_outbox_full", "How often nobody was read, since too much waited.", outbox.fills
        )
        yield CounterMetricFamily(
            "sojourn_copied_bytes", "Sent by this process to others, to keep copies.", state.sent_bytes
        )
        yield CounterMetricFamily(
            "sojourn_takeovers", "Brokers of other processes that this one began to play.", state.takeovers
        )


def _histogram(name: str, about: str, tally: Tally) -> Metric:
    running = 0
    buckets: list[tuple[str, float]] = []
    for end, count in zip((*map(str, BUCKETS_S), "+Inf"), tally.buckets, strict=True):
        running += count
        buckets.append((end, running))
    found = HistogramMetricFamily(name, about)
    found.add_metric([], buckets, tally.sum_s)
    return found
