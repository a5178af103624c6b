"""The study's measures, as SQL over the facts that its tasks record (`recording.py`).

What a task measures depends on its kind: a measure of other kinds is null, and has no row. Times to heal are
measures of single histories, and only of those that ended with one broker that has everything.
"""

from sojourn.edge.filters import FILTER_NAMES
from sojourn.edge.properties import PROPERTIES
from sojourn.pipeline.measuring import Each, Measuring
from sojourn.studies.architectures.runs_edge import TO_SOURCES

_KIND = "get_json_object(spec_json, '$.kind')"
_EVENTS, _SUBSCRIPTIONS, _SOURCES = (
    f"double(get_json_object(spec_json, '$.{name}'))" for name in ("events", "subscriptions", "sources")
)
_BETWEEN = ("event", "interest", "handover")
_COUNTED = ("matching", "missed", "doubled", "dropped", *(f"not {promise}" for promise in PROPERTIES))
_SUMMED = (
    "comparisons", "handled", "sent", "expected", "lost", "duplicated", "unwanted", "moves",
    "while_old_down", "handover_bytes", "owed", "merges", "said", "wrong", "kept_bytes", "missed_bytes",
    "wanted", "shown", "runs",
)  # fmt: skip


def _seen(how: str, what: str, of: str = "") -> str:
    return f"{how}(value) FILTER (WHERE what = '{what}' AND of = '{of}')"


def _kinds(kinds: tuple[str, ...], what: str, *of: str) -> dict[str, str]:
    """Of several kinds of messages, each in a column."""
    return {f"{what}_{kind}": _seen("sum", what, kind) for kind in (*kinds, *of)}


def _column(*words: str) -> str:
    return "_".join(words).replace(" ", "_")


def _told(kinds: str, what: str) -> str:
    """A measure of some kinds of tasks."""
    listed = ", ".join(f"'{kind}'" for kind in kinds.split())
    return f"CASE WHEN {_KIND} IN ({listed}) THEN {what} END"


def _sum(of: str, *kinds: str) -> str:
    return "(" + " + ".join(f"{of}_{kind}" for kind in kinds) + ")"


_CELLS = [(name, promise) for name in FILTER_NAMES for promise in PROPERTIES]
_FILTERED = [(name, what) for name in FILTER_NAMES for what in _COUNTED]
_UPDATES = f"({_sum('bytes', *TO_SOURCES)} - {_sum('first_bytes', *TO_SOURCES)})"
_WHOLE = "brokers_of = 1 AND missing_of = 0 AND NOT isnan(healed_of)"
_GOOD_END = "h -> h.all_brokers = 1 AND h.all_missing = 0 AND NOT isnan(h.all_healed)"

