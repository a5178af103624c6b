"""What the ad-hoc tree study fixes, with a reason for every constant that paper 002 leaves out.

Table 3's values, and the spreads we chose, are the defaults of `Layout`. The scales differ only in how much
is run: `paper` is the study, `quick` the same with fewer layouts and points, `smoke` shows that every part
works and judges nothing.
"""

from sojourn.studies import base

ORDERS = 5
"""Runs a layout and algorithm, each with its own random order of turns; the paper says several."""

BLOCK = 50
"""Layouts evaluated by one task: long enough for Spark's start of a task not to count."""

COOLING_ROUNDS = 300
"""Warm rounds of the improved shopping: five minutes of beacons. Longer hardly helps 30 nodes."""

COOLING_LONG = 2000
"""Warm rounds in search of the best tree known of 300 nodes."""

COOLING_HEAT = 1.0
"""Its first temperature, as a multiple of (r + f) l: what forwarding one node's whole interest costs another.
Warmer is a random tree for longer, colder leaves poor trees too seldom."""

SIGMAS = (20.0, 50.0, 100.0)
"""Offsets in NI-Xmod: within a cluster, across one, and across the whole layout, whose x spans some 350."""

FRESH_LAYERS = 25
"""COMBOerr read the other way, with new errors at every turn, never settles: it is stopped after this many
rounds. The study's own reading keeps an error for a pair and run, since a wrong event distribution stays
wrong and the paper's runs do settle. Section 5.5 puts an error of its own into each O: that is the study's
reading; one error for both, as a wrong total rate of events would make, is shown beside it."""

WIDE_LENGTH = 50.0
"""Figure 8's longest mean length, at which Figures 9 and 12 are looked at once more."""

NEIGHBOURS = {60.0: (5.2, 0.6), 140.0: (21.3, 1.0)}
"""The mean neighbours of the paper's layout by range (section 5.2), and how near a layout of ours must come
to count as one like it: a tenth and a twentieth, which some 25 of 200 layouts do."""

SMALL_RANGE_M = 180.0
"""Figure 10's range. The paper says only that its system there was smaller."""

SMALL_NODES = 3
"""Nodes a cluster in Figure 10's system: nine in all, some thousands of spanning trees. Distances and spread
are doubled; at the base distances nearly everybody hears the root at 180, and every algorithm is optimal."""

LARGE_CLUSTERS = 30
"""The system of 300 nodes: thirty clusters of ten, their distance from the origin larger by the root of ten,
so that the density stays about the same."""

LARGE_CONNECTED_M = 80.0
"""Large layouts are kept if connected at their own range."""

SOLVER_SECONDS = 600.0
"""The exact solver's limit for one system. It counts wall time, so it is set far above what is needed: a
system of 30 nodes takes a quarter of a second of an idle core and seldom five, one of nine a hundredth, one
of 60 a minute. A system that is not proved in time is counted as such."""

SIXTY_SECONDS = 150.0
"""The same for a system of sixty nodes, of which the study can afford a few; they take 15 s to minutes."""

SIXTY_CLUSTERS = 6
"""Between thirty and three hundred nodes: sixty, at the same density, about as many as can be solved."""

TIMEOUTS_S = (2.0, 3.5, 5.0, 8.0, 12.0)
"""Parent timeouts of the mobility trials, in beacon periods of a second. The paper gives none."""

HOPS_TRIALS_MIN = 10
"""A distance from the root takes part in the regression if at least this many trials had it."""

SPEEDS_M_S = (0.0, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Roaming speeds: standing, strolling, walking, running, driving; the range is 80 m."""

PUBLISHERS = 5
"""Publishers in the comparison of one shared tree with one tree each."""


class Scale(base.Scale, frozen=True, kw_only=True):
    """How much of the study is run."""

    lengths: tuple[float, ...]
    """Mean interval lengths; Figure 8's axis runs from 1 to 50."""
    ranges_m: tuple[float, ...]
    errors: tuple[float, ...]
    branchings: tuple[int, ...]
    small: int
    """Enumerated systems per length."""
    exact: int
    """Thirty-node systems solved exactly at the base values."""
    exact_elsewhere: int
    """The same at each of four other points."""
    sixty: int
    """Sixty-node systems solved."""
    large: int
    """Systems of 300 nodes."""
    moves: int
    """Trials per timeout in which one node moves."""
    roams: int
    """Runs per speed in which all nodes move."""
    shared: int
    """Layouts on which several nodes publish."""
    warmup_s: float = 15.0
    """Of roaming runs."""
    duration_s: float = 60.0
    """Of roaming runs."""


SCALES = {
    "smoke": Scale(
        name="smoke",
        seeds=4,
        lengths=(1.0, 25.0, 50.0),
        ranges_m=(60.0, 80.0, 140.0),
        errors=(0.0, 0.2, 0.6),
        branchings=(1, 2, 4, 10),
        small=2,
        exact=2,
        exact_elsewhere=1,
        sixty=0,
        large=1,
        moves=2,
        roams=1,
        shared=1,
        judges=False,
        duration_s=10.0,
    ),
    "quick": Scale(
        name="quick",
        seeds=50,
        lengths=(1.0, 10.0, 25.0, 35.0, 50.0),
        ranges_m=(60.0, 80.0, 100.0, 120.0, 140.0, 180.0),
        errors=(0.0, 0.1, 0.2, 0.3, 0.4, 0.6),
        branchings=(1, 2, 3, 4, 6, 8, 10),
        small=50,
        exact=20,
        exact_elsewhere=4,
        sixty=0,
        large=4,
        moves=20,
        roams=3,
        shared=3,
        judges=True,
    ),
    "paper": Scale(
        name="paper",
        seeds=200,
        lengths=(1.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0),
        ranges_m=(60.0, 70.0, 80.0, 90.0, 100.0, 110.0, 120.0, 130.0, 140.0, 160.0, 180.0, 200.0),
        errors=(0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6),
        branchings=(1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
        small=200,
        exact=200,
        exact_elsewhere=25,
        sixty=3,
        large=10,
        moves=60,
        roams=10,
        shared=10,
        judges=True,
    ),
}
