"""How audits are made; apart from them, so that options are shown and refused before Spark is loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AuditOptions:
    """How to audit."""

    window_s: float = 60.0
    """Length of the windows that counts are given for."""
    in_flight_s: float = 1.0
    """What was published so shortly before the end of its run and not delivered was in flight."""
    broadcast_filters_max: int = 200_000
    """With more filters than this the interests are dealt into parts instead of broadcast."""
    part_filters: int = 50_000
    """Filters in such a part, about."""
    slice_events: int = 200_000
    """Publications that a task matches with one part, about."""


@dataclass(frozen=True, kw_only=True)
class LiveOptions:
    """How to audit a running system."""

    window_s: float = 60.0
    delay_s: float = 10.0
    """How much later than another table's a segment may be sealed."""
    patience_s: float = 30.0
    """How long after its publication a delivery, or a copy of it, may still come."""
    in_flight_s: float = 1.0
    """What was published so shortly before the end of its run and not delivered was in flight."""
    keep_s: float = 600.0
    """How long ended interests and old stays are kept, for publications that come late."""
    buckets: int | None = None
    """Parts of the clients, judged side by side; one for each core if left out, and four at least."""
    trigger_s: float = 5.0
    """Seconds between looks at the directory."""
