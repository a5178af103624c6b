"""The study's measures, as SQL over the facts that its runs record (`recording.py`).

The time of a hand-off is what the subscriber sees: from its request to the new broker until its first message
from there (paper 001, section 5.1.3); `ready_ms` is until everything stored had been handed over, the same
phase that tables of a live run's hand-offs have. A measure of a broker has its name at the end (`routed B3`),
in networks of few brokers; a share of hand-off times its percentage (`handoff p60`).
"""

from sojourn.pipeline.measuring import WAIT_S, Measuring
from sojourn.sim.roaming.run import BUILDING_LINKS
from sojourn.studies.handoff.measures import BROKERS_MAX, CONTROL, LAST_MINUTES, LIMITS_MS, SHARES, TREE
from sojourn.studies.handoff.table import BROKERS

FIRST_S = "first_s - arrived_s"
_MINUTE_S = 60
_MOBILE = ", ".join(f"'{kind}'" for kind in sorted({*CONTROL, *TREE}))
_BUILDING = ", ".join(f"'B{one} B{other}'" for one, other in BUILDING_LINKS)
_SUBSCRIBERS = "cast(get_json_object(spec_json, '$.subscribers') AS double)"
_COUNTED = (
    "published", "expected", "received", "duplicate", "late", "transferred", "departure", "redirect",
    "undrained", "stale_edge", "dropped",
)  # fmt: skip


def _windows(what: str, of: str | None = None, column: str = "times") -> str:
    which = "" if of is None else f" AND of = '{of}'"
    return f"sum({column}) FILTER (WHERE what = '{what}'{which})"


def _sampled(what: str) -> str:
    return f"avg(value) FILTER (WHERE what = '{what}')"


def _unprepared(when: str) -> str:
    """The percentage of arrivals that found no copy, of the minutes that a condition on `from_s` names."""

    def added(more: str = "") -> str:
        chosen = f"filter(minutes, m -> {when}{more})"
        return f"aggregate({chosen}, 0L, (sum, m) -> sum + m.times)"

    bare = added(" AND m.of = 'unprepared'")
    return f"100D * {bare} / nullif({added()}, 0)"


MEASURING = Measuring(
    sums={
        "arrivals": {
            "moved": "count(from_broker)",
            "firsts": "count(first_s)",
            "firsts_s": f"sum({FIRST_S})",
            "first_at": f"percentile(1000D * ({FIRST_S}), array({', '.join(str(s / 100) for s in SHARES)}))",
            **{f"under_{limit}": f"count_if(1000D * ({FIRST_S}) < {limit})" for limit in LIMITS_MS},
            "readies": f"count({WAIT_S})",
            "readies_s": f"sum({WAIT_S})",
            "ready_median": f"percentile(1000D * ({WAIT_S}), 0.5)",
        },
        "windows": {
            **{f"n_{what}": _windows(what) for what in _COUNTED},
            "n_unique": _windows("unique"),
            "latency_s": _windows("unique", column="total"),
            "mobile_hops": f"sum(times) FILTER (WHERE what = 'hops' AND of IN ({_MOBILE}))",
            "mobile_bytes": f"sum(total) FILTER (WHERE what = 'hops' AND of IN ({_MOBILE}))",
            "forwarded_bytes": _windows("hops", "forward", "total"),
            "minutes": "collect_list(struct(from_s, of, times)) FILTER (WHERE what = 'arrival')",
            "last_s": "max(to_s) FILTER (WHERE what = 'arrival')",
            **{f"routed_{name}": _windows("routed", name) for name in BROKERS},
            **{f"events_{name}": _windows("event", name) for name in BROKERS},
            **{f"event_s_{name}": _windows("event", name, "total") for name in BROKERS},
            **{f"present_s_{name}": _windows("present", name, "total") for name in BROKERS},
            "crowded_s": "max(total) FILTER (WHERE what = 'present')",
        },
        "observations": {
            "passive": _sampled("passive_copies"),
            "active": _sampled("active_copies"),
            "queued": _sampled("queued_bytes"),
            "edges": "count(DISTINCT of) FILTER (WHERE what = 'neighbours')",
            "edges_known": f"count(DISTINCT of) FILTER (WHERE what = 'neighbours' AND of IN ({_BUILDING}))",
        },
        "broker_load": {"busiest_s": "max(busy_s)", "busy_all_s": "sum(busy_s)", "brokers": "count(*)"},
    },
    measures={
        "throughput": "n_received / measured_s",
        "throughput_once": "(n_received - n_duplicate) / measured_s",
        "published_per_s": "n_published / measured_s",
        "loss_percent": "100D * (1 - n_unique / nullif(n_expected, 0))",
        "duplicates_percent": "100D * n_duplicate / greatest(1, n_received)",
        "late_percent": "100D * n_late / greatest(1, n_unique)",
        "latency_ms": "1000D * (latency_s / greatest(1, n_unique))",
        "transferred_percent": "100D * n_transferred / greatest(1, n_unique)",
        "moves": "coalesce(moved, 0)",
        "departures": "n_departure",
        "messages_per_move": "coalesce(mobile_hops, 0) / greatest(1, coalesce(moved, 0))",
        "bytes_per_move": "coalesce(mobile_bytes, 0) / greatest(1, coalesce(moved, 0))",
        "forwarded_bytes_per_move": "coalesce(forwarded_bytes, 0) / greatest(1, coalesce(moved, 0))",
        "copies_per_subscriber": f"(passive + active) / {_SUBSCRIBERS}",
        "active_copies_per_subscriber": f"active / {_SUBSCRIBERS}",
        "queued_bytes": "queued",
        "dropped_per_s": "coalesce(n_dropped, 0) / measured_s",
        "redirects_per_move": "n_redirect / greatest(1, coalesce(moved, 0))",
        "unfinished": "n_undrained",
        "handoff_ms": "1000D * firsts_s / nullif(firsts, 0)",
        "handoff p50": f"first_at[{SHARES.index(50)}]",
        **{f"handoff p{share}": f"first_at[{at}]" for at, share in enumerate(SHARES)},
        **{f"handoffs under {limit} ms": f"under_{limit} / nullif(firsts, 0)" for limit in LIMITS_MS},
        "ready_ms": "CASE WHEN firsts > 0 THEN 1000D * readies_s / nullif(readies, 0) END",
        "ready p50": "CASE WHEN firsts > 0 THEN ready_median END",
        "utilisation_max": "busiest_s / measured_s",
        "utilisation_mean": "busy_all_s / measured_s / brokers",
        "present_max": "crowded_s / measured_s",
        **{
            f"{what} {name}": f"CASE WHEN brokers <= {BROKERS_MAX} THEN {how} END"
            for name in BROKERS
            for what, how in (
                ("routed", f"routed_{name} / measured_s"),
                ("event_ms", f"1000D * event_s_{name} / greatest(1, events_{name})"),
                ("present", f"present_s_{name} / measured_s"),
            )
        },
        "unprepared_percent_at_first": _unprepared("m.from_s = 0"),
        "unprepared_percent_at_the_end": _unprepared(f"m.from_s >= last_s - {LAST_MINUTES * _MINUTE_S}"),
        "unprepared_percent": _unprepared("m.from_s > 0"),
        "edges_learnt": "edges",
        "edges_missing": f"{len(BUILDING_LINKS)} - edges_known",
        "edges_beside": "edges - edges_known",
        "edges_stale": "n_stale_edge",
    },
)
