"""A learnt file is believed only where it can be true, and no prediction costs an event."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.mobility.broker import Broker
from sojourn.mobility.learnt_graph import (
    BYTES_MAX,
    Edge,
    HourEdge,
    LearntGraph,
    LearntGraphError,
    Pair,
    Stay,
    decode_graph,
    encode_graph,
)
from sojourn.mobility.prediction import Predictor, foreseen
from sojourn.sim.handoff_check.check import check
from sojourn.sim.handoff_check.script import CheckSpec
from tests.seeds import seeds

GRAPH = LearntGraph(
    edges=[
        Edge(at="B1", to="B2", crossings=3, probability=0.75, last_s=9.0),
        Edge(at="B1", to="B3", crossings=1, probability=0.25, last_s=9.0),
    ],
    pairs=[Pair(before="B3", at="B1", to="B2", crossings=3, probability=1.0, last_s=9.0)],
    by_hour=[HourEdge(hour=8, at="B1", to="B3", crossings=1, probability=1.0, last_s=9.0)],
    stays=[Stay(broker="B1", stays=4, mean_s=5.0, median_s=4.0, long_s=9.0)],
    away_s=1.0,
)


def plain() -> dict[str, Any]:
    """The graph as plain JSON values."""
    found: dict[str, Any] = msgspec.json.decode(encode_graph(GRAPH))
    return found


@pytest.mark.parametrize(
    ("where", "key", "value", "sentence"),
    [
        ("edges", "probability", 0.5, "sum to 0.75"),
        ("edges", "probability", -1, "probability of -1"),
        ("edges", "probability", "infinite", "does not read|probability of inf"),
        ("edges", "crossings", 0, "nobody can have crossed"),
        ("edges", "to", "B1", "nobody can have crossed"),
        ("edges", "to", "B3", "twice"),
        ("edges", "to", "x" * 1000, "1000 characters"),
        ("edges", "at", "", "0 characters"),
        ("edges", "at", 7, "does not read"),
        ("pairs", "probability", 0.3, "sum to 0.3"),
        ("by_hour", "hour", 24, "the hour 24"),
        ("stays", "mean_s", -5, "times that are none"),
    ],
)
def test_a_file_that_no_measurement_can_have_given_is_refused(
    where: str, key: str, value: object, sentence: str
) -> None:
    """In one sentence that says what to do."""
    raw = plain()
    raw[where][0][key] = value
    with pytest.raises(LearntGraphError, match=sentence) as refused:
        decode_graph(msgspec.json.encode(raw).replace(b'"infinite"', b"1e999"))
    assert "\n" not in str(refused.value)
    assert "sojourn learn" in str(refused.value)


def test_a_file_is_as_large_as_a_network_needs_and_no_larger() -> None:
    """Nobody reads it to the end to find out."""
    with pytest.raises(LearntGraphError, match="may have"):
        decode_graph(b" " * (BYTES_MAX + 1))
    with pytest.raises(LearntGraphError, match="does not read"):
        decode_graph(b"[" * 1_000_000)


@settings(deadline=None, max_examples=500)
@given(st.data())
def test_whatever_is_done_to_a_file_it_is_read_or_refused(data: st.DataObject) -> None:
    """And what is read can be gone by: predictions name brokers of the network and nobody else."""
    found = bytearray(encode_graph(GRAPH))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(found) - 1))
        found[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        graph = decode_graph(bytes(found))
    except LearntGraphError:
        return
    predictor = Predictor(foreseen(graph), ["B1", "B2"])
    for hour in range(24):
        likely = predictor.next_brokers(1, 0, None, 3600.0 * hour)
        assert likely is None or set(likely) <= {0, 1}


def test_the_hour_of_the_day_is_looked_at_first() -> None:
    """In the morning they go elsewhere; the hour follows from the time, by UTC."""
    predictor = Predictor(foreseen(GRAPH, share=0.7), ["B1", "B2", "B3"])
    days_s = 86_400.0 * 9
    likely = [predictor.next_brokers(7, 0, None, days_s + 3600.0 * hour) for hour in (7, 8, 9)]
    assert likely == [(1,), (2,), (1,)]
    assert predictor.next_brokers(7, 0, 2, 3600.0 * 8) == (1,)  # a path says more than an hour
    all_day = Predictor(foreseen(GRAPH, by_hour=False, share=0.7), ["B1", "B2", "B3"])
    assert all_day.likely(0, None, 8) == (1,)


class Whim:
    """Says anything, and something else each time."""

    def __init__(self, seed: int, brokers: list[Broker]) -> None:
        self._draw = random.Random(seed)
        self._brokers = brokers

    def next_brokers(self, client: int, at: int, before: int | None, now: float) -> tuple[int, ...] | None:  # noqa: ARG002 - it does not care
        """Some brokers, this one perhaps among them, none, or no idea."""
        if self._draw.random() < 0.2:
            return None
        count = len(self._brokers)
        return tuple(self._draw.sample(range(count), self._draw.randrange(count + 1)))


@pytest.mark.parametrize("routing", ["content", "flooding"])
@pytest.mark.parametrize("seed", seeds(10, 40))
def test_no_prediction_costs_an_event(seed: int, routing: str) -> None:
    """Whatever is predicted, in a world where everything that may go wrong does."""
    brokers: list[Broker] = []

    def whimsical(*parts: Any, **options: Any) -> Broker:
        broker = Broker(*parts, **options)
        broker.foresee(Whim(seed * 1000 + broker.number, brokers))
        brokers.append(broker)
        return broker

    found = check(CheckSpec(seed=seed, scheme="proactive", routing=routing), whimsical)
    assert found.failure is None, found.command()
    assert found.deliveries
