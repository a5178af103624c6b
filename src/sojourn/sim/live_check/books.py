"""How much a broker keeps in each of its books, to see that in the end it is as little as in the beginning.

This is the one place that looks into a broker, and only when everything is over: whatever clients came and
went, no table may have an entry more than before the first one. Left out are counters, caches with a limit,
the retained events themselves, and moments and timers that wait for their time.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from sojourn.broker.live_broker import LiveBroker

_LEFT_OUT = {
    "_moments",
    "_aged",
    "_heap",
    "by_bytes",
    "_plain",
    "_towards",
    "by_topic",
    "_by_topic",
    "_topic_weight",
    "routes",
    "_complained",
    "births",
    "birth_events",
    "retained",
    "table",
    "known",
}
"""Attributes that may grow within limits: heaps of moments, caches, lives of a stream, edges between brokers.
"""


def books(broker: LiveBroker) -> dict[str, int]:
    """Return how many entries each book of a broker has."""
    network, state = broker.network, broker.core.state
    parts: dict[str, object] = {
        "sessions": state,
        "filters": state.filters,
        "topics": state.tree,
        "addresses": state.address_uses,
    }
    if network is not None:
        core = network.clients.broker
        parts |= {
            "network": network,
            "names": network.links.names,
            "interests": network.links.interests,
            "links": network.links,
            "clients": network.clients,
            "groups": network.clients.shares,
            "timers": network.clients.timers,
            "arrivals": network.arrivals,
            "finder": network.arrivals.finder,
            "confirming": network.confirming,
            "reconciling": network.reconciling,
            "pressure": network.pressure,
            "broker": core,
            "router": core.router,
            "subscribers": core.subscribers,
            "store": core.subscribers.store,
            "accounts": core.subscribers.accounts,
        }
        parts |= {f"channel to {peer}": channel for peer, channel in network.links.channels.items()}
    return {
        f"{part}.{name}": size
        for part, thing in parts.items()
        for name, size in _sizes(thing)
        if name not in _LEFT_OUT
    }


def surplus(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """Return the books that have more entries than they had."""
    return [
        f"{name}: {size} instead of {before.get(name, 0)}"
        for name, size in after.items()
        if size > before.get(name, 0)
    ]


def _sizes(thing: object) -> list[tuple[str, int]]:
    names = [*getattr(thing, "__dict__", ())]
    names += [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    found: list[tuple[str, Any]] = [(name, getattr(thing, name, None)) for name in names]
    return [
        (name, len(book))
        for name, book in found
        if hasattr(book, "__len__") and not isinstance(book, (str, bytes, tuple, Counter))
    ]
