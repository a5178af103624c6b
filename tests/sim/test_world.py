"""The world around the cores: timing, counting, determinism, honesty about what did not finish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sojourn.routing.messages import Kind
from sojourn.routing.neighbours import bits
from sojourn.sim.publishers import world as world_module
from sojourn.sim.publishers.costs import CalibrationError, interpolate, load_calibration, service_times
from sojourn.sim.publishers.world import World
from sojourn.sim.recorder import NAMES, Recorder
from sojourn.sim.results import RunResult
from sojourn.sim.scenario import Scenario
from sojourn.sim.servers import Site
from sojourn.sim.topology import build

SMALL: dict[str, Any] = {
    "publishers": 8,
    "subscribers": 20,
    "tree_height": 3,
    "warmup_s": 30.0,
    "duration_s": 120.0,
    "speeds_kmh": (100.0,),
}
PROTOCOLS = ("standard", "prefetching", "proxy", "delayed", "prefetch-delayed", "proxy+delayed")


def scenario(**values: Any) -> Scenario:
    """A small scenario with some factors changed."""
    return Scenario(**{**SMALL, **values})


def run(**values: Any) -> RunResult:
    """The result of a small scenario."""
    return World(scenario(**values)).run()


def trace(**values: Any) -> str:
    """Everything a small run records, as text."""
    recorder = Recorder("r", messages=True)
    World(scenario(publish_interval_s=2.0, **values), recorder=recorder).run()
    return json.dumps(recorder.tables)


@pytest.mark.parametrize("computations", ["none", "fast"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_same_seed_same_bytes(protocol: str, computations: str) -> None:
    """A run is a function of its scenario, to the last byte of its trace."""
    one = trace(protocol=protocol, computations=computations)
    assert one == trace(protocol=protocol, computations=computations)
    assert one != trace(protocol=protocol, computations=computations, seed=2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("topology", ["tree", "ring", "chain", "star"])
def test_delivers_what_the_oracle_expects(protocol: str, topology: str) -> None:
    """On any network nearly everything arrives, once; what is lost was sent while a tree was being built."""
    result = run(protocol=protocol, topology=topology, brokers=12, publish_interval_s=1.0)
    assert result.deliveries_expected > 500
    assert result.delivery_ratio > 0.98
    assert result.duplicates == 0
    assert result.quiet


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_is_left_over(protocol: str) -> None:
    """Once quiet, brokers hold the publishers where they are and at their proxies, and no timer runs."""
    world = World(scenario(protocol=protocol, prediction=0.5))
    world.run()
    expected = {(at, publisher) for publisher, at in enumerate(world.at)}
    if "proxy" in protocol:
        expected |= {(at, who) for who in range(8) for at in world.movement.proxies(who)}
    held = {(site.number, client) for site in world.sites for client in site.broker.stays}
    assert held == expected
    assert not any(site.timers for site in world.sites)
    assert not any(world.causes.pending)


def test_grafting_costs_less_than_rebuilding() -> None:
    """Delayed sends a fraction of standard's messages, and prefetch-delayed hides its time."""
    standard, delayed, hidden = (run(protocol=name) for name in ("standard", "delayed", "prefetch-delayed"))
    assert standard.tree_messages > 3 * delayed.tree_messages
    assert standard.rebuild_mean_s > delayed.rebuild_mean_s
    assert hidden.rebuild_mean_s == pytest.approx(delayed.rebuild_mean_s)
    assert hidden.visible_wait_mean_s == 0.0
    assert delayed.visible_wait_mean_s > delayed.rebuild_mean_s


def two_brokers(**values: Any) -> World:
    """A publisher that moves between two brokers, with a subscriber."""
    topology = build(2, [(0, 1)], leaves=(0, 1))
    return World(scenario(publishers=1, subscribers=1, **values), topology=topology)


def test_rebuilding_time_by_hand() -> None:
    """Two hops of 100 bytes: each 0.08 ms on the wire and 2 ms on the way; the client's link is apart."""
    result = two_brokers().run()
    hop_s = 100 * 8 / 10e6 + 0.002
    client_s = 100 * 8 / 128e3 + 0.002
    for row in range(len(result.moves)):
        hops = result.moves.advertise[row] + result.moves.subscribe[row]
        assert result.moves.rebuild_s[row] == pytest.approx(hops * hop_s)
        assert result.moves.visible_wait_s[row] == pytest.approx(hops * hop_s + client_s)
        assert result.moves.client_messages[row] == 1


