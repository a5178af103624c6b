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

A network may also grow and shrink at its edges (`grown`): a broker that joins hangs on one of its links, and
one that leaves was at the end of a branch, so that the tree between all others is what it was.

What it costs: links outside the tree carry nothing, and a path is at most twice the tree's height.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence

from sojourn.errors import SojournError

EXACT_CENTRE_MAX = 2_000
"""Up to this many brokers the centre is found by a search from every broker, beyond it by two sweeps."""


NOWHERE = -1
"""The next hop on the way to a broker that has left."""


class OverlayError(SojournError):
    """The broker network is not one connected graph."""

    def __init__(self, text: str, cut_off: Sequence[int] = ()) -> None:
        super().__init__(text)
        self.cut_off = tuple(cut_off)
        """The brokers that cannot be reached, if that is why: who knows their names can say these."""


class Overlay:
    """A rooted spanning tree with the way from each broker to each other one."""

    __slots__ = ("_depth", "_hops", "neighbours", "parent", "root")

    def __init__(self, graph: Sequence[Sequence[int]]) -> None:
        self._hops: dict[tuple[int, int], int] = {}
        self.root = _centre(graph)
        self._take(*_breadth_first(graph, self.root))
        if min(self._depth) < 0:
            lost = [broker for broker, depth in enumerate(self._depth) if depth < 0]
            raise OverlayError(f"links must join all brokers; broker {lost[0]} cannot be reached.", lost)

    def _take(self, depth: list[int], parent: list[int]) -> None:
        self._depth, self.parent = depth, parent
        near: list[list[int]] = [[] for _ in depth]
        for broker, up in enumerate(parent):
            if up >= 0:
                near[broker].append(up)
                near[up].append(broker)
        self.neighbours: list[tuple[int, ...]] = [tuple(sorted(brokers)) for brokers in near]
        """Each broker's neighbours in the tree."""
        self._hops.clear()

    def grown(self, joined: Iterable[tuple[int, int]], left: Collection[int]) -> "Overlay":
        """Return this tree with brokers that joined, each with whom it hangs on, without those that left."""
        joins = list(joined)
        near = [list(brokers) for brokers in self.neighbours]
        for broker, other in joins:
            assert broker == len(near), "brokers join one after the other"
            near.append([other])
            near[other].append(broker)
        live = [broker for broker in range(len(near)) if broker not in left]
        found = Overlay(((),))
        found.root = self.root if self.root in live else min(live)
        graph = [[other for other in brokers if other not in left] for brokers in near]
        found._take(*_breadth_first(graph, found.root))
        lost = [broker for broker in live if found._depth[broker] < 0]
        if lost:
            raise OverlayError(f"brokers {lost} are reached only by one that has left.", lost)
        return found

    def become(self, other: "Overlay") -> None:
        """Be another tree from now on, for all who hold this one."""
        self.root = other.root
        self._take(other._depth, other.parent)  # noqa: SLF001 - of its own kind

    def next_hop(self, broker: int, destination: int) -> int:
        """The neighbour of `broker` on the way to another broker; `NOWHERE` if that one has left."""
        known = self._hops.get((broker, destination))
        if known is not None:
            return known
        if self._depth[destination] < 0:
            return NOWHERE
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
    return depth, parent


def _centre(graph: Sequence[Sequence[int]]) -> int:
    if not graph:
        raise OverlayError("brokers must be 1 or more, not 0.")
    if min(_breadth_first(graph, 0)[0]) < 0:
        return 0  # it is refused
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
