"""What the publisher-mobility study fixes, with a reason for every constant that paper 000 leaves out.

Table 4's values are the defaults of `Scenario` and are not repeated here. The scales differ only in how
much is run: `paper` is the study, `quick` the same study with fewer points, seeds and seconds, `smoke`
shows that every part works and judges nothing.
"""

from sojourn.studies import base

CONTROL_BYTES = 100
"""Advertisements and subscriptions on the wire. The paper gives no size; three predicates as text and a
TCP/IP header are about this, 0.08 ms on a 10 Mb/s link against 2 ms of latency, so it hardly shows."""

EVENT_BYTES = 200
"""A publication on the wire: the same predicates as values with a small payload. Used in Figure 11 only."""

PUBLISH_INTERVAL_S = 2.0
"""Section 5.2.8: one event every two seconds while connected."""

DELIVERY_SHARE = 0.5
"""Figure 11's runs are half as long as the others: at 250 publishers that is still tens of thousands of
events a run, and events are most of what those runs have to carry."""

SPEEDS_KMH = (25.0, 50.0, 75.0, 100.0, 125.0)
"""Section 5.2.5 names the ends, 25 and 125 km/h; the steps between are ours."""

LOCALITIES = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
"""Section 5.2.7 names 0 and 90%; seven evenly spaced points show where curves cross."""

OVERSHOOTS = (0, 1, 2, 3, 4, 5)
"""The axis of Figures 8 and 9."""

SHORT_DELAY_S = 1.0
"""An unadvertisement delay below the three seconds of disconnection (section 5.2.4)."""

UNDER_WAY_S = 7200.0
"""Publishers set out at random times in the two hours before a run begins. Only the proxy protocol remembers
where a publisher set out; right after that it looks better than it is, and at any fixed length of run a slow
publisher is nearer its proxies than a fast one. This stands in place of two hours of simulated warm-up and
takes the measures near their steady state; at random times, because publishers of one speed would otherwise
all be equally far away. `just-set-out` is the same without it, for comparison."""

READING_SHARE = 0.5
"""Runs of another reading of the paper that are as dear as the study's own are half as long."""

LIGHT_PUBLISHERS = (5, 10, 20)
"""Publishers at which Figure 7 is judged again: at the paper's 50 the network is overloaded at high speed,
and a check that compares speeds can hardly fail."""

TERRITORY = 9
"""Brokers that patrols go through in the runs with other numbers of proxies (section 5.2.6)."""

PROXIES = (1, 3, 5, 7, 9)
"""Numbers of proxies for such a territory: more of them leave less to overshoot."""

FAST_INSERTION_MS = 2.0
"""Section 5.2.2 says that the complex class differs in matching only; section 3 that insertion is
proportional to matching. The study follows section 3; this is the other reading."""

TREND = (1, 2)
"""Durations, as multiples of the scale's, at which the collapse is looked at: a steady collapse does not
shrink when it is watched for twice as long."""


class Scale(base.TimedScale, frozen=True, kw_only=True):
    """How much of the study is run."""

    warmup_s: float
    """The paper has a warm-up but gives no length. Set-up is finished before time 0, so the warm-up only has
    to see the first delayed teardowns (13 s after a move) and to let queues fill: two minutes is several
    crossings of a broker at driving speed."""
    duration_s: float
    """The paper gives none. Ten minutes give a fast publisher 33 moves and 250 publishers some 4,300, so that
    a mean over five seeds is known to a few per cent, and last several times the longest queueing delay of a
    stable system; overload shows as growth, which the doubled run tells from a long transient."""
    publishers: tuple[int, ...]
    speeds_kmh: tuple[float, ...]
    localities: tuple[float, ...]
    overshoots: tuple[int, ...]


SCALES = {
    "smoke": Scale(
        name="smoke",
        seeds=1,
        warmup_s=10.0,
        duration_s=20.0,
        publishers=(10, 20),
        speeds_kmh=(25.0, 125.0),
        localities=(0.0, 0.9),
        overshoots=(0, 2),
        judges=False,
    ),
    "quick": Scale(
        name="quick",
        seeds=2,
        warmup_s=60.0,
        duration_s=120.0,
        publishers=(50, 100, 250),
        speeds_kmh=(25.0, 75.0, 125.0),
        localities=(0.0, 0.45, 0.9),
        overshoots=(0, 1, 2, 3, 4),
        judges=True,
    ),
    "paper": Scale(
        name="paper",
        seeds=5,
        warmup_s=120.0,
        duration_s=600.0,
        publishers=(50, 100, 150, 200, 250),
        speeds_kmh=SPEEDS_KMH,
        localities=LOCALITIES,
        overshoots=OVERSHOOTS,
        judges=True,
    ),
}
