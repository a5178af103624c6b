"""What the study averages over seeds; the table itself is `studies.means`."""

MEASURES = [
    "messages_per_min",
    "tree_messages_per_min",
    "moves_per_min",
    "messages_per_move",
    "rebuild_ms",
    "rebuild_all_ms",
    "rebuilding_share",
    "teardown_ms",
    "visible_wait_ms",
    "delivery_ratio",
    "delivered_in_time_ratio",
    "utilisation_max",
    "utilisation_mean",
    "queue_max",
    "worked_off_ratio",
]
"""What is averaged over seeds; each is one number per run."""
