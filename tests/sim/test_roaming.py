"""Movement of subscribers: the paper's states, its chain's occupancy, and files."""

from itertools import islice, pairwise, takewhile
from pathlib import Path

import numpy as np
import pytest

from sojourn.pipeline.occupancy import at_brokers, neighbour_rates, occupancy
from sojourn.sim.roaming.files import Nearest, load_fcd, load_movement, load_points, load_sojourns
from sojourn.sim.roaming.run import BUILDING_LINKS, Recorded, Roaming, RoamingError, Sojourn, Stays, building
from sojourn.sim.streams import Streams
from sojourn.sim.topology import load_topology

TABLE_1 = Stays(60.0, 12.0, 3.0)


def _paths(model: str, seed: int = 1) -> Roaming:
    return Roaming(model, building(), TABLE_1, Streams(seed))


@pytest.mark.parametrize("model", ["random", "neighbour", "commute"])
def test_sojourns_follow_each_other_and_repeat_with_their_seed(model: str) -> None:
    """A client's sojourns never overlap, and the same seed and client give the same ones."""
    one = list(islice(_paths(model).sojourns(3), 500))
    assert one == list(islice(_paths(model).sojourns(3), 500))
    assert one != list(islice(_paths(model).sojourns(4), 500))
    assert all(before.to_s < after.from_s for before, after in pairwise(one))


def test_neighbours_only_along_the_building() -> None:
    """In the neighbour model two sojourns in a row are at one broker or at two that are joined."""
    joined = {frozenset((a - 1, b - 1)) for a, b in BUILDING_LINKS}
    crossed = set()
    for client in range(20):
        for before, after in pairwise(islice(_paths("neighbour").sojourns(client), 300)):
            if before.broker != after.broker:
                crossed.add(frozenset((before.broker, after.broker)))
    assert crossed == joined


def test_time_shares_are_those_of_the_papers_chain() -> None:
    """The share of time at each broker is the stationary one of section 6.2, within three deviations."""
    expected = at_brokers(occupancy(neighbour_rates(BUILDING_LINKS)))
    end_s = 20_000.0
    shares = []
    for seed in range(8):
        spent = np.zeros(6)
        for client in range(25):
            stays = takewhile(lambda stay: stay.from_s < end_s, _paths("neighbour", seed).sojourns(client))
            for stay in stays:
                begin = max(stay.from_s, 2_000.0)
                spent[stay.broker] += max(0.0, min(stay.to_s, end_s) - begin)
        shares.append(spent / (25 * (end_s - 2_000.0)))
    mean, error = np.mean(shares, axis=0), np.std(shares, axis=0, ddof=1) / np.sqrt(8)
    for broker in range(6):
        assert abs(mean[broker] - expected[str(broker + 1)]) < 3 * error[broker] + 1e-4


def test_a_commuter_rarely_turns_back() -> None:
    """Where there is another way, commuters go back where they came from far less often than chance."""
    back = chances = 0
    stays = list(islice(_paths("commute").sojourns(1), 20_000))
    brokers = [stay.broker for stay, after in pairwise(stays) if stay.broker != after.broker]
    degree = [len(near) for near in building().neighbours]
    for before, at, to in zip(brokers, brokers[1:], brokers[2:], strict=False):
        if degree[at] >= 3:
            chances += 1
            back += before == to
    assert back / chances < 0.08


def _fcd(path: Path, places: list[list[tuple[str, float, float]]]) -> Path:
    steps = "".join(
        f'<timestep time="{now}.00">'
        + "".join(f'<vehicle id="{name}" x="{x}" y="{y}" speed="1.0" lane="e_0"/>' for name, x, y in step)
        + "</timestep>"
        for now, step in enumerate(places)
    )
    path.write_text(f'<?xml version="1.0"?><fcd-export>{steps}</fcd-export>', encoding="utf-8")
    return path


NEAR = Nearest(hysteresis_m=10.0, range_m=200.0, away_s=0.5)


def test_vehicles_change_to_the_nearest_broker_only_beyond_the_hysteresis(tmp_path: Path) -> None:
    """On the border nobody flaps: a change needs the other broker to be nearer by the hysteresis."""
    wiggle = [[("car", 50.0 + (3.0 if now % 2 else -3.0), 0.0)] for now in range(20)]
    path = _fcd(tmp_path / "a.fcd.xml", wiggle)
    assert load_fcd(path, [(0.0, 0.0), (100.0, 0.0)], NEAR) == {"car": [Sojourn(0, 0.0, 19.0)]}
    drive = [[("car", 10.0 * now, 0.0)] for now in range(11)]
    stays = load_fcd(_fcd(tmp_path / "b.xml", drive), [(0.0, 0.0), (100.0, 0.0)], NEAR)["car"]
    # At 60 m the far broker is nearer by 20 m for the first time.
    assert stays == [Sojourn(0, 0.0, 6.0), Sojourn(1, 6.5, 10.0)]


