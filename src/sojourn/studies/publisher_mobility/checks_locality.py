"""The claims on Figures 8 to 11: overshoot, publication locality and delivery, one small function each."""

import math

from sojourn.studies.claims import Claim, Verdict, judge
from sojourn.studies.publisher_mobility.checks import COST, TIME
from sojourn.studies.publisher_mobility.grid import FOUR
from sojourn.studies.publisher_mobility.table import Points, Table, falls, first, flat, last, ratios, rises
from sojourn.studies.statistics import crossing


def fig8(claim: Claim, table: Table) -> Verdict:
    """An overshoot makes proxy dearer and slower, until prefetch-delayed overtakes it at about three."""
    cost = table.points("overshoot", "proxy", "none", COST)
    time = table.points("overshoot", "proxy", "none", TIME)
    where = proxy_crossing(table, "none")
    return judge(
        claim,
        holds=rises(cost) and rises(time) and 2 <= where <= 4,
        measured={
            "cost rises": rises(cost),
            "time rises": rises(time),
            "crossing": where,
            **flat("proxy, messages/min", cost),
            **flat("proxy, ms", time),
            **flat("prefetch-delayed, ms", table.points("overshoot", "prefetch-delayed", "none", TIME)),
        },
        evidence=(
            f"Proxy's cost goes from {first(cost):.0f} to {last(cost):.0f} messages a minute and its time "
            "from "
            f"{first(time):.2f} to {last(time):.2f} ms; its time passes prefetch-delayed's at an overshoot "
            "of "
            f"{where:.2f}."
        ),
    )


def fig9(claim: Claim, table: Table) -> Verdict:
    """The costlier the computations, the sooner an overshoot makes proxy the slower one."""
    where = {model: proxy_crossing(table, model) for model in ("none", "fast", "complex")}
    text = ", ".join(f"{at:.2f} with {model}" for model, at in where.items())
    return judge(
        claim,
        holds=where["complex"] <= where["fast"] <= where["none"] and where["complex"] < math.inf,
        measured={f"crossing {model}": at for model, at in where.items()},
        evidence=f"Proxy's time passes prefetch-delayed's at an overshoot of {text}.",
    )


def proxy_crossing(table: Table, computations: str) -> float:
    """The overshoot at which proxy's rebuilding time reaches prefetch-delayed's."""
    points = ratios(
        table.points("overshoot", "proxy", computations, TIME),
        table.points("overshoot", "prefetch-delayed", computations, TIME),
    )
    return crossing(list(points), list(points.values()))


def fig10(claim: Claim, table: Table) -> Verdict:
    """Locality makes rebuilding cheaper for all, and proxy the fastest in the end."""
    lines = {(p, m): table.points("locality", p, "none", m) for p in FOUR for m in (COST, TIME)}
    not_falling = [f"{p} {m}" for (p, m), points in lines.items() if not falls(points)]
    at_end = {p: last(lines[p, TIME]) for p in FOUR}
    wins = {model: proxy_wins(table, model) for model in ("none", "complex")}
    fastest = min(at_end, key=lambda protocol: at_end[protocol])
    near = last(lines["standard", COST]) / last(lines["delayed", COST])
    start = first(lines["standard", COST]) / first(lines["delayed", COST])
    falling_text = (
        "All costs and times fall" if not not_falling else f"Not every step falls: {', '.join(not_falling)}"
    )
    return judge(
        claim,
        holds=not not_falling and fastest == "proxy" and wins["complex"] >= wins["none"],
        measured={
            "lines that do not fall": ", ".join(not_falling) or "none",
            "fastest at the highest locality": fastest,
            **{f"{p} at the highest locality, ms": t for p, t in at_end.items()},
            **{f"proxy wins from, {model}": at for model, at in wins.items()},
            "standard / delayed cost, lowest locality": start,
            "standard / delayed cost, highest locality": near,
            **{k: v for p in FOUR for k, v in flat(f"{p}, ms", lines[p, TIME]).items()},
            **{k: v for p in FOUR for k, v in flat(f"{p}, messages/min", lines[p, COST]).items()},
        },
        evidence=(
            f"{falling_text}. At the highest locality {fastest} is fastest "
            f"({', '.join(f'{p} {t:.2f} ms' for p, t in at_end.items())}) and standard costs {near:.1f} "
            "times delayed "
            f"against {start:.1f} times without locality. Proxy is the fastest of the four from locality "
            f"{_share(wins['none'])} without computations and {_share(wins['complex'])} with complex."
        ),
    )


def proxy_wins(table: Table, computations: str) -> float:
    """The least locality from which on proxy rebuilds fastest of the four; infinity if it never does."""
    lines = {p: table.points("locality", p, computations, TIME) for p in FOUR}
    won = math.inf
    for x in sorted(lines["proxy"], reverse=True):
        if any(lines[p][x] <= lines["proxy"][x] for p in FOUR if p != "proxy"):
            break
        won = x
    return won


def _share(locality: float) -> str:
    return "nowhere" if locality == math.inf else f"{locality:.0%}"


def fig11(claim: Claim, table: Table) -> Verdict:
    """Without computations everything seems to arrive; with the complex class it does not."""
    none: Points = table.points("delivery", "standard", "none", "delivery_ratio")
    slow: Points = table.points("delivery", "standard", "complex", "delivery_ratio")
    text = ", ".join(f"{ratio:.1%} at {x:g}" for x, ratio in slow.items())
    return judge(
        claim,
        holds=min(none.values()) >= 0.99 and last(slow) < 0.7 and falls(slow) and last(slow) < first(slow),
        measured={
            **flat("none", none),
            **flat("fast", table.points("delivery", "standard", "fast", "delivery_ratio")),
            **flat("complex", slow),
        },
        evidence=f"Delivered: at least {min(none.values()):.2%} without computations; with complex {text}.",
    )
