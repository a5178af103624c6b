"""How often clients may change what they subscribe to: each change costs every broker of a network some work.

A client may make all its subscriptions at once, and once more, and some in each second after that; for all
clients of an address together there is another limit. Beyond it a SUBSCRIBE is refused, all of it, as one
that came when there was no room: it changed nothing, and no journal holds it. So nobody has to know, when a
journal is told again, how often something was asked for then: whatever it holds was allowed. To end
subscriptions is never refused.
"""

from __future__ import annotations

from typing import TypeVar

from sojourn.mqtt.connection import Connection
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.rates import BURST_S, spend

_Key = TypeVar("_Key", int, str)

BUCKETS_MAX = 4_096
"""Of how many clients, and of how many addresses, it is known how much they changed, before those are
forgotten that have rested since."""


class _Bucket:
    """What one client, or address, may still change (`rates.py`)."""

    __slots__ = ("tokens", "tokens_s")

    def __init__(self) -> None:
        self.tokens = self.tokens_s = 0.0


class Changes:
    """What clients changed lately."""

    __slots__ = ("_addresses", "_clients", "is_told_again")

    def __init__(self) -> None:
        self._clients: dict[int, _Bucket] = {}
        """By connection."""
        self._addresses: dict[str, _Bucket] = {}
        self.is_told_again = False
        """Whether what is asked for was allowed in an earlier life."""

    def why_not(self, connection: Connection, count: int, limits: Limits, now: float) -> str | None:
        """Why a client may not subscribe to so many topic filters now; None if it may, and has done so."""
        if self.is_told_again:
            return None
        per_s = limits.subscribes_per_s_max
        room = max(BURST_S * per_s, 2 * limits.subscriptions_max)
        if per_s and not _take(self._clients, connection.number, min(count, int(room)), per_s, room, now):
            return f"A client changes at most {per_s} subscriptions a second here."
        per_s = limits.subscribes_address_per_s_max
        room = BURST_S * per_s
        if per_s and not _take(self._addresses, connection.party, min(count, int(room)), per_s, room, now):
            return f"Clients of one address change at most {per_s} subscriptions a second here."
        return None


def _take(buckets: dict[_Key, _Bucket], key: _Key, count: int, per_s: int, room: float, now: float) -> bool:
    """Take from somebody's bucket; say whether there was enough in it."""
    if len(buckets) > BUCKETS_MAX and key not in buckets:
        rested = [one for one, it in buckets.items() if it.tokens + (now - it.tokens_s) * per_s >= room]
        for one in rested:
            del buckets[one]
    return spend(buckets.setdefault(key, _Bucket()), count, per_s, now, room)
