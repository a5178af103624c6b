"""Whether brokers of one file keep out of each other's way: one sentence on the first two that do not.

One file may be for brokers on several machines, which have the same stores and ports there. Where a broker
is, its `peers` or `seats` say, for others reach it there; one that has neither is where the others are if no
address of the file leads to another machine.
"""

from __future__ import annotations

import os
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sojourn.live.config import Address, BrokerConfig, Config

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what files say, and nothing that is listened on
HERE, HERE_IN_NUMBERS = "localhost", "127.0.0.1"


class _Place(NamedTuple):
    broker: str
    key: str
    address: Address


def why_not_apart(config: Config) -> str:
    """Say which two have one store or address, where a configuration's paths are placed; nothing if none."""
    machines = _machines(config)
    stores: dict[tuple[str, str], str] = {}
    by_port: dict[tuple[str, int], list[_Place]] = {}
    for broker in config.brokers:
        machine = machines[broker.name]
        if broker.store is not None and machine is not None:
            where = machine, os.path.realpath(broker.store)
            if where in stores:
                return f"{stores[where]} and {broker.name} have one store, {broker.store}: give each its own."
            stores[where] = broker.name
        for key, address in broker.places.items():
            if address.port:
                there = machine or f"that of {broker.name}", address.port
                by_port.setdefault(there, []).append(_Place(broker.name, key, address))
    for places in by_port.values():
        for one, other in combinations(places, 2):
            if _is_one(one.address, other.address):
                return _one_address(one, other)
    return ""


def _machines(config: Config) -> dict[str, str | None]:
    """By broker the machine that it is on, as others reach it; None where the file does not tell."""
    every = [address for broker in config.brokers for address in broker.places.values()]
    is_all_here = all(address.is_loopback or address.host in EVERYWHERE for address in every)
    return {broker.name: _machine(broker, is_all_here=is_all_here) for broker in config.brokers}


def _machine(broker: BrokerConfig, *, is_all_here: bool) -> str | None:
    for key in ("peers", "seats"):
        address = broker.places.get(key)
        if address is not None and address.host not in EVERYWHERE:
            return HERE if address.is_loopback else address.host.lower()
    return HERE if is_all_here and broker.places["listen"].is_loopback else None


def _is_one(one: Address, other: Address) -> bool:
    """Whether two addresses of one machine with the same port cannot both be listened on."""
    hosts = [HERE_IN_NUMBERS if host == HERE else host for host in (one.host.lower(), other.host.lower())]
    return hosts[0] == hosts[1] or any(_has(*pair) for pair in (hosts, hosts[::-1]))


def _has(every: str, host: str) -> bool:
    """Whether all addresses of a kind are meant, and the other is of this kind; a name is taken for IPv4."""
    return every in EVERYWHERE and (":" in every) == (":" in host)


def _one_address(one: _Place, other: _Place) -> str:
    first, last = f"{one.key} of {one.broker}", f"{other.key} of {other.broker}"
    port = one.address.port
    if one.address == other.address:
        return f"{first} and {last} are both {one.address}: give each its own port."
    return f"{first} ({one.address}) and {last} ({other.address}) both need port {port}: give each its own."
