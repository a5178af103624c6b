"""The floods of `sojourn bench floods` by name, and what bystanders do during each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sojourn.cli import bench_floods_attacks as attacks
from sojourn.cli import bench_floods_stored as stored


class Flood(NamedTuple):
    """One flood, and what its bystanders do meanwhile."""

    run: Callable[[list[int]], str]
    brokers: int = 3
    has_users: bool = False
    """Whether bystanders have to log in, which they do again and again."""
    payload: int = 64
    """Bytes of the events that bystanders send."""


FLOODS = {
    f"a SUBSCRIBE with {attacks.PATTERNS:,} patterns d/n/i/+": Flood(attacks.patterns),
    f"{attacks.DEVICES} devices subscribe to device/<id>/#": Flood(attacks.devices),
    f"{attacks.FILTERS} content filters at once": Flood(attacks.filters),
    f"{attacks.PASSWORDS:,} wrong passwords": Flood(attacks.passwords, has_users=True),
    f"{attacks.UNFINISHED} unfinished packets of 2 MiB": Flood(attacks.unfinished, payload=200_000),
    f"{attacks.EVENTS:,} events to {attacks.SUBSCRIBERS} subscribers": Flood(attacks.fan_out),
    f"{attacks.PUBLISHERS} endless publishers": Flood(attacks.endless),
    f"{attacks.CLAIMANTS} connections with one client id at six brokers": Flood(
        attacks.one_identifier, brokers=6
    ),
    f"back to {stored.STORED:,} stored events": Flood(stored.comes_back),
    f"moving with {stored.STORED:,} stored events": Flood(stored.moves),
    f"a member leaves {stored.LEFT:,} unanswered events": Flood(stored.member_ends),
    f"a session with {stored.FILTERS} filters ends": Flood(stored.session_ends),
    "a CONNECT with the longest advertisements": Flood(stored.advertisements),
    f"asking for {stored.RETAINED:,} retained messages": Flood(stored.retained),
    "subscribing again and again": Flood(stored.changes),
}
