"""The tree of links that the brokers of a network use, as all of them compute it from their settings."""

from __future__ import annotations

from sojourn.broker.settings import Settings
from sojourn.routing.overlay import Overlay, OverlayError

NAMED_MAX = 8
"""Brokers that a refusal names; the rest is counted."""


def overlay_of(settings: Settings, *, with_left: bool = False) -> Overlay:
    """Return the tree of links that brokers use, each by its place among the brokers."""
    numbers = {broker: number for number, broker in enumerate(settings.brokers)}
    graph: list[list[int]] = [[] for _ in settings.founders]
    for one, other in settings.founding_links:
        graph[numbers[one]].append(numbers[other])
        graph[numbers[other]].append(numbers[one])
    try:
        tree = Overlay(graph)
        if not settings.joined and not settings.left:
            return tree
        joins = [(numbers[name], min(numbers[one] for one in others)) for name, *others in settings.joined]
        return tree.grown(joins, () if with_left else {numbers[name] for name in settings.left})
    except OverlayError as error:
        if not error.cut_off:
            raise
        lost = ", ".join(settings.brokers[one] for one in error.cut_off[:NAMED_MAX])
        more = f" and {len(error.cut_off) - NAMED_MAX} more" if len(error.cut_off) > NAMED_MAX else ""
        gone = f" without {', '.join(settings.left)}, which left" if settings.left else ""
        raise OverlayError(
            f"links must join all brokers; {lost}{more} cannot be reached{gone}.", error.cut_off
        ) from None
