"""What a page shows: the last report of every broker, hand-offs of the last minute, and the last hour.

Everything here has a limit: reports are kept one a broker of the configuration, hand-offs and history in
queues that forget. A broker whose report is older than `FRESH_S` counts as silent, and its numbers are left
out of the sums. Of all clients that brokers name only `DOTS_MAX` are shown on the map, always the same ones.
"""

from __future__ import annotations

import heapq
import math
import zlib
from collections import deque
from typing import Any, NamedTuple

from msgspec.structs import replace

from sojourn import __version__
from sojourn.broker.tree import overlay_of
from sojourn.live.config import Config
from sojourn.live.page.history import History, Moment
from sojourn.live.page.ledger import Loss, in_words
from sojourn.live.page.risks import Kept, risk_of, votes_at_risk
from sojourn.live.page.status import Move, Report
from sojourn.live.page.whereabouts import Whereabouts

FRESH_S = 4.0
DOTS_MAX = 600
"""Clients that are shown on the map of all brokers."""
MOVES_KEPT = 2_000
MOVES_SHOWN = 60
WINDOW_S = 60.0
"""The hand-offs that percentiles are of."""


class Heard(NamedTuple):
    """A report and when it came, by the clock of who keeps it."""

    at_s: float
    report: Report


class Seen(NamedTuple):
    """A hand-off and where it led to."""

    broker: str
    move: Move


class Board:
    """The network as one broker sees it."""

    def __init__(self, config: Config, name: str) -> None:
        self.name = name
        self._config = config
        self._names = {broker.name for broker in config.brokers}
        self._used = _used_links(config)
        self._heard: dict[str, Heard] = {}
        self._moves: deque[Seen] = deque(maxlen=MOVES_KEPT)
        self._whereabouts = Whereabouts()
        self.history = History()
        """Of all brokers together."""
        self.histories = {broker.name: History() for broker in config.brokers}

    def regrouped(self, config: Config) -> None:
        """Brokers have joined the network, or left it."""
        self._config, self._used = config, _used_links(config)
        self._names = {broker.name for broker in config.brokers}
        self._heard = {name: heard for name, heard in self._heard.items() if name in self._names}
        self.histories = {name: self.histories.get(name) or History() for name in sorted(self._names)}

    def take(self, broker: str, report: Report, now: float) -> None:
        """Keep a report; hand-offs in it that were told before are known by their count."""
        if broker not in self._names:
            return
        before = self._heard.get(broker)
        known = 0
        if before is not None and before.report.started_s == report.started_s:
            known = before.report.handoffs
        fresh = min(max(0, report.handoffs - known), len(report.moves))
        self._moves.extend(Seen(broker, move) for move in report.moves[len(report.moves) - fresh :])
        self._whereabouts.take(broker, None if before is None else before.report, report, now)
        self._heard[broker] = Heard(now, report)

    def fresh(self, now: float) -> dict[str, Report]:
        """The reports that are not too old to count, with every client at one broker."""
        unplayed = self._unplayed()
        fresh = {
            name: heard.report
            for name, heard in self._heard.items()
            if now - heard.at_s < FRESH_S and name not in unplayed
        }
        return self._whereabouts.settled(fresh, now)

    def _unplayed(self) -> list[str]:
        """Brokers that nobody plays, as far as this one knows: these are silent at once."""
        own = self.kept(self.name)
        return [] if own is None else [name for name in own.unplayed if name != self.name]

    def tick(self, now: float) -> None:
        """Note how the network is doing, for the charts."""
        reports = self.fresh(now)
        p50_s, p99_s, _ = self.latency(now)
        self.history.add(_moment(now, list(reports.values()), p50_s, p99_s))
        for name, report in reports.items():
            self.histories[name].add(_moment(now, [report]))

    def latency(self, now: float) -> tuple[float | None, float | None, int]:
        """The median and the 99th percentile of the last minute's hand-offs, and how many they are."""
        took = sorted(seen.move.took_s for seen in self._moves if seen.move.at_s > now - WINDOW_S)
        if not took:
            return None, None, 0
        return _percentile(took, 0.5), _percentile(took, 0.99), len(took)

    def state(self, now: float) -> dict[str, Any]:
        """All that the page shows, for JSON."""
        p50_s, p99_s, count = self.latency(now)
        config, fresh = self._config, self.fresh(now)
        shown = _shown(fresh)
        return {
            "at_s": round(now, 3),
            "broker": self.name,
            "version": __version__,
            "scheme": config.mobility.subscribers,
            "routing": config.routing.mode,
            "brokers": [
                self._broker(
                    broker.name, broker.listen, now, fresh.get(broker.name), shown.get(broker.name, [])
                )
                for broker in config.brokers
            ],
            "links": [[one, other, (one, other) in self._used] for one, other in config.links],
            "moves": [
                {"broker": seen.broker, **_named(seen.move)} for seen in list(self._moves)[-MOVES_SHOWN:]
            ],
            "latency": {"p50_s": p50_s, "p99_s": p99_s, "count": count, "window_s": WINDOW_S},
            "moment": self.history.last,
            "lost_stores": self._lost_stores(),
            "has_copies": config.mobility.copies > 0,
            "at_risk": self._at_risk(now),
            "votes_at_risk": votes_at_risk(self.kept(self.name)),
        }

    def kept(self, broker: str) -> Kept | None:
        """Where copies of a broker are, as far as it was heard; that holds for each of its sessions."""
        heard = self._heard.get(broker)
        return None if heard is None else heard.report.kept

    def _at_risk(self, now: float) -> list[dict[str, Any]]:
        """Brokers whose copies are not as they should be, with how many sessions that concerns."""
        own, unplayed = self.kept(self.name), self._unplayed()
        found = (
            risk_of(
                name,
                heard.report.sessions,
                heard.report.kept,
                is_silent=now - heard.at_s >= FRESH_S,
                is_played=None if own is None else name not in unplayed,
            )
            for name, heard in sorted(self._heard.items())
        )
        return [one for one in found if one is not None]

    def _lost_stores(self) -> list[str]:
        """What is known of each store that was lost, by whoever heard of it last; the latest loss first."""
        known: dict[tuple[str, str], Loss] = {}
        for heard in self._heard.values():
            for loss in heard.report.losses:
                before = known.setdefault((loss.broker, loss.memory), loss)
                if loss.as_of_s > before.as_of_s:
                    known[loss.broker, loss.memory] = loss
        return [in_words(loss) for loss in sorted(known.values(), key=lambda one: -one.noticed_s)]

    def _broker(
        self, name: str, listen: str, now: float, fresh: Report | None, present: list[tuple[str, float]]
    ) -> dict[str, Any]:
        heard = self._heard.get(name)
        silent_s = None if heard is None else round(max(0.0, now - heard.at_s), 2)
        return {
            "name": name,
            "listen": heard.report.listen or listen if heard is not None else listen,
            "state": "unknown" if silent_s is None else "silent" if fresh is None else "up",
            "silent_s": silent_s,
            "report": None if heard is None else replace(fresh or heard.report, moves=[], present=present),
        }


