from itertools import islice, pairwise
from typing import Any

import pytest

from sojourn.sim.publishers.movement import Move, Movement
from sojourn.sim.scenario import scenario_from
from sojourn.sim.streams import Streams
from sojourn.sim.topology import Topology, make_topology


def _city(**values: Any) -> tuple[Movement, Topology]:
    scenario = scenario_from(values)
    topology = make_topology(scenario)
    return Movement(scenario, topology, Streams(scenario.seed)), topology


def _moves(movement: Movement, publisher: int, count: int = 300) -> list[Move]:
    return list(islice(movement.moves(publisher), count))


def test_straight_on_until_the_end_of_the_city() -> None:
    """A publisher goes leaf by leaf in one direction, at its speed, and turns only at the city's ends."""
    movement, topology = _city(publishers=12)
    place = {leaf: at for at, leaf in enumerate(topology.leaves)}
    for publisher in range(12):
        moves = _moves(movement, publisher)
        assert moves[0].from_broker == movement.start(publisher)
        periods = {round(later.left_s - earlier.left_s, 6) for earlier, later in pairwise(moves)}
        assert len(periods) == 1
        assert periods <= {360.0, 36.0, 18.0}
        for earlier, later in pairwise(moves):
            assert later.from_broker == earlier.to_broker
            assert later.left_s > earlier.arrived_s
            steps = (
                place[earlier.to_broker] - place[earlier.from_broker],
                place[later.to_broker] - place[later.from_broker],
            )
            if steps[0] != steps[1]:
                assert place[later.from_broker] in (0, 63)
        assert all(move.arrived_s == move.left_s + 3 and move.predicted == move.to_broker for move in moves)


def test_all_speeds_and_directions_occur() -> None:
    """Speeds and directions are drawn, each about as often as the others."""
    movement, _ = _city(publishers=300)
    periods, steps = [], []
    for publisher in range(300):
        one, other = _moves(movement, publisher, 2)
        periods.append(round(other.left_s - one.left_s))
        steps.append(one.to_broker - one.from_broker)
    assert all(70 < periods.count(period) < 130 for period in (18, 36, 360))
    assert 120 < steps.count(1) < 180


@pytest.mark.parametrize("movement_name", ["random", "walk", "route", "group", "patrol"])
def test_moves_are_repeatable_and_adjacent(movement_name: str) -> None:
    """Every pattern yields the same moves each time it is asked, between leaves side by side."""
    movement, topology = _city(publishers=20, movement=movement_name, seed=3)
    again, _ = _city(publishers=20, movement=movement_name, seed=3)
    place = {leaf: at for at, leaf in enumerate(topology.leaves)}
    for publisher in range(20):
        moves = _moves(movement, publisher, 60)
        assert moves == _moves(movement, publisher, 60) == _moves(again, publisher, 60)
        assert all(abs(place[move.to_broker] - place[move.from_broker]) == 1 for move in moves)


def test_protocol_and_prediction_leave_paths_alone() -> None:
    """The same seed gives the same path whatever the protocol and however good the prediction."""
    sure, _ = _city(publishers=5, protocol="standard")
    unsure, _ = _city(publishers=5, protocol="prefetching", prediction=0.7)
    right = total = 0
    for publisher in range(5):
        for one, other in zip(_moves(sure, publisher), _moves(unsure, publisher), strict=True):
            assert one[:4] == other[:4]
            right += other.predicted == other.to_broker
            total += 1
    assert 0.66 < right / total < 0.74


def test_prediction_never_right() -> None:
    """With accuracy 0 every guess is a wrong leaf, at the city's ends too."""
    movement, topology = _city(publishers=3, prediction=0.0, speeds_kmh=[100])
    for publisher in range(3):
        for move in _moves(movement, publisher):
            assert move.predicted != move.to_broker
            assert move.predicted in topology.leaves


