"""Where a roaming run takes place: the broker network, the paths, and what brokers know beforehand."""

from pathlib import Path
from typing import NamedTuple

from sojourn.errors import SojournError
from sojourn.mobility.learnt_graph import Edge, LearntGraph, decode_graph
from sojourn.mobility.prediction import Foresight, Predictor, foreseen
from sojourn.routing.overlay import Overlay
from sojourn.sim.foreknowledge import Foreknowledge
from sojourn.sim.roaming.files import Nearest, load_movement, load_points
from sojourn.sim.roaming.run import Paths, Recorded, Roaming, Stays, building
from sojourn.sim.roaming.scenario import RoamingScenario
from sojourn.sim.roaming.training import learn
from sojourn.sim.scenario import ScenarioError
from sojourn.sim.streams import Streams
from sojourn.sim.topology import Topology, build, load_topology

GRID_LIMIT = 10_000
LEARNT = {"order-1": 1, "order-2": 2}
"""Predictors that need a learnt graph, and of which order they are."""


class Setting(NamedTuple):
    """What a run starts from."""

    topology: Topology
    paths: Paths
    subscribers: int
    names: list[str]
    """The subscribers' names."""
    publisher_broker: int
    graph: LearntGraph | None
    """The neighbour graph that brokers are given at the start; None: they learn it."""
    foresight: Foresight | None
    """Where copies are to wait; None: at all neighbours."""


def make_setting(scenario: RoamingScenario, streams: Streams) -> Setting:
    """The setting that a scenario describes."""
    topology = network(scenario)
    paths = _paths(scenario, topology, streams)
    names = paths.names if isinstance(paths, Recorded) else [f"s{at}" for at in range(scenario.subscribers)]
    foresight = _foresight(scenario, topology, paths, len(names))
    graph = _known(scenario, topology)
    return Setting(topology, paths, len(names), names, _centre(scenario, topology), graph, foresight)


def _foresight(
    scenario: RoamingScenario, topology: Topology, paths: Paths, subscribers: int
) -> Foresight | None:
    if scenario.predictor == "oracle":
        return Foreknowledge(paths, subscribers)
    if scenario.predictor not in LEARNT:
        return None
    # Nothing that is drawn here depends on the hour.
    rows = foreseen(
        _learnt(scenario, topology, paths),
        share=scenario.predictor_mass,
        order=LEARNT[scenario.predictor],
        by_hour=False,
    )
    return Predictor(rows, topology.names)


def _learnt(scenario: RoamingScenario, topology: Topology, paths: Paths) -> LearntGraph:
    if scenario.graph_file:
        return _load_graph(Path(scenario.graph_file))
    if isinstance(paths, Recorded):
        raise ScenarioError("graph_file must name a learnt graph when movement is file.")
    return learn(paths, topology.names, scenario.training_s)


def _known(scenario: RoamingScenario, topology: Topology) -> LearntGraph | None:
    """What brokers are told at the start."""
    if scenario.known_graph == "none":
        return None
    every = range(topology.brokers)
    near = topology.neighbours if scenario.known_graph == "links" else [every] * topology.brokers
    names = topology.names
    edges = [
        Edge(at=names[at], to=names[to], crossings=1, probability=1 / len(near[at]), last_s=0.0)
        for at in every
        for to in near[at]
        if to != at
    ]
    return LearntGraph(edges=edges, pairs=[], stays=[], away_s=scenario.handoff_s)


def network(scenario: RoamingScenario) -> Topology:
    """The broker network of a scenario."""
    if scenario.topology == "building":
        return building()
    if scenario.topology == "file":
        return load_topology(Path(scenario.topology_file))
    count = scenario.brokers
    if count > GRID_LIMIT:
        raise ScenarioError(f"brokers must be at most {GRID_LIMIT}, not {count}.")
    names = [f"B{number}" for number in range(1, count + 1)]
    if scenario.topology == "star":
        links = [(0, at) for at in range(1, count)]
    elif scenario.topology == "grid":
        width = max(1, round(count**0.5))
        links = [(at, at + 1) for at in range(count - 1) if (at + 1) % width]
        links += [(at, at + width) for at in range(count - width)]
    else:
        links = [(at, at + 1) for at in range(count - 1)]
        if scenario.topology == "ring" and count > 2:
            links.append((count - 1, 0))
    return build(count, links, leaves=range(count), names=names)


def _paths(scenario: RoamingScenario, topology: Topology, streams: Streams) -> Paths:
    if scenario.movement != "file":
        stays = Stays(scenario.connect_s, scenario.disconnect_s, scenario.handoff_s)
        return Roaming(scenario.movement, topology, stays, streams, scenario.under_way_s)
    places = load_points(Path(scenario.topology_file), topology) if scenario.topology_file else None
    near = Nearest(scenario.hysteresis_m, scenario.range_m, scenario.handoff_s)
    return Recorded(load_movement(Path(scenario.movement_file), topology, places, near))


def _centre(scenario: RoamingScenario, topology: Topology) -> int:
    if not scenario.publisher_broker:
        return Overlay(topology.neighbours).root
    if scenario.publisher_broker not in topology.names:
        raise ScenarioError(
            f"publisher_broker must be a broker of the network, not {scenario.publisher_broker!r}."
        )
    return topology.names.index(scenario.publisher_broker)


def slowness(scenario: RoamingScenario, topology: Topology) -> list[float]:
    """By broker: how many times longer its machine takes."""
    slow = {name.strip() for name in scenario.slow_brokers.split(",") if name.strip()}
    unknown = sorted(slow - set(topology.names))
    if unknown:
        raise ScenarioError(
            f"slow_brokers must be brokers of the network ({', '.join(topology.names)}), not {unknown[0]!r}."
        )
    return [scenario.slow_times if name in slow else 1.0 for name in topology.names]


def _load_graph(path: Path) -> LearntGraph:
    try:
        return decode_graph(path.read_bytes())
    except OSError:
        raise ScenarioError(
            f"graph_file {path} cannot be read; make one with `sojourn learn TRACE --out FILE`."
        ) from None
    except SojournError as error:
        raise ScenarioError(f"graph_file {path} is no learnt graph: {error}") from None
