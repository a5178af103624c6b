"""`sojourn tree`: the publish/subscribe tree of a layout in a file, its cost, and the best there is.

The file is JSON. Every node has a place and an interest, a number interval or a topic; the first is the root:

    {"range_m": 80,
     "topics": {"names": ["sports", "news"], "levels": 2},
     "nodes": [{"x": 0, "y": 0},
               {"x": 50, "y": 10, "interval": [3.0, 4.0]},
               {"x": 90, "y": 0, "interval": [3.5, 9.0]}]}

`topics` is needed only by nodes that have a `topic`, such as "sports.news", in place of an interval.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.cells import Subscriptions, interval, subscriptions, topic
from sojourn.adhoc.tree.connectivity import ROOT, neighbours, require_connected
from sojourn.adhoc.tree.cooling import COLD, Cooling
from sojourn.adhoc.tree.metrics import METRICS, metric_named
from sojourn.adhoc.tree.node import Choosing
from sojourn.adhoc.tree.optimum import Solved, optimum
from sojourn.adhoc.tree.overhead import Costs, NodeWork, tree_work
from sojourn.adhoc.tree.whole_graph import Grown, rules, system, take_turns
from sojourn.interest.measure import MeasuredSet, TopicTree
from sojourn.sim.adhoc.world import AdhocWorld
from sojourn.sim.radio import Radio
from sojourn.sim.streams import Streams

COOL = "cool"
COOLING_ROUNDS = 300


class Topics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tree of topics with the same names on every level."""

    names: list[str]
    levels: int


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A node's place and interest; one without either wants nothing."""

    x: float
    y: float
    interval: tuple[float, float] | None = None
    topic: str | None = None


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    range_m: float
    nodes: list[Node]
    topics: Topics | None = None


