"""What sojourns teach agrees with what was planted, and the chain with paper 001's printed digits."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from sojourn.mobility.learnt_graph import LearntGraphError, decode_graph, encode_graph
from sojourn.pipeline import schemas
from sojourn.pipeline.capacity import (
    PAPER_CURVE,
    CapacityError,
    Curve,
    Measured,
    Wish,
    crowding,
    fit_curve,
    fit_load,
    load_points,
    observed_crowding,
    plan,
    throughput_points,
)
from sojourn.pipeline.models import ModelError, learnt_graph, mean_stays, moves, next_brokers
from sojourn.pipeline.occupancy import (
    BUILDING,
    OccupancyError,
    Rate,
    State,
    Times,
    at_brokers,
    learnt_rates,
    neighbour_rates,
    occupancy,
    random_formula,
    random_rates,
)

# ------------------------------------------------------------------------------ chains


def test_random_mobility_gives_the_papers_digits() -> None:
    """Section 6.4: P, hand-off and disconnection for six brokers, and 29.5358 subscribers of 200 at each."""
    shares = occupancy(random_rates(6))
    assert {round(share, 6) for share in at_brokers(shares).values()} == {0.147679}
    assert round(shares[State("handoff")], 6) == 0.025316
    assert round(shares[State("disconnected")], 6) == 0.088608
    assert round(200 * round(at_brokers(shares)["1"], 6), 4) == 29.5358


@pytest.mark.parametrize("brokers", [1, 2, 6, 50, 400])
def test_the_solver_and_the_formula_agree(brokers: int) -> None:
    """Equations 6 to 8 are what the general solver finds, for any number of brokers and any times."""
    times = Times(connect_s=31.0, disconnect_s=7.5, handoff_s=0.4)
    shares = occupancy(random_rates(brokers, times))
    at_broker, handoff, off = random_formula(brokers, times)
    assert list(at_brokers(shares).values()) == pytest.approx([at_broker] * brokers, rel=1e-11)
    assert shares[State("handoff")] == pytest.approx(handoff, rel=1e-11)
    assert shares[State("disconnected")] == pytest.approx(off, rel=1e-11)


def test_neighbour_mobility_gives_the_papers_digits() -> None:
    """Table 5: the six connect states of the building, and the rest together."""
    found = at_brokers(occupancy(neighbour_rates(BUILDING)))
    assert [round(found[str(broker)], 4) for broker in range(1, 7)] == [
        0.1099,
        0.1648,
        0.2198,
        0.1099,
        0.0549,
        0.2198,
    ]
    assert round(1 - sum(found.values()), 4) == 0.1209


def test_the_papers_cubic_gives_its_throughput() -> None:
    """Equation 16 at 29.5358 subscribers; the printed coefficients carry four digits, hence two decimals."""
    assert np.polyval(PAPER_CURVE, 29.5358) == pytest.approx(218.98, abs=0.01)


def test_a_chain_that_falls_apart_is_refused() -> None:
    """The sentence says how many pieces there are."""
    one_way = [Rate(State("connected", "a"), State("connected", "b"), 1.0)]
    with pytest.raises(OccupancyError, match="one piece, not 2"):
        occupancy(one_way)
    with pytest.raises(OccupancyError, match="must be positive"):
        occupancy([Rate(State("a"), State("b"), 0.0)])
    with pytest.raises(OccupancyError, match="at least one"):
        occupancy([])


def test_a_thousand_brokers_are_solved_sparsely() -> None:
    """A grid of 32 by 32 brokers: shares follow the number of neighbours, as for any such walk."""
    side = 32
    edges = [(at, at + 1) for at in range(side * side) if (at + 1) % side]
    edges += [(at, at + side) for at in range(side * (side - 1))]
    found = at_brokers(occupancy(neighbour_rates(edges)))
    assert found["0"] / found["33"] == pytest.approx(2 / 4, rel=1e-9)


# ---------------------------------------------------------------------------- learning


def walk(spark: SparkSession, stays: int, seed: int = 1) -> DataFrame:
    """One client that walks the building's edges at random, always 10 s here and 2 s between."""
    draw = random.Random(seed)
    near: dict[int, list[int]] = {}
    for one, other in BUILDING:
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    at, time_s, rows = 1, 0.0, []
    for _ in range(stays):
        rows.append(("r", "c", f"B{at}", time_s, time_s + 10.0))
        at = draw.choice(near[at])
        time_s += 12.0
    return spark.createDataFrame(rows, schemas.TRACE["sojourns"])


def test_the_learnt_edges_are_the_buildings(spark: SparkSession) -> None:
    """After a long walk every edge is known both ways, and probabilities out of a broker sum to 1."""
    edges = next_brokers(walk(spark, 600)).collect()
    both_ways = {pair for edge in BUILDING for pair in (edge, edge[::-1])}
    assert {(int(edge["at"][1:]), int(edge["to"][1:])) for edge in edges} == both_ways
    for broker in {edge["at"] for edge in edges}:
        assert sum(edge.probability for edge in edges if edge["at"] == broker) == pytest.approx(1.0)


