"""The state of a simulated mobile ad-hoc network as arrays, and the constants of its radio.

`Net` is all that the compiled loop (`loop.py`) works on. Everything has a fixed size: the queue of each
node, the pool of packets, the heap of what is to happen; what does not fit is lost and counted, but for the
heap, which is made large enough for all timers and must not overflow.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sojourn.adhoc.packets import KINDS, PACKET, REASONS, WHATS, Effects, Records, make_effects
from sojourn.adhoc.topics.node import Cores

# ns-2's radio: 914 MHz, two-ray ground, antennas 1.5 m high.
RECEPTION_M = 250.0
CARRIER_SENSE_M = 550.0
CROSSOVER_M = 86.14
"""Up to here strength falls with the square of the distance, beyond with its fourth power."""
CAPTURE = 10.0
"""A frame is received through others that are weaker by this factor (ns-2's; a run may have another)."""

# 802.11 with direct sequence, all frames at 2 Mb/s.
BITS_PER_S = 2e6
SLOT_S, SIFS_S, DIFS_S = 20e-6, 10e-6, 50e-6
PREAMBLE_S = 192e-6
CCA_S = 15e-6
"""How long it takes to notice that somebody sends: who begins within it collides."""
WINDOW_MIN, WINDOW_MAX = 31, 1023
ATTEMPTS_MAX = 7
"""Times that a unicast frame is sent: the standard's short retry limit counts attempts, not repetitions."""
MAC_BYTES, ACK_BYTES = 28 + 8, 14
ACK_S = PREAMBLE_S + 8 * ACK_BYTES / BITS_PER_S

QUEUE_MAX = 50
"""Packets waiting at a node's radio (ns-2's number)."""
AIR_MAX = 512
"""Frames in the air at once."""

# What is going to happen.
TICK, ATTEMPT, AIR_END, ACK_DUE, ACK_MISSED, ENQUEUE, PERIOD, SUBSCRIPTION_DUE, ADVERTISEMENT_DUE = range(
    1, 10
)
PUBLICATION_DUE, SEARCH_TIMER, AGAIN_TIMER = range(10, 13)

SOON, LATE = 0, 1
"""Heaps: what the radio does, from ATTEMPT to ENQUEUE; and ticks and timers."""

# States of a node's radio: nothing to send, waiting for the medium, sending, waiting for an acknowledgement.
FREE, WAITING, SENDING, AWAITING = range(4)

HAPPENING = np.dtype(
    [("time_s", "f8"), ("order", "i8"), ("kind", "i8"), ("a", "i8"), ("b", "i8"), ("c", "i8")], align=True
)

NEAR_MAX = 512
"""Nodes that one node senses at most."""
TAKEN_MAX = 16
"""Frames that a node remembers having taken, so that a repeated one is not taken twice."""

MAC = np.dtype(
    [
        # What every frame in the air asks of everybody near stands together, in one line of the cache.
        ("state", "i8"),
        ("armed", "i8"),  # whether an attempt is planned
        ("sensed", "i8"),  # others' frames in the air that it senses
        ("transmitting", "i8"),
        ("hearing", "i8"),  # the frame it is receiving, -1 for none
        ("clear", "i8"),  # whether nothing has spoilt that
        ("strength", "f8"),
        ("attempt_s", "f8"),
        ("x", "f8"),
        ("y", "f8"),
        ("since_s", "f8"),
        ("slots", "i8"),
        ("window", "i8"),
        ("retries", "i8"),
        ("head", "i8"),
        ("count", "i8"),
        ("near_count", "i8"),
        ("taken_at", "i8"),
        ("token", "i8"),
        ("frame", "i8"),
        ("queue", "i8", (QUEUE_MAX,)),
        ("taken", "i8", (TAKEN_MAX,)),
    ],
    align=True,
)
"""One node's radio and place."""

HOOD = np.dtype(
    [
        ("near", "i4", (NEAR_MAX,)),  # those in reception range negated and less one
        ("near_d2", "f8", (NEAR_MAX,)),
    ],
    align=True,
)
"""Who senses a node, and the square of how far away each is; apart, so that radios stand close together."""

AIR = np.dtype(
    [
        ("node", "i8"),
        ("packet", "i8"),  # -1 for an acknowledgement
        ("to", "i8"),
        ("used", "i8"),
        ("near_count", "i8"),
        ("frame", "i8"),
        ("near", "i4", (NEAR_MAX,)),  # as of its sender when it began
    ],
    align=True,
)

PUBLICATION = np.dtype(
    [
        ("event", "i8"),
        ("node", "i8"),
        ("topic", "i8"),
        ("clearance", "i8"),
        ("bytes", "i8"),
        ("value", "f8"),
        ("made_s", "f8"),
    ],
    align=True,
)

HOP = np.dtype(
    [
        ("time_s", "f8"),
        ("sender", "i8"),
        ("to", "i8"),
        ("kind", "i8"),
        ("what", "i8"),
        ("mode", "i8"),
        ("topic", "i8"),
        ("event", "i8"),
    ],
    align=True,
)

# Indices into `numbers`.
ORDER, FREE_PACKETS, FRAMES, ACTIVE, TICKS, NEXT_EVENT, HOPS_LOGGED, HAPPENED = range(8)
COLLISIONS, RETRIED, BROKEN, DUPLICATES, UNAUTHORISED, STALE_SENT, OVERFLOW, FRAMES_SENT, MATCHED = range(
    8, 17
)
HOPS_WALKED = 17  # by events that were delivered, from their publishers on
NUMBERS = 18


RUN = np.dtype(
    [
        ("now_s", "f8"),
        ("random", "u8"),
        # The radio.
        ("reception_m", "f8"),
        ("sense_m", "f8"),
        ("capture", "f8"),
        ("tick_s", "f8"),
        ("ideal", "i8"),  # no contention, no collisions: for tests of routing alone
        # The workload.
        ("subscribe_s", "f8"),
        ("advertise_s", "f8"),
        ("silent_s", "f8"),  # when those who fall silent do
        ("period_s", "f8"),  # of beacons or hellos
        ("period_spread", "f8"),
        ("measure_s", "f8"),  # bytes are counted from here on
        # What is counted.
        ("stale_s", "f8"),  # the oldest subscription by which a silent subscriber was sent an event
        ("age_s", "f8"),  # of the subscriptions by which events were sent to subscribers, all together
        ("heap_sizes", "i8", (2,)),
        ("numbers", "i8", (NUMBERS,)),
        ("sent", "i8", (len(KINDS), len(WHATS), 2)),  # packets and bytes given to the radio, once a hop
        ("lost", "i8", (len(KINDS), len(WHATS), len(REASONS))),
        ("active", "i8", (AIR_MAX,)),  # frames in the air
    ],
    align=True,
)
"""The whole network's clock, rules and counts: one row."""


class Net(NamedTuple):
    """A network in motion. Few and wide arrays: every one passed between kernels costs time to compile."""

    cores: Cores
    out: Effects
    run: Records
    heap: Records
    """By heap and place in it."""
    pool: Records
    free: NDArray[np.int64]
    macs: Records
    hoods: Records
    """By node: who senses it; how many do is the radio's `near_count`."""
    air: Records
    track: NDArray[np.float32]
    """By tick and node: where it is."""
    cells: NDArray[np.int64]
    """Scratch space of loops: of the neighbour search, and of what a frame changes at whom."""
    publications: Records
    advertisers: NDArray[np.int64]
    """By advertisement: node and topic."""
    delivered_s: NDArray[np.float64]
    """By event and subscription: when it was delivered; not a number if never."""
    hops: Records
    """A log of hops; of length 0 where nobody wants one."""


def make_net(
    cores: Cores,
    track: NDArray[np.float32],
    publications: Records,
    advertisers: NDArray[np.int64],
    seed: int,
    *,
    rules: dict[str, float],
    hops_logged: int = 0,
) -> Net:
    """A network at rest, before anything is planned."""
    nodes = track.shape[1]
    run = np.zeros(1, RUN)
    given = {"reception_m": RECEPTION_M, "sense_m": CARRIER_SENSE_M, "capture": CAPTURE}
    given |= {"tick_s": 0.1, "stale_s": -1.0, **rules}
    for name, value in given.items():
        run[name] = value
    packets = 40 * nodes + 1024
    run["random"] = seed
    run["numbers"][0, FREE_PACKETS] = packets
    macs = np.zeros(nodes, MAC)
    macs["hearing"], macs["window"], macs["taken"] = -1, WINDOW_MIN, -1
    return Net(
        cores=cores,
        out=make_effects(),
        run=run,
        heap=np.zeros((2, 64 * nodes + 16384), HAPPENING),
        pool=np.zeros(packets, PACKET),
        free=np.arange(packets, dtype=np.int64),
        macs=macs,
        hoods=np.zeros(nodes, HOOD),
        air=np.zeros(AIR_MAX, AIR),
        track=track,
        cells=np.zeros(64 * 64 + 1 + 2 * nodes, np.int64),
        publications=publications,
        advertisers=advertisers,
        delivered_s=np.full((len(publications), len(cores.topics.subscriptions)), np.nan),
        hops=np.zeros(hops_logged, HOP),
    )
