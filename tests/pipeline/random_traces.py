"""Small random traces with everything that can go wrong in them, and a brute-force audit to compare with."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sojourn.interest import Event, Filter, Policy, may_receive
from sojourn.trace import COLUMNS, write_run
from sojourn.trace.rows import TABLES

Row = tuple[Any, ...]


@dataclass
class RandomTrace:
    """The rows of one run by table."""

    run_id: str
    rows: dict[str, list[Row]] = field(default_factory=lambda: {table: [] for table in COLUMNS})

    def columns(self, table: str) -> dict[str, list[Any]]:
        """Return a table by column."""
        rows = [TABLES[table].row(*row) for row in self.rows[table]]
        return {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS[table].names)}

    def write(self, root: Path) -> None:
        """Write all tables."""
        write_run(root, self.run_id, {table: self.columns(table) for table in COLUMNS})


def random_trace(run_id: str, seed: int, publications: int = 200, duration_s: float = 300.0) -> RandomTrace:
    """Make a run of 12 clients and 4 sources whose deliveries are lost, doubled, swapped and misdirected."""
    rng = random.Random(seed)
    trace = RandomTrace(run_id)
    rows = trace.rows
    clients = [f"c{i}" for i in range(12)]
    rows["runs"].append(("sim", "test", seed, "{}", None, duration_s, 0.0, None))
    for client in clients:
        rows["clients"].append((client, json.dumps({"level": rng.randrange(4)})))
        stay = rng.uniform(0, duration_s)
        rows["sojourns"].append((client, "b1", 0.0, stay))
        rows["sojourns"].append((client, "b2", stay, rng.choice([None, duration_s - 20])))
        rows["handoffs"].append((client, "b1", "b2", stay, stay + 1, stay + rng.uniform(1, 4), "move"))
        for interest in range(rng.randrange(1, 4)):
            low = rng.randrange(80)
            text = rng.choice(
                [f"price >= {low} AND price < {low + 40}", f"kind = 'k{low % 3}'", "topic LIKE 'a/+/#'"]
            )
            begin = rng.uniform(0, duration_s / 3)
            asked = rng.choice([None, begin, begin - 20.0])
            first = begin
            if asked is not None and interest:  # told when it is asked for, as live processes do
                first = asked
                rows["interests"].append((client, f"i{interest}", text, asked, None, asked))
            rows["interests"].append((client, f"i{interest}", text, begin, None, asked))
            if rng.random() < 0.5:  # told again when it ends, as live processes do
                rows["interests"].append((client, f"i{interest}", text, first, begin + duration_s / 2, asked))
    for number in range(publications):
        attributes: dict[str, Any] = {"price": rng.randrange(120)}
        if rng.random() < 0.7:
            attributes["kind"] = f"k{rng.randrange(3)}"
        time_s = duration_s * number / publications
        topic = rng.choice([None, "a/b", "b/c"])
        policy = rng.choice([None, None, "level >= 2"])
        row = (f"p{number % 4}", number // 4, time_s, "b0", topic, json.dumps(attributes), policy, 100)
        rows["publications"].append(row)
    _deliver(rng, trace, clients)
    return trace


def _deliver(rng: random.Random, trace: RandomTrace, clients: list[str]) -> None:
    rows = trace.rows
    for client, source, sequence in sorted(wanted_of(trace)):
        published = rows["publications"][sequence * 4 + int(source[1:])][2]
        chance = rng.random()
        if chance < 0.1:
            if chance < 0.04:
                reason = rng.choice(["queue_full", "expired"])
                rows["drops"].append((client, source, sequence, published + 1, "b9", reason))
            continue
        delay = rng.uniform(0.01, 1.0) if chance < 0.9 else rng.uniform(5, 15)
        for copy in range(1 + (chance > 0.95)):
            rows["deliveries"].append((client, source, sequence, published + delay + copy, "b1"))
    for _ in range(10):
        source, sequence, published = rng.choice(rows["publications"])[:3]
        rows["deliveries"].append((rng.choice(clients), source, sequence, published + 2, "b2"))
    rng.shuffle(rows["deliveries"])


def expected_of(trace: RandomTrace) -> dict[tuple[str, str, int], float]:
    """Return the expected deliveries and when each was published, by trying everything with everything."""
    return {name: published_s for name, (published_s, is_owed) in wanted_of(trace).items() if is_owed}


def wanted_of(trace: RandomTrace) -> dict[tuple[str, str, int], tuple[float, bool]]:
    """Return the deliveries that are expected or allowed, when each was published and whether it is owed."""
    attributes = {client: Event(json.loads(text)) for client, text in trace.rows["clients"]}
    ends: dict[Row, float | None] = {}
    begins: dict[Row, float] = {}
    for client, interest, text, begin, end, *told in trace.rows["interests"]:
        key = (client, interest, text, begin if not told or told[0] is None else told[0])
        begins[key] = max(begin, begins.get(key, begin))
        ends[key] = end if ends.get(key) is None else ends[key]
    wanted: dict[tuple[str, str, int], tuple[float, bool]] = {}
    for source, sequence, time_s, _, topic, text, policy, _ in trace.rows["publications"]:
        event = Event(json.loads(text), topic=topic)
        permitted = None if policy is None else Policy.parse(policy)
        for interest_key, end in ends.items():
            client, _, sought, asked = interest_key
            begin = begins[interest_key]
            if asked <= time_s and (end is None or time_s < end):
                subscriber = attributes.get(client, Event({}))
                if may_receive(event, permitted, Filter.parse(sought), subscriber):
                    name = (client, source, sequence)
                    wanted[name] = (time_s, begin <= time_s or wanted.get(name, (0.0, False))[1])
    return wanted


def audit_by_hand(trace: RandomTrace) -> dict[str, int]:
    """Count what an audit must find, from the definitions."""
    wanted, expected = wanted_of(trace), expected_of(trace)
    first: dict[tuple[str, str, int], float] = {}
    copies: Counter[tuple[str, str, int]] = Counter()
    for client, source, sequence, time_s, _ in trace.rows["deliveries"]:
        key = (client, source, sequence)
        copies[key] += 1
        first[key] = min(first.get(key, time_s), time_s)
    late = 0
    for (client, source, sequence), time_s in first.items():
        late += any(
            other[:2] == (client, source) and other[2] > sequence and earlier < time_s
            for other, earlier in first.items()
        )
    lost = [key for key in expected if key not in first]
    reasons = {row[:3]: row[5] for row in trace.rows["drops"]}
    return {
        "published": len(trace.rows["publications"]),
        "expected": len(expected),
        "deliveries": sum(copies.values()),
        "delivered": sum(key in expected for key in first),
        "lost": len(lost),
        "duplicated": sum(copies.values()) - len(copies),
        "out_of_order": late,
        "allowed": sum(key in wanted and key not in expected for key in first),
        "unauthorised": sum(key not in wanted for key in first),
        "lost_queue_full": sum(reasons.get(key) == "queue_full" for key in lost),
        "lost_expired": sum(reasons.get(key) == "expired" for key in lost),
        "lost_in_flight": sum(
            key not in reasons and _was_in_flight(trace, key[0], expected[key]) for key in lost
        ),
    }


def longest_of(trace: RandomTrace) -> float:
    """The longest from a publication to the first delivery of it to somebody who should have it."""
    expected = expected_of(trace)
    first: dict[tuple[str, str, int], float] = {}
    for client, source, sequence, time_s, _ in trace.rows["deliveries"]:
        key = (client, source, sequence)
        first[key] = min(first.get(key, time_s), time_s)
    return max(time_s - expected[key] for key, time_s in first.items() if key in expected)


def _was_in_flight(trace: RandomTrace, client: str, published_s: float) -> bool:
    """Whether the run was about to end, or the client had left for good, when an event was published."""
    duration_s = trace.rows["runs"][0][5]
    ends = [row[3] for row in trace.rows["sojourns"] if row[0] == client]
    has_left = None not in ends and max(ends) < duration_s and published_s >= max(ends)
    return has_left or bool(published_s >= duration_s - 1.0)
