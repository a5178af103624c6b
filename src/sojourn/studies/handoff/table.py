"""What the study averages over seeds; the table itself is `studies.means`."""

from sojourn.studies.handoff.measures import LIMITS_MS, SHARES

BROKERS = tuple(f"B{number}" for number in range(1, 7))

MEASURES = [
    "throughput",
    "throughput_once",
    "published_per_s",
    "loss_percent",
    "duplicates_percent",
    "late_percent",
    "latency_ms",
    "transferred_percent",
    "moves",
    "departures",
    "messages_per_move",
    "bytes_per_move",
    "forwarded_bytes_per_move",
    "copies_per_subscriber",
    "active_copies_per_subscriber",
    "queued_bytes",
    "dropped_per_s",
    "redirects_per_move",
    "unfinished",
    "handoff_ms",
    "ready_ms",
    "ready p50",
    "utilisation_max",
    "utilisation_mean",
    "present_max",
    "unprepared_percent_at_first",
    "unprepared_percent_at_the_end",
    "unprepared_percent",
    "edges_learnt",
    "edges_missing",
    "edges_beside",
    "edges_stale",
    *(f"handoff p{share}" for share in SHARES),
    *(f"handoffs under {limit} ms" for limit in LIMITS_MS),
    *(f"{what} {broker}" for broker in BROKERS for what in ("routed", "event_ms", "present")),
]
"""What is averaged over seeds; each is one number per run."""