MEASURING = Measuring(
    sums={
        "observations": {
            **{f"{what}_sum": _seen("sum", what) for what in _SUMMED},
            **{_column("broken", *cell): _seen("sum", "broken", " ".join(cell)) for cell in _CELLS},
            **{_column(name, what): _seen("sum", what, name) for name, what in _FILTERED},
            "displayers": "count(DISTINCT at) FILTER (WHERE what = 'matching' AND of = 'none')",
            **_kinds(("published", *TO_SOURCES, *_BETWEEN), "bytes"),
            **_kinds(TO_SOURCES, "first_bytes"),
            **_kinds(("event", "interest"), "hops"),
            "events_seen": _seen("count", "wanted"),
            "events_unwanted": "count(value) FILTER (WHERE what = 'wanted' AND value = 0)",
            **{f"missed_{first}": _seen("sum", "missed", first) for first in ("oldest", "quench")},
            "missed_or_not": _seen("count", "missed", "quench"),
            **{
                f"{what}_avg": _seen("avg", what)
                for what in ("alternatives", "compared", "compared_own", "entries", "held_s", "wanted")
            },
            **{
                f"{what}_most": _seen("max", what)
                for what in ("compared", "handled", "entries", "most_brokers")
            },
            "held_all": _seen("collect_list", "held_s"),
            "streams_seen": _seen("count", "wrong"),
            "all_brokers": _seen("collect_list", "brokers"),
            "all_missing": _seen("collect_list", "missing"),
            "all_healed": _seen("collect_list", "healed_s"),
        }
    },
    measures={
        # Table 1, enumerated and at random.
        "runs": "runs_sum",
        **{f"broken {' '.join(cell)}": _column("broken", *cell) for cell in _CELLS},
        **{f"{name} {what}": _column(name, what) for name, what in _FILTERED},
        "clients": _told("replicas", "displayers"),
        # Quenching.
        "unmatched_share": _told("quench advice", "events_unwanted / events_seen"),
        "bytes_per_event": _told("quench", f"(bytes_published + {_UPDATES}) / events_seen"),
        "update_bytes_per_event": _told("quench", f"{_UPDATES} / events_seen"),
        "first_bytes_per_source": f"{_sum('first_bytes', *TO_SOURCES)} / {_SOURCES}",
        "comparisons_per_event": "comparisons_sum / events_seen",
        "sent_share": "sent_sum / events_seen",
        "alternatives": "alternatives_avg",
        "broker_events_share": _told("quench", "handled_sum / events_seen"),
        # Sources that are away.
        "interesting": _told("offline", "missed_or_not"),
        "lost_oldest": _told("offline", "coalesce(missed_oldest, 0)"),
        "lost_quench": _told("offline", "coalesce(missed_quench, 0)"),
        # Subscriptions spread over brokers.
        "compared_mean": _told("scaling", f"compared_avg / {_EVENTS}"),
        "compared_max": _told("scaling", f"compared_most / {_EVENTS}"),
        "local_matching": f"compared_own_avg / {_EVENTS}",
        "event_hops": f"hops_event / {_EVENTS}",
        "interest_hops": f"hops_interest / {_SUBSCRIPTIONS}",
        "entries_mean": _told("scaling", "entries_avg"),
        "entries_max": "entries_most",
        "matches_per_event": _told("scaling", f"wanted_sum / {_EVENTS}"),
        "lost": "CASE WHEN shown_sum IS NOT NULL THEN wanted_sum - shown_sum ELSE lost_sum END",
        # Moving displayers, and partitions.
        **{
            name: f"{name}_sum"
            for name in (
                "expected",
                "duplicated",
                "unwanted",
                "moves",
                "while_old_down",
                "owed",
                "merges",
                "said",
            )
        },
        "held_mean_s": "held_s_avg",
        "held_p90_s": _told("roam", "sort_array(held_all)[int(floor(0.9D * size(held_all)))]"),
        "handover_bytes_per_move": "handover_bytes_sum / moves_sum",
        "histories": _told("heal", "size(all_brokers)"),
        "one_broker": _told(
            "heal", f"size(filter(arrays_zip(all_brokers, all_missing, all_healed), {_GOOD_END}))"
        ),
        "most_brokers": "most_brokers_most",
        # Queues.
        "wrong": "wrong_sum",
        "streams": _told("queues", "streams_seen"),
        "bytes_sent": "kept_bytes_sum / streams_seen",
        "share_sent": "kept_bytes_sum / missed_bytes_sum",
        # Which architecture when.
        "source_bytes": _told("advice", f"{_sum('bytes', 'published', *TO_SOURCES)} / {_EVENTS}"),
        "broker_bytes": f"{_sum('bytes', *_BETWEEN)} / {_EVENTS}",
        **{f"{kind}_bytes": f"bytes_{kind} / {_EVENTS}" for kind in _BETWEEN},
        "busiest_compared": _told("advice", f"compared_most / {_EVENTS}"),
        "busiest_handled": _told("advice", f"handled_most / {_EVENTS}"),
        "match_share": _told("advice", f"wanted_avg / {_SUBSCRIPTIONS}"),
    },
    each=Each(
        table="observations",
        sums={
            "brokers_of": _seen("max", "brokers"),
            "missing_of": _seen("max", "missing"),
            "before_of": _seen("max", "brokers_before"),
            "healed_of": _seen("max", "healed_s"),
            "delivered_of": _seen("max", "delivered_s"),
        },
        measures={
            "healed_s": f"CASE WHEN {_WHOLE} AND before_of > 1 THEN healed_of END",
            "delivered_s": f"CASE WHEN {_WHOLE} AND NOT isnan(delivered_of) THEN delivered_of END",
        },
    ),
)
