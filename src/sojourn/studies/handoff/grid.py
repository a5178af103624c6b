"""The grid of the hand-off study: every run that some table, figure or claim of paper 001 needs.

An experiment is one axis, the lines drawn over it, and what it changes in the scenario. A line's second label
(`computations` in the rows that all studies share) is the mobility, or the variant that the experiment is
about. Equal scenarios are one run however many experiments ask for them; seeds are 1, 2, 3, … and the same
in every configuration, so that all schemes see the same subscribers on the same paths.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.scenario import described_from
from sojourn.studies.handoff import parameters
from sojourn.studies.handoff.paper import POPULATIONS, SCHEMES
from sojourn.studies.handoff.parameters import Scale
from sojourn.studies.runner import RunSpec, specify

MOVEMENTS = {"RND": "random", "NBR": "neighbour"}
SCALED = {"queue_mb": ("queue_bytes", 1e6), "client_mbps": ("client_bandwidth_bps", 1e6)}
"""Axes in other units than the scenario's: the factor, and by what it is multiplied."""
WHOLE = frozenset({"subscribers", "queue_bytes"})


class Line(NamedTuple):
    """One line of a figure."""

    series: str
    variant: str
    changes: Mapping[str, object]


class Experiment(NamedTuple):
    """One axis of the evaluation and the lines measured along it."""

    name: str
    axis: str
    values: tuple[float, ...]
    lines: tuple[Line, ...]
    changes: Mapping[str, object]


def schemes(*mobilities: str) -> tuple[Line, ...]:
    """Every scheme under each mobility."""
    return tuple(
        Line(scheme, mobility, {"scheme": scheme, "movement": MOVEMENTS[mobility]})
        for mobility in mobilities
        for scheme in SCHEMES
    )


def experiments(scale: Scale) -> list[Experiment]:
    """All experiments of the study at a scale."""
    return [*_paper(scale), *_beyond(scale), *_readings(scale)]


def _paper(scale: Scale) -> list[Experiment]:
    """What the paper's tables and figures show."""
    populations = tuple(float(count) for count in scale.populations)
    found = [
        # Tables 2 to 4 and Figures 5, 6, 8, 11, 12 and 13.
        Experiment("tables", "subscribers", populations, schemes("RND", "NBR"), {}),
        # Figure 7.
        Experiment("frequency", "connect_s", (60.0, parameters.RARE_CONNECT_S), schemes("RND"), {}),
    ]
    # The tables once more, under other readings.
    tabled = tuple(float(count) for count in scale.populations if count in POPULATIONS)
    found += [
        Experiment(name, "subscribers", tabled, schemes("RND", "NBR"), parameters.READINGS[name].changes)
        for name in scale.readings
    ]
    if scale.factors:
        found += [
            Experiment(
                name, name, values, schemes("RND"), {"subscribers": 100, "duration_s": 4 * scale.cost_s}
            )
            for name, values in parameters.TABLE_1.items()
        ]
    return found


def _beyond(scale: Scale) -> list[Experiment]:
    """What the paper leaves open."""
    costs = tuple(float(count) for count in scale.costs)
    commute = {
        "topology": "grid",
        "brokers": parameters.PREDICTOR_BROKERS,
        "movement": "commute",
        "known_graph": "links",
        "subscribers": 100,
    }
    order_2 = {"predictor": "order-2", "training_s": parameters.TRAINING_S}
    neighbour = {"movement": "neighbour"}
    return [
        Experiment(
            "cost",
            "subscribers",
            costs,
            schemes("NBR"),
            {**parameters.FREE, "duration_s": scale.cost_s, "warmup_s": parameters.COST_WARMUP_S},
        ),
        Experiment(
            "predictor",
            "predictor_mass",
            parameters.PREDICTOR_MASSES,
            (Line("order-2", "commute", order_2),),
            commute,
        ),
        Experiment("predictor-graph", "subscribers", (100.0,), (Line("graph", "commute", {}),), commute),
        Experiment(
            "placement",
            "subscribers",
            (200.0,),
            (Line("own", "NBR", {}), Line("load", "NBR", {"placement": "load"})),
            neighbour,
        ),
        Experiment(
            "both",
            "subscribers",
            (100.0,),
            tuple(
                Line(series, routing, {"routing": routing, "publishers_move": series == "moving"})
                for routing in ("flooding", "content")
                for series in ("still", "moving")
            ),
            neighbour,
        ),
        Experiment(
            "stale",
            "edge_timeout_s",
            (parameters.STALE_TIMEOUT_S,),
            (Line("complete", "NBR", {"known_graph": "complete"}),),
            {**neighbour, "warmup_s": max(scale.warmup_s, 1.25 * parameters.STALE_TIMEOUT_S)},
        ),
    ]


def _readings(scale: Scale) -> list[Experiment]:
    """What the paper leaves open and its tables turn on, read the other way."""
    populations = tuple(float(count) for count in scale.populations if count >= 100)
    return [
        Experiment(
            "window",
            "subscribers",
            populations[-1:],
            schemes("RND", "NBR"),
            {"publish_window": parameters.WINDOW},
        ),
        Experiment(
            "cheap-transfers",
            "subscribers",
            populations[-1:],
            schemes("RND"),
            {"transfer_cost_ms": parameters.MATCH_COST_MS},
        ),
        Experiment(
            "slow-pings", "subscribers", populations[-1:], schemes("RND"), {"ping_s": parameters.SLOW_PING_S}
        ),
        Experiment("refusing", "subscribers", populations[-1:], schemes("RND"), {"queue_evicts": False}),
        # Queues that never overflow: what is lost then is not the queues' fault.
        Experiment("ample", "subscribers", populations[-1:], schemes("RND"), {"queue_bytes": 1_000_000_000}),
    ]


def grid(scale: Scale, seeds: int | None = None) -> list[RunSpec]:
    """Every run specification of the study; a run wanted by two experiments appears in both."""
    return [
        _spec(experiment, line, x, _scenario(experiment, line, x, scale, seed))
        for experiment in experiments(scale)
        for line in experiment.lines
        for x in experiment.values
        for seed in range(1, (seeds or scale.seeds) + 1)
    ]


def _scenario(experiment: Experiment, line: Line, x: float, scale: Scale, seed: int) -> RoamingScenario:
    factor, times = SCALED.get(experiment.axis, (experiment.axis, 1.0))
    values: dict[str, object] = {
        "seed": seed,
        "warmup_s": scale.warmup_s,
        "duration_s": scale.duration_s,
        **parameters.TESTBED,
        **experiment.changes,
        **line.changes,
        factor: round(x * times) if factor in WHOLE else x * times,
    }
    return described_from(values, RoamingScenario)


def _spec(experiment: Experiment, line: Line, x: float, scenario: RoamingScenario) -> RunSpec:
    return specify(
        scenario,
        experiment=experiment.name,
        series=line.series,
        computations=line.variant,
        axis=experiment.axis,
        x=x,
        seed=scenario.seed,
        cost=estimated_work(scenario),
    )


def estimated_work(scenario: RoamingScenario) -> float:
    """About how many deliveries and hand-off messages a run takes; to order runs and tell the time left."""
    seconds = scenario.warmup_s + scenario.duration_s
    work_ms = 3 * (scenario.message_cost_ms + 0.14 * scenario.match_cost_ms * scenario.subscribers)
    per_event_s = work_ms / 1000 + scenario.sleep_s + 0.001
    deliveries = seconds / per_event_s * (10 + scenario.selectivity * scenario.subscribers)
    moves = seconds * scenario.subscribers / (scenario.connect_s + scenario.handoff_s)
    return deliveries + 40 * moves