def _moment(
    now: float, reports: list[Report], p50_s: float | None = None, p99_s: float | None = None
) -> Moment:
    """How some brokers together are doing."""
    return Moment(
        round(now, 2),
        round(sum(report.published_rate for report in reports), 2),
        round(sum(report.delivered_rate for report in reports), 2),
        round(sum(report.handoff_rate for report in reports), 2),
        sum(report.queue_bytes for report in reports),
        sum(report.clients for report in reports),
        p50_s,
        p99_s,
    )


def _shown(fresh: dict[str, Report]) -> dict[str, list[tuple[str, float]]]:
    """By broker: the clients that are shown, of all that brokers name those whose names hash lowest."""
    named = {name: report.present for name, report in fresh.items()}
    if sum(map(len, named.values())) <= DOTS_MAX:
        return named
    everyone = ((zlib.crc32(one[0].encode()), name, one) for name, some in named.items() for one in some)
    shown: dict[str, list[tuple[str, float]]] = {name: [] for name in named}
    for _, name, one in heapq.nsmallest(DOTS_MAX, everyone):
        shown[name].append(one)
    return shown


def _named(move: Move) -> dict[str, Any]:
    return {name: getattr(move, name) for name in move.__struct_fields__}


def _percentile(ordered: list[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _used_links(config: Config) -> set[tuple[str, str]]:
    """The links of the configuration that the tree is made of, on which events travel."""
    if not config.links:
        return set()
    settings = config.settings(config.brokers[0].name)
    tree = overlay_of(settings).neighbours
    number = settings.brokers.index
    return {(one, other) for one, other in config.links if number(other) in tree[number(one)]}
