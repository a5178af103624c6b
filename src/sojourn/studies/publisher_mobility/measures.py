"""From one simulated run to its flat row of measures, without Spark and tables: for plain processes.

On Spark runs record facts (`recording.py`) and measures are computed from those (`measuring.py`);
`tests/studies/test_facts.py` holds the two to the same numbers.

Costs are counted by cause: all hops that the moves of the measured time set off, whenever they happened, so
that a run's cost does not depend on where its window cuts a tree in two. Times are means over those moves.
"""

import msgspec

from sojourn.sim.publishers.world import World
from sojourn.sim.results import RunResult
from sojourn.sim.scenario import Scenario
from sojourn.studies.publisher_mobility.moves import to_own_proxy
from sojourn.studies.runner import Row

MS = 1000.0


def simulate(spec_json: str) -> Row:
    """Run the scenario of a JSON text and measure it."""
    scenario = msgspec.json.decode(spec_json, type=Scenario)
    return measure(World(scenario).run(), scenario)


def measure(result: RunResult, scenario: Scenario) -> Row:
    """One run as named numbers.

    A tree's construction begins when a publisher moves in and sends an advertisement (section 5.2.3), and at
    a proxy of its own there is no rebuilding (section 4.3): so arrivals at own proxies have no part in the
    mean time of rebuilding. `rebuild_all_ms` counts them as zeros.
    """
    moves = result.moves
    built = _built(result, scenario)
    minutes = scenario.duration_s / 60
    tree = sum(map(sum, (moves.advertise, moves.unadvertise, moves.subscribe, moves.unsubscribe)))
    notices = sum(moves.prefetch)
    row: Row = {
        "moves": len(moves),
        "moves_per_min": len(moves) / minutes,
        "messages_per_min": (tree + notices) / minutes,
        "tree_messages_per_min": tree / minutes,
        "messages_per_move": (tree + notices) / len(moves) if len(moves) else 0.0,
        "rebuild_ms": MS * sum(built) / len(built) if built else 0.0,
        "rebuild_all_ms": MS * result.rebuild_mean_s,
        "rebuilding_share": len(built) / max(1, len(moves)),
        "teardown_ms": MS * result.teardown_mean_s,
        "visible_wait_ms": MS * result.visible_wait_mean_s,
        "unfinished_moves": result.unfinished,
        "publications": result.publications,
        "delivery_ratio": result.delivery_ratio if result.publications else None,
        "delivered_in_time_ratio": _in_time(result),
        "duplicates": result.duplicates,
        "utilisation_max": max(load.utilisation for load in result.load),
        "utilisation_mean": sum(load.utilisation for load in result.load) / len(result.load),
        "queue_max": max(load.queue_max for load in result.load),
        "hops_total": result.hops_total,
        "drained_s": result.drained_s,
        "worked_off_ratio": result.drained_s / (scenario.warmup_s + scenario.duration_s),
    }
    return row | {f"hops_{kind}": hops for kind, hops in result.hops_by_kind.items()}


def _built(result: RunResult, scenario: Scenario) -> list[float]:
    """The rebuilding times of all moves but those that ended at a proxy of the publisher."""
    rows = zip(to_own_proxy(result, scenario), result.moves.rebuild_s, strict=True)
    return [seconds for own, seconds in rows if not own]


def _in_time(result: RunResult) -> float | None:
    if not result.deliveries_expected:
        return None
    return result.delivered_in_time / result.deliveries_expected
