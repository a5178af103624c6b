"""How a broker is doing: what it tells the others every second, and what the page shows of all of them.

Every broker makes a `Report` a second and floods it along the tree of links as a volatile frame
(`wire.Status`), so any broker can show the whole network without asking anybody: only one of them needs a
page, and the brokers need no further port. Old reports are worthless, so a link that is down or behind is
spared, and a broker that was not heard of for a while is shown as such.

Rules: a report is small, whatever happens (`CLIENTS_MAX`, `HANDOFFS_MAX`); counters only grow while a
process lives; times are those of the broker that reports, so brokers on several machines want one clock.
"""

from __future__ import annotations

import bisect
import heapq
import logging
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sojourn.broker.effects import COPY_FULL, NOT_MISSED, REPEATED
from sojourn.live.page.ledger import Loss
from sojourn.live.page.risks import Kept
from sojourn.live.seldom import Seldom

if TYPE_CHECKING:
    from sojourn.live.brokers.node import Node

CLIENTS_MAX = 200
"""Clients named in a report: those whose names hash lowest, so that every broker names the same ones."""
HANDOFFS_MAX = 100
"""Hand-offs told in a report: the last ones."""
NAME_MAX = 64
"""Characters of a client's name that are told."""
REPORT_BYTES_MAX = 256 << 10

BUCKETS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The upper ends of the classes that hand-off latencies are counted in; one class lies above them."""


_seldom = Seldom(logging.getLogger("sojourn.report"))


class LinkState(msgspec.Struct, frozen=True):
    """One link, seen from the broker that reports."""

    up: bool
    queue_bytes: int
    queue_frames: int
    refused: int
    """Events of QoS 0 that did not fit into its queue."""
    down_s: float = 0.0
    """For how long there has been no connection; 0 while there is one."""
    since_s: float = 0.0
    """Since when it has been up, or down, in this life of the broker; 0 if it was never up."""
    resets: int = 0
    """How often one of both had forgotten something, and all was told anew."""


class Move(msgspec.Struct, frozen=True, array_like=True):
    """One hand-off, as the page is told."""

    client: str
    origin: str
    at_s: float
    took_s: float
    how: str
    complete: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How one broker is doing."""

    at_s: float
    started_s: float
    clients: int
    sessions: int
    published: int
    delivered: int
    published_rate: float
    delivered_rate: float
    handoff_rate: float
    dropped: dict[str, int]
    """What subscribers did not get, by reason."""
    refused: dict[str, int]
    """Connections, subscriptions and publishes refused, by reason."""
    queue_bytes: int
    """What waits for clients: in the queues of sessions, and stored for those that are away or may come."""
    handoffs: int
    handoff_sum_s: float
    handoff_buckets: list[int]
    """How many lie in each class of `BUCKETS_S`, and above."""
    handoffs_incomplete: int = 0
    """Hand-offs after which something that waited elsewhere is known to be lost."""
    links: dict[str, LinkState]
    store: str
    """`none`, `ok` or `full`."""
    store_bytes: int
    refusing: str | None
    """Why nothing is promised at present: publishes of QoS 1 and 2 are refused."""
    listen: str = ""
    """Where clients connect, with the true port."""
    repeated: int = 0
    """Events that a neighbour which had forgotten it sent a second time; they were let go."""
    unconfirmed: int = 0
    """SUBACKs that were given although not every broker in reach had confirmed the subscription."""
    forgotten: int = 0
    """Events that neighbours forgot with the end of their stores: at most so many are lost, for they had
    passed most of them on."""
    memory: str = ""
    """What the broker's memory is called: another name after its store was deleted."""
    held: int = 0
    """Events that wait at this broker and perhaps nowhere else: stored for clients, or for neighbours."""
    is_last: bool = False
    """Whether the broker is being stopped: it will not tell of itself again before it is started."""
    losses: list[Loss] = []
    """Stores of brokers that this one noticed to be lost, whoever counts them (`ledger.py`)."""
    longest_turn_s: float = 0.0
    """How long the loop was held at once, at the most, since the start."""
    copies: str = ""
    """Where copies of this broker are, and whether they hold everything; nothing if there are none."""
    kept: Kept | None = None
    """The same for programs."""
    moves: list[Move] = []
    present: list[tuple[str, float]] = []
    """Clients connected and since when, as far as they are known by time; at most `CLIENTS_MAX`."""


_decode = msgspec.msgpack.Decoder(Report).decode


class Tally:
    """Hand-offs, or turns of a loop, counted by how long they took."""

    def __init__(self) -> None:
        self.count = 0
        self.longest_s = 0.0
        self.sum_s = 0.0
        self.buckets = [0] * (len(BUCKETS_S) + 1)

    def add(self, took_s: float) -> None:
        """Count one."""
        self.count += 1
        self.sum_s += took_s
        self.longest_s = max(self.longest_s, took_s)
        self.buckets[bisect.bisect_left(BUCKETS_S, took_s)] += 1


