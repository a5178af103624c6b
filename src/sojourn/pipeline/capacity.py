"""How many brokers a population needs, from what a measured run shows.

How it works:
1. `load_points` gives, for each broker of a trace, how many clients it had on average, what it delivered and
   how busy it was. `throughput_points` gives the same over short windows, for the throughput curve.
2. `fit_curve` draws a polynomial through throughput over clients (paper 001, section 6.3: a cubic, with R2).
3. `measure` joins them with the learnt chain of moves: how long a client stays, how long it is away, which
   broker is the most crowded in the long run.
4. `plan` asks for the smallest number of brokers at which the most crowded one is not busier than wanted.

A broker's busy share is taken as `base + per_client * clients`, fitted over the run's brokers that have
clients, with neither part negative: the base is what a broker does for events of others and grows with the
publishing rate; the part per client grows with the rate as far as it is events, and with moves as far as it
is control messages. Where that line explains less than half (a tree whose inner brokers work for all, say),
all work of all brokers is shared out among the clients instead: dearer, and on the safe side.

Not here: queues and bursts. The plan is about means; the wanted busy share leaves the room for bursts.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from scipy.optimize import nnls

from sojourn.errors import SojournError
from sojourn.mobility.learnt_graph import LearntGraph
from sojourn.pipeline.models import learnt_graph
from sojourn.pipeline.occupancy import OccupancyError, at_brokers, learnt_rates, occupancy
from sojourn.pipeline.tables import Trace, read_table

EVENT_KINDS = ("publish",)
"""Kinds of message that carry events; all others are about interests and moves."""

WINDOW_S = 30.0
"""Over how long the throughput curve's points are averaged."""

LOAD_R2_MIN = 0.5

BROKERS_MAX = 100_000
DEGREE = 3
PAPER_CURVE = (0.0019, -0.2256, 12.362, 1.7111)
"""Equation 16 of paper 001, highest power first: messages a second over expected subscribers."""


class CapacityError(SojournError):
    """A plan cannot be made from this trace, or for these wishes."""


class Curve(NamedTuple):
    """A polynomial with what it rests on."""

    coefficients: tuple[float, ...]
    """Highest power first."""
    r2: float
    low: float
    high: float
    """The clients between which it was measured; outside, it extrapolates."""

    def at(self, clients: float) -> float:
        """The throughput at a number of clients."""
        return float(np.polyval(self.coefficients, clients))


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What one trace says about load."""

    brokers: int
    clients: int
    publications_per_s: float
    deliveries_per_s: float
    stay_s: float
    away_s: float
    crowding: float
    """Clients at the most crowded broker over the mean of those that have any."""
    long_run: bool
    """Whether that is the long run of the learnt chain; if not, the trace was too short for one, and it is
    what was seen."""
    base: float
    per_client: float
    load_r2: float
    """Of the line over clients; not a number where no line could be drawn."""
    shared_out: bool
    """Whether the line was no good and `per_client` is the whole work divided by the clients."""
    control_share: float
    """Of all message-hops, those that are about interests and moves rather than events."""
    curve: Curve | None
    """Throughput over clients; None when the trace has too few different loads for one."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan is asked for; None means as measured."""

    clients: int
    publications_per_s: float | None = None
    stay_s: float | None = None
    busy_max: float = 0.7


