"""Events and subscriptions for edge worlds: readings of sensors in zones, and who wants which.

An event is a reading `{zone, value}` of a source; a subscription wants one zone and a range of values. Ranges
lie in the lower part of the values, `wanted_share` of them, so that about the rest matches nobody; the true
share is counted from the events. Everything is drawn from streams that the caller names.
"""

import msgspec
import numpy as np

from sojourn.interest.advertisements import Advertisement
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter

VALUES = 1000
ADVERTISEMENT = Advertisement.parse(f"zone IS NOT NULL AND value >= 0 AND value < {VALUES}")


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What is published and wanted."""

    zones: int = 10
    width: int = 50
    """Values that a subscription covers."""
    wanted_share: float = 1.0
    """The share of the values that subscriptions are about."""
    event_bytes: int = 200


def draw_filter(workload: Workload, stream: np.random.Generator) -> Filter:
    """One subscription."""
    top = max(1, round(VALUES * workload.wanted_share) - workload.width + 1)
    low = int(stream.integers(top))
    high = min(low + workload.width, max(1, round(VALUES * workload.wanted_share)))
    zone = int(stream.integers(workload.zones))
    return Filter.parse(f"zone = 'z{zone}' AND value >= {low} AND value < {high}")


def draw_event(workload: Workload, stream: np.random.Generator, source: str, sequence: int) -> Event:
    """One event, uniform over zones and values."""
    zone, value = int(stream.integers(workload.zones)), int(stream.integers(VALUES))
    return Event({"zone": f"z{zone}", "value": value}, source=source, sequence=sequence)
