"""When a node does what, and what brokers do that meet."""

from enum import Enum
from typing import NamedTuple

from sojourn.adhoc.errors import AdhocError


class Meeting(Enum):
    """What two brokers do that meet."""

    MERGE = "merge"
    COORDINATE = "coordinate"


class Timing(NamedTuple):
    """When a node does what, in seconds; and what brokers do that meet."""

    refresh_s: float = 2.0
    """Between two refreshes of a displayer, two beacons of a broker, two attempts of a source."""
    silences: float = 2.5
    """Refresh periods without a beacon after which the broker counts as gone."""
    lifetimes: float = 4.0
    """Refresh periods after which an entry that was not refreshed is dropped."""
    search_s: float = 0.5
    """How long to wait for a broker's answer: a few times across the network."""
    election_s: float = 0.5
    """How long a candidate waits for others."""
    pending_max: int = 10_000
    """Events a source keeps until they are stored."""
    meeting: Meeting = Meeting.MERGE

    def check(self) -> None:
        """Refuse what cannot be."""
        for name in ("refresh_s", "silences", "lifetimes", "search_s", "election_s"):
            if not getattr(self, name) > 0:
                raise AdhocError(f"{name} must be above 0, not {getattr(self, name):g}.")
