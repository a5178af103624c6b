"""What one task of the study returns: from the text of a specification to a flat row of numbers and texts.

The measures here are for plain processes. On Spark tasks record facts (`recording.py`) and measures are
computed from those (`measuring.py`); `tests/studies/test_facts.py` holds the two to the same numbers.
"""

import json
import math
from collections.abc import Callable, Iterable

import msgspec
import numpy as np

from sojourn.edge.filters import FILTER_NAMES
from sojourn.edge.properties import PROPERTIES
from sojourn.studies.architectures.recording import HEALED, ROAMED, observe
from sojourn.studies.architectures.replicas import CLIENTS
from sojourn.studies.architectures.runs_edge import TO_SOURCES
from sojourn.studies.architectures.spec import Fact, Kind, Run
from sojourn.studies.runner import Row


class Seen:
    """The numbers of a task's facts, by what they tell and of which."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._values: dict[tuple[str, str], list[float]] = {}
        for what, of, _, value in facts:
            self._values.setdefault((what, of), []).append(value)

    def all(self, what: str, of: str = "") -> list[float]:
        """All of them, in the order in which they were told."""
        return self._values.get((what, of), [])

    def total(self, what: str, *of: str) -> float:
        """Their sum, over several things if they are named."""
        return sum(sum(self.all(what, each)) for each in of or ("",))

    def mean(self, what: str) -> float:
        """Their mean."""
        return float(np.mean(self.all(what)))

    def none_of(self, what: str) -> float:
        """The share of zeroes among them."""
        return self.all(what).count(0.0) / len(self.all(what))


def simulate(spec_json: str) -> Row:
    """Carry out one task and return its numbers."""
    run = msgspec.json.decode(spec_json, type=Run)
    observed = observe(run)
    return {**KINDS[run.kind](run, Seen(observed.facts)), **observed.texts}


def _table1(_run: Run, seen: Seen) -> Row:
    cells = [f"{name} {promise}" for name in FILTER_NAMES for promise in PROPERTIES]
    return {"runs": seen.total("runs"), **{f"broken {cell}": seen.total("broken", cell) for cell in cells}}


def _replicas(_run: Run, seen: Seen) -> Row:
    counted = ("matching", "missed", "doubled", "dropped", *(f"not {promise}" for promise in PROPERTIES))
    counts: Row = {f"{name} {what}": seen.total(what, name) for name in FILTER_NAMES for what in counted}
    return counts | {"clients": CLIENTS}


def _quench(run: Run, seen: Seen) -> Row:
    events = len(seen.all("wanted"))
    first = seen.total("first_bytes", *TO_SOURCES)
    told = seen.total("bytes", *TO_SOURCES) - first
    return {
        "unmatched_share": seen.none_of("wanted"),
        "bytes_per_event": (seen.total("bytes", "published") + told) / events,
        "update_bytes_per_event": told / events,
        "first_bytes_per_source": first / run.sources,
        "comparisons_per_event": seen.total("comparisons") / events,
        "sent_share": seen.total("sent") / events,
        "alternatives": seen.mean("alternatives"),
        "broker_events_share": seen.total("handled") / events,
    }


def _offline(_run: Run, seen: Seen) -> Row:
    return {
        "interesting": len(seen.all("missed", "quench")),
        "lost_oldest": seen.total("missed", "oldest"),
        "lost_quench": seen.total("missed", "quench"),
    }


def _scaling(run: Run, seen: Seen) -> Row:
    return {
        "compared_mean": seen.mean("compared") / run.events,
        "compared_max": max(seen.all("compared")) / run.events,
        "local_matching": seen.mean("compared_own") / run.events,
        "event_hops": seen.total("hops", "event") / run.events,
        "interest_hops": seen.total("hops", "interest") / run.subscriptions,
        "entries_mean": seen.mean("entries"),
        "entries_max": max(seen.all("entries")),
        "matches_per_event": seen.total("wanted") / run.events,
        "lost": seen.total("wanted") - seen.total("shown"),
    }


def _roam(_run: Run, seen: Seen) -> Row:
    held_s = sorted(seen.all("held_s"))
    return {
        **{name: seen.total(name) for name in ROAMED if name != "handover_bytes"},
        "held_mean_s": sum(held_s) / len(held_s),
        "held_p90_s": held_s[int(0.9 * len(held_s))],
        "handover_bytes_per_move": seen.total("handover_bytes") / seen.total("moves"),
    }


def _queues(_run: Run, seen: Seen) -> Row:
    sent, streams = seen.total("kept_bytes"), len(seen.all("wrong"))
    return {
        "wrong": seen.total("wrong"),
        "streams": streams,
        "bytes_sent": sent / streams,
        "share_sent": sent / seen.total("missed_bytes"),
    }


def _heal(_run: Run, seen: Seen) -> Row:
    found = [dict(zip(HEALED, one, strict=True)) for one in zip(*map(seen.all, HEALED), strict=True)]
    good = [h for h in found if (h["brokers"], h["missing"]) == (1, 0) and not math.isnan(h["healed_s"])]
    merging = [h["healed_s"] for h in good if h["brokers_before"] > 1]
    delivered = [h["delivered_s"] for h in good if not math.isnan(h["delivered_s"])]
    row: Row = {
        "histories": len(found),
        "one_broker": len(good),
        "most_brokers": max(seen.all("most_brokers")),
        **{name: seen.total(name) for name in ("owed", "lost", "duplicated", "unwanted", "merges", "said")},
    }
    lists = {"healed_s": merging, "delivered_s": delivered}
    return row | {name: json.dumps(values) for name, values in lists.items() if values}


def _advice(run: Run, seen: Seen) -> Row:
    kinds = ("event", "interest", "handover")
    return {
        "source_bytes": seen.total("bytes", "published", *TO_SOURCES) / run.events,
        "broker_bytes": seen.total("bytes", *kinds) / run.events,
        **{f"{kind}_bytes": seen.total("bytes", kind) / run.events for kind in kinds},
        "busiest_compared": max(seen.all("compared")) / run.events,
        "busiest_handled": max(seen.all("handled")) / run.events,
        "entries_max": max(seen.all("entries")),
        "unmatched_share": seen.none_of("wanted"),
        "match_share": seen.mean("wanted") / run.subscriptions,
    }


KINDS: dict[Kind, Callable[[Run, Seen], Row]] = {
    "table1": _table1,
    "replicas": _replicas,
    "quench": _quench,
    "offline": _offline,
    "scaling": _scaling,
    "roam": _roam,
    "queues": _queues,
    "heal": _heal,
    "advice": _advice,
}
"""By kind of task: its measures, from what was seen."""
