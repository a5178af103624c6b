"""The claims on Figures 4 to 7 and on sections 4.6 and 5.2.4, each judged by one small function.

A check takes the table of means and its claim and returns a verdict; it holds the numbers that
`claims.toml` states and no others. The claims on tables 1 and 2 and on Figures 8 to 11 stand next door.
"""

import math
from collections.abc import Callable

from sojourn.studies.claims import Claim, Verdict, judge
from sojourn.studies.publisher_mobility.grid import FOUR
from sojourn.studies.publisher_mobility.table import Points, Table, first, flat, last, ratios
from sojourn.studies.statistics import r_squared, rank_correlation

Check = Callable[[Claim, Table], Verdict]

OPTIMISED = ("proxy", "delayed", "prefetch-delayed")
COST = "messages_per_min"
TIME = "rebuild_ms"


def fig4a_linear(claim: Claim, table: Table) -> Verdict:
    """Message cost is a straight line over the publishers."""
    fits = {}
    for protocol in (*FOUR, "prefetching"):
        points = table.points("publishers", protocol, "none", COST)
        fits[protocol] = r_squared(list(points), list(points.values()))
    least = min(fits, key=lambda protocol: fits[protocol])
    return judge(
        claim,
        holds=all(fit >= 0.97 for fit in fits.values()),
        measured={f"R2 {protocol}": fit for protocol, fit in fits.items()},
        evidence=f"The least straight line is {least}'s with R2 = {fits[least]:.4f}.",
    )


def fig4a_tenfold(claim: Claim, table: Table) -> Verdict:
    """Standard costs more than ten times what the three others cost."""
    measured: dict[str, float] = {}
    standard = table.points("publishers", "standard", "none", COST)
    means = {}
    for protocol in OPTIMISED:
        points = ratios(standard, table.points("publishers", protocol, "none", COST))
        means[protocol] = sum(points.values()) / len(points)
        measured |= {f"mean standard / {protocol}": means[protocol], **flat(f"standard / {protocol}", points)}
    text = ", ".join(f"{ratio:.1f} times {protocol}'s" for protocol, ratio in means.items())
    return judge(
        claim,
        holds=all(ratio > 10 for ratio in means.values()),
        measured=measured,
        evidence=f"Averaged over the sweep, standard's messages are {text}.",
    )


def fig4a_prefetching(claim: Claim, table: Table) -> Verdict:
    """Prefetching alone does not graft in time and costs what standard does."""
    points = ratios(
        table.points("publishers", "prefetching", "none", COST),
        table.points("publishers", "standard", "none", COST),
    )
    return judge(
        claim,
        holds=all(ratio >= 0.95 for ratio in points.values()),
        measured=flat("prefetching / standard", points),
        evidence=f"Prefetching costs {_span(points)} times what standard costs.",
    )


def fig4a_order(claim: Claim, table: Table) -> Verdict:
    """Delayed is cheaper than proxy and as cheap as prefetch-delayed."""
    delayed = table.points("publishers", "delayed", "none", COST)
    proxy = ratios(table.points("publishers", "proxy", "none", COST), delayed)
    prefetched = ratios(table.points("publishers", "prefetch-delayed", "none", COST), delayed)
    trees = ratios(
        table.points("publishers", "prefetch-delayed", "none", "tree_messages_per_min"),
        table.points("publishers", "delayed", "none", "tree_messages_per_min"),
    )
    return judge(
        claim,
        holds=all(ratio > 1 for ratio in proxy.values())
        and all(abs(r - 1) <= 0.1 for r in prefetched.values()),
        measured={
            **flat("proxy / delayed", proxy),
            **flat("prefetch-delayed / delayed", prefetched),
            **flat("prefetch-delayed / delayed without the notice", trees),
        },
        evidence=(
            f"Proxy costs {_span(proxy)} times delayed. Prefetch-delayed costs {_span(prefetched)} times "
            "delayed when "
            "each hop of the notice from the old broker to the new one is counted, as the metric of "
            "section 5.2.3 "
            f"asks, and {_span(trees)} times when only tree messages are."
        ),
    )


def fig4b_order(claim: Claim, table: Table) -> Verdict:
    """Rebuilding is slowest with standard, then proxy, then delayed; prefetch-delayed hides it."""
    lines = {protocol: table.points("publishers", protocol, "none", TIME) for protocol in FOUR}
    slower = ratios(lines["standard"], lines["proxy"])
    nearer = ratios(lines["proxy"], lines["delayed"])
    same = ratios(lines["prefetch-delayed"], lines["delayed"])
    wait = max(table.points("publishers", "prefetch-delayed", "none", "visible_wait_ms").values())
    return judge(
        claim,
        holds=all(ratio > 1 for ratio in (*slower.values(), *nearer.values()))
        and all(abs(ratio - 1) <= 0.1 for ratio in same.values())
        and wait == 0,
        measured={
            **flat("standard / proxy", slower),
            **flat("proxy / delayed", nearer),
            **flat("prefetch-delayed / delayed", same),
            "prefetch-delayed visible wait, ms": wait,
        },
        evidence=(
            f"Standard takes {_span(slower)} times proxy's time, proxy {_span(nearer)} times delayed's, "
            f"prefetch-delayed {_span(same)} times delayed's; its publishers wait {wait:g} ms."
        ),
    )


