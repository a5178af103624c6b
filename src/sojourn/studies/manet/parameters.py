"""What the mobile network study fixes: Table 1 of paper 004, and a reason for every number it leaves out.

The fields of `Manet` carry the numbers of ns-2, RFC 3561 and GPSR. Neither map is given: the freeway crosses
2 km of empty country; the city has two avenues and two streets in the smallest square of which most is void,
as the paper says of both (beyond that size, half of all pairs of nodes have no path at all).
"""

from typing import Any

from sojourn.sim.manet_scenario import SCHEMES
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

NEAREST = ("r-gpsr-map", "b-gpsr-map")
"""Schemes run once more without proximity selection: the nearest node acts for a place."""

SHORT_TTL = 32
"""Hops a packet may take in the runs that show what a limit does: ns-2's default. The study itself lets
packets walk until they return to where they began, as section 3.1 says they do."""

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


def scale_named(name: str) -> Scale:
    """The scale of that name."""
    return base.scale_named(SCALES, name)
