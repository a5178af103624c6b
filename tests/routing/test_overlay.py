"""Any connected graph gets one spanning tree that all brokers agree on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.routing.overlay import Overlay, OverlayError
from tests.routing.network import chain, joined


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    """A connected graph, often with cycles."""
    count = draw(st.integers(1, 12))
    links = [(draw(st.integers(0, child - 1)), child) for child in range(1, count)]
    broker = st.integers(0, count - 1)
    return joined(count, links + draw(st.lists(st.tuples(broker, broker), max_size=10)))


def height(graph: list[list[int]], root: int) -> int:
    """How far the farthest broker is."""
    distance = {root: 0}
    waiting = [root]
    for broker in waiting:
        for near in graph[broker]:
            if near not in distance:
                distance[near] = distance[broker] + 1
                waiting.append(near)
    return max(distance.values())


@given(graphs())
def test_spans_without_cycles_along_links(graph: list[list[int]]) -> None:
    """The tree has one link fewer than brokers, all of them links of the graph, and joins everybody."""
    overlay = Overlay(graph)
    assert sum(map(len, overlay.neighbours)) == 2 * (len(graph) - 1)
    for broker, near in enumerate(overlay.neighbours):
        assert set(near) <= set(graph[broker])
    for one in range(len(graph)):
        for other in range(len(graph)):
            assert overlay.distance(one, other) <= 2 * height(graph, overlay.root)


@given(graphs())
def test_root_is_a_centre(graph: list[list[int]]) -> None:
    """No other root would make a lower tree, and among equals the lowest number is chosen."""
    heights = [height(graph, root) for root in range(len(graph))]
    root = Overlay(graph).root
    assert heights[root] == min(heights)
    assert root == heights.index(min(heights))


@given(graphs(), st.data())
def test_next_hops_lead_there(graph: list[list[int]], data: st.DataObject) -> None:
    """Following next hops reaches the destination in as many hops as the distance says."""
    overlay = Overlay(graph)
    at = data.draw(st.integers(0, len(graph) - 1))
    to = data.draw(st.integers(0, len(graph) - 1))
    for _ in range(overlay.distance(at, to)):
        at = overlay.next_hop(at, to)
    assert at == to


def test_refuses_what_is_not_one_network() -> None:
    """Brokers that cannot reach each other, or none at all, get a sentence."""
    with pytest.raises(OverlayError, match="broker 2 cannot be reached"):
        Overlay([[1], [0], []])
    with pytest.raises(OverlayError, match="brokers must be 1 or more"):
        Overlay([])


def test_a_tree_is_its_own_overlay() -> None:
    """Nothing changes where there is nothing to cut."""
    assert Overlay(chain(5)).neighbours == [tuple(near) for near in chain(5)]
