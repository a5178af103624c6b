"""`sojourn bench interests` measures what it names: brokers that tell each other, and answer clients."""

from __future__ import annotations

import pytest

from sojourn.cli import bench_interests
from sojourn.cli.bench_interests_brokers import COUNT, Six
from sojourn.cli.bench_interests_peer import mosquitto_row
from sojourn.cli.bench_live import find_mosquitto
from sojourn.interest.filters import Filter

needs_mosquitto = pytest.mark.skipif(find_mosquitto() is None, reason="scripts/mosquitto installs it")


def test_every_broker_knows_what_is_not_covered() -> None:
    """Patterns reach all six brokers; under `#` they stay at home until it goes."""
    six = Six(covering=True)
    six.fill(1, Filter.parse("topic LIKE 'device/1/#'"))
    assert [len(broker.router.subs) for broker in six.brokers] == [1] * COUNT
    six.fill(2, Filter.parse("topic LIKE '#'"))
    six.fill(3, Filter.parse("topic LIKE 'device/3/#'"))
    assert [len(broker.router.subs) for broker in six.brokers] == [3, *[2] * (COUNT - 1)]
    six.unsubscribe(2, Filter.parse("topic LIKE '#'"))
    assert [len(broker.router.subs) for broker in six.brokers] == [2] * COUNT


def test_rows_hold_figures_with_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """With covering what is covered makes fewer hops and takes comparisons; without it neither holds."""
    monkeypatch.setattr(bench_interests, "SAMPLES", 20)
    wide, narrow, under = bench_interests._scale_rows(50, covering=True, progress=lambda _: None)
    assert wide["subscriptions"] == 100
    assert wide["hops_per_new"] == COUNT - 1
    assert wide["questions_per_new"] == 0
    assert 0 < narrow["hops_per_new"] < COUNT - 1
    assert under["hops_per_new"] == 0
    assert under["questions_per_new"] == 1
    plain = list(bench_interests._scale_rows(50, covering=False, progress=lambda _: None))
    assert [row["hops_per_new"] for row in plain] == [COUNT - 1] * 2
    assert all(0 < row["new_median_cpu_ms"] <= row["new_p99_cpu_ms"] for row in [wide, narrow, under, *plain])


@pytest.mark.parametrize("name", ["400 patterns in one SUBSCRIBE", "150 filters at once"])
def test_attackers_are_answered(name: str) -> None:
    """Every packet of a client that asks for much has its answer, and the row says how long it took."""
    row = bench_interests._attack_row(name)
    assert row["answered"]
    assert 0 < row["home_cpu_s"] <= row["all_six_cpu_s"]


@needs_mosquitto
def test_mosquitto_answers_the_same_patterns() -> None:
    """Its answers are timed one by one, after it was given the patterns."""
    row = mosquitto_row(200, 20)
    assert row["subscriptions"] == 200
    assert 0 < row["new_median_ms"] <= row["new_p99_ms"]
