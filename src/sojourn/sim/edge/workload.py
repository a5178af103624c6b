"""Events and subscriptions for edge worlds: readings of sensors in areas, and who wants which.

An event is a reading `{area, value}` of a source; a subscription wants one area and a range of values. Ranges
lie in the lower part of the values, `wanted_share` of them, so that about the rest matches nobody; the true
share is counted from the events. Everything is drawn from streams that the caller names.
"""

import msgspec
import numpy as np

from sojourn.interest.advertisements import Advertisement
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter

VALUES = 1000
ADVERTISEMENT = Advertisement.parse(f"area IS NOT NULL AND value >= 0 AND value < {VALUES}")


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What is published and wanted."""

    areas: int = 10
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
    area = int(stream.integers(workload.areas))
    return Filter.parse(f"area = 'a{area}' AND value >= {low} AND value < {high}")


def draw_event(workload: Workload, stream: np.random.Generator, source: str, sequence: int) -> Event:
    """One event, uniform over areas and values."""
    area, value = int(stream.integers(workload.areas)), int(stream.integers(VALUES))
    return Event({"area": f"a{area}", "value": value}, source=source, sequence=sequence)
