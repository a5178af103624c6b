"""The acyclic overlay over which brokers talk, for any connected graph.

The tables of paper 000 let an identical interest from a second neighbour take the place of the first
without a message. That is what makes a graft cheap, and on a cycle it is also a trap: once the client has
gone, brokers around the cycle go on vouching for the interest to each other, and the withdrawal never
ends. Numbering every advertisement would end it, but then two trees of one publisher would no longer be
identical and nothing could be grafted. So brokers of a general graph talk along a spanning tree of it, as
bridges of a local network do: each entry then rests on others further from the receiver and at last on a
client, withdrawals end, no event can arrive twice and none can circle. A tree is its own overlay.

The tree is a function of the graph alone: breadth first from a centre (a broker whose farthest broker is
as near as can be; the lowest number among equals), parents with the lowest number. Every broker that knows
the graph computes the same one. When the graph changes, take down the links that left the tree at both
ends before any new one comes up (`Router.neighbour_lost`, `neighbour_gained`), so that no cycle exists even
for a moment.

What it costs: links outside the tree carry nothing, and a path is at most twice the tree's height.
"""

from collections import deque
from collections.abc import Sequence

from sojourn.errors import SojournError

EXACT_CENTRE_MAX = 2_000
"""Up to this many brokers the centre is found by a search from every broker, beyond it by two sweeps."""


class OverlayError(SojournError):
    """The broker network is not one connected graph."""


class Overlay:
    """A rooted spanning tree with the way from each broker to each other one."""

    __slots__ = ("_depth", "_hops", "neighbours", "parent", "root")

    def __init__(self, graph: Sequence[Sequence[int]]) -> None:
        self.root = _centre(graph)
        self._depth, parent = _breadth_first(graph, self.root)
        self.parent = parent
        near: list[list[int]] = [[] for _ in graph]
        for broker, up in enumerate(parent):
            if up >= 0:
                near[broker].append(up)
                near[up].append(broker)
        self.neighbours: list[tuple[int, ...]] = [tuple(sorted(brokers)) for brokers in near]
        """Each broker's neighbours in the tree."""
        self._hops: dict[tuple[int, int], int] = {}

    def next_hop(self, broker: int, destination: int) -> int:
        """The neighbour of `broker` on the way to another broker."""
        known = self._hops.get((broker, destination))
        if known is not None:
            return known
        # The destination's ancestor just below the broker, if the broker is an ancestor; else the parent.
        at = destination
        while self._depth[at] > self._depth[broker] + 1:
            at = self.parent[at]
        hop = at if self.parent[at] == broker else self.parent[broker]
        self._hops[broker, destination] = hop
        return hop

    def distance(self, one: int, other: int) -> int:
        """How many hops lie between two brokers."""
        hops = 0
        while one != other:
            if self._depth[one] < self._depth[other]:
                one, other = other, one
            one = self.parent[one]
            hops += 1
        return hops


def _breadth_first(graph: Sequence[Sequence[int]], root: int) -> tuple[list[int], list[int]]:
    depth, parent = [-1] * len(graph), [-1] * len(graph)
    depth[root] = 0
    waiting = deque([root])
    while waiting:
        broker = waiting.popleft()
        for near in sorted(graph[broker]):
            if depth[near] < 0:
                depth[near], parent[near] = depth[broker] + 1, broker
                waiting.append(near)
    if min(depth) < 0:
        raise OverlayError(f"links must join all brokers; broker {depth.index(-1)} cannot be reached.")
    return depth, parent


def _centre(graph: Sequence[Sequence[int]]) -> int:
    if not graph:
        raise OverlayError("brokers must be 1 or more, not 0.")
    if len(graph) <= EXACT_CENTRE_MAX and sum(map(len, graph)) != 2 * (len(graph) - 1):
        return min(range(len(graph)), key=lambda broker: (max(_breadth_first(graph, broker)[0]), broker))
    # Exact on trees: the middle of a longest path.
    depth, _ = _breadth_first(graph, 0)
    depth, _ = _breadth_first(graph, depth.index(max(depth)))
    end = depth.index(max(depth))
    _, parent = _breadth_first(graph, depth.index(0))
    path = [end]
    while parent[path[-1]] >= 0:
        path.append(parent[path[-1]])
    middle = len(path) // 2
    return min(path[middle], path[middle - 1]) if len(path) % 2 == 0 and len(path) > 1 else path[middle]
