"""Who is banned: clients by identifier, users by name, addresses one by one or by network.

A ban and its end have a number that grows with time, at whichever broker they were ordered: of two orders
about the same the later one counts, so that brokers which hear them in different order agree.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import NamedTuple

SCOPES = ("client", "user", "address")
BANS_MAX = 10_000
"""Orders that are remembered; of more, the oldest that ended a ban are forgotten, or no more are taken."""
FORGOTTEN_AT_ONCE = 100
"""Ended bans that are forgotten together, so that not every order at the limit looks through all."""
WHOM_MAX = 1_024
"""Characters of what is banned."""
MAPPED_BITS = 96
"""So many bits of an address of IPv6 say that the others are one of IPv4."""

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Order(NamedTuple):
    """Somebody is banned, or no longer."""

    scope: str
    whom: str
    stamp: int
    banned: bool


def network_of(text: str) -> _Network | None:
    """Return the addresses that a text means, one or many; None if it means none."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
    return network


def spelled(scope: str, whom: str) -> str:
    """Return the one way to write whom an order is about: addresses can be written in many."""
    network = network_of(whom) if scope == "address" else None
    if network is None:
        return whom
    first = network.network_address
    mapped = getattr(first, "ipv4_mapped", None)
    if mapped is not None and network.prefixlen >= MAPPED_BITS:
        network = ipaddress.IPv4Network((mapped, network.prefixlen - MAPPED_BITS))
        first = mapped
    return str(first) if network.num_addresses == 1 else str(network)


class Bans:
    """All bans that one broker knows."""

    def __init__(self) -> None:
        self.hush = False
        """Whether wills of who is banned are not published; journals of earlier builds say nothing of it."""
        self.known: dict[str, list[int | bool]] = {}
        """By scope and whom: the number of the last order, and whether it was a ban."""
        self._networks: dict[str, _Network] = {}
        """The addresses that are banned, by how they were written."""

    def __iter__(self) -> Iterator[Order]:
        for key, (stamp, banned) in self.known.items():
            scope, _, whom = key.partition(" ")
            yield Order(scope, whom, int(stamp), bool(banned))

    def next_stamp(self, now: float) -> int:
        """The number of an order that is later than all that are known."""
        return max(int(now * 1e6), 1 + max((int(stamp) for stamp, _ in self.known.values()), default=0))

    def take(self, order: Order) -> bool:
        """Take in an order; return whether it was news."""
        whom = spelled(order.scope, order.whom)
        key = f"{order.scope} {whom}"
        if order.scope not in SCOPES or not 0 < len(order.whom) <= WHOM_MAX:
            return False
        if key not in self.known and not self._has_room():
            return False
        if key in self.known and self.known[key][0] >= order.stamp:
            return False
        self.known[key] = [order.stamp, order.banned]
        if order.scope == "address":
            self._read_network(order._replace(whom=whom))
        return True

    def _has_room(self) -> bool:
        if len(self.known) < BANS_MAX:
            return True
        ended = sorted((int(stamp), key) for key, (stamp, banned) in self.known.items() if not banned)
        for _, key in ended[:FORGOTTEN_AT_ONCE]:
            del self.known[key]
        return bool(ended)

    def rebuild(self) -> None:
        """Read the addresses that are banned; states of earlier builds have them as they were written."""
        orders = sorted(self, key=lambda order: order.stamp)
        self.known.clear()
        self._networks.clear()
        for order in orders:
            self.take(order)

    def _read_network(self, order: Order) -> None:
        network = network_of(order.whom) if order.banned else None
        if network is None:
            self._networks.pop(order.whom, None)
        else:
            self._networks[order.whom] = network

    def concerns(self, client_id: str, names: tuple[str | None, ...], address: str) -> bool:
        """Whether a client is banned, by its identifier, one of its user names or its address."""
        if not self.known:
            return False
        keys = [f"client {client_id}", *(f"user {name}" for name in names if name)]
        if any(self.known.get(key, (0, False))[1] for key in keys):
            return True
        if not self._networks:
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None)
        return any(
            one in network
            for one in (found, mapped)
            if one is not None
            for network in self._networks.values()
        )
