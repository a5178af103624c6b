"""The grid of the architectures study: every task that some claim, figure or table needs."""

from typing import Any, NamedTuple

import msgspec

from sojourn.sim.edge.roaming import EdgeRoaming
from sojourn.sim.edge.workload import VALUES, Workload
from sojourn.sim.election.history import History
from sojourn.studies.architectures import parameters
from sojourn.studies.architectures.parameters import Scale
from sojourn.studies.architectures.situations import ARCHITECTURES, SITUATIONS
from sojourn.studies.architectures.spec import Run
from sojourn.studies.runner import RunSpec, specify

PLAIN = "without quenching"


class Point(NamedTuple):
    """One point of one line, and its estimated milliseconds."""

    experiment: str
    series: str
    axis: str
    x: float
    run: Run
    cost: float


def grid(scale: Scale, seeds: int | None = None) -> list[RunSpec]:
    """Every task of the study; `seeds` overrides the seeds per point."""
    count = seeds or scale.seeds
    return [
        _spec(point, seed)
        for point in [
            *_quench(scale),
            *_offline(),
            *_scaling(scale),
            *_queues(scale),
            *_replicas(),
            *_advice(scale),
        ]
        for seed in range(1, count + 1)
    ] + [_spec(point, point.run.seed) for point in [*_once(scale), *_roams(scale), *_heals(scale)]]


def _workload(**changes: Any) -> Workload:
    return Workload(
        **{"areas": parameters.AREAS, "event_bytes": parameters.EVENT_BYTES, **changes},
    )


def _once(scale: Scale) -> list[Point]:
    run = Run(kind="table1", events_max=scale.events_max)
    return [Point("table1", "", "events", float(scale.events_max), run, 5000.0)]


def _quench(scale: Scale) -> list[Point]:
    found = []
    for unmatched in scale.unmatched:
        wanted = 1 - unmatched
        workload = _workload(
            wanted_share=wanted, width=max(1, round(VALUES * wanted * parameters.QUENCH_COVERS))
        )
        base = Run(
            kind="quench",
            subscriptions=parameters.QUENCH_SUBSCRIPTIONS,
            sources=parameters.QUENCH_SOURCES,
            workload=workload,
        )
        for churn in scale.churns:
            runs = {PLAIN: base} | {
                mode: msgspec.structs.replace(base, quench=True, narrow_after=after, alternatives_max=most)
                for mode, (after, most) in parameters.QUENCH_MODES.items()
            }
            for series, run in runs.items():
                events = parameters.events_at(churn, parameters.QUENCH_EVENTS)
                changed = msgspec.structs.replace(run, churn=churn, events=events)
                cost = 100.0 + 2 * events + 8 * churn * events * run.quench
                found.append(Point(f"quench {churn:g}", series, "unmatched", unmatched, changed, cost))
    return found


def _offline() -> list[Point]:
    return [
        Point(
            "offline",
            f"{share:.0%} new",
            "buffer",
            float(buffer),
            Run(
                kind="offline",
                quench=True,
                subscriptions=parameters.OFFLINE_SUBSCRIPTIONS,
                events=parameters.OFFLINE_EVENTS,
                workload=_workload(width=parameters.OFFLINE_WIDTH),
                buffer_events=buffer,
                new_share=share,
            ),
            150.0,
        )
        for share in parameters.OFFLINE_NEW
        for buffer in parameters.OFFLINE_BUFFERS
    ]


def _scaling(scale: Scale) -> list[Point]:
    found = []
    for brokers in scale.brokers:
        names = ["central"] if brokers == 1 else ["broadcast", "flooding", "multicast"]
        for name in names:
            run = _spread(name, brokers, parameters.SCALING_WIDTH)
            found.append(Point("brokers", name, "brokers", float(brokers), run, 300.0 + 60 * brokers))
    for width in scale.widths:
        for name in ("broadcast", "multicast"):
            run = _spread(name, parameters.SCALING_BROKERS, width)
            found.append(Point("selectivity", name, "width", float(width), run, 1300.0))
    return found


