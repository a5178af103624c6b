"""The grid of the publisher-mobility study: every run that some figure or claim of paper 000 needs.

An experiment is one axis, the lines drawn over it, and what it changes in the scenario. Two experiments
that need the same run share it, because a run is named by a digest of its scenario. Seeds are 1, 2, 3, …
and the same in every configuration, so that all protocols see the same publishers on the same paths.
"""

from collections.abc import Mapping
from typing import NamedTuple

from sojourn.sim.scenario import Scenario, scenario_from
from sojourn.studies.publisher_mobility import parameters
from sojourn.studies.publisher_mobility.parameters import Scale
from sojourn.studies.runner import RunSpec, specify

FOUR = ("standard", "proxy", "delayed", "prefetch-delayed")
"""The protocols of the paper's figures."""


COLLAPSE_FROM = 100.0
"""Publishers from which the growth of Figure 5(b) is judged."""


class Line(NamedTuple):
    """One line of a figure: a protocol under a class of routing computations."""

    protocol: str
    computations: str


class Experiment(NamedTuple):
    """One axis of the evaluation and the lines measured along it."""

    name: str
    axis: str
    values: tuple[float, ...]
    lines: tuple[Line, ...]
    changes: Mapping[str, object]


def lines(protocols: tuple[str, ...], computations: tuple[str, ...]) -> tuple[Line, ...]:
    """Every protocol under every class of computations."""
    return tuple(Line(protocol, model) for model in computations for protocol in protocols)


def experiments(scale: Scale) -> list[Experiment]:
    """All experiments of the study at a scale."""
    publishers = tuple(float(count) for count in scale.publishers)
    return [*_figures(scale, publishers), *_remarks(scale, publishers), *_readings(scale, publishers)]


def _figures(scale: Scale, publishers: tuple[float, ...]) -> list[Experiment]:
    """What the paper's Figures 4 to 11 show."""
    every = ("none", "fast", "complex")
    overshoots = tuple(float(count) for count in scale.overshoots)
    return [
        # Figures 4 and 5; prefetching is in the text only, proxy+delayed a suggestion (section 4.6).
        Experiment(
            "publishers",
            "publishers",
            publishers,
            (*lines((*FOUR, "proxy+delayed"), every), Line("prefetching", "none")),
            {},
        ),
        # Figures 6 and 7.
        Experiment(
            "speed",
            "speed_kmh",
            scale.speeds_kmh,
            (*lines(FOUR, ("none", "complex")), Line("standard", "fast")),
            {},
        ),
        # Figures 8 and 9.
        Experiment(
            "overshoot",
            "overshoot",
            overshoots,
            (
                *lines((*FOUR, "proxy+delayed"), ("none",)),
                *lines(("proxy", "prefetch-delayed"), ("fast", "complex")),
            ),
            {"movement": "patrol"},
        ),
        # Figure 10.
        Experiment(
            "locality",
            "publication_locality",
            scale.localities,
            lines((*FOUR, "proxy+delayed"), ("none", "complex")),
            {},
        ),
        # Figure 11.
        Experiment(
            "delivery",
            "publishers",
            publishers,
            lines(("standard",), every),
            {
                "publish_interval_s": parameters.PUBLISH_INTERVAL_S,
                "duration_s": scale.duration_s * parameters.DELIVERY_SHARE,
            },
        ),
    ]


def _remarks(scale: Scale, publishers: tuple[float, ...]) -> list[Experiment]:
    """What the paper's text, or our own care, asks for beside the figures."""
    return [
        # The remark of section 5.2.4 on a delay shorter than the disconnection.
        Experiment(
            "short-delay",
            "publishers",
            publishers[:1],
            lines(("standard", "delayed"), ("none",)),
            {"unadvertise_delay_s": parameters.SHORT_DELAY_S},
        ),
        # Whether the collapse of Figure 5(b) is steady: the same runs, watched for longer.
        *(
            Experiment(
                f"collapse-x{times}",
                "publishers",
                (publishers[0], publishers[-1]),
                lines(("standard",), ("complex",)),
                {"duration_s": scale.duration_s * times},
            )
            for times in parameters.TREND
        ),
        # The proxy protocol while publishers are still near their proxies.
        Experiment(
            "just-set-out",
            "publishers",
            publishers[:1],
            lines(("proxy", "delayed"), ("none",)),
            {"under_way_s": 0.0},
        ),
        # The same for Figure 6(b).
        Experiment(
            "speed-just-set-out",
            "speed_kmh",
            (scale.speeds_kmh[0], scale.speeds_kmh[-1]),
            lines(FOUR, ("none",)),
            {"under_way_s": 0.0},
        ),
        # Figure 7 with fewer publishers.
        *(
            Experiment(
                f"speed-{count}-publishers",
                "speed_kmh",
                (scale.speeds_kmh[0], scale.speeds_kmh[-1]),
                lines(("standard",), ("none", "complex")),
                {"publishers": count},
            )
            for count in parameters.LIGHT_PUBLISHERS
        ),
        # The number of proxies of a patrol through the same territory (section 5.2.6).
        Experiment(
            "proxies",
            "proxies",
            tuple(float(count) for count in parameters.PROXIES),
            lines(("proxy", "prefetch-delayed"), ("none",)),
            {"movement": "patrol"},
        ),
    ]


