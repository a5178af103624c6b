"""`sojourn bench live` measures what it names: the client program counts what is useful, at any broker."""

from __future__ import annotations

import pytest

from sojourn.cli import bench_live, bench_network
from sojourn.cli.bench_live import CASES, Case, find_mosquitto, sojourn_broker, traffic

needs_mosquitto = pytest.mark.skipif(find_mosquitto() is None, reason="scripts/mosquitto installs it")


def test_a_paced_publisher_is_heard_by_all() -> None:
    """At a modest pace everything that is sent arrives, also where a filter lets a fifth through."""
    with sojourn_broker() as (_, port, _):
        found = traffic(port, Case("qos0", 0, 3), "sojourn", 1.0, pace_per_s=500)
        assert 350 * 3 <= found["useful"] <= 520 * 3
        assert 0 < found["p50_us"] <= found["p99_us"]
        chosen = traffic(port, Case("chosen", 0, 5, chooses=True), "sojourn", 1.0, pace_per_s=500)
        assert 350 <= chosen["useful"] <= 520
        surely = traffic(port, Case("qos1", 1, 2), "sojourn", 0.5)
        assert surely["sent"] > 0
        assert surely["useful"] > 0


@needs_mosquitto
@pytest.mark.slow
def test_every_case_is_measured_beside_mosquitto() -> None:
    """A row a case, one for latency, one for memory, each with figures of both."""
    rows = bench_live.run(rounds=1, seconds=0.5, idle_connections=200)
    assert [row["case"] for row in rows] == [
        *(case.name for case in CASES),
        "latency at half load",
        "200 idle",
    ]
    assert all(row["ratio"] > 0 and row["cpu_ratio"] > 0 for row in rows[: len(CASES)])
    assert rows[-2]["p99_ratio"] > 0
    assert rows[-1]["sojourn_mib"] > rows[-1]["sojourn_before_mib"] > 0


def test_events_cross_a_line_of_brokers() -> None:
    """From the broker at one end to subscribers at the other, over a link and with stores."""
    case = bench_network.Case(1, 1, 2)
    with bench_network.sojourn_line(case) as line:
        publish, subscribe = line.ends
        bench_network.wait_for_way(publish, subscribe)
        found = traffic(subscribe, case.traffic, "sojourn", 0.5, publish_port=publish)
        assert found["useful"] > 0
        assert line.cpu_seconds() > 0


@needs_mosquitto
@pytest.mark.slow
def test_every_case_of_the_network_is_measured_beside_bridges() -> None:
    """A row a case, with figures of both."""
    rows = bench_network.run(rounds=1, seconds=0.5)
    assert [row["case"] for row in rows] == [case.name for case in bench_network.CASES]
    assert all(row["ratio"] > 0 for row in rows)