def _spread(name: str, brokers: int, width: int) -> Run:
    return Run(
        kind="scaling",
        architecture=name,
        brokers=brokers,
        subscriptions=parameters.SCALING_SUBSCRIPTIONS,
        events=parameters.SCALING_EVENTS,
        workload=_workload(width=width),
    )


def _queues(scale: Scale) -> list[Point]:
    return [
        Point(
            "queues",
            policy,
            "missed",
            float(absence),
            Run(
                kind="queues",
                policy=policy,
                events=absence,
                streams=parameters.QUEUE_STREAMS,
                workload=_workload(),
            ),
            20.0 + absence,
        )
        for policy in parameters.QUEUE_POLICIES
        for absence in scale.absences
    ]


def _replicas() -> list[Point]:
    return [
        Point(
            "replicas",
            f"{brokers} brokers" if brokers > 1 else "1 broker",
            "loss",
            loss,
            Run(
                kind="replicas",
                brokers=brokers,
                sources=4,
                events=parameters.REPLICA_EVENTS,
                loss=loss,
                workload=_workload(areas=2, width=600),
            ),
            400.0 * brokers,
        )
        for brokers in (1, 2, 3)
        for loss in parameters.REPLICA_LOSSES
    ]


def _blocks(point: Point, total: int, block: int, first: int = 1) -> list[Point]:
    found = []
    for start in range(first, first + total, block):
        count = min(block, first + total - start)
        run = msgspec.structs.replace(point.run, seed=start, block=count)
        found.append(point._replace(run=run, cost=point.cost * count))
    return found


def _roams(scale: Scale) -> list[Point]:
    found = []
    for coordination in ("log", "wait", "careless"):
        for architecture in ("multicast", "broadcast"):
            roaming = EdgeRoaming(architecture=architecture, coordination=coordination)
            run = Run(kind="roam", roaming=roaming)
            point = Point("roam", f"{coordination}, {architecture}", "seed", 0.0, run, 150.0)
            # Without asking, a few runs are enough to see what asking is for.
            total = scale.roams if coordination != "careless" else max(1, scale.roams // 5)
            found += _blocks(point, total, parameters.ROAM_BLOCK)
    return found


def _heals(scale: Scale) -> list[Point]:
    point = Point("heal", "", "seed", 0.0, Run(kind="heal", history=History()), 60.0)
    found = _blocks(point, scale.heals, parameters.HEAL_BLOCK)
    for refresh_s in scale.refreshes_s:
        history = History(
            refresh_s=refresh_s,
            phase_s=parameters.PHASES_OF_REFRESH * refresh_s,
            off_share=0.0,
            publish_s=refresh_s,
        )
        run = Run(kind="heal", history=history)
        point = Point("refresh", "", "refresh", refresh_s, run, 70.0)
        found += _blocks(point, scale.refresh_heals, parameters.HEAL_BLOCK)
    return found


def _advice(scale: Scale) -> list[Point]:
    found = []
    for place, situation in enumerate(SITUATIONS[: scale.situations]):
        for name, (architecture, quench) in ARCHITECTURES.items():
            run = Run(
                kind="advice",
                architecture=architecture,
                quench=quench,
                brokers=1 if architecture == "central" else situation.brokers,
                subscriptions=situation.subscriptions,
                sources=situation.sources,
                events=parameters.events_at(max(situation.churn, situation.moves), parameters.ADVICE_EVENTS),
                workload=_workload(width=situation.width, wanted_share=situation.wanted_share),
                churn=situation.churn,
                moves=0.0 if architecture == "central" else situation.moves,
            )
            cost = 300.0 + 20 * situation.brokers + quench * (2000.0 + 4000 * (situation.churn > 0))
            found.append(Point("advice", name, "situation", float(place), run, cost))
    return found


def _spec(point: Point, seed: int) -> RunSpec:
    run = msgspec.structs.replace(point.run, seed=seed)
    return specify(
        run,
        experiment=point.experiment,
        series=point.series,
        axis=point.axis,
        x=point.x,
        seed=seed,
        cost=point.cost,
    )