def tree(
    layout: Annotated[
        Path,
        typer.Argument(
            metavar="LAYOUT", help="JSON file: range_m and nodes, each with x, y and an interval or a topic."
        ),
    ],
    metric: Annotated[str, typer.Option(help=f"How nodes choose: {', '.join((*METRICS, COOL))}.")] = "combo",
    receive: Annotated[float, typer.Option(help="Work to receive an event; forwarding costs 1.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the order of turns and of draws between equals.")] = 1,
    seconds: Annotated[float, typer.Option(help="Limit of the exact solver, s; 0 leaves it out.")] = 60.0,
    publisher: Annotated[
        list[int] | None,
        typer.Option(
            metavar="NODE",
            help="A node that publishes too, over this tree and over one of its own; may be repeated.",
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, nothing else.")] = False,
) -> None:
    """Build the publish/subscribe tree of a layout, print its overhead and compare it with the optimum."""
    given = read_layout(layout)
    if metric != COOL:
        metric_named(metric)
    costs = Costs(receive=receive)
    places = np.array([(node.x, node.y) for node in given.nodes], dtype=float)
    graph = neighbours(places, given.range_m)
    require_connected(graph)
    inherent = [interest_of(node, given.topics) for node in given.nodes]
    interests = subscriptions(inherent)
    stream = Streams(seed).fresh("turns")
    count = len(given.nodes)
    _check_publishers(publisher or [], count, metric)
    order, draws = stream.permutation(count), stream.random((count, count))
    heat = (1 + receive) * float(np.mean([float(each.measure()) for each in inherent]))
    cooling = Cooling(heat, COOLING_ROUNDS, seed) if metric == COOL else COLD
    chosen = rules("path" if metric == COOL else metric, draws, cooling=cooling)
    grown = take_turns(system(graph, interests, costs), chosen, order)
    work = tree_work(grown.parents.tolist(), inherent, costs)
    best = None
    if seconds > 0:
        best = optimum(graph, interests, costs, start=grown.parents, seconds_max=seconds)
    published = {}
    for node in publisher or ():
        world = AdhocWorld(
            Radio(places, given.range_m),
            interests.sets(),
            stream,
            choosing=[Choosing(metric=metric, costs=costs, draw=_drawing(row)) for row in draws],
            roots=(ROOT, node),
        )
        published[node] = _published(world, interests, node, order.tolist(), costs)
    if as_json:
        typer.echo(json.dumps(_told(metric, grown, work, best, published)))
        return
    _show(metric, grown, work, best, published)


Published = Mapping[int, tuple[float, float]]
"""By node that publishes: the overhead over the shared tree, and over one of its own."""


def _told(
    metric: str, grown: Grown, work: list[NodeWork], best: Solved | None, published: Published
) -> dict[str, object]:
    """All of it as one object."""
    found: dict[str, object] = {"metric": metric, "rounds": int(grown.rounds)}
    found["overhead"] = float(sum(each.overhead for each in work))
    found["nodes"] = [
        {
            "parent": None if parent < 0 else int(parent),
            "cost": float(each.cost),
            "overhead": float(each.overhead),
        }
        for parent, each in zip(grown.parents, work, strict=True)
    ]
    if best is not None:
        found["optimum"] = {"overhead": float(best.overhead), "proved": bool(best.proved)}
    found["publishers"] = {str(node): {"shared": both[0], "own": both[1]} for node, both in published.items()}
    return found


def _show(metric: str, grown: Grown, work: list[NodeWork], best: Solved | None, published: Published) -> None:
    """All of it for people."""
    total = float(sum(each.overhead for each in work))
    shown = Table("node", "parent", "cost", "overhead")
    for node, (parent, each) in enumerate(zip(grown.parents, work, strict=True)):
        shown.add_row(
            str(node), "root" if parent < 0 else str(parent), f"{each.cost:g}", f"{each.overhead:g}"
        )
    console = Console()
    console.print(shown)
    rounds = "1 round" if grown.rounds == 1 else f"{grown.rounds} rounds"
    console.print(f"{metric}: overhead {total:g} after {rounds} of turns.")
    if best is not None:
        how = "the optimum, proved" if best.proved else _unproved(best)
        above = (
            f"; this tree is {total / best.overhead - 1:.1%} above it" if total > best.overhead > 0 else ""
        )
        console.print(f"{best.overhead:g} is {how}{above}.")
    for node, (shared, own) in published.items():
        console.print(
            f"Node {node} publishing the same events: overhead {shared:g} over this tree, towards the root "
            f"with shortcuts down its branches; {own:g} over a tree of its own."
        )


def _drawing(row: NDArray[np.float64]) -> Callable[[int], float]:
    return lambda other: float(row[other])


def _published(
    world: AdhocWorld, interests: Subscriptions, publisher: int, order: list[int], costs: Costs
) -> tuple[float, float]:
    """What a node's events cost over the shared tree and over one of its own, by messages."""
    for tree in (ROOT, publisher):
        world.take_turns(order, tree)
    shared, own = (world.publish_all(publisher, interests, tree, costs) for tree in (ROOT, publisher))
    return float(shared), float(own)


def _check_publishers(publishers: list[int], count: int, metric: str) -> None:
    for node in publishers:
        if not 0 < node < count:
            raise AdhocError(f"publisher must be a node between 1 and {count - 1}, not {node}.")
    if publishers and metric == COOL:
        raise AdhocError(f"publisher goes with any metric but {COOL}, which takes minutes of messages.")


def _unproved(best: Solved) -> str:
    return f"the best found in time, at most {best.gap:.1%} above the optimum: none is below {best.bound:g}"


def read_layout(path: Path) -> Given:
    """Read and check a layout file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Given)
    except OSError as error:
        raise AdhocError(f"layout {path} cannot be read: {error.strerror}.") from None
    except msgspec.MsgspecError as error:
        raise AdhocError(f"layout {path} is not as it should be: {error}.") from None


def interest_of(node: Node, topics: Topics | None) -> MeasuredSet:
    """A node's interest, checked."""
    if node.interval is not None and node.topic is not None:
        raise AdhocError("a node has an interval or a topic, not both; take one out.")
    if node.topic is not None:
        if topics is None:
            raise AdhocError(f"topic {node.topic!r} needs the names and levels of topics in the layout file.")
        return topic(TopicTree(branching=len(topics.names), depth=topics.levels), topics.names, node.topic)
    return interval(*node.interval) if node.interval is not None else MeasuredSet()
