"""What one task of the study does: from the text of a specification to a flat row of numbers and texts."""

import json
from collections.abc import Callable

import msgspec

from sojourn.edge.enumeration import story, table_of_properties
from sojourn.sim.edge.roaming import roam_edge
from sojourn.sim.election.world import heal
from sojourn.studies.architectures import runs_edge
from sojourn.studies.architectures.replicas import replicas
from sojourn.studies.architectures.spec import Kind, Run
from sojourn.studies.runner import Row


def simulate(spec_json: str) -> Row:
    """Carry out one task and return its numbers."""
    run = msgspec.json.decode(spec_json, type=Run)
    return KINDS[run.kind](run)


def _table1(run: Run) -> Row:
    """Table 1 from every small run."""
    cells = table_of_properties(run.events_max)
    found = [
        {
            "filter": cell.filter,
            "property": cell.promise,
            "holds": cell.holds,
            "broken": cell.broken,
            "story": story(cell),
        }
        for cell in cells
    ]
    return {"cells": json.dumps(found), "runs": cells[0].runs}


def _roam(run: Run) -> Row:
    """A block of runs with moving displayers."""
    assert run.roaming is not None
    found = [
        roam_edge(msgspec.structs.replace(run.roaming, seed=seed))
        for seed in range(run.seed, run.seed + run.block)
    ]
    held = sorted(seconds for roamed in found for seconds in roamed.held_s)
    count = len(held)
    return {
        **{
            name: sum(getattr(roamed, name) for roamed in found)
            for name in ("expected", "lost", "duplicated", "unwanted", "moves", "while_old_down")
        },
        "held_mean_s": sum(held) / count,
        "held_p90_s": held[int(0.9 * count)],
        "handover_bytes_per_move": sum(r.handover_bytes for r in found) / sum(r.moves for r in found),
    }


def _heal(run: Run) -> Row:
    """A block of partition histories."""
    assert run.history is not None
    found = [
        heal(msgspec.structs.replace(run.history, seed=seed))
        for seed in range(run.seed, run.seed + run.block)
    ]
    good = [h for h in found if (h.brokers, h.missing) == (1, 0) and h.healed_s is not None]
    merging = [h.healed_s for h in good if h.brokers_before > 1]
    return {
        "histories": len(found),
        "one_broker": len(good),
        "owed": sum(h.owed for h in found),
        "lost": sum(h.lost for h in found),
        "duplicated": sum(h.duplicated for h in found),
        "unwanted": sum(h.unwanted for h in found),
        "merges": sum(h.merges for h in found),
        "most_brokers": max(h.most_brokers for h in found),
        "healed_s": json.dumps(merging),
        "delivered_s": json.dumps([h.delivered_s for h in good if h.delivered_s is not None]),
        "said": sum(h.said for h in found),
    }


KINDS: dict[Kind, Callable[[Run], Row]] = {
    "table1": _table1,
    "replicas": replicas,
    "quench": runs_edge.quench,
    "offline": runs_edge.offline,
    "scaling": runs_edge.scaling,
    "roam": _roam,
    "queues": runs_edge.queues,
    "heal": _heal,
    "advice": runs_edge.advice,
}
