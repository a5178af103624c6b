"""`sojourn bench filters` on real brokers, with few filters."""

from __future__ import annotations

import numpy as np
import pytest

from sojourn.cli import bench_filters, bench_live
from sojourn.cli.bench_filters_client import EVENTS, TOPIC, Task, places, squares, topic_filter
from sojourn.interest import Event, Filter, TopicPattern


def test_what_is_due_is_what_the_filters_say() -> None:
    """Tried one by one on the events themselves; a client that wants one by several filters counts once."""
    task = Task(role="", ports=[], clients=3, filters=4, by_filter=True)
    wanted, matching = bench_filters.due(task)
    clients = [[Filter.parse(str(one)) for one in squares(task, client)] for client in range(3)]
    for place, (x, y) in enumerate(places(task)):
        event = Event({"x": x, "y": y})
        assert wanted[place] == sum(any(one.matches(event) for one in filters) for filters in clients)
    assert 0 < matching < 0.1


def test_topic_filters_of_a_client_differ_and_match() -> None:
    """Otherwise one subscription would take the place of another."""
    filters = {topic_filter(number) for number in range(64)}
    assert len(filters) == 64
    assert all(TopicPattern.parse(one).matches(TOPIC) for one in filters)


@pytest.mark.skipif(bench_live.find_mosquitto() is None, reason="there is no Mosquitto")
def test_every_delivery_that_is_due_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours send little that nobody wants; Mosquitto sends every client everything."""
    monkeypatch.setattr(bench_filters, "EVENTS_MAX", 300)
    (row,) = bench_filters.run(clients=60, filters=3, seconds=0.2)
    assert row["filters"] == 180
    assert row["sojourn_sent_per_useful"] == pytest.approx(1.0)
    assert row["mosquitto_sent_per_useful"] == pytest.approx(60 / row["clients_wanting"], rel=0.2)
    assert row["ratio"] > 0


def test_the_share_of_filters_that_match_is_a_hundredth() -> None:
    """As the size of their squares says, give or take the draw of places."""
    task = Task(role="", ports=[], clients=400, filters=5, by_filter=True)
    wanted, matching = bench_filters.due(task)
    assert matching == pytest.approx(0.01, rel=0.2)
    assert wanted.shape == (EVENTS,)
    assert wanted.dtype == np.int64