def fig4b_flat(claim: Claim, table: Table) -> Verdict:
    """Without computations the time does not depend on the number of publishers."""
    return _flat_over(claim, table, "publishers", "from the fewest to the most publishers")


def fig6b_flat(claim: Claim, table: Table) -> Verdict:
    """Without computations the time does not depend on the speed."""
    return _flat_over(claim, table, "speed", "from the lowest to the highest speed")


def _flat_over(claim: Claim, table: Table, experiment: str, where: str) -> Verdict:
    ends = {}
    for protocol in FOUR:
        points = table.points(experiment, protocol, "none", TIME)
        ends[protocol] = last(points) / first(points)
    text = ", ".join(f"{protocol} {ratio:.2f}" for protocol, ratio in ends.items())
    return judge(
        claim,
        holds=all(abs(ratio - 1) <= 0.25 for ratio in ends.values()),
        measured={f"{protocol} last / first": ratio for protocol, ratio in ends.items()},
        evidence=f"Ratio of rebuilding times {where}: {text}.",
    )


def fig5a(claim: Claim, table: Table) -> Verdict:
    """The fast class already costs several times the time, and standard begins to grow."""
    fast = {protocol: table.points("publishers", protocol, "fast", TIME) for protocol in FOUR}
    none = table.points("publishers", "standard", "none", TIME)
    longer = last(fast["standard"]) / last(none)
    growth = {p: last(fast[p]) / first(fast[p]) for p in ("standard", "delayed", "prefetch-delayed")}
    return judge(
        claim,
        holds=longer >= 5
        and growth["standard"] >= 1.5
        and growth["delayed"] <= 1.25
        and growth["prefetch-delayed"] <= 1.25,
        measured={
            "standard fast / none at the most publishers": longer,
            **{f"{protocol} last / first": ratio for protocol, ratio in growth.items()},
            **flat("standard fast, ms", fast["standard"]),
            **flat("delayed fast, ms", fast["delayed"]),
        },
        evidence=(
            f"At the most publishers standard takes {longer:.1f} times as long with fast as without "
            "computations. "
            f"From fewest to most publishers its time grows {growth['standard']:.2f} times, delayed's "
            f"{growth['delayed']:.2f} and prefetch-delayed's {growth['prefetch-delayed']:.2f} times."
        ),
    )


def fig5b(claim: Claim, table: Table) -> Verdict:
    """With the complex class standard collapses and delayed does not."""
    standard = _seconds(table.points("publishers", "standard", "complex", TIME))
    delayed = _seconds(table.points("publishers", "delayed", "complex", TIME))
    busiest = table.points("publishers", "standard", "complex", "utilisation_max")
    trend = {
        times: _seconds(table.points(f"collapse-x{times}", "standard", "complex", TIME)) for times in (1, 2)
    }
    other = _seconds(table.points("speed-each-move", "standard", "complex", TIME))
    growth = last(standard) / standard[100.0] if 100.0 in standard else None
    holds = growth is not None and last(standard) > 60 and growth >= 10 and max(delayed.values()) < 10
    growth_text = "not measured" if growth is None else f"{growth:.1f}"
    other_text = ", ".join(f"{seconds:.3g} s at {x:g}" for x, seconds in other.items())
    doubled = ", ".join(
        f"{trend[1][x]:.3g} s becomes {trend[2][x]:.3g} s at {x:g}" for x in trend[2] if x in trend[1]
    )
    return judge(
        claim,
        holds=None if growth is None else holds,
        measured={
            **flat("standard, s", standard),
            **flat("delayed, s", delayed),
            "standard at the most / at 100": growth,
            **flat("busiest broker's load, standard", busiest),
            **{
                k: v
                for times in (1, 2)
                for k, v in flat(f"standard watched x{times}, s", trend[times]).items()
            },
            **flat("standard, speed drawn at every move, s", other),
        },
        evidence=(
            f"Standard rebuilds in {', '.join(f'{s:.3g} s at {x:g}' for x, s in standard.items())} "
            "publishers "
            f"({growth_text} times from 100 to the most); delayed needs at most "
            f"{max(delayed.values()):.2f} s. "
            f"Watched twice as long, {doubled}: overload, not a transient, wherever the time grows. "
            f"{_load_sentence(busiest)} With a speed drawn anew at every move (moves four times rarer) "
            "standard "
            f"needs {other_text}."
        ),
    )


def _load_sentence(busiest: Points) -> str:
    text = ", ".join(f"{load:.2f} at {x:g}" for x, load in busiest.items())
    return f"The busiest broker works {text} of the measured time."


