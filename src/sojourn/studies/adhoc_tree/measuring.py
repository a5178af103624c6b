"""The study's measures, as SQL over the facts that its tasks record (`recording.py`).

Most are of single layouts: an algorithm's overhead is the mean over orders of turns, beside the optimum where
there is one and the lower bound where there is only that. `values/combo` is the list `values` of SP-COMBO.
"""

from sojourn.pipeline.measuring import Each, Measuring
from sojourn.studies.adhoc_tree.grid import FOUR, WRONG
from sojourn.studies.adhoc_tree.runs import DISAGREEMENT

ALGORITHMS = tuple(
    dict.fromkeys(
        (*FOUR, *WRONG, "path", "cool", "cool-long", *(f"{name}-draw" for name in ("nhop", "ovhd", "combo")))
    )
)
_KIND = "get_json_object(spec_json, '$.kind')"


def _seen(what: str, of: str = "", how: str = "max") -> str:
    return f"{how}(value) FILTER (WHERE what = '{what}' AND of = '{of}')"


def _column(name: str) -> str:
    return name.replace("-", "_")


def _over(above: str) -> str:
    """How far above the least overhead something lies; nothing is above nothing."""
    return f"CASE WHEN least_of = 0 THEN 0D ELSE {above} / least_of - 1 END"


def _value(name: str) -> str:
    mean = f"(total_{name}_ / orders_{name}_)"
    return (
        f"CASE {_KIND} WHEN 'lines' THEN {mean} WHEN 'exact' THEN {_over(mean)} "
        f"WHEN 'large' THEN {mean} / bound_of END"
    )


def _told(kinds: str, what: str) -> str:
    return f"CASE WHEN {_KIND} IN ({kinds}) THEN {what} END"


_PLAIN = {
    "degrees": "degree", "overlaps": "overlap", "variations": "variation", "trees": "trees", "gaps": "gap",
    "searched": "searched", "stable": "stable", "seconds": "seconds", "hops": "hops",
    "hops_after": "hops_after",
}  # fmt: skip
"""By list: what is observed of each layout as it is."""

_WAYS = ("tree", "flood")
_APART = "zip_with(optima_apart, optima_solved, (a, b) -> abs(b - a))"

MEASURING = Measuring(
    sums={
        "observations": {
            **{f"unsettled_{_column(name)}_": _seen("unsettled", name, "sum") for name in ALGORITHMS},
            "layouts_proved": _seen("proved", how="sum"),
            "layouts_solved": _seen("solved", how="count"),
            "optima_apart": _seen("least", how="collect_list"),
            "optima_solved": _seen("solved", how="collect_list"),
            "wanted_of": _seen("wanted"),
            "events_of": _seen("events"),
            "control_of": _seen("control"),
            "switches_of": _seen("switches"),
            "roamed_of": _seen("roamed_s"),
            **{f"delivered_{way}": _seen("delivered", way) for way in _WAYS},
            **{f"worked_{way}": _seen("worked", way) for way in _WAYS},
        }
    },
    measures={
        **{f"unsettled {name}": f"unsettled_{_column(name)}_" for name in ALGORITHMS},
        "proved": "layouts_proved",
        "compared": _told("'small'", "layouts_solved"),
        "disagreed": _told(
            "'small'",
            f"size(filter({_APART}, d -> d > {DISAGREEMENT}))",
        ),
        "apart_max": _told("'small'", f"array_max({_APART})"),
        **{f"{way}_ratio": f"delivered_{way} / greatest(1, wanted_of)" for way in _WAYS},
        **{f"{way}_overhead": f"worked_{way} / greatest(1, events_of)" for way in _WAYS},
        **{f"{way}_per_delivery": f"worked_{way} / greatest(1, delivered_{way})" for way in _WAYS},
        "control_per_s": "control_of / roamed_of",
        "switches_per_s": "switches_of / roamed_of",
    },
    each=Each(
        table="observations",
        sums={
            **{f"total_{_column(name)}_": _seen("overhead", name, "sum") for name in ALGORITHMS},
            **{f"orders_{_column(name)}_": _seen("overhead", name, "count") for name in ALGORITHMS},
            **{f"worst_{_column(name)}_": _seen("overhead", name) for name in ALGORITHMS},
            **{f"seen_{what}_": _seen(what) for what in _PLAIN.values()},
            "least_of": _seen("least"),
            "bound_of": _seen("bound"),
            "moved_of": _seen("moved"),
            "fresh_of": _seen("fresh"),
            **{f"cost_{way}": _seen("cost", way, "avg") for way in ("shared", "own")},
        },
        measures={
            **{f"values/{name}": _value(_column(name)) for name in ALGORITHMS},
            **{f"values/{way}": f"cost_{way}" for way in ("shared", "own")},
            **{f"worst/{name}": _told("'exact'", _over(f"worst_{_column(name)}_")) for name in ALGORITHMS},
            "excess": _told("'small'", _over("(total_combo_ / orders_combo_)")),
            "worst": _told("'small'", _over("worst_combo_")),
            "optima": "least_of",
            "bounds": _told("'exact'", "bound_of / least_of"),
            "cost": "CASE WHEN fresh_of = 0 THEN double('NaN') ELSE moved_of / fresh_of END",
            **{name: f"seen_{what}_" for name, what in _PLAIN.items()},
        },
    ),
)
