"""The claims on Figures 8 to 11: overshoot, publication locality and delivery, one small function each."""

import math

from sojourn.studies.claims import Claim, Verdict, judge
from sojourn.studies.means import (
    Table,
    falls,
    first,
    flat,
    last,
    ratio,
    ratios,
    rises,
)
from sojourn.studies.publisher_mobility.checks import COST, TIME, span
from sojourn.studies.publisher_mobility.grid import FOUR
from sojourn.studies.statistics import crossing, recorded_crossing

TIME_IF_ANY = "rebuild_if_any_ms"


def fig8(claim: Claim, table: Table) -> Verdict:
    """An overshoot makes proxy dearer and slower, until prefetch-delayed overtakes it at about three."""
    cost = table.points("overshoot", "proxy", "none", COST)
    time = table.points("overshoot", "proxy", "none", TIME)
    other = table.points("overshoot", "prefetch-delayed", "none", TIME)
    share = table.points("overshoot", "proxy", "none", "rebuilding_share")
    where, where_if_any = proxy_crossing(table, "none"), proxy_crossing(table, "none", TIME_IF_ANY)
    return judge(
        claim,
        holds=rises(cost) and rises(time) and 2 <= where <= 4,
        measured={
            "cost rises": rises(cost),
            "time rises": rises(time),
            "crossing": recorded_crossing(where),
            "crossing, moves that rebuild": recorded_crossing(where_if_any),
            **flat("proxy, messages/min", cost),
            **flat("proxy, ms", time),
            **flat("prefetch-delayed, ms", other),
            **flat("share of proxy's moves that rebuild", share),
        },
        evidence=(
            f"Proxy's cost goes from {first(cost):.0f} to {last(cost):.0f} messages a minute and its time "
            f"from {first(time):.2f} to {last(time):.2f} ms against {span(other)} ms; averaged over all "
            f"moves its time passes prefetch-delayed's {at_overshoot(where)}. Even at the largest overshoot "
            f"only {last(share):.0%} of a patrol's moves leave the proxies and have anything to rebuild; "
            f"averaged over those moves alone, it passes {at_overshoot(where_if_any)}."
        ),
    )


def fig9(claim: Claim, table: Table) -> Verdict:
    """The costlier the computations, the sooner an overshoot makes proxy the slower one."""
    models = ("none", "fast", "complex")
    where = {model: proxy_crossing(table, model) for model in models}
    if_any = {model: proxy_crossing(table, model, TIME_IF_ANY) for model in models}
    ends = {
        model: ratio(
            last(table.points("overshoot", "proxy", model, TIME)),
            last(table.points("overshoot", "prefetch-delayed", model, TIME)),
        )
        for model in models
    }
    return judge(
        claim,
        holds=where["complex"] <= where["fast"] <= where["none"] and where["complex"] < math.inf,
        measured={
            **{f"crossing {model}": recorded_crossing(at) for model, at in where.items()},
            **{
                f"crossing {model}, moves that rebuild": recorded_crossing(at) for model, at in if_any.items()
            },
            **{f"proxy / prefetch-delayed at the largest overshoot, {model}": r for model, r in ends.items()},
        },
        evidence=(
            "Averaged over all moves, proxy's time passes prefetch-delayed's "
            f"{', '.join(f'{at_overshoot(at)} with {model}' for model, at in where.items())}; at the largest "
            f"overshoot it is {', '.join(f'{r:.2f} times with {model}' for model, r in ends.items())}. "
            "Averaged over the moves that rebuild it passes "
            f"{', '.join(f'{at_overshoot(at)} with {model}' for model, at in if_any.items())}."
        ),
    )


def proxy_crossing(table: Table, computations: str, measure: str = TIME) -> float:
    """The overshoot at which proxy's rebuilding time reaches prefetch-delayed's."""
    points = ratios(
        table.points("overshoot", "proxy", computations, measure),
        table.points("overshoot", "prefetch-delayed", computations, measure),
    )
    return crossing(list(points), list(points.values()))


def at_overshoot(where: float) -> str:
    """A crossing for a sentence."""
    return "nowhere in the range" if where == math.inf else f"at an overshoot of {where:.2f}"


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
            f"times delayed against {start:.1f} times without locality. Proxy is the fastest of the four "
            f"from locality {_share(wins['none'])} without computations and {_share(wins['complex'])} with "
            "complex."
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
    none, fast, slow = (
        table.points("delivery", "standard", model, "delivery_ratio") for model in ("none", "fast", "complex")
    )
    in_time = table.points("delivery", "standard", "complex", "delivered_in_time_ratio")
    text = ", ".join(f"{share:.1%} at {x:g}" for x, share in slow.items())
    early = ", ".join(f"{share:.1%} at {x:g}" for x, share in in_time.items())
    return judge(
        claim,
        holds=min(none.values()) >= 0.99 and last(slow) < 0.7 and falls(slow) and last(slow) < first(slow),
        measured={
            **flat("none", none),
            **flat("fast", fast),
            **flat("complex", slow),
            **flat("complex, within the run", in_time),
        },
        evidence=(
            f"Delivered without computations: {min(none.values()):.2%} at the least; with complex {text} "
            f"publishers, counting what arrives until everything is worked off ({early} within the run)."
        ),
    )
