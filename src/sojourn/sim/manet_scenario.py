"""What a run over a mobile ad-hoc network is made of: Table 1 of paper 004, and what the paper leaves open.

`Manet` is all it takes to repeat a run. The defaults are the paper's freeway scenario, or ns-2's and RFC
3561's numbers; fields that the paper does not give say so.
"""

from typing import Any, Literal, NamedTuple

import msgspec

from sojourn.errors import SojournError


class ManetError(SojournError):
    """A run over a mobile network cannot be made as asked."""


class Scheme(NamedTuple):
    """How topics are served."""

    geographic: bool
    rendezvous: bool
    mapped: bool
    """Topics are hashed to waypoints of the map."""
    repair: bool = False
    title: str = ""


SCHEMES = {
    "r-aodv": Scheme(geographic=False, rendezvous=True, mapped=False, title="R-AODV"),
    "b-aodv": Scheme(geographic=False, rendezvous=False, mapped=False, title="B-AODV"),
    "r-gpsr": Scheme(geographic=True, rendezvous=True, mapped=False, title="R-GPSR (no map)"),
    "b-gpsr": Scheme(geographic=True, rendezvous=False, mapped=False, title="B-GPSR (no map)"),
    "r-gpsr-map": Scheme(geographic=True, rendezvous=True, mapped=True, title="R-GPSR (with map)"),
    "b-gpsr-map": Scheme(geographic=True, rendezvous=False, mapped=True, title="B-GPSR (with map)"),
    "b-gpsr-repair": Scheme(
        geographic=True, rendezvous=False, mapped=True, repair=True, title="B-GPSR (with map and repair)"
    ),
}
"""The six schemes of section 5, and ours."""

SchemeName = Literal["r-aodv", "b-aodv", "r-gpsr", "b-gpsr", "r-gpsr-map", "b-gpsr-map", "b-gpsr-repair"]


class Manet(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    scheme: SchemeName = "b-gpsr-map"
    seed: int = 1
    nodes: int = 60
    map: str = "freeway"
    """A map's name or file; `city:SIDE` is a grid of streets 500 m apart."""
    movement: str = ""
    """A file of SUMO's FCD output to take the place of the movement model."""
    speed_m_s: float = 30.0
    """The fastest a vehicle goes; the slowest is `slowest_share` of it. The paper gives one number."""
    slowest_share: float = 0.5
    acceleration_share: float = 0.1
    duration_s: float = 900.0
    warmup_s: float = 20.0
    """Nothing is published before, so that tables have filled; the paper says nothing of it."""
    topics: int = 2
    publishers: int = 1
    """A topic."""
    subscribers: int = 9
    """A topic."""
    event_bytes: int = 512
    publish_s: float = 10.0
    subscribe_s: float = 1.0
    advertise_s: float = 1.0
    """As often as subscriptions; the paper says periodically."""
    soft_state_s: float = 3.5
    """Three subscriptions missed; the paper gives none."""
    beacon_s: float = 1.0
    """Not in the paper."""
    hello: bool = True
    """Whether AODV says hello; ns-2's relies on the MAC alone."""
    proximity: bool = True
    """Whoever is within K of a home's place acts for it (section 3.5); else whoever is in radio range of it and
    knows nobody nearer, or whom a walk round it leads back to."""
    proximity_m: float = 125.0
    """K; half the radio range."""
    ttl: int = 32
    """Hops a packet may take (ns-2's number)."""
    waypoint_m: float = 50.0
    relative: bool = False
    """Walk on the relative neighbourhood graph instead of the Gabriel graph."""
    silent_share: float = 0.0
    """Share of subscribers that fall silent half-way; for the test of soft state."""
    keep_s: float = 30.0
    """How long events are kept for repair."""
    grace_s: float = 1.0
    """How long after an event nothing is repaired."""

    def __post_init__(self) -> None:
        for name in ("nodes", "topics", "publishers", "subscribers", "event_bytes", "ttl"):
            if getattr(self, name) < 1:
                raise ManetError(f"{name} must be at least 1, not {getattr(self, name)}.")
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise ManetError(f"{name} must be above 0, not {getattr(self, name):g}.")
        for name in ("slowest_share", "silent_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ManetError(f"{name} must be between 0 and 1, not {getattr(self, name):g}.")
        if self.warmup_s < 0 or self.warmup_s >= self.duration_s:
            raise ManetError(f"warmup_s must be at least 0 and below duration_s, not {self.warmup_s:g}.")
        if self.publishers + self.subscribers > self.nodes:
            raise ManetError(
                f"a topic's publishers and subscribers ({self.publishers + self.subscribers}) must be "
                f"distinct nodes, and there are {self.nodes}; raise nodes."
            )


_POSITIVE = (
    "speed_m_s", "duration_s", "publish_s", "subscribe_s", "advertise_s", "soft_state_s", "beacon_s",
    "proximity_m", "waypoint_m", "keep_s",
)  # fmt: skip


def manet_from(values: dict[str, Any]) -> Manet:
    """A run from plain values; names and types are checked."""
    unknown = sorted(set(values) - set(Manet.__struct_fields__))
    if unknown:
        raise ManetError(f"a manet has no {', '.join(unknown)}; it has {', '.join(Manet.__struct_fields__)}.")
    try:
        return msgspec.convert(values, Manet, strict=False)
    except msgspec.ValidationError as error:
        raise ManetError(f"{error}; see `sojourn simulate manet --help`.") from None
