"""What a run over a mobile ad-hoc network is made of: Table 1 of paper 004, and what the paper leaves open.

`Manet` is all it takes to repeat a run. The defaults are the paper's freeway scenario, or ns-2's and RFC
3561's numbers; fields that the paper does not give say so.
"""

from typing import Annotated, NamedTuple

from sojourn.adhoc.aodv.tables import NS_2, RFC_3561
from sojourn.sim.scenario import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, SHARE, Described, ScenarioError, factor


class ManetError(ScenarioError):
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


AODV_CONSTANTS = {"rfc-3561": RFC_3561, "ns-2": NS_2}
"""By name: what implementations of AODV differ in."""


class Manet(Described, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run."""

    scheme: Annotated[str, factor("scheme", "", "How topics are served: " + ", ".join(SCHEMES) + ".")] = (
        "b-gpsr-map"
    )
    seed: Annotated[
        int, factor("run", "", "Root of every random stream; the same seed gives the same run.")
    ] = 1
    duration_s: Annotated[float, factor("run", "s", "Simulated time.")] = 900.0
    warmup_s: Annotated[float, factor("run", "s", "Nothing is published or counted before.")] = 20.0
    nodes: Annotated[int, factor("movement", "nodes", "Vehicles (Table 1).")] = 60
    map: Annotated[
        str,
        factor(
            "movement", "", "freeway, manhattan, a TOML file, or city:SIDE:STREET, a grid of streets (500 m)."
        ),
    ] = "freeway"
    movement: Annotated[
        str, factor("movement", "", "File of SUMO's FCD output to take the place of the movement model.")
    ] = ""
    speed_m_s: Annotated[float, factor("movement", "m/s", "The fastest a vehicle goes (Table 1).")] = 30.0
    slowest_share: Annotated[
        float, factor("movement", "share", "The slowest it goes, as a share of that; not in the paper.")
    ] = 0.5
    acceleration_share: Annotated[
        float, factor("movement", "share", "Its acceleration, as a share of that a second; not in the paper.")
    ] = 0.1
    topics: Annotated[int, factor("workload", "topics", "Topics (Table 1).")] = 2
    publishers: Annotated[int, factor("workload", "nodes", "Publishers per topic (Table 1).")] = 1
    subscribers: Annotated[int, factor("workload", "nodes", "Subscribers per topic (Table 1).")] = 9
    event_bytes: Annotated[int, factor("workload", "bytes", "Size of an event (Table 1).")] = 512
    publish_s: Annotated[float, factor("workload", "s", "Between two events of a publisher (Table 1).")] = (
        10.0
    )
    subscribe_s: Annotated[
        float, factor("workload", "s", "Between two renewals of a subscription (section 5).")
    ] = 1.0
    advertise_s: Annotated[
        float, factor("workload", "s", "Between two advertisements; the paper says periodically.")
    ] = 1.0
    silent_share: Annotated[
        float,
        factor("workload", "share", "Subscribers that fall silent half-way, to see soft state run out."),
    ] = 0.0
    soft_state_s: Annotated[
        float, factor("scheme", "s", "A subscription not heard of for so long is dropped; not in the paper.")
    ] = 3.5
    proximity: Annotated[
        bool,
        factor(
            "scheme",
            "",
            "Whoever is within K of a home acts for it, as well as the nearest node (section 3.5); else the "
            "nearest node alone.",
        ),
    ] = True
    home_walk: Annotated[
        bool,
        factor(
            "scheme",
            "",
            "A packet that has walked round a void belongs to where it returns to, as with geographic hash "
            "tables; section 3.1 drops it.",
        ),
    ] = False
    waits_for_list: Annotated[
        bool,
        factor(
            "scheme",
            "",
            "A rendezvous' publisher asks for the list when it publishes and waits for it (section 5 reads "
            "so); else it asks all the time and sends at once (section 3.2.2).",
        ),
    ] = False
    list_s: Annotated[
        float,
        factor(
            "scheme",
            "s",
            "How long a publisher uses a list; 0: as long as its entries last; not in the paper.",
        ),
    ] = 0.0
    message_bytes: Annotated[
        int,
        factor("workload", "bytes", "Size of every message that is no event; 0: as much as it has to say."),
    ] = 0
    proximity_m: Annotated[float, factor("scheme", "m", "K: half the radio range.")] = 125.0
    waypoint_m: Annotated[
        float, factor("scheme", "m", "Between two waypoints of the map; not in the paper.")
    ] = 50.0
    keep_s: Annotated[float, factor("scheme", "s", "How long events are kept for repair.")] = 30.0
    grace_s: Annotated[float, factor("scheme", "s", "How long after an event nothing is repaired.")] = 1.0
    beacon_s: Annotated[float, factor("routing", "s", "Between two beacons of GPSR; not in the paper.")] = 1.0
    relative: Annotated[
        bool, factor("routing", "", "Walk on the relative neighbourhood graph instead of the Gabriel graph.")
    ] = False
    steady_beacons: Annotated[
        bool,
        factor("routing", "", "Beacons go out whatever else a node sent; else every packet counts as one."),
    ] = False
    aodv: Annotated[
        str,
        factor("routing", "", "Whose constants AODV has: rfc-3561, or ns-2, which also mends broken routes."),
    ] = "rfc-3561"
    hello: Annotated[
        bool, factor("routing", "", "Whether AODV says hello; ns-2's relies on the MAC alone.")
    ] = True
    ttl: Annotated[
        int,
        factor(
            "routing",
            "hops",
            "Hops a packet may take: what GPSR's agent for ns-2 sets, longer than a walk round sixty nodes.",
        ),
    ] = 128

    def validate(self) -> None:
        """Raise one sentence for the first parameter that has no meaning."""
        self.check_choices({"scheme": SCHEMES, "aodv": AODV_CONSTANTS})
        self.check_ranges(
            (("nodes", "topics", "publishers", "subscribers", "event_bytes", "ttl"), AT_LEAST_ONE),
            (_POSITIVE, POSITIVE),
            (("message_bytes", "list_s"), NOT_NEGATIVE),
            (("slowest_share", "silent_share"), SHARE),
        )
        if self.warmup_s < 0 or self.warmup_s >= self.duration_s:
            raise ManetError(f"warmup_s must be at least 0 and below duration_s, not {self.warmup_s:g}.")
        people = self.publishers + self.subscribers
        if people > self.nodes:
            raise ManetError(
                f"a topic's publishers and subscribers ({people}) must be distinct nodes, and there are "
                f"{self.nodes}; raise nodes."
            )


_POSITIVE = (
    "speed_m_s", "duration_s", "publish_s", "subscribe_s", "advertise_s", "soft_state_s", "beacon_s",
    "proximity_m", "waypoint_m", "keep_s",
)  # fmt: skip
