"""Where clients come in: every address that a broker listens on has its own rules.

door = doors_of(config, "B1")["listen_tls"]
guest = Guest("listen_tls", certificate_of(transport), doorkeeper.authority)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sojourn.live.config import Config, parse_address
from sojourn.live.links.tls import common_name, until_s


class Door(NamedTuple):
    """One address for clients."""

    anonymous: bool
    """Whether clients are let in that prove no name."""
    certificates: str = "ignored"
    """Whether certificates prove names: ignored, optional or required."""


class Certificate(NamedTuple):
    """What a client's certificate says, which its authority has signed."""

    name: str
    until_s: float


class Guest(NamedTuple):
    """How somebody came, before it said who it is."""

    door: str
    certificate: Certificate | None = None
    authority: str = ""
    """The one that was asked about the certificate: it may be another one when its client says who it is."""


def doors_of(config: Config, broker: str) -> dict[str, Door]:
    """Return the doors of a broker, by the key of their address."""
    place = config.broker(broker)
    addresses = (
        ("listen", place.listen, place.anonymous),
        ("listen_tls", place.listen_tls, place.anonymous_tls),
        ("listen_ws", place.listen_ws, place.anonymous_ws),
        ("listen_wss", place.listen_wss, place.anonymous_wss),
    )
    return {
        key: Door(
            _lets_in(config, address, wanted=wanted),
            place.certificates if key == "listen_tls" else "ignored",
        )
        for key, address, wanted in addresses
        if address is not None
    }


def lets_in_without_name(config: Config) -> bool:
    """Whether a client that proves no name may come in at some address of some broker."""
    return any(
        door.anonymous and door.certificates != "required"
        for broker in config.brokers
        for door in doors_of(config, broker.name).values()
    )


def _lets_in(config: Config, place: str, *, wanted: bool | None) -> bool:
    """Whether an address is open to everybody: as it says itself, as all do, or because it is on loopback."""
    if wanted is not None:
        return wanted
    if config.security.anonymous is not None:
        return config.security.anonymous
    return parse_address(place, "listen").is_loopback


def certificate_of(said: dict[str, Any] | None) -> Certificate | None:
    """Return what a client proved by the certificate that it showed, as `getpeercert` gives it."""
    if not said:
        return None
    return Certificate(common_name(said), until_s(said))
