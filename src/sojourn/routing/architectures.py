"""The architectures of paper 003 as routing strategies, by name.

- `central`: one broker that stores and matches everything; it has no neighbours.
- `broadcast`: each broker has its share of the subscriptions, and every event goes to every broker along a
  forwarding tree (section 4.1).
- `flooding`: the same over all links of the graph, with copies dropped.
- `multicast`: an event goes down a branch only if a subscription that lies there may match (section 4.2):
  what `Router` does with the subscriptions its neighbours tell it, kept few by covering.

Quenching is no routing: it is what an edge broker does with the subscriptions that its router knows
(`edge/broker.py`), so it goes with `central` and `multicast`. Replicas are brokers without links.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sojourn.errors import SojournError
from sojourn.routing.effects import Effects
from sojourn.routing.flooding import FloodingRouter
from sojourn.routing.interests import Interests
from sojourn.routing.mesh_flooding import MeshFloodingRouter
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import Overlay
from sojourn.routing.router import Router


class ArchitectureError(SojournError):
    """An architecture cannot be built as asked."""


class Architecture(NamedTuple):
    """How brokers pass events on."""

    router: type[Router]
    on_tree: bool
    """Whether brokers talk along a spanning tree of their graph; else over all its links."""
    knows_downstream: bool
    """Whether a broker knows what others subscribe to, so that it can quench."""


ARCHITECTURES = {
    "central": Architecture(Router, on_tree=True, knows_downstream=True),
    "broadcast": Architecture(FloodingRouter, on_tree=True, knows_downstream=False),
    "flooding": Architecture(MeshFloodingRouter, on_tree=False, knows_downstream=False),
    "multicast": Architecture(Router, on_tree=True, knows_downstream=True),
}


class Plan(NamedTuple):
    """The routers of all brokers, and the way between them."""

    routers: list[Router]
    overlay: Overlay
    neighbours: list[tuple[int, ...]]
    """By broker: whom it talks to."""


def routers_for(name: str, graph: Sequence[Sequence[int]], interests: Interests) -> Plan:
    """A router for each broker of a connected graph."""
    if name not in ARCHITECTURES:
        raise ArchitectureError(f"architecture may be {', '.join(ARCHITECTURES)}, not {name!r}.")
    if name == "central" and len(graph) != 1:
        raise ArchitectureError(f"architecture central has brokers = 1, not {len(graph)}; name another one.")
    chosen = ARCHITECTURES[name]
    overlay = Overlay(graph)
    near = overlay.neighbours if chosen.on_tree else [tuple(sorted(brokers)) for brokers in graph]
    routers = [chosen.router(Neighbours(each), interests, Effects()) for each in near]
    return Plan(routers, overlay, near)