def test_computations_are_charged_where_the_paper_says() -> None:
    """Fast: 2 ms for the advertisement at each broker, 4 ms for the subscription it brings back."""
    free, fast = two_brokers().run(), two_brokers(computations="fast").run()
    for row in range(len(fast.moves)):
        extra = fast.moves.rebuild_s[row] - free.moves.rebuild_s[row]
        # The new root and the other broker each handle the advertisement, the new root a subscription.
        assert extra == pytest.approx(0.002 * 2 + 0.004 * fast.moves.subscribe[row])


def test_service_times_of_section_5_2_2() -> None:
    """Publication, subscription, advertisement; withdrawals cost what they withdraw."""
    fast = service_times(scenario(computations="fast"))
    slow = service_times(scenario(computations="complex"))
    assert fast is not None
    assert slow is not None
    works = (Kind.PUBLISH, Kind.SUBSCRIBE, Kind.UNSUBSCRIBE, Kind.ADVERTISE, Kind.UNADVERTISE)
    assert [fast(work, 0) for work in works] == [0.002, 0.004, 0.004, 0.002, 0.002]
    assert [slow(work, 0) for work in works] == pytest.approx([0.14, 0.28, 0.28, 0.14, 0.14])


def test_a_proxy_needs_no_work_when_its_publisher_comes() -> None:
    """Moving among proxies is free of messages and of computations."""
    result = run(protocol="proxy", movement="patrol", computations="complex")
    assert result.tree_messages == 0
    assert result.rebuild_mean_s == 0.0
    assert result.visible_wait_mean_s == 0.0


def test_an_overloaded_world_is_reported_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues that grow stay within memory; what the world could not finish is a marked lower bound."""
    overload = {"computations": "complex", "total_subscriptions": 2_000_000}
    drained = run(**overload)
    assert drained.quiet
    assert drained.unfinished == 0
    assert drained.backlog_max > 100
    assert max(load.utilisation for load in drained.load) == 1.0
    monkeypatch.setattr(world_module, "DRAIN_MAX_S", 10.0)
    cut = run(**overload)
    assert not cut.quiet
    assert cut.unfinished > 0
    assert all(
        some <= whole + 1e-9 for some, whole in zip(cut.moves.rebuild_s, drained.moves.rebuild_s, strict=True)
    )
    monkeypatch.setattr(world_module, "BACKLOG_MAX", 50)
    stopped = run(**overload)
    assert not stopped.quiet
    assert stopped.backlog_max == 51


def test_queue_and_load_are_measured() -> None:
    """A busy broker shows it; without computations nobody is ever busy."""
    busy = run(computations="complex")
    assert max(load.queue_max for load in busy.load) > 0
    assert all(0 <= load.utilisation <= 1 for load in busy.load)
    assert sum(load.queue_mean for load in busy.load) > 0
    idle = run()
    assert {load.busy_s for load in idle.load} == {0.0}
    assert sum(load.handled for load in idle.load) > sum(idle.hops_by_kind.values()) * 0.99


def test_hops_of_moves_add_up() -> None:
    """Every hop between brokers belongs to a move, and the trace counts the same."""
    recorder = Recorder("r", messages=True)
    world = World(scenario(warmup_s=0.0), recorder=recorder)
    result = world.run()
    assert sum(result.moves.hops) == result.hops_total
    assert len(recorder.tables["messages"]["kind"]) == result.hops_total
    assert sum(recorder.tables["message_counts"]["hops"]) == result.hops_total


def test_trace_has_the_agreed_columns() -> None:
    """Every table's columns are of equal length, and a hand-off is ready when its tree stands."""
    recorder = Recorder("r")
    World(scenario(publish_interval_s=5.0), recorder=recorder).run()
    for table, columns in recorder.tables.items():
        assert tuple(columns) == ("run_id", *NAMES[table])
        assert len({len(values) for values in columns.values()}) == 1
    handoffs = recorder.tables["handoffs"]
    assert all(
        ready >= arrived for ready, arrived in zip(handoffs["ready_s"], handoffs["arrived_s"], strict=True)
    )
    assert recorder.tables["messages"]["kind"] == []
    assert len(recorder.tables["deliveries"]["client"]) > 0


