"""The tree of links that the brokers of a network use, as all of them compute it from their settings."""

from __future__ import annotations

from sojourn.broker.settings import Settings
from sojourn.routing.overlay import Overlay


def overlay_of(settings: Settings, *, with_left: bool = False) -> Overlay:
    """Return the tree of links that brokers use, each by its place among the brokers."""
    numbers = {broker: number for number, broker in enumerate(settings.brokers)}
    graph: list[list[int]] = [[] for _ in settings.founders]
    for one, other in settings.founding_links:
        graph[numbers[one]].append(numbers[other])
        graph[numbers[other]].append(numbers[one])
    tree = Overlay(graph)
    if not settings.joined and not settings.left:
        return tree
    joins = [(numbers[name], min(numbers[one] for one in others)) for name, *others in settings.joined]
    return tree.grown(joins, () if with_left else {numbers[name] for name in settings.left})
