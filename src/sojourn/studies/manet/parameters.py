"""What the mobile network study fixes: Table 1 of paper 004, and a reason for every number it leaves out.

The fields of `Manet` carry the numbers of ns-2, RFC 3561 and GPSR. Neither map is given. Section 5 says that
most topics are hashed to void regions in both scenarios, and section 6 that a packet arrives wherever a path
exists; so maps are chosen by two numbers that every run measures: more than half of the square lies further
than K from any road (`void`), and at least 95% of the pairs of nodes have a path (`paths`). The freeway
crosses 2 km of empty country. The city has two avenues and two streets of 1,000 m, 500 m apart, in the middle
of 1,600 m.
"""

from typing import Any, NamedTuple

from sojourn.sim.manet.scenario import SCHEMES
from sojourn.studies import base

FREEWAY, MANHATTAN = "freeway", "manhattan"

SCENARIOS: dict[str, dict[str, Any]] = {
    FREEWAY: {
        "map": "freeway",
        "nodes": 60,
        "event_bytes": 512,
        "publish_s": 10.0,
        "topics": 2,
        "publishers": 1,
        "subscribers": 9,
    },
    MANHATTAN: {
        "map": "manhattan",
        "nodes": 60,
        "event_bytes": 1024,
        "publish_s": 10.0,
        "topics": 6,
        "publishers": 2,
        "subscribers": 5,
    },
}
"""Table 1."""

SIX = tuple(name for name, scheme in SCHEMES.items() if not scheme.repair)
"""The schemes of section 5."""

OURS = "b-gpsr-repair"
OURS_CHANGES = {"subscribe_s": 2.0, "soft_state_s": 7.0}
"""Repair lets subscriptions go out half as often; three may be missed, as with the others."""

MAPPED = ("r-gpsr-map", "b-gpsr-map")
"""The two that the claims on speed and on proximity compare."""


class Reading(NamedTuple):
    """One way to read what the paper leaves open."""

    title: str
    schemes: tuple[str, ...]
    """Those that it changes."""
    changes: dict[str, Any]
    why: str
    """What in the paper allows it."""


_AODV = tuple(name for name in SIX if not SCHEMES[name].geographic)
_GPSR = tuple(name for name in SIX if SCHEMES[name].geographic)
_RENDEZVOUS = tuple(name for name in SIX if SCHEMES[name].rendezvous)

NEAREST, NO_HELLO, WAITS = " nearest", " no hello", " waits"

READINGS = {
    NEAREST: Reading(
        "the nearest node alone acts for a place",
        _GPSR,
        {"proximity": False},
        "section 5 does not say whether the six schemes have section 3.5's selection",
    ),
    " sizes": Reading(
        "every message has Table 1's size",
        SIX,
        {"message_bytes": "event"},
        "Table 1 gives one size of messages and does not say of which",
    ),
    " rare": Reading(
        "publishers advertise as often as they publish, and keep a list that long",
        _RENDEZVOUS,
        {"advertise_s": 10.0, "list_s": 13.5},
        "section 3.2.2 says that advertisements are periodic, and no period",
    ),
    WAITS: Reading(
        "a rendezvous' publisher waits for the list before it publishes",
        _RENDEZVOUS,
        {"waits_for_list": True},
        "section 3.2.2 has publishers keep a list and expects them to be the faster for it; section 5 "
        "explains their delay by the time that sending the locations takes before an event can go out",
    ),
    " ns-2": Reading(
        "AODV with ns-2's constants, no hello, and routes mended on the way",
        _AODV,
        {"aodv": "ns-2", "hello": False},
        "section 5 used ns-2 and names no setting",
    ),
    NO_HELLO: Reading(
        "AODV without hello",
        _AODV,
        {"hello": False},
        "section 5 used ns-2, whose AODV relies on the link layer",
    ),
    " steady": Reading(
        "beacons that data does not silence",
        _GPSR,
        {"steady_beacons": True},
        "section 3.1 says that beacons are periodic; that any packet counts as one is GPSR's option",
    ),
}
"""By what stands behind a scenario's name in the experiment."""

SILENT_SHARE = 1 / 3
"""Of subscribers, in the runs on soft state."""

DRAWN = "b-gpsr-map"
"""The scheme of which single packets are drawn."""


class Scale(base.Scale, frozen=True, kw_only=True):
    """How much of the study is run."""

    duration_s: float
    freeway_m_s: tuple[float, ...]
    """Speeds; Table 1 says 10 to 60."""
    manhattan_m_s: tuple[float, ...]
    """Speeds; Table 1 says 1 to 20."""

    def reading_speeds(self, scenario: str) -> tuple[float, ...]:
        """Where other readings are run: the slowest, the middle and the fastest."""
        speeds = self.speeds(scenario)
        return tuple(sorted({speeds[0], speeds[len(speeds) // 2], speeds[-1]}))

    def speeds(self, scenario: str) -> tuple[float, ...]:
        """The axis of a scenario."""
        return self.freeway_m_s if scenario == FREEWAY else self.manhattan_m_s


SCALES = {
    "smoke": Scale(
        name="smoke",
        seeds=1,
        judges=False,
        duration_s=60.0,
        freeway_m_s=(10.0, 60.0),
        manhattan_m_s=(1.0, 20.0),
    ),
    "quick": Scale(
        name="quick",
        seeds=2,
        judges=True,
        duration_s=180.0,
        freeway_m_s=(10.0, 35.0, 60.0),
        manhattan_m_s=(1.0, 10.0, 20.0),
    ),
    "paper": Scale(
        name="paper",
        seeds=6,
        judges=True,
        duration_s=900.0,
        freeway_m_s=(10.0, 20.0, 30.0, 40.0, 50.0, 60.0),
        manhattan_m_s=(1.0, 5.0, 10.0, 15.0, 20.0),
    ),
}
"""Six seeds where the paper has three: homes, roads and people of each differ."""