def test_observer_sees_moves_and_hops() -> None:
    """Whoever watches is told what happens, in the order of time."""
    seen: list[tuple[float, tuple[Any, ...]]] = []
    World(scenario(protocol="delayed"), observer=lambda now, what: seen.append((now, what))).run()
    assert [now for now, _ in seen] == sorted(now for now, _ in seen)
    assert {what[0] for _, what in seen} == {"left", "arrived", "hop", "built", "torn-down"}


def test_progress_reaches_the_end() -> None:
    """The share that is done grows to 1."""
    shares: list[float] = []
    World(scenario()).run(shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_one_event_for_several_neighbours_is_only_a_shortcut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning every hop by itself gives the same run to the last byte."""
    whole = trace(protocol="delayed")

    def emit_one_by_one(world: World, site: Site, now: float) -> None:
        sends = [(bit, message) for mask, message in site.sends for bit in bits(mask)]
        site.sends[:] = sends
        plain(world, site, now)

    plain = World._emit
    monkeypatch.setattr(World, "_emit", emit_one_by_one)
    assert trace(protocol="delayed") == whole


def test_covering_changes_no_delivery() -> None:
    """With wide subscriptions, covering sends no more messages, and what arrives is the same."""
    wide = {"specificity": 0.6, "publish_interval_s": 2.0, "subscribers": 60, "protocol": "delayed"}
    on, off = run(**wide), run(covering=False, **wide)
    assert on.deliveries_expected == off.deliveries_expected
    assert on.delivery_ratio > 0.98
    assert off.delivery_ratio > 0.98
    assert on.tree_messages <= off.tree_messages


def test_an_insertion_costs_a_match_or_what_is_given() -> None:
    """Complex charges a subscription two matches of 140 ms, or one and an insertion of 2 ms."""
    for given, expected_s in ((0.0, 0.28), (2.0, 0.142)):
        times = service_times(scenario(computations="complex", insertion_ms=given))
        assert times is not None
        assert times(Kind.SUBSCRIBE, 10) == pytest.approx(expected_s)
        assert times(Kind.ADVERTISE, 10) == pytest.approx(0.14)


def test_measured_costs_come_from_the_calibration(tmp_path: Path) -> None:
    """Between the measured sizes seconds are interpolated; N = 0 means the broker's own table."""
    path = tmp_path / "calibration.json"
    points = [[10, 0.001], [1000, 0.1]]
    path.write_text(json.dumps(dict.fromkeys(("publication", "subscription", "advertisement"), points)))
    curve = load_calibration(path)["publication"]
    assert [interpolate(curve, size) for size in (1, 10, 505, 1000, 9999)] == pytest.approx(
        [0.001, 0.001, 0.0505, 0.1, 0.1]
    )
    measured = {"computations": "measured", "calibration_file": str(path)}
    fixed = service_times(scenario(total_subscriptions=1000, **measured))
    own = service_times(scenario(total_subscriptions=0, **measured))
    assert fixed is not None
    assert own is not None
    assert fixed(Kind.PUBLISH, 10) == pytest.approx(0.1)
    assert own(Kind.PUBLISH, 10) == pytest.approx(0.001)
    spared = service_times(scenario(total_subscriptions=1000, withdrawals_charged=False, **measured))
    assert spared is not None
    assert spared(Kind.UNSUBSCRIBE, 10) == 0.0
    assert spared(Kind.SUBSCRIBE, 10) == pytest.approx(0.1)
    assert run(total_subscriptions=0, **measured).rebuild_mean_s > run().rebuild_mean_s


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[]", "must give publication as a list"),
        ('{"publication": []}', "must give publication as a list"),
        ('{"publication": [[2, 1], [1, 1]]}', "rising table sizes"),
        ('{"publication": [[1, -1]]}', "no negative seconds"),
    ],
)
def test_bad_calibrations_are_refused(tmp_path: Path, text: str | None, sentence: str) -> None:
    """Each gets one sentence that names the parameter."""
    path = tmp_path / "calibration.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CalibrationError, match=f"calibration_file .*{sentence}"):
        load_calibration(path)