def fig5c(claim: Claim, table: Table) -> Verdict:
    """Even prefetch-delayed pays for computations."""
    lines = {m: table.points("publishers", "prefetch-delayed", m, TIME) for m in ("none", "fast", "complex")}
    fast, complex_ = ratios(lines["fast"], lines["none"]), ratios(lines["complex"], lines["fast"])
    return judge(
        claim,
        holds=all(ratio >= 2 for ratio in fast.values()) and all(ratio >= 5 for ratio in complex_.values()),
        measured={**flat("fast / none", fast), **flat("complex / fast", complex_)},
        evidence=f"Prefetch-delayed: fast / none is {_span(fast)}, complex / fast {_span(complex_)}.",
    )


def fig6a(claim: Claim, table: Table) -> Verdict:
    """Cost rises with speed; the optimised protocols stay far below standard."""
    lines = {protocol: table.points("speed", protocol, "none", COST) for protocol in FOUR}
    ranks = {protocol: rank_correlation(list(p), list(p.values())) for protocol, p in lines.items()}
    apart = {protocol: ratios(lines["standard"], lines[protocol]) for protocol in OPTIMISED}
    text = ", ".join(f"{_span(points)} times {protocol}" for protocol, points in apart.items())
    return judge(
        claim,
        holds=all(rank >= 1 - 1e-9 for rank in ranks.values())
        and all(ratio > 7 for points in apart.values() for ratio in points.values()),
        measured={
            **{f"rank correlation {protocol}": rank for protocol, rank in ranks.items()},
            **{
                k: v
                for protocol in OPTIMISED
                for k, v in flat(f"standard / {protocol}", apart[protocol]).items()
            },
        },
        evidence=f"Least rank correlation with speed {min(ranks.values()):.2f}; standard costs {text}.",
    )


def fig7(claim: Claim, table: Table) -> Verdict:
    """With the complex class the standard protocol's time depends on speed."""
    none = table.points("speed", "standard", "none", TIME)
    slow = table.points("speed", "standard", "complex", TIME)
    growth, flatness = last(slow) / first(slow), last(none) / first(none)
    return judge(
        claim,
        holds=growth >= 2 and abs(flatness - 1) <= 0.25,
        measured={
            "complex last / first": growth,
            "none last / first": flatness,
            **flat("standard complex, s", _seconds(slow)),
            **flat("busiest broker's load", table.points("speed", "standard", "complex", "utilisation_max")),
        },
        evidence=(
            f"From the lowest to the highest speed standard's time grows {growth:.1f} times with complex "
            f"and {flatness:.2f} times without computations."
        ),
    )


def delay_too_short(claim: Claim, table: Table) -> Verdict:
    """A delay shorter than the disconnection makes delayed no better than standard."""
    time = ratios(
        table.points("short-delay", "delayed", "none", TIME),
        table.points("short-delay", "standard", "none", TIME),
    )
    cost = ratios(
        table.points("short-delay", "delayed", "none", COST),
        table.points("short-delay", "standard", "none", COST),
    )
    return judge(
        claim,
        holds=all(abs(r - 1) <= 0.1 for r in time.values()) and all(r >= 0.95 for r in cost.values()),
        measured={**flat("delayed / standard time", time), **flat("delayed / standard messages", cost)},
        evidence=(
            f"With a delay of 1 s delayed takes {_span(time)} times standard's time and {_span(cost)} "
            "times its messages."
        ),
    )


def combination(claim: Claim, table: Table) -> Verdict:
    """Whether proxy+delayed beats both of its parts."""
    measured: dict[str, float] = {}
    beats, texts = True, []
    for experiment, where in (("publishers", "publishers"), ("overshoot", "patrols")):
        for measure, what in ((COST, "messages"), (TIME, "time")):
            both = table.points(experiment, "proxy+delayed", "none", measure)
            for part in ("proxy", "delayed"):
                points = ratios(both, table.points(experiment, part, "none", measure))
                # Where neither has anything to rebuild there is nothing to beat.
                points = {x: ratio for x, ratio in points.items() if not math.isnan(ratio)}
                if experiment == "publishers":
                    beats = beats and all(ratio < 1 for ratio in points.values())
                measured |= flat(f"{what} proxy+delayed / {part}, {where}", points)
                texts.append(f"{_span(points)} times {part}'s {what} ({where})")
    verb = "beats" if beats else "does not beat"
    return judge(
        claim,
        holds=beats,
        measured=measured,
        evidence=f"Over the publisher sweep proxy+delayed {verb} both parts everywhere: {'; '.join(texts)}.",
    )


def _span(points: Points) -> str:
    """The range of a line's values, for a sentence."""
    low, high = min(points.values()), max(points.values())
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"


def _seconds(points: Points) -> Points:
    return {x: value / 1000 for x, value in points.items()}