def _readings(scale: Scale, publishers: tuple[float, ...]) -> list[Experiment]:
    """What the paper leaves open and Figure 5 turns on, read the other way.

    Speeds may be drawn anew at every move instead of once per publisher, which makes moves four times rarer,
    since a publisher then spends most of its time on slow stretches. Withdrawals may be free, since section
    5.2.2 gives no time for them. Publishers may cross the borders of brokers in step, all at once. And with
    complex an insertion may take the fast class's 2 ms, since section 5.2.2 lets matching alone differ.
    """
    some = tuple(sorted({publishers[0], publishers[-1], *(x for x in publishers if x == COLLAPSE_FROM)}))
    shorter: dict[str, object] = {"duration_s": scale.duration_s * parameters.READING_SHARE}
    slow = lines(("standard", "delayed"), ("complex",))
    fast = (*lines(("standard", "delayed", "prefetch-delayed"), ("fast",)), Line("standard", "none"))
    rarer: dict[str, object] = {"speed_drawn": "move"}
    free: dict[str, object] = {"withdrawals_charged": False}
    in_step: dict[str, object] = {"start_spread": 0.0, "under_way_s": 0.0}
    quick: dict[str, object] = {"insertion_ms": parameters.FAST_INSERTION_MS}
    return [
        Experiment("speed-each-move", "publishers", publishers, slow, rarer),
        Experiment("speed-each-move", "publishers", some, fast, rarer),
        Experiment("both", "publishers", some, slow, rarer | free),
        Experiment("free-withdrawals", "publishers", some, slow, free | shorter),
        Experiment("in-step", "publishers", some, (*slow, *fast), in_step | shorter),
        Experiment("in-step-each-move", "publishers", some, (*slow, *fast), in_step | rarer),
        Experiment("insertion", "publishers", some, slow, quick | shorter),
        Experiment("insertion-each-move", "publishers", some, slow, quick | rarer),
        Experiment("insertion-in-step-each-move", "publishers", some, slow, quick | in_step | rarer),
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


def _scenario(experiment: Experiment, line: Line, x: float, scale: Scale, seed: int) -> Scenario:
    values: dict[str, object] = {
        "seed": seed,
        "warmup_s": scale.warmup_s,
        "duration_s": scale.duration_s,
        "protocol": line.protocol,
        "computations": line.computations,
        "control_bytes": parameters.CONTROL_BYTES,
        "event_bytes": parameters.EVENT_BYTES,
        "under_way_s": parameters.UNDER_WAY_S,
        **experiment.changes,
    }
    if experiment.axis == "speed_kmh":
        values["speeds_kmh"] = (x,)
    elif experiment.axis == "proxies":
        values |= {"proxies": int(x), "overshoot": (parameters.TERRITORY - int(x)) // 2}
    else:
        values[experiment.axis] = x if experiment.axis == "publication_locality" else int(x)
    return scenario_from(values)


def _spec(experiment: Experiment, line: Line, x: float, scenario: Scenario) -> RunSpec:
    return specify(
        scenario,
        experiment=experiment.name,
        series=line.protocol,
        computations=line.computations,
        axis=experiment.axis,
        x=x,
        seed=scenario.seed,
        cost=estimated_hops(scenario),
    )


def estimated_hops(scenario: Scenario) -> float:
    """About how many message-hops a run takes; good enough to order runs and to tell the time left."""
    crossings = [scenario.broker_width_km / speed * 3600 for speed in scenario.speeds_kmh]
    if scenario.speed_drawn == "move":
        rate = len(crossings) / sum(crossings)
    else:
        rate = sum(1 / crossing for crossing in crossings) / len(crossings)
    seconds = scenario.warmup_s + scenario.duration_s
    moves = scenario.publishers * rate * seconds
    # A full flood visits each of 84 links, out and back, and each subscription some six hops both ways.
    asked = scenario.subscribers / scenario.publishers
    full = 2 * 84 + 6 * asked
    per_move = full if not scenario.policies & {"proxy", "delayed"} else 12 + 2 * asked
    events = (
        scenario.publishers * seconds / scenario.publish_interval_s if scenario.publish_interval_s else 0.0
    )
    return moves * per_move + events * (3 + 3 * asked) + 20 * scenario.publishers * scenario.proxies
