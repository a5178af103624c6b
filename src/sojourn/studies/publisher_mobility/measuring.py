"""The study's measures, as SQL over the facts that its runs record (`recording.py`).

A tree's construction begins when a publisher moves in and sends an advertisement (section 5.2.3), and at a
proxy of its own there is no rebuilding (section 4.3): so arrivals at own proxies have no part in the mean
time of rebuilding, `rebuild_ms`; `rebuild_all_ms` counts them as zeros.
"""

from sojourn.pipeline.measuring import Measuring
from sojourn.sim.results import HOP_NAMES


def _windows(what: str, of: str = "") -> str:
    return f"sum(times) FILTER (WHERE what = '{what}' AND of = '{of}')"


MEASURING = Measuring(
    sums={
        "rebuildings": {
            "moved": "count(*)",
            "tree_hops": "sum(advertise + unadvertise + subscribe + unsubscribe)",
            "notices": "sum(prefetch)",
            "built": "count_if(NOT to_own_proxy)",
            "built_s": "sum(rebuild_s) FILTER (WHERE NOT to_own_proxy)",
            "rebuilt_s": "sum(rebuild_s)",
            "torn_down_s": "sum(teardown_s)",
            "waited_s": "sum(visible_wait_s)",
            "not_finished": "count_if(NOT finished)",
        },
        "windows": {
            "published": _windows("published"),
            "expected": _windows("expected"),
            "delivered": _windows("delivered"),
            "in_time": _windows("in_time"),
            "doubled": _windows("duplicate"),
            "all_hops": _windows("all_hops"),
            "quiet_s": "max(to_s) FILTER (WHERE what = 'quiet')",
            **{f"sent_{kind}": _windows("hops", kind) for kind in HOP_NAMES},
        },
        "broker_load": {
            "busiest_s": "max(busy_s)",
            "busy_all_s": "sum(busy_s)",
            "brokers": "count(*)",
            "longest": "max(queue_max)",
        },
    },
    measures={
        "moves": "coalesce(moved, 0)",
        "moves_per_min": "coalesce(moved, 0) / (measured_s / 60)",
        "messages_per_min": "coalesce(tree_hops + notices, 0) / (measured_s / 60)",
        "tree_messages_per_min": "coalesce(tree_hops, 0) / (measured_s / 60)",
        "messages_per_move": "coalesce((tree_hops + notices) / moved, 0)",
        "rebuild_ms": "coalesce(1000D * built_s / nullif(built, 0), 0)",
        "rebuild_all_ms": "coalesce(1000D * (rebuilt_s / moved), 0)",
        "rebuilding_share": "coalesce(built / moved, 0)",
        "teardown_ms": "coalesce(1000D * (torn_down_s / moved), 0)",
        "visible_wait_ms": "coalesce(1000D * (waited_s / moved), 0)",
        "unfinished_moves": "coalesce(not_finished, 0)",
        "publications": "published",
        "delivery_ratio": "CASE WHEN published > 0 THEN coalesce(delivered / nullif(expected, 0), 1) END",
        "delivered_in_time_ratio": "in_time / nullif(expected, 0)",
        "duplicates": "doubled",
        "utilisation_max": "busiest_s / measured_s",
        "utilisation_mean": "busy_all_s / measured_s / brokers",
        "queue_max": "longest",
        "hops_total": "all_hops",
        "drained_s": "quiet_s",
        "worked_off_ratio": "quiet_s / duration_s",
        **{f"hops_{kind}": f"sent_{kind}" for kind in HOP_NAMES},
    },
)
