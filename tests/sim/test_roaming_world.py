"""The world of roaming subscribers: guarantees with ample queues, and that a seed repeats a run."""

from pathlib import Path
from typing import Any

import pytest

from sojourn.sim.recorder import Recorder
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.world import RoamingWorld
from sojourn.sim.scenario import ScenarioError, described_from

COSTS: dict[str, Any] = {"message_cost_ms": 2.0, "match_cost_ms": 0.2, "transfer_cost_ms": 2.0}
SHORT: dict[str, Any] = {"subscribers": 40, "warmup_s": 20.0, "duration_s": 60.0, "connect_s": 12.0, **COSTS}
AMPLE: dict[str, Any] = {**SHORT, "queue_bytes": 1_000_000_000}


@pytest.mark.parametrize("scheme", ["reactive", "proactive"])
@pytest.mark.parametrize("routing", ["flooding", "content"])
@pytest.mark.parametrize("movement", ["random", "neighbour"])
def test_with_ample_queues_nothing_is_lost_doubled_or_disordered(
    scheme: str, routing: str, movement: str
) -> None:
    """Broken links, undetected for seconds, cost no event and double none, over either routing."""
    scenario = RoamingScenario(**AMPLE, scheme=scheme, routing=routing, movement=movement)
    result = RoamingWorld(scenario).run()
    assert result.moves > 50
    assert result.expected > 1_000
    assert (result.unique, result.doubled, result.late) == (result.expected, 0, 0)


@pytest.mark.parametrize("routing", ["flooding", "content"])
def test_publishers_and_subscribers_may_move_in_one_run(routing: str) -> None:
    """Several moving publishers: nothing is doubled or disordered, and over flooding nothing is lost.

    Over content routing a publisher that speaks before its tree has grown is not heard everywhere (paper
    000), whatever subscribers do: that may cost a few events in ten thousand here.
    """
    scenario = RoamingScenario(**AMPLE, routing=routing, publishers=3, publishers_move=True, sleep_s=0.05)
    result = RoamingWorld(scenario).run()
    assert result.expected > 1_000
    assert (result.doubled, result.late) == (0, 0)
    assert result.expected - result.unique <= (result.expected / 1_000 if routing == "content" else 0)


def test_durable_subscriptions_double_and_small_queues_lose() -> None:
    """Without coordination old brokers replay; and a queue of a few events loses, and says so."""
    durable = RoamingWorld(RoamingScenario(**AMPLE, scheme="durable")).run()
    assert durable.duplicates > 0
    assert durable.doubled > 0
    for evicts in (True, False):
        small = {**SHORT, "queue_bytes": 20_480, "queue_evicts": evicts}
        tight = RoamingWorld(RoamingScenario(**small, scheme="reactive")).run()
        assert tight.unique < tight.expected
        assert sum(tight.drops.values()) > 0


def test_a_seed_repeats_a_run_to_the_last_row() -> None:
    """Two runs of one scenario record the same trace; another seed records another one."""

    def trace(seed: int) -> dict[str, dict[str, list[object]]]:
        recorder = Recorder("r", study="test", messages=True)
        RoamingWorld(RoamingScenario(**{**SHORT, "duration_s": 10.0}, seed=seed), recorder=recorder).run()
        return recorder.tables

    assert trace(3) == trace(3)
    assert trace(3)["sojourns"] != trace(4)["sojourns"]


def test_detection_by_pings_sets_when_copies_are_activated() -> None:
    """With slower pings more subscribers arrive before their old broker has noticed, and fetch."""
    quick = RoamingWorld(RoamingScenario(**AMPLE, ping_s=0.2)).run()
    slow = RoamingWorld(RoamingScenario(**AMPLE, ping_s=2.0)).run()
    assert quick.how["copy"] > slow.how["copy"]
    assert quick.how["fetched"] < slow.how["fetched"]


def test_load_aware_placement_evens_out_the_brokers() -> None:
    """Redirected clients leave the crowded brokers of the building, and lose nothing by it."""
    crowded = {**AMPLE, "subscribers": 60, "movement": "neighbour"}
    own = RoamingWorld(RoamingScenario(**crowded)).run()
    load = RoamingWorld(RoamingScenario(**crowded, placement="load")).run()
    assert load.redirects > 0
    assert max(b.present for b in load.brokers) < max(b.present for b in own.brokers)
    assert (load.unique, load.doubled) == (load.expected, 0)


