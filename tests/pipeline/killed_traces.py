"""Traces of made networks whose brokers are killed and come again: what happened, and what was written."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sojourn.trace import SegmentWriter

Name = tuple[str, str, int]
"""Client, source and sequence."""

BROKERS = ("B1", "B2", "B3")
SEAL_S = 5.0
DURATION_S = 60.0
_TIME_AT = {"publications": 2, "deliveries": 3, "sojourns": 3, "drops": 3}
_BROKER_AT = {"publications": 3, "deliveries": 4, "sojourns": 1, "drops": 4}


@dataclass
class KilledTrace:
    """Rows of a run by table, as they happened, and when brokers were killed and came again."""

    run_id: str
    kills: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    rows: dict[str, list[tuple[Any, ...]]] = field(
        default_factory=lambda: {
            table: [] for table in ("clients", "interests", "sojourns", "publications", "deliveries", "drops")
        }
    )
    lost: set[Name] = field(default_factory=set)
    """Expected deliveries that never were."""
    leaked: set[Name] = field(default_factory=set)
    """Deliveries that nobody wanted."""

    def gaps(self, broker: str) -> list[tuple[float, float, float]]:
        """By kill: until when all was sealed, the kill, and the next begin."""
        found, began_s = [], 0.0
        for killed_s, again_s in self.kills.get(broker, []):
            sealed_s = began_s + SEAL_S * ((killed_s - began_s) // SEAL_S)
            found.append((sealed_s, killed_s, again_s))
            began_s = again_s
        return found

    def write(self, root: Path, *, ends: bool = True) -> None:
        """Write what each life of each broker sealed; the last ones close, and the first ends the run."""
        for broker in BROKERS:
            since_s, began_s = -1.0, 0.0
            for sealed_s, killed_s, again_s in self.gaps(broker):
                self._live(root, broker, began_s, since_s, sealed_s)
                since_s, began_s = killed_s, again_s
            last = self._live(root, broker, began_s, since_s, 1e9, DURATION_S - 0.5)
            if ends and broker == BROKERS[0]:
                last.add("runs", "live", None, None, "{}", None, DURATION_S, 0.0, None)
            if ends:
                last.close(DURATION_S)

    def _live(
        self, root: Path, broker: str, began_s: float, since_s: float, until_s: float, said_s: float = -1.0
    ) -> SegmentWriter:
        """Write what a broker noted after one moment and up to another."""
        writer = SegmentWriter(root, self.run_id, name=broker, began_s=began_s)
        if broker == BROKERS[0] and began_s == 0.0:  # these are not what is looked at here
            for table in ("clients", "interests"):
                for row in self.rows[table]:
                    writer.add(table, *row)
        for table, time_at in _TIME_AT.items():
            for row in self.rows[table]:
                if row[_BROKER_AT[table]] == broker and since_s < row[time_at] <= until_s:
                    writer.add(table, *row)
        writer.seal(max(said_s, min(until_s, DURATION_S) if said_s < 0 else said_s))
        return writer


def killed_trace(run_id: str, seed: int) -> KilledTrace:
    """Make a run: readers walk about and get what each source publishes, in order; some is lost or leaks."""
    rng = random.Random(seed)
    trace = KilledTrace(run_id)
    for broker in rng.sample(BROKERS, rng.choice([1, 2, 2])):
        first, second = rng.uniform(8, 25), rng.uniform(32, 50)
        trace.kills[broker] = [(at, at + rng.uniform(0.5, 4)) for at in (first, second)[: rng.choice([1, 2])]]
    _publish(rng, trace)
    for number in range(6):
        client = f"c{number}"
        trace.rows["clients"].append((client, "{}"))
        trace.rows["interests"].append((client, "i", "n >= 0", 0.0, None, None))
        _deliver(rng, trace, client, _stays(rng, trace, client))
    return trace


def _is_down(trace: KilledTrace, broker: str, at_s: float) -> float | None:
    """When a broker that is down comes again; None where it is up."""
    for killed_s, again_s in trace.kills.get(broker, []):
        if killed_s <= at_s < again_s:
            return again_s
    return None


def _publish(rng: random.Random, trace: KilledTrace) -> None:
    for broker in BROKERS:
        at_s = 0.0
        while (at_s := at_s + rng.uniform(0.1, 1.2)) < DURATION_S - 3:
            if _is_down(trace, broker, at_s) is None:
                n = -1 if rng.random() < 0.2 else 1
                row = (f"p@{broker}~0a1b2c3d", int(at_s * 1e6), at_s, broker, None, f'{{"n": {n}}}', None, 9)
                trace.rows["publications"].append(row)


def _stays(rng: random.Random, trace: KilledTrace, client: str) -> list[tuple[str, float, float]]:
    """Let a client be at one broker after another; a kill ends its stay without a row."""
    found, at_s, broker = [], rng.uniform(0, 0.5), rng.choice(BROKERS)
    while at_s < DURATION_S:
        until_s = min(at_s + rng.choice([6.0, 20.0, 50.0]), DURATION_S - 0.2)
        killed_s = min([k for k, _ in trace.kills.get(broker, []) if at_s <= k < until_s], default=None)
        found.append((broker, at_s, until_s if killed_s is None else killed_s))
        if killed_s is None:
            trace.rows["sojourns"].append((client, broker, at_s, until_s))
        at_s = (until_s if killed_s is None else killed_s) + rng.choice([0.01, 0.5, 3.0])
        broker = rng.choice(BROKERS)
        at_s = max(at_s, _is_down(trace, broker, at_s) or 0.0)
        if until_s > DURATION_S - 1:
            break
    return found


def _deliver(
    rng: random.Random, trace: KilledTrace, client: str, stays: list[tuple[str, float, float]]
) -> None:
    last: dict[str, float] = {}
    for source, sequence, published_s, _, _, attributes, _, _ in trace.rows["publications"]:
        name = (client, source, sequence)
        wanted = '"n": 1' in attributes
        if rng.random() < 0.03:
            if wanted:
                trace.lost.add(name)
                continue
            trace.leaked.add(name)
        elif not wanted:
            continue
        at_s = max(published_s + rng.uniform(0.001, 0.3), last.get(source, 0.0))
        here = [(broker, max(begin, at_s)) for broker, begin, end in stays if max(begin, at_s) < end]
        if not here:
            if wanted:
                trace.lost.add(name)  # it was not there any more
            trace.leaked.discard(name)
            continue
        broker, at_s = min(here, key=lambda one: one[1])
        last[source] = at_s
        trace.rows["deliveries"].append((client, source, sequence, at_s, broker))
