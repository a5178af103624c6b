"""What each address may take: how many connections it has, and how fast it makes new ones.

addresses.opened(party_of(peer), limits, now)     # a connection was accepted; why it is one too many, or None
addresses.lost(party_of(peer), now)
"""

from __future__ import annotations

from typing import NamedTuple

from mqtt5 import ConnAckReasonCode as Code

from sojourn.mqtt.limits import Limits
from sojourn.mqtt.rates import BURST_S, spend

REMEMBERED_MAX = 10_000
"""Addresses without a connection whose last ones are remembered."""


class _Address:
    __slots__ = ("connections", "tokens", "tokens_s")

    def __init__(self) -> None:
        self.connections = 0
        self.tokens = 0.0
        self.tokens_s = 0.0


class Refused(NamedTuple):
    """Why a client is not let in because of its address."""

    code: Code
    text: str


class Addresses:
    """All addresses that clients come from."""

    def __init__(self) -> None:
        self._known: dict[str, _Address] = {}

    def opened(self, address: str, limits: Limits, now: float) -> Refused | None:
        """Note a new connection; return why it is one too many, if it is."""
        one = self._known.setdefault(address, _Address())
        one.connections += 1
        per_s = limits.connects_per_s_max
        if per_s and not spend(one, 1, per_s, now):
            return Refused(
                Code.CONNECTION_RATE_EXCEEDED, f"Your address makes more than {per_s} connections a second."
            )
        if limits.connections_address_max and one.connections > limits.connections_address_max:
            return Refused(
                Code.QUOTA_EXCEEDED, f"Your address has {limits.connections_address_max} connections already."
            )
        return None

    def lost(self, address: str, now: float) -> None:
        """Note that a connection is gone."""
        one = self._known.get(address)
        if one is None:
            return
        one.connections -= 1
        if len(self._known) > REMEMBERED_MAX:
            self._known = {
                name: known
                for name, known in self._known.items()
                if known.connections or known.tokens_s + BURST_S > now
            }
