"""What the architectures study fixes. Paper 003 gives no numbers at all, so every constant here is ours.

The workload is readings of sensors (`sim/edge/workload.py`): an area and a value; a subscription wants one
area and a range of values. The scales differ only in how much is run: `paper` is the study, `quick` the same
with fewer points and seeds, `smoke` shows that every part works and judges nothing.
"""

from sojourn.edge.queues import QueuePolicy
from sojourn.studies import base

EVENT_BYTES = 200
"""A small reading with its envelope; a link adds 24 bytes of header."""

AREAS = 10

# Quenching ------------------------------------------------------------------------------------------
QUENCH_SOURCES = 5
QUENCH_SUBSCRIPTIONS = 100
QUENCH_COVERS = 0.5
"""Share of the wanted values that one subscription covers: ten of them in an area leave little uncovered, so
that the share of events that nobody wants is the share of values outside."""
QUENCH_EVENTS = 150
"""Of each source; fewer where subscriptions change often, but with at least `CHANGES` changes."""
CHANGES = 200
QUENCH_MODES = {"eager": (1, 64), "lazy": (20, 64), "four alternatives": (1, 4)}
"""Narrowing after so many subscriptions have left, and the most alternatives told."""
COMPARISON_PRICES = (0.0, 1.0, 10.0)
"""What comparing one attribute costs a source, in bytes sent: a break-even line is drawn for each. On a mote
sending a byte costs as much energy as hundreds of instructions, so a comparison is far below one; ten
stands for a source whose processor is the bottleneck."""

# A source that is away ------------------------------------------------------------------------------
OFFLINE_EVENTS = 300
OFFLINE_SUBSCRIPTIONS = 12
OFFLINE_WIDTH = 120
OFFLINE_BUFFERS = (30, 75, 150, 225, 300)
OFFLINE_NEW = (0.0, 0.25, 0.5)
"""Share of the subscriptions that were replaced by new ones while the source was away."""

# Scaling --------------------------------------------------------------------------------------------
SCALING_SUBSCRIPTIONS = 240
SCALING_WIDTH = 50
SCALING_BROKERS = 16
SCALING_EVENTS = 200

# Moving displayers ----------------------------------------------------------------------------------
ROAM_BLOCK = 5

# Queues ---------------------------------------------------------------------------------------------
QUEUE_POLICIES = {
    "all": QueuePolicy(),
    "expiry": QueuePolicy(expiry_s=60.0),
    "last per key": QueuePolicy(keep="last", key="area"),
    "highest": QueuePolicy(keep="highest", value="value"),
    "lowest per key": QueuePolicy(keep="lowest", value="value", key="area"),
    "highest, fresh": QueuePolicy(keep="highest", value="value", expiry_s=60.0),
    "byte budget": QueuePolicy(reconnect_bytes_max=5000),
}
QUEUE_STREAMS = 10
"""Random streams a policy and length of absence."""

# Replicas -------------------------------------------------------------------------------------------
REPLICA_EVENTS = 400
REPLICA_LOSSES = (0.02, 0.1, 0.3)

# Ad-hoc brokers -------------------------------------------------------------------------------------
HEAL_BLOCK = 25
PHASES_OF_REFRESH = 5.0
"""Where the refresh period varies, partitions last as many periods: long enough that each island elects."""

# Which architecture when ----------------------------------------------------------------------------
ADVICE_EVENTS = 150


def events_at(changes_per_event: float, most: int) -> int:
    """How many events a run takes: fewer where so much happens between two that changes dominate the time."""
    return most if changes_per_event <= 1 else max(20, min(most, round(CHANGES / changes_per_event)))


class Scale(base.Scale, frozen=True, kw_only=True):
    """How much of the study is run."""

    events_max: int
    """Of the enumerated runs; the claim asks for five."""
    unmatched: tuple[float, ...]
    churns: tuple[float, ...]
    """Subscription changes per event of a source."""
    brokers: tuple[int, ...]
    widths: tuple[int, ...]
    """Values that a subscription covers, of a thousand."""
    absences: tuple[int, ...]
    """Events missed by an absent displayer."""
    roams: int
    """Runs of moving displayers for each architecture and way of coordination."""
    heals: int
    """Histories of partitions."""
    refreshes_s: tuple[float, ...]
    refresh_heals: int
    """Histories for each refresh period."""
    situations: int = 100
    """How many situations, at most, the table of architectures has."""


SCALES = {
    "smoke": Scale(
        name="smoke",
        seeds=1,
        judges=False,
        events_max=3,
        unmatched=(0.1, 0.9),
        churns=(0.0, 10.0),
        brokers=(1, 4),
        widths=(20, 400),
        absences=(20, 100),
        roams=1,
        heals=10,
        refreshes_s=(1.0, 4.0),
        refresh_heals=5,
        situations=2,
    ),
    "quick": Scale(
        name="quick",
        seeds=2,
        judges=True,
        events_max=5,
        unmatched=(0.05, 0.3, 0.6, 0.9),
        churns=(0.0, 0.3, 1.0, 3.0, 10.0),
        brokers=(1, 2, 4, 8, 16),
        widths=(5, 20, 100, 400),
        absences=(10, 100, 1000),
        roams=20,
        heals=150,
        refreshes_s=(0.5, 1.0, 2.0, 4.0, 8.0),
        refresh_heals=25,
    ),
    "paper": Scale(
        name="paper",
        seeds=3,
        judges=True,
        events_max=5,
        unmatched=(0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95),
        churns=(0.0, 0.1, 0.3, 1.0, 3.0, 10.0),
        brokers=(1, 2, 4, 8, 16, 32),
        widths=(5, 10, 20, 50, 100, 200, 400),
        absences=(10, 30, 100, 300, 1000),
        roams=150,
        heals=1000,
        refreshes_s=(0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
        refresh_heals=100,
    ),
}
