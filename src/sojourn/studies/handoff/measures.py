"""From one simulated run of roaming subscribers to its flat row of measures, without Spark and tables.

For plain processes; on Spark runs record facts (`recording.py`) and measures are computed from those
(`measuring.py`). `tests/studies/test_facts.py` holds the two to the same numbers.

A measure of a broker has its name at the end (`routed B3`), a share of hand-off times its percentage
(`handoff p60`); so one row stays one run, and means and intervals over seeds come the usual way.
"""

import msgspec
import numpy as np

from sojourn.routing.messages import Kind
from sojourn.sim.roaming.run import BUILDING_LINKS
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.tally import RoamingResult
from sojourn.sim.roaming.world import RoamingWorld
from sojourn.studies.runner import Row

MS = 1000.0
PERCENT = 100.0
SHARES = tuple(range(5, 100, 5))
"""Percentages at which the distribution of hand-off times is kept."""
LIMITS_MS = (50, 350, 1200)
"""Hand-off times that the paper's text names."""
CONTROL = frozenset(kind.name.lower() for kind in Kind if kind > Kind.RELEASE)
BROKERS_MAX = 6
"""The most brokers whose numbers are told one by one."""
LAST_MINUTES = 3
"""How many minutes are the end of a run, where what brokers learnt is looked at."""
TREE = ("subscribe", "unsubscribe")
"""Over content routing a hand-off moves subscriptions too."""


def simulate(spec_json: str) -> Row:
    """Run the scenario of a JSON text and measure it."""
    scenario = msgspec.json.decode(spec_json, type=RoamingScenario)
    return measure(RoamingWorld(scenario).run(), scenario)


def measure(result: RoamingResult, scenario: RoamingScenario) -> Row:
    """One run as named numbers."""
    moves = max(1, result.moves)
    mobile = [kind for kind in result.hops if kind in CONTROL or kind in TREE]
    row: Row = {
        "throughput": result.received / result.duration_s,
        "throughput_once": (result.received - result.duplicates) / result.duration_s,
        "published_per_s": result.published / result.duration_s,
        "loss_percent": PERCENT * (1 - result.unique / result.expected) if result.expected else None,
        "duplicates_percent": PERCENT * result.duplicates / max(1, result.received),
        "late_percent": PERCENT * result.late / max(1, result.unique),
        "latency_ms": MS * result.latency_s,
        "transferred_percent": PERCENT * result.transferred / max(1, result.unique),
        "moves": result.moves,
        "departures": result.departures,
        "messages_per_move": sum(result.hops[kind] for kind in mobile) / moves,
        "bytes_per_move": sum(result.bytes[kind] for kind in mobile) / moves,
        "forwarded_bytes_per_move": result.bytes.get("forward", 0) / moves,
        "copies_per_subscriber": (result.passive_copies + result.active_copies) / scenario.subscribers,
        "active_copies_per_subscriber": result.active_copies / scenario.subscribers,
        "queued_bytes": result.queued_bytes,
        "dropped_per_s": sum(result.drops.values()) / result.duration_s,
        "redirects_per_move": result.redirects / moves,
        "unfinished": int(not result.drained),
    }
    return row | _handoffs(result) | _brokers(result) | _graph(result)


def _handoffs(result: RoamingResult) -> Row:
    times = np.array(result.first_message_s) * MS
    if not len(times):
        return {}
    row: Row = {"handoff_ms": float(times.mean()), "handoff p50": float(np.median(times))}
    row |= {f"handoff p{share}": float(np.percentile(times, share)) for share in SHARES}
    row |= {f"handoffs under {limit} ms": float((times < limit).mean()) for limit in LIMITS_MS}
    ready = np.array(result.ready_s) * MS
    if len(ready):
        row |= {"ready_ms": float(ready.mean()), "ready p50": float(np.median(ready))}
    return row


def _brokers(result: RoamingResult) -> Row:
    row: Row = {
        "utilisation_max": max(broker.utilisation for broker in result.brokers),
        "utilisation_mean": sum(broker.utilisation for broker in result.brokers) / len(result.brokers),
        "present_max": max(broker.present for broker in result.brokers),
    }
    if len(result.brokers) <= BROKERS_MAX:
        for broker in result.brokers:
            row[f"routed {broker.name}"] = broker.routed_per_s
            row[f"event_ms {broker.name}"] = broker.event_ms
            row[f"present {broker.name}"] = broker.present
    return row


def _graph(result: RoamingResult) -> Row:
    """What brokers learnt about where subscribers go."""
    row: Row = {
        "unprepared_percent_at_first": _share(result.unprepared_by_minute[:1]),
        "unprepared_percent_at_the_end": _share(result.unprepared_by_minute[-LAST_MINUTES:]),
        "unprepared_percent": _share(result.unprepared_by_minute[1:]),
    }
    learnt = {frozenset((broker.name, other)) for broker in result.brokers for other in broker.learnt}
    building = {frozenset((f"B{one}", f"B{other}")) for one, other in BUILDING_LINKS}
    row["edges_learnt"] = len(learnt)
    row["edges_missing"] = len(building - learnt)
    row["edges_beside"] = len(learnt - building)
    row["edges_stale"] = result.stale_edges
    return row


def _share(minutes: list[tuple[int, int]]) -> float | None:
    moves = sum(move for move, _ in minutes)
    return PERCENT * sum(bare for _, bare in minutes) / moves if moves else None