def test_order_two_knows_where_a_client_came_from(spark: SparkSession) -> None:
    """Clients that go a-b-c and d-b-e: at b, order 1 is a coin, order 2 is sure."""
    rows = []
    for client, path in (("x", "abc"), ("y", "dbe")):
        rows += [("r", client, broker, 10.0 * at, 10.0 * at + 8) for at, broker in enumerate(path)]
    sojourns = spark.createDataFrame(rows, schemas.TRACE["sojourns"])
    first = {(row["at"], row["to"]): row.probability for row in next_brokers(sojourns, 1).collect()}
    second = {
        (row["before"], row["at"], row["to"]): row.probability for row in next_brokers(sojourns, 2).collect()
    }
    assert first["b", "c"] == first["b", "e"] == 0.5
    assert second == {("a", "b", "c"): 1.0, ("d", "b", "e"): 1.0}
    with pytest.raises(ModelError, match="order may be 1 or 2"):
        next_brokers(sojourns, 3)


def test_coming_back_is_no_move_and_a_stay_told_twice_is_one(spark: SparkSession) -> None:
    """A disconnection at one broker, an unfinished stay and rows without a name do not become edges."""
    rows = [
        ("r", "c", "a", 0.0, 5.0),
        ("r", "c", "a", 7.0, 9.0),  # back at the same broker
        ("r", "c", "b", 10.0, None),  # told when it began
        ("r", "c", "b", 10.0, 20.0),  # and again when it ended
        ("r", "c", "a", 22.0, None),  # still there
        ("r", None, "a", 1.0, 2.0),
    ]
    found = moves(spark.createDataFrame(rows, schemas.TRACE["sojourns"])).orderBy("left_s").collect()
    assert [(row["at"], row["to"], row.arrived_s, row.left_s, row.away_s) for row in found] == [
        ("a", "b", 0.0, 9.0, 1.0),
        ("b", "a", 10.0, 20.0, 2.0),
    ]