class Step(NamedTuple):
    """A number of brokers and what the most crowded of them would see."""

    brokers: int
    clients: float
    busy: float
    deliveries_per_s: float


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest sufficient number of brokers, with its neighbours for comparison."""

    wish: Wish
    measured: Measured
    answer: Step
    beside: list[Step]


# ------------------------------------------------------------------------- transforms


def throughput_points(sojourns: DataFrame, deliveries: DataFrame, window_s: float) -> DataFrame:
    """Mean clients and deliveries a second of each broker in each window of a run."""
    start = sf.col("window") * sf.lit(window_s)
    present = sf.least(sf.col("to_s"), start + window_s) - sf.greatest(sf.col("from_s"), start)
    windows = sf.sequence(sf.floor(sf.col("from_s") / window_s), sf.floor(sf.col("to_s") / window_s))
    crowd = (
        sojourns.where("to_s > from_s")
        .withColumn("window", sf.explode(windows))
        .groupBy("run_id", "broker", "window")
        .agg(_exact_sum(present).alias("client_s"))
    )
    served = (
        deliveries.withColumn("window", sf.floor(sf.col("time_s") / window_s))
        .groupBy("run_id", "broker", "window")
        .agg(sf.count("*").alias("delivered"))
    )
    return (
        crowd.join(served, ["run_id", "broker", "window"], "left")
        .withColumn("clients", sf.col("client_s") / window_s)
        .withColumn("throughput", sf.coalesce("delivered", sf.lit(0)) / sf.lit(window_s))
        .select("run_id", "broker", "window", "clients", "throughput")
    )


def load_points(sojourns: DataFrame, broker_load: DataFrame, runs: DataFrame) -> DataFrame:
    """Mean clients and busy share of each broker of each run, after its warm-up."""
    crowd = (
        sojourns.where("to_s > from_s")
        .groupBy("run_id", "broker")
        .agg(_exact_sum(sf.col("to_s") - sf.col("from_s")).alias("client_s"))
    )
    # A simulated broker says once how busy it was, a live one every few seconds.
    busy = broker_load.groupBy("run_id", "broker").agg(_exact_sum(sf.col("busy_s")).alias("busy_s"))
    return (
        busy.join(sf.broadcast(measured_times(runs)), "run_id")
        .join(crowd, ["run_id", "broker"], "left")
        .withColumn("clients", sf.coalesce("client_s", sf.lit(0.0)) / sf.col("measured_s"))
        .withColumn("busy", sf.col("busy_s") / sf.col("measured_s"))
        .select("run_id", "broker", "clients", "busy")
    )


def measured_times(runs: DataFrame) -> DataFrame:
    """Where each run's measured time begins and ends, and how long it is."""
    return (
        runs.where("duration_s is not null")
        .withColumn("begins_s", sf.coalesce("warmup_s", sf.lit(0.0)))
        .withColumn("measured_s", sf.col("duration_s") - sf.col("begins_s"))
        .where("measured_s > 0")
        .select("run_id", "begins_s", sf.col("duration_s").alias("ends_s"), "measured_s")
    )


def measured_sojourns(sojourns: DataFrame, runs: DataFrame) -> DataFrame:
    """The part of each sojourn in the measured time; those still going on when the run ended end there."""
    return (
        sojourns.join(sf.broadcast(measured_times(runs)), "run_id")
        .withColumn("from_s", sf.greatest("from_s", "begins_s"))
        .withColumn("to_s", sf.least(sf.coalesce("to_s", "ends_s"), "ends_s"))
        .where("to_s > from_s")
        .drop("begins_s", "ends_s", "measured_s")
    )