@pytest.mark.parametrize("overshoot", [0, 1, 5])
def test_patrol_stays_within_overshoot(overshoot: int) -> None:
    """A patrol visits exactly its proxies and as many leaves beyond as the overshoot allows."""
    movement, topology = _city(publishers=40, movement="patrol", overshoot=overshoot)
    place = {leaf: at for at, leaf in enumerate(topology.leaves)}
    for publisher in range(40):
        proxies = [place[leaf] for leaf in movement.proxies(publisher)]
        assert len(proxies) == 5
        assert place[movement.start(publisher)] in proxies
        visited = {place[move.to_broker] for move in _moves(movement, publisher, 60)}
        assert min(visited) == max(0, proxies[0] - overshoot)
        assert max(visited) == min(63, proxies[-1] + overshoot)


def test_group_moves_together() -> None:
    """Publishers of one group take the same road at almost the same time; groups differ."""
    movement, _ = _city(publishers=20, movement="group", group_size=10)
    leader, follower, stranger = (_moves(movement, publisher, 20) for publisher in (0, 9, 10))
    assert [move[2:] for move in leader] == [move[2:] for move in follower]
    assert follower[5].left_s - leader[5].left_s == pytest.approx(0.9)
    assert leader != stranger


def test_speed_each_move() -> None:
    """Drawn at every move, one publisher shows all speeds."""
    movement, _ = _city(publishers=1, speed_drawn="move")
    periods = {round(later.left_s - earlier.left_s) for earlier, later in pairwise(_moves(movement, 0))}
    assert periods == {18, 36, 360}


def test_one_leaf_has_nowhere_to_go() -> None:
    """In a city of one broker nobody moves."""
    movement, _ = _city(publishers=2, topology="chain", brokers=1)
    assert _moves(movement, 0) == []
    assert movement.proxies(1) == (0,)


def test_under_way_is_the_same_road_seen_later() -> None:
    """A publisher under way is where its moves since it set out bring it, its proxies where it set out."""
    fresh, _ = _city(publishers=10)
    later, _ = _city(publishers=10, under_way_s=3600)
    ages = []
    for publisher in range(10):
        road = [(move.from_broker, move.to_broker) for move in _moves(fresh, publisher, 500)]
        moves = _moves(later, publisher, 20)
        ahead = [(move.from_broker, move.to_broker) for move in moves]
        passed = next(at for at in range(len(road)) if road[at : at + 20] == ahead)
        ages.append(_moves(fresh, publisher, 500)[passed].left_s - moves[0].left_s)
        assert moves[0].left_s >= 0
        assert later.start(publisher) == moves[0].from_broker
        assert later.proxies(publisher) == fresh.proxies(publisher)
        assert later.home(publisher) == fresh.start(publisher)
    assert all(0 <= age <= 3600 + 360 for age in ages)
    assert max(ages) - min(ages) > 1000


def test_in_step() -> None:
    """Without spread, publishers of one speed cross borders at the same instants."""
    movement, _ = _city(publishers=10, speeds_kmh=[50], start_spread=0.0)
    assert {_moves(movement, publisher, 1)[0].left_s for publisher in range(10)} == {36.0}


@pytest.mark.parametrize(
    ("movement", "order", "least", "most"),
    [("walk", 1, 0.3, 0.7), ("random", 1, 0.3, 0.7), ("random", 2, 0.95, 1.0)],
)
def test_learnt_predictions_know_what_can_be_known(
    movement: str, order: int, least: float, most: float
) -> None:
    """A coin is not to be foreseen; who goes straight on is, by where it came from and not by where it is."""
    learnt, _ = _city(publishers=20, movement=movement, predictor=f"order-{order}")
    moves = [_moves(learnt, publisher, 40)[2:] for publisher in range(20)]
    right = [move.predicted == move.to_broker for path in moves for move in path]
    assert least <= sum(right) / len(right) <= most
    told, _ = _city(publishers=20, movement=movement)
    paths = [[move.to_broker for move in _moves(city, 3)] for city in (learnt, told)]
    assert paths[0] == paths[1], "who predicts leaves paths alone"
