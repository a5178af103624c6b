"""The work a publish/subscribe tree does, exactly as section 2.1 of paper 002 defines it.

Receiving, processing and forwarding one event cost r, p and f. With s a node's inherent subscription, s' the
union of what its children ask for (proxied) and S = s or s' (effective), a node's cost is

    (r + p) Φ(s and not s') + (r + f) Φ(not s and s') + (r + p + f) Φ(s and s')

and its overhead is what it would not do for itself: (r + f) Φ(not s and s') + f Φ(s and s'). Forwarding costs
f however many children listen, since radio is a broadcast. Φ is the measure of an interest.

Trees are parents by node, with -1 for the root (node 0) and for nodes that are not in the tree.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from sojourn.adhoc.errors import AdhocError
from sojourn.adhoc.tree.cells import Interest
from sojourn.adhoc.tree.connectivity import ROOT
from sojourn.interest.measure import Bound

Set = TypeVar("Set", bound=Interest)


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """Work units for one event (section 2.1; r = f = 1 unless a study says otherwise)."""

    receive: float = 1
    process: float = 1
    forward: float = 1

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not getattr(self, name) >= 0:
                raise AdhocError(f"{name} must be a cost of at least 0, not {getattr(self, name)}.")


class NodeWork(NamedTuple):
    """What one node does to publish all events."""

    cost: Bound
    overhead: Bound


def node_overhead(inherent: Interest, proxied: Interest, costs: Costs) -> Bound:
    """The extra work of a node that forwards `proxied` for its children."""
    alien, shared = (proxied - inherent).measure(), (proxied & inherent).measure()
    return (costs.receive + costs.forward) * alien + costs.forward * shared


def node_cost(inherent: Interest, proxied: Interest, costs: Costs) -> Bound:
    """All the work of a node, its own interests included."""
    own_only = (inherent - proxied).measure()
    alien, both = (proxied - inherent).measure(), (proxied & inherent).measure()
    return (
        (costs.receive + costs.process) * own_only
        + (costs.receive + costs.forward) * alien
        + (costs.receive + costs.process + costs.forward) * both
    )


def proxied_subscriptions(parents: Sequence[int], inherent: Sequence[Set]) -> list[Set]:
    """By node: the union of its children's effective subscriptions."""
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(node)
    order, seen = [ROOT], 0
    while seen < len(order):
        order.extend(children[order[seen]])
        seen += 1
    assert len(order) == len(parents), "every node hangs below the root"
    proxied = [inherent[node] - inherent[node] for node in range(len(parents))]
    for node in reversed(order):
        for child in children[node]:
            proxied[node] = proxied[node] | inherent[child] | proxied[child]
    return proxied


def tree_work(parents: Sequence[int], inherent: Sequence[Set], costs: Costs) -> list[NodeWork]:
    """Every node's cost and overhead."""
    proxied = proxied_subscriptions(parents, inherent)
    return [
        NodeWork(node_cost(own, below, costs), node_overhead(own, below, costs))
        for own, below in zip(inherent, proxied, strict=True)
    ]


def tree_overhead(parents: Sequence[int], inherent: Sequence[Set], costs: Costs) -> Bound:
    """The overhead of a tree: the sum over its nodes."""
    return sum(work.overhead for work in tree_work(parents, inherent, costs))