def test_the_graph_survives_its_file_and_predicts(spark: SparkSession) -> None:
    """What is written is what is read, byte for byte; a broken file is one sentence."""
    graph = learnt_graph(walk(spark, 300))
    data = encode_graph(graph)
    assert decode_graph(data) == graph
    assert encode_graph(decode_graph(data)) == data
    assert set(graph.neighbours("B5")) == {"B3"}
    assert graph.next_broker("B5", before="B3") == "B3"
    assert graph.next_broker("B5", before="never") == "B3"
    assert graph.next_broker("nowhere") is None
    for cut in (0, 1, len(data) // 2):
        with pytest.raises(LearntGraphError, match="sojourn learn"):
            decode_graph(data[:cut])


def test_the_same_graph_on_any_partitioning(spark: SparkSession) -> None:
    """Equal sojourns are equal bytes."""
    sojourns = walk(spark, 200)
    files = {encode_graph(learnt_graph(sojourns.repartition(parts))) for parts in (1, 5)}
    assert len(files) == 1


def test_the_learnt_chain_agrees_with_the_walk(spark: SparkSession) -> None:
    """Shares of the long run from the learnt graph are near those that the walk must have."""
    graph = learnt_graph(walk(spark, 4000))
    stay_s = {stay.broker: stay.mean_s for stay in graph.stays}
    chances = {(edge.at, edge.to): edge.probability for edge in graph.edges}
    found = at_brokers(occupancy(learnt_rates(stay_s, graph.away_s, chances)))
    # A walk on a graph is at each broker in proportion to its neighbours: 2, 3, 4, 2, 1, 4 of 16.
    shares = [found[f"B{broker}"] / sum(found.values()) for broker in range(1, 7)]
    assert shares == pytest.approx([2 / 16, 3 / 16, 4 / 16, 2 / 16, 1 / 16, 4 / 16], abs=0.02)
    assert crowding(graph) == pytest.approx(6 * 4 / 16, rel=0.1)
    assert crowding(learnt_graph(walk(spark, 3))) is None
    assert observed_crowding([0.0, 3.0, 1.0]) == 1.5
    assert all(row.mean_s == pytest.approx(10.0) for row in mean_stays(walk(spark, 50)).collect())


def test_a_trace_without_moves_is_refused(spark: SparkSession) -> None:
    """There is nothing to learn from clients that stay."""
    still = spark.createDataFrame([("r", "c", "a", 0.0, 9.0)], schemas.TRACE["sojourns"])
    with pytest.raises(ModelError, match="no move"):
        learnt_graph(still)


# ---------------------------------------------------------------------------- capacity


def test_points_average_clients_and_throughput(spark: SparkSession) -> None:
    """Two clients, one for half a window: 1.5 clients; the third broker served nobody."""
    sojourns = spark.createDataFrame(
        [("r", "x", "a", 0.0, 20.0), ("r", "y", "a", 5.0, 10.0), ("r", "y", "b", 12.0, 20.0)],
        schemas.TRACE["sojourns"],
    )
    deliveries = spark.createDataFrame(
        [("r", "x", "p", at, float(at), "a") for at in range(6)], schemas.TRACE["deliveries"]
    )
    rows = throughput_points(sojourns, deliveries, 10.0).orderBy("broker", "window").collect()
    assert [(row.broker, row.window, row.clients, row.throughput) for row in rows] == [
        ("a", 0, 1.5, 0.6),
        ("a", 1, 1.0, 0.0),
        ("a", 2, 0.0, 0.0),
        ("b", 1, 0.8, 0.0),
        ("b", 2, 0.0, 0.0),
    ]


def test_load_counts_brokers_without_clients(spark: SparkSession) -> None:
    """An inner broker has no clients and still a load."""
    sojourns = spark.createDataFrame([("r", "x", "a", 0.0, 10.0)], schemas.TRACE["sojourns"])
    load = spark.createDataFrame(
        [("r", "a", 5, 4.0, 1, 0.1), ("r", "root", 9, 1.0, 1, 0.1)], schemas.TRACE["broker_load"]
    )
    runs = spark.createDataFrame([("r", "sim", "s", 1, "{}", None, 20.0, 0.0, None)], schemas.TRACE["runs"])
    rows = load_points(sojourns, load, runs).orderBy("broker").collect()
    assert [(row.broker, row.clients, row.busy) for row in rows] == [("a", 0.5, 0.2), ("root", 0.0, 0.05)]


def test_a_cubic_is_found_again() -> None:
    """Points on the paper's cubic give its coefficients and R2 = 1; too few loads are refused."""
    points = [(float(x), float(np.polyval(PAPER_CURVE, x))) for x in range(1, 60)]
    curve = fit_curve(points)
    assert curve.coefficients == pytest.approx(PAPER_CURVE, rel=1e-6)
    assert curve.r2 == pytest.approx(1.0)
    assert curve.at(29.5358) == pytest.approx(218.98, abs=0.01)
    with pytest.raises(CapacityError, match="needs more"):
        fit_curve(points[:3] * 5)


def test_a_load_line_never_falls() -> None:
    """Base and part per client are found again, and never negative, whatever the points."""
    assert fit_load([(x, 0.1 + 0.02 * x) for x in range(9)]) == pytest.approx((0.1, 0.02, 1.0))
    base, per_client, _ = fit_load([(0.0, 0.5), (10.0, 0.1)])
    assert base >= 0
    assert per_client == 0


def measured(**changes: float) -> Measured:
    """Six brokers, 200 clients, a busy share of 0.5% a client."""
    values = {
        "brokers": 6,
        "clients": 200,
        "publications_per_s": 10.0,
        "deliveries_per_s": 800.0,
        "stay_s": 60.0,
        "away_s": 3.0,
        "crowding": 1.2,
        "base": 0.02,
        "per_client": 0.005,
        "load_r2": 0.99,
        "control_share": 0.25,
    } | changes
    return Measured(**values, long_run=True, shared_out=False, curve=Curve(PAPER_CURVE, 0.92, 1.0, 60.0))  # type: ignore[arg-type]  # whatever a case names


def test_the_plan_is_the_smallest_that_fits() -> None:
    """The answer keeps within the wanted share and one broker fewer does not."""
    answer = plan(measured(), Wish(clients=5000, busy_max=0.7))
    steps = {step.brokers: step for step in answer.beside}
    assert answer.answer.busy <= 0.7 < steps[answer.answer.brokers - 1].busy
    # By hand: 5000 x 60/63 x 1.2 / N x 0.005 + 0.02 <= 0.7 gives N >= 42.02.
    assert answer.answer.brokers == 43


def test_more_of_anything_needs_no_fewer_brokers() -> None:
    """Subscribers, events, and shorter stays each raise the number."""
    counts = [plan(measured(), Wish(clients=clients)).answer.brokers for clients in (1, 100, 1000, 10_000)]
    assert counts == sorted(counts)
    usual = plan(measured(), Wish(clients=3000)).answer.brokers
    assert plan(measured(), Wish(clients=3000, publications_per_s=20.0)).answer.brokers > usual
    assert plan(measured(), Wish(clients=3000, stay_s=10.0)).answer.brokers > usual
    assert all(later >= earlier for earlier, later in pairwise(counts))


@pytest.mark.parametrize(
    ("wish", "changes", "sentence"),
    [
        (Wish(clients=0), {}, "--subscribers must be at least 1"),
        (Wish(clients=5, busy_max=1.5), {}, "--busy must be above 0"),
        (Wish(clients=5, publications_per_s=-1.0), {}, "--rate must be positive"),
        (Wish(clients=5, stay_s=math.nan), {}, "--stay must be positive"),
        (Wish(clients=5, publications_per_s=1000.0), {}, "no number of brokers is enough"),
        (Wish(clients=5, publications_per_s=1.0), {"publications_per_s": 0.0}, "--rate needs a run"),
    ],
)
def test_a_wish_that_cannot_be_met_is_one_sentence(
    wish: Wish, changes: dict[str, float], sentence: str
) -> None:
    """Each names the option."""
    with pytest.raises(CapacityError, match=sentence):
        plan(measured(**changes), wish)
