"""What an address counts as, wherever addresses have limits, shares, turns or pauses of their own.

    party_of("192.0.2.7")             # "192.0.2.7"
    party_of("::ffff:192.0.2.7")      # "192.0.2.7": the same host, at a door that takes both
    party_of("2001:db8:1:2:3:4:5:6")  # "2001:db8:1:2::/64"
    party_of("fe80::1%eth0")          # "fe80::/64%eth0"

Whoever has one address of IPv6 has all of its /64, 2^64 of them (RFC 4291, section 2.5.1; RFC 6177): each
counted by itself, no limit by address would hold. Bans and logs name the address itself.
"""

from __future__ import annotations

import ipaddress

PREFIX_BITS = 64
"""So many bits of an address of IPv6 say whose it is; the others its owner chooses."""


def party_of(address: str) -> str:
    """Return what an address counts as; what is none counts as it is."""
    if ":" not in address:
        return address
    try:
        found = ipaddress.IPv6Address(address)
    except ValueError:  # it is a prefix already, or a name
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    network = ipaddress.IPv6Network((int(found), PREFIX_BITS), strict=False)
    return f"{network}%{found.scope_id}" if found.scope_id else str(network)