def test_vehicles_out_of_range_and_off_the_road_are_not_connected(tmp_path: Path) -> None:
    """A stay ends where the last sight or the range ends, and begins again with the next sight."""
    steps = [[("car", 0.0, 0.0)], [("car", 150.0, 0.0)], [("car", 300.0, 0.0)], [("car", 120.0, 0.0)], [], []]
    stays = load_fcd(_fcd(tmp_path / "a.xml", [*steps, [("bus", 0.0, 0.0)]]), [(0.0, 0.0)], NEAR)
    assert stays == {"car": [Sojourn(0, 0.0, 2.0)]}
    seen = [[("car", 0.0, 0.0)], [("car", 0.0, 0.0)], [], [("car", 0.0, 0.0)], [("car", 0.0, 0.0)]]
    stays = load_fcd(_fcd(tmp_path / "b.xml", seen), [(0.0, 0.0)], NEAR)
    assert stays == {"car": [Sojourn(0, 0.0, 1.0), Sojourn(0, 3.0, 4.0)]}


def test_a_file_of_sojourns_is_taken_as_it_is(tmp_path: Path) -> None:
    """Rows in any order become each client's sojourns in time's order."""
    path = tmp_path / "stays.csv"
    path.write_text("broker,client,from_s,to_s\nB2,x,20,30\nB1,x,0,10\nB6,y,5,9\n", encoding="utf-8")
    paths = Recorded(load_movement(path, building(), None, NEAR))
    assert paths.names == ["x", "y"]
    assert list(paths.sojourns(0)) == [Sojourn(0, 0.0, 10.0), Sojourn(1, 20.0, 30.0)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("client,broker,from_s\nx,B1,0\n", "to_s is missing"),
        ("client,broker,from_s,to_s\nx,B9,0,1\n", "'B9' is no broker"),
        ("client,broker,from_s,to_s\nx,B1,zero,1\n", "numbers of seconds"),
        ("client,broker,from_s,to_s\nx,B1,5,5\n", "must begin at 0 or later and end after"),
        ("client,broker,from_s,to_s\n", "holds no client"),
    ],
)
def test_bad_sojourn_files_get_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """What is wrong with a CSV file is said with its line, where it has one."""
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RoamingError, match=sentence):
        load_sojourns(path, building())
    with pytest.raises(RoamingError, match="cannot be read"):
        load_sojourns(tmp_path / "none.csv", building())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<routes/>", "not with <routes>"),
        ("<fcd-export><timestep time='0'>", "not well-formed XML"),
        ("<fcd-export><timestep time='0'><vehicle id='a' x='1'/></timestep></fcd-export>", "an id, x and y"),
        ("<fcd-export><timestep time='soon'/></fcd-export>", "must have a time"),
        ("<fcd-export/>", "holds no client"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><fcd-export/>", "declares entities"),
    ],
)
def test_bad_floating_car_files_get_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """What is wrong with an FCD file is said in one sentence, never as a parser's own words alone."""
    path = tmp_path / "bad.xml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RoamingError, match=sentence):
        load_fcd(path, [(0.0, 0.0)], NEAR)
    with pytest.raises(RoamingError, match="cannot be read"):
        load_fcd(tmp_path / "none.xml", [(0.0, 0.0)], NEAR)


def test_stays_at_two_brokers_at_once_are_refused() -> None:
    """A client cannot be in two places."""
    with pytest.raises(RoamingError, match="at two brokers"):
        Recorded({"x": [Sojourn(0, 0.0, 10.0), Sojourn(1, 9.0, 20.0)]})


def test_brokers_as_points_come_from_the_topology_file(tmp_path: Path) -> None:
    """Every broker needs a place of two numbers; without the table there are none."""
    path = tmp_path / "net.toml"
    path.write_text('links = [["a", "b"]]\n[points]\na = [0, 1.5]\nb = [2, 3]\n', encoding="utf-8")
    assert load_points(path, load_topology(path)) == [(0.0, 1.5), (2.0, 3.0)]
    path.write_text('links = [["a", "b"]]\n[points]\na = [0, 1.5]\n', encoding="utf-8")
    with pytest.raises(RoamingError, match="must give broker 'b' a place"):
        load_points(path, load_topology(path))
    path.write_text('links = [["a", "b"]]\n', encoding="utf-8")
    assert load_points(path, load_topology(path)) is None
    with pytest.raises(RoamingError, match=r"\[points\]"):
        load_movement(tmp_path / "x.xml", load_topology(path), None, NEAR)
