"""The SHOPPARENT core: its states, its trees beside the graph-level ones, no circle in any interleaving."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.adhoc.tree.cells import Cells, CellSet
from sojourn.adhoc.tree.connectivity import neighbours
from sojourn.adhoc.tree.cooling import Cooling, handicap
from sojourn.adhoc.tree.messages import Fact, Heard, Message, ParentChanged, Say, Started, TimerFired
from sojourn.adhoc.tree.node import Choosing, ShopParent, Timing
from sojourn.adhoc.tree.overhead import Costs, proxied_subscriptions
from sojourn.adhoc.tree.states import TRANSITIONS, Attachment, Step, after
from sojourn.adhoc.tree.whole_graph import rules, system, take_turns
from sojourn.sim.adhoc.layout import Layout, draw_interests, draw_positions, draw_subscriptions
from sojourn.sim.adhoc.world import AdhocWorld
from sojourn.sim.radio import Radio
from sojourn.sim.streams import Streams


@pytest.mark.parametrize("state", Attachment)
@pytest.mark.parametrize("step", Step)
def test_every_state_and_step(state: Attachment, step: Step) -> None:
    """A step either leads to a state of the table or is refused."""
    if (state, step) in TRANSITIONS:
        assert after(state, step) is TRANSITIONS[state, step]
    else:
        with pytest.raises(AssertionError, match="cannot happen"):
            after(state, step)


@pytest.mark.parametrize("metric", ["nhop", "ovhd", "combo", "random", "comboerr", "comboerr-floor", "path"])
@pytest.mark.parametrize("ties_by_hops", [True, False])
def test_messages_and_graph_build_the_same_tree(metric: str, ties_by_hops: bool) -> None:
    """For the same order of turns both levels give the same parents in the same number of rounds."""
    layout = Layout(seed=5, nodes_per_cluster=5, cluster_distance_m=60, node_distance_m=50, range_m=60)
    places = draw_positions(layout)
    interests = draw_subscriptions(layout, places)
    whole = system(neighbours(places, layout.range_m), interests, Costs())
    count = len(places)
    for seed in range(3):
        stream = Streams(seed).fresh("turns")
        draws, order = stream.random((count, count)), stream.permutation(count)
        errors = stream.normal(0, 0.3, (1, 2, count, count))
        chosen = rules(metric, draws, errors=errors, ties_by_hops=ties_by_hops)
        grown = take_turns(whole, chosen, order)
        world = AdhocWorld(
            Radio(places, layout.range_m),
            interests.sets(),
            stream,
            choosing=[_choosing(metric, node, draws, errors[0], ties_by_hops) for node in range(count)],
        )
        assert world.take_turns([int(node) for node in order]) == grown.rounds
        assert world.parents().tolist() == grown.parents.tolist()
        below = proxied_subscriptions(grown.parents.tolist(), interests.sets())
        assert [cores[0].proxied for cores in world.cores] == below


def _choosing(metric: str, node: int, draws: Any, errors: Any, ties_by_hops: bool) -> Choosing:
    return Choosing(
        metric=metric,
        ties_by_hops=ties_by_hops,
        draw=lambda other: float(draws[node, other]),
        errors=lambda other: (float(errors[0, node, other]), float(errors[1, node, other])),
    )


def test_cooling_is_the_same_on_both_levels() -> None:
    """Warm turns with the same key take messages and graph to the same tree."""
    layout = Layout(seed=2, nodes_per_cluster=4, cluster_distance_m=60, node_distance_m=50, range_m=70)
    places = draw_positions(layout)
    interests = draw_subscriptions(layout, places)
    whole = system(neighbours(places, layout.range_m), interests, Costs())
    count, cooling = len(places), Cooling(30.0, 6, 11)
    order = np.arange(count)
    grown = take_turns(whole, rules("path", np.zeros((count, count)), cooling=cooling), order)
    world = AdhocWorld(
        Radio(places, layout.range_m),
        interests.sets(),
        Streams(2).fresh("turns"),
        choosing=[Choosing(metric="path")] * count,
    )
    for round_number in range(grown.rounds):
        for node in range(count):
            noise = {other: handicap(cooling, round_number, node, other) for other in range(count)}
            world.turn(node, handicaps=noise)
    assert world.parents().tolist() == grown.parents.tolist()


def test_cores_take_exact_intervals_too() -> None:
    """Fed with number intervals instead of cells, the cores build the same tree."""
    layout = Layout(seed=9, nodes_per_cluster=3, cluster_distance_m=60, node_distance_m=50, range_m=70)
    places = draw_positions(layout)
    worlds = [
        AdhocWorld(
            Radio(places, layout.range_m),
            inherent,
            Streams(9).fresh("t"),
            choosing=[Choosing()] * len(places),
        )
        for inherent in (draw_interests(layout, places), draw_subscriptions(layout, places).sets())
    ]
    for world in worlds:
        world.take_turns(range(len(places)))
    assert worlds[0].parents().tolist() == worlds[1].parents().tolist()


CELLS = Cells([1.0] * 6)


class Crowd:
    """Nodes that shop, lose parents and hear each other's messages in any order, late, or not at all."""

    def __init__(self, seed: int, count: int, lost: float) -> None:
        self.stream = stream = np.random.default_rng(seed)
        self.lost = lost
        self.graph = stream.random((count, count)) < 0.4
        for node in range(1, count):
            self.graph[node, stream.integers(node)] = True
        self.graph |= self.graph.T
        np.fill_diagonal(self.graph, val=False)
        self.cores = [
            ShopParent(node, 0, CellSet(int(stream.integers(64)), CELLS), Choosing(metric="ovhd"), Timing())
            for node in range(count)
        ]
        self.air: list[tuple[int, Message]] = []
        self.now = 0.0
        self.switches = 0

    def feed(self, node: int, fact: Fact) -> None:
        """One core takes a fact; every change of parents is looked at as it happens."""
        for effect in self.cores[node].handle(fact, self.now):
            if isinstance(effect, Say):
                message = effect.message
                hearers = np.flatnonzero(self.graph[node]) if message.to is None else [message.to]
                self.air += [(int(other), message) for other in hearers if self.stream.random() >= self.lost]
            elif isinstance(effect, ParentChanged):
                self.switches += 1
                self.no_circle()

    def step(self, *, patience: float) -> None:
        """Something happens: mostly a message is heard, sometimes a timer of some node runs out."""
        node = int(self.stream.integers(len(self.cores)))
        kind = self.stream.random()
        if self.air and kind < patience:
            # Any message, but rather an old one: checks overtake each other and still get through.
            at = int(len(self.air) * self.stream.random() ** 3)
            self.feed(*_heard(self.air.pop(at)))
        elif kind < 0.97:
            likings = {other: float(self.stream.normal(0, 30)) for other in range(len(self.cores))}
            name = "shop" if self.stream.random() < 0.1 else "choose"
            self.feed(node, TimerFired(name=name, handicaps=likings))
        elif kind < 0.985:
            self.feed(node, TimerFired(name="beacon"))
        elif kind < 0.99:
            self.feed(node, TimerFired(name="grant", token=self.cores[node]._token))
        else:
            self.now += 0.1

    def no_circle(self) -> None:
        """Following parents always ends."""
        for core in self.cores:
            above, steps = core.parent, 0
            while above is not None:
                assert above != core.node, "a node is its own ancestor"
                above, steps = self.cores[above].parent, steps + 1
                assert steps <= len(self.cores), "parents go round in a circle"


def _heard(said: tuple[int, Message]) -> tuple[int, Fact]:
    return said[0], Heard(said[1])


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(4, 9), st.sampled_from([0.0, 0.02, 0.2]), st.sampled_from([0.6, 0.9])
)
def test_no_circle_in_any_interleaving(seed: int, count: int, lost: float, patience: float) -> None:
    """Whatever order nodes switch in and messages come in, lost or late, parents never form a circle."""
    crowd = Crowd(seed, count, lost)
    for node in range(count):
        crowd.feed(node, Started())
        crowd.feed(node, TimerFired(name="beacon"))
    for _ in range(1500):
        crowd.step(patience=patience)
        if len(crowd.air) > 300:
            del crowd.air[:100]
    crowd.no_circle()


def test_the_crowd_does_switch() -> None:
    """The interleavings above are full of switches, or they would show nothing."""
    crowd = Crowd(1, 8, 0.0)
    for node in range(8):
        crowd.feed(node, Started())
        crowd.feed(node, TimerFired(name="beacon"))
    for _ in range(3000):
        crowd.step(patience=0.9)
    assert crowd.switches > 30