def test_an_order_2_predictor_keeps_fewer_copies() -> None:
    """Commuters seldom turn back, so fewer copies than one a neighbour do; nothing is lost either way."""
    commute = {**AMPLE, "topology": "grid", "brokers": 16, "movement": "commute", "known_graph": "links"}
    graph = RoamingWorld(RoamingScenario(**commute)).run()
    order_2 = RoamingWorld(RoamingScenario(**commute, predictor="order-2", training_s=1800.0)).run()
    assert order_2.passive_copies < 0.9 * graph.passive_copies
    assert order_2.unique == order_2.expected


def test_vehicles_of_a_floating_car_file_are_handed_over(tmp_path: Path) -> None:
    """Cars drive past three brokers and back: each gets everything once, whoever is nearest."""
    network = tmp_path / "net.toml"
    points = "[points]\na = [0, 0]\nb = [100, 0]\nc = [200, 0]\n"
    network.write_text(f'links = [["a", "b"], ["b", "c"]]\n{points}', encoding="utf-8")
    steps = []
    for now in range(80):
        east = 5.0 * now if now < 40 else 400 - 5.0 * now
        cars = [("east", east), ("west", 200 - east)]
        vehicles = "".join(f'<vehicle id="{name}" x="{x}" y="3"/>' for name, x in cars)
        steps.append(f'<timestep time="{now}">{vehicles}</timestep>')
    traffic = tmp_path / "traffic.xml"
    traffic.write_text(f"<fcd-export>{''.join(steps)}</fcd-export>", encoding="utf-8")
    files: dict[str, Any] = {
        "topology": "file",
        "topology_file": str(network),
        "movement": "file",
        "movement_file": str(traffic),
    }
    times: dict[str, Any] = {"warmup_s": 5.0, "duration_s": 70.0, "handoff_s": 1.0, "sleep_s": 0.05}
    result = RoamingWorld(RoamingScenario(**files, **times, **COSTS)).run()
    assert result.moves == 8
    assert result.expected > 100
    assert (result.unique, result.doubled, result.late) == (result.expected, 0, 0)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"scheme": "lazy"}, "scheme may be durable, reactive, proactive"),
        ({"movement": "file"}, "movement_file must name a file"),
        ({"predictor": "order-2"}, "graph_file must name a file, or training_s"),
        ({"client_loss": 0.95}, "client_loss must lie between 0 and 0.9"),
        ({"link_latency_ms": 0.0}, "sleep_s must be more than 0"),
        ({"speed": 3}, "speed is no parameter"),
        ({"movement": "file", "movement_file": "x", "publishers_move": True}, "publishers_move needs drawn"),
    ],
)
def test_bad_scenarios_get_one_sentence(values: dict[str, object], sentence: str) -> None:
    """The sentence names the parameter and what it may be."""
    with pytest.raises(ScenarioError, match=sentence):
        described_from(values, RoamingScenario)


def test_slower_machines_take_longer_and_hold_everybody_up() -> None:
    """Where brokers take twice as long, an event does there and nowhere else, and fewer are published."""
    quiet = {**SHORT, "match_cost_ms": 0.0, "transfer_cost_ms": 0.0}  # an event costs the same everywhere
    plain = RoamingWorld(RoamingScenario(**quiet)).run()
    slow = RoamingWorld(RoamingScenario(**quiet, slow_brokers="B3, B4", slow_times=2.0)).run()
    for before, after in zip(plain.brokers, slow.brokers, strict=True):
        times = 2.0 if after.name in ("B3", "B4") else 1.0
        assert after.event_ms == pytest.approx(times * before.event_ms)
    assert slow.published < plain.published
    with pytest.raises(ScenarioError, match="slow_brokers must be brokers of the network"):
        RoamingWorld(RoamingScenario(**quiet, slow_brokers="B9"))


@pytest.mark.parametrize("client_loss", [0.0, 0.01])
def test_doubled_packets_take_the_air_twice_and_reach_nobody_twice(client_loss: float) -> None:
    """With every packet doubled, events take longer by one more time on the air, and none is doubled."""
    still = {**AMPLE, "connect_s": 1e6, "client_loss": client_loss, "client_bandwidth_bps": 1e6}
    still |= {"sleep_s": 0.5}  # so that no event waits for the air
    plain = RoamingWorld(RoamingScenario(**still)).run()
    doubled = RoamingWorld(RoamingScenario(**still, client_duplication=1.0)).run()
    on_the_air_s = 1024 * 8 / 1e6
    assert doubled.latency_s - plain.latency_s == pytest.approx(on_the_air_s, rel=0.2)
    assert (doubled.unique, doubled.duplicates) == (doubled.expected, 0)