def within_measured(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """Keep what happened in the measured time of its run."""
    inside = (sf.col("time_s") >= sf.col("begins_s")) & (sf.col("time_s") <= sf.col("ends_s"))
    times = sf.broadcast(measured_times(runs))
    return rows.join(times, "run_id").where(inside).drop("begins_s", "ends_s", "measured_s")


def _exact_sum(seconds: Column) -> Column:
    """Seconds summed as whole microseconds: the same bits in any order."""
    return sf.sum(sf.round(seconds * 1e6).cast("long")) / 1e6


# ---------------------------------------------------------------------------- measuring


def measure(spark: SparkSession, trace: Trace, window_s: float = WINDOW_S) -> tuple[Measured, LearntGraph]:
    """What a trace says about load, and the graph of moves that it rests on."""
    runs, deliveries, load, publications, counts = (
        read_table(spark, trace, table)
        for table in ("runs", "deliveries", "broker_load", "publications", "message_counts")
    )
    stays_told = read_table(spark, trace, "sojourns")
    graph = learnt_graph(stays_told)
    sojourns = measured_sojourns(stays_told, runs).cache()
    publications, deliveries = (within_measured(rows, runs) for rows in (publications, deliveries))
    # In order: what is fitted has the same bits whichever task was done first.
    busy = sorted((row.clients, row.busy) for row in load_points(sojourns, load, runs).collect())
    if not any(share > 0 for _, share in busy):
        raise CapacityError(
            "the trace's brokers were never busy: measure a live run, or simulate with computations that take"
            " time."
        )
    points = throughput_points(sojourns, deliveries, window_s).select("clients", "throughput").collect()
    base, per_client, load_r2 = fit_load([(clients, share) for clients, share in busy if clients > 0])
    shared_out = not load_r2 >= LOAD_R2_MIN or per_client == 0
    if shared_out:
        base, per_client = 0.0, sum(share for _, share in busy) / sum(clients for clients, _ in busy)
    seconds = _one(measured_times(runs).agg(sf.sum("measured_s")))
    hops = {row.kind: row.hops for row in counts.groupBy("kind").agg(sf.sum("hops").alias("hops")).collect()}
    events = sum(hops.get(kind, 0) for kind in EVENT_KINDS)
    stays = sum(stay.stays for stay in graph.stays)
    measured = Measured(
        brokers=int(_one(load.agg(sf.count_distinct("broker")))),
        clients=int(_one(sojourns.agg(sf.count_distinct("client")))),
        publications_per_s=publications.count() / seconds,
        deliveries_per_s=deliveries.count() / seconds,
        stay_s=sum(stay.mean_s * stay.stays for stay in graph.stays) / stays,
        away_s=graph.away_s,
        crowding=crowding(graph) or observed_crowding([clients for clients, _ in busy]),
        long_run=crowding(graph) is not None,
        base=base,
        per_client=per_client,
        load_r2=load_r2,
        shared_out=shared_out,
        control_share=1 - events / sum(hops.values()) if hops else 0.0,
        curve=_curve_or_none(sorted((row.clients, row.throughput) for row in points)),
    )
    sojourns.unpersist()
    return measured, graph


def _one(frame: DataFrame) -> float:
    row = frame.head()
    assert row is not None, "an aggregate without groups has one row"
    if row[0] is None:
        raise CapacityError("the trace says nothing of how long its runs were: wait until one has ended.")
    return float(row[0])


def _curve_or_none(points: Sequence[tuple[float, float]]) -> Curve | None:
    loads = {clients for clients, _ in points}
    served = any(throughput > 0 for _, throughput in points)
    return fit_curve(points) if len(loads) > DEGREE and served else None


# ------------------------------------------------------------------------------- fits


def fit_curve(points: Sequence[tuple[float, float]], degree: int = DEGREE) -> Curve:
    """The least-squares polynomial through (clients, throughput) points, and its R2."""
    ordered = np.array(sorted(points), dtype=float).reshape(-1, 2)
    xs, ys = ordered[:, 0], ordered[:, 1]
    if len(set(xs.tolist())) <= degree:
        raise CapacityError(
            f"the trace has {len(set(xs.tolist()))} different loads and a curve of degree {degree} needs"
            " more: measure longer, or with clients spread less evenly."
        )
    coefficients = np.polyfit(xs, ys, degree)
    r2 = r_squared(ys, np.polyval(coefficients, xs))
    return Curve(tuple(map(float, coefficients)), r2, float(xs.min()), float(xs.max()))


def fit_load(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """The base, the part per client, and R2 of busy share over clients."""
    ordered = np.array(sorted(points), dtype=float).reshape(-1, 2)
    if len(ordered) < 3:
        return 0.0, 0.0, math.nan
    xs, ys = ordered[:, 0], ordered[:, 1]
    found, _ = nnls(np.column_stack([np.ones_like(xs), xs]), ys)
    return float(found[0]), float(found[1]), r_squared(ys, found[0] + found[1] * xs)


def r_squared(observed: np.ndarray, fitted: np.ndarray) -> float:
    """The share of the observed variation that a fit explains; not a number when nothing varies."""
    total = float(np.sum((observed - observed.mean()) ** 2))
    return 1.0 - float(np.sum((observed - fitted) ** 2)) / total if total > 0 else math.nan


def crowding(graph: LearntGraph) -> float | None:
    """How much more crowded than the mean the most crowded broker is in the long run.

    None where there is no long run yet: some brokers were only ever left, or only ever reached.
    """
    stay_s = {stay.broker: stay.mean_s for stay in graph.stays}
    moves = {(edge.at, edge.to): edge.probability for edge in graph.edges}
    try:
        shares = at_brokers(occupancy(learnt_rates(stay_s, max(graph.away_s, 1e-6), moves)))
    except OccupancyError:
        return None
    return max(shares.values()) * len(shares) / sum(shares.values())


def observed_crowding(clients: Sequence[float]) -> float:
    """The same as it was seen, over brokers that had clients."""
    some = [count for count in clients if count > 0]
    return max(some) * len(some) / sum(some) if some else 1.0


# ------------------------------------------------------------------------------- plan


def plan(measured: Measured, wish: Wish) -> Plan:
    """The smallest number of brokers whose most crowded one stays within the wanted busy share."""
    _refuse_bad_wish(wish)
    if wish.publications_per_s is not None and not measured.publications_per_s:
        raise CapacityError(
            "--rate needs a run in which events were published: leave it out, or measure one."
        )
    alone = _step(measured, wish, BROKERS_MAX)
    if alone.busy > wish.busy_max:
        raise CapacityError(
            f"no number of brokers is enough: each is busy {alone.busy:.0%} with events of others alone,"
            f" above the {wish.busy_max:.0%} of --busy; lower --rate, raise --busy or route more selectively."
        )
    low, high = 1, BROKERS_MAX
    while low < high:
        middle = (low + high) // 2
        if _step(measured, wish, middle).busy <= wish.busy_max:
            high = middle
        else:
            low = middle + 1
    around = sorted({max(1, low - 1), low, low + 1, 2 * low})
    return Plan(
        wish=wish,
        measured=measured,
        answer=_step(measured, wish, low),
        beside=[_step(measured, wish, brokers) for brokers in around],
    )


def _step(measured: Measured, wish: Wish, brokers: int) -> Step:
    rate = 1.0
    if wish.publications_per_s is not None:
        rate = wish.publications_per_s / measured.publications_per_s
    stay_s = wish.stay_s or measured.stay_s
    connected = stay_s / (stay_s + measured.away_s)
    # A client that stays shorter moves more often, and every move costs the same control messages.
    moves = (measured.stay_s + measured.away_s) / (stay_s + measured.away_s)
    crowded = measured.crowding if brokers > 1 else 1.0
    clients = min(wish.clients * connected / brokers * crowded, wish.clients * connected)
    share = measured.control_share
    per_client = measured.per_client * ((1 - share) * rate + share * moves)
    delivered = measured.deliveries_per_s / measured.clients * clients / connected * rate
    return Step(brokers, clients, measured.base * rate + per_client * clients, delivered)


def _refuse_bad_wish(wish: Wish) -> None:
    if wish.clients < 1:
        raise CapacityError(f"--subscribers must be at least 1, not {wish.clients}.")
    if not 0 < wish.busy_max <= 1:
        raise CapacityError(f"--busy must be above 0 and at most 1, not {wish.busy_max:g}.")
    for name, value in (("--rate", wish.publications_per_s), ("--stay", wish.stay_s)):
        if value is not None and not value > 0:
            raise CapacityError(f"{name} must be positive, not {value:g}.")