def lost_by_reason(node: Node) -> dict[str, int]:
    """What subscribers did not get from this broker, by reason, whichever part let it go."""
    found = Counter(node.core.state.counters.dropped)
    if node.network is not None:
        found.update(node.network.clients.drops)
        for reason in NOT_MISSED:
            del found[reason]
        unsent = sum(channel.refused for channel in node.network.links.channels.values())
        found["link queue full"] += unsent
    return {reason: count for reason, count in sorted(found.items()) if count}


def refused_by_reason(node: Node) -> dict[str, int]:
    """What this broker refused, by reason."""
    found = node.core.state.counters.refused + node.closed_at_once
    if node.links is not None:
        found["neighbour not proved"] += node.links.refusals
    return {reason: count for reason, count in sorted(found.items()) if count}


def repeated(node: Node) -> int:
    """Events that neighbours sent a second time."""
    return 0 if node.network is None else node.network.clients.drops[REPEATED]


def not_copied(node: Node) -> int:
    """Events that did not fit copies of sessions which are at other brokers."""
    return 0 if node.network is None else node.network.clients.drops[COPY_FULL]


def picks(node: Node) -> dict[str, int]:
    """What became of events of QoS 1 and 2 for groups, of which this broker chose the members."""
    if node.network is None:
        return {}
    shares = node.network.clients.shares
    return {
        "made": shares.made,
        "again": shares.again,
        "dropped": shares.dropped,
        "forgotten": shares.forgotten,
    }


def picks_waiting(node: Node) -> int:
    """Events for which this broker chose a member, and has not heard how that went."""
    return 0 if node.network is None else len(node.network.clients.shares.picks)


def unconfirmed(node: Node) -> int:
    """SUBACKs that were given although a broker in reach had not confirmed the subscription."""
    return 0 if node.network is None else node.network.confirming.unconfirmed


def link_states(node: Node) -> dict[str, LinkState]:
    """The links of this broker that events travel on."""
    network = node.network
    if network is None:
        return {}
    now = node.now()
    return {
        peer: LinkState(
            up=channel.open,
            queue_bytes=channel.queued,
            queue_frames=channel.waiting,
            refused=channel.refused,
            down_s=round(max(0.0, now - network.links.down_since.get(peer, now)), 1),
            since_s=max(node.witnesses.link_changes.get((peer, up), 0.0) for up in (True, False)),
            resets=network.reconciling.resets[peer],
        )
        for peer, channel in network.links.channels.items()
    }


def stored(node: Node) -> tuple[int, int]:
    """Bytes and number of the events stored for clients that move, each once however many want it."""
    if node.network is None:
        return 0, 0
    store = node.network.clients.broker.subscribers.store
    return store.bytes, store.events


def held(node: Node) -> int:
    """Events and frames that would be lost with this broker's store.

    What is on its way to a client that is here is stored as well, where there is a network; of one that is
    away it is in its session alone.
    """
    sessions = node.core.state.sessions.values()
    waiting = sum(len(session.queue) for session in sessions)
    if node.network is None:
        return waiting + sum(len(session.inflight) for session in sessions)
    waiting += sum(len(session.inflight) for session in sessions if session.connection is None)
    frames = sum(channel.waiting for channel in node.network.links.channels.values())
    return waiting + stored(node)[1] + frames


def read_report(broker: str, body: bytes) -> Report | None:
    """Return the report of another broker, unless it is none."""
    if len(body) > REPORT_BYTES_MAX:
        return None
    try:
        return _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        _seldom.warning(("report", broker), "report", broker=broker, error=str(error))
        return None


def store_state(node: Node) -> str:
    """Whether there is a store, and whether it can be written."""
    if node.keeper is None:
        return "none"
    return "ok" if node.core.state.refusing is None else "full"


def clients_connected(node: Node) -> list[str]:
    """The names of all clients that were let in and are here."""
    return [name for name, session in node.core.state.sessions.items() if session.connection is not None]


def some_of(node: Node, names: list[str]) -> list[tuple[str, float]]:
    """Clients with when each came; not all of them if they are many, but the same ones at every broker."""
    if len(names) > CLIENTS_MAX:
        names = heapq.nsmallest(CLIENTS_MAX, names, key=lambda name: zlib.crc32(name.encode()))
    network = node.network
    if network is None:
        return [(name[:NAME_MAX], 0.0) for name in names]
    since = ((name, network.clients.roamers.get(network.links.names.client_number(name))) for name in names)
    return [(name[:NAME_MAX], roamer.since if roamer is not None else 0.0) for name, roamer in since]


def file_bytes(path: str | None) -> int:
    """How large a store is on disk."""
    if path is None:
        return 0
    try:
        return sum(_size(file) for file in Path(path).iterdir())
    except OSError:  # it was taken away, or too many files are open
        return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it has just been replaced
        return 0
