"""The claims on Figures 4, 5(c), 6 and 7 and on sections 4.6 and 5.2.4, each judged by one small function.

A check takes the table of means and its claim and returns a verdict; it holds the numbers that
`claims.toml` states and no others. The other claims stand next door.
"""

import math

from sojourn.studies import wording
from sojourn.studies.claims import Claim, Verdict, judge
from sojourn.studies.means import Points, Table, first, flat, last, ratio, ratios
from sojourn.studies.publisher_mobility.grid import FOUR
from sojourn.studies.statistics import rank_correlation, straight_line

OPTIMISED = ("proxy", "delayed", "prefetch-delayed")
COST = "messages_per_min"
TREES = "tree_messages_per_min"
TIME = "rebuild_ms"


def fig4a_linear(claim: Claim, table: Table) -> Verdict:
    """Message cost is a straight line over the publishers."""
    fits = {}
    for protocol in (*FOUR, "prefetching"):
        points = table.points("publishers", protocol, "none", COST)
        fits[protocol] = straight_line(list(points), list(points.values()))
    unknown = [protocol for protocol, fit in fits.items() if fit.missing]
    least = unknown[0] if unknown else min(fits, key=lambda protocol: fits[protocol].r2)
    said = f"{least} has" if unknown else f"the least straight one is {least}'s with"
    return judge(
        claim,
        holds=None if unknown else fits[least].r2 >= 0.97,
        measured={f"R2 {protocol}": fit.recorded for protocol, fit in fits.items()},
        evidence=f"Of lines through the means, {said} {fits[least].said('.4f')}.",
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
        evidence=f"Prefetching costs {span(points)} times what standard costs.",
    )


def fig4a_order(claim: Claim, table: Table) -> Verdict:
    """Delayed is cheaper than proxy and as cheap as prefetch-delayed."""
    delayed = table.points("publishers", "delayed", "none", COST)
    proxy = ratios(table.points("publishers", "proxy", "none", COST), delayed)
    prefetched = ratios(table.points("publishers", "prefetch-delayed", "none", COST), delayed)
    trees = ratios(table.points("publishers", "prefetch-delayed", "none", TREES), delayed)
    early = just_set_out(table, COST)
    holds = all(r > 1 for r in proxy.values()) and all(abs(r - 1) <= 0.1 for r in prefetched.values())
    return judge(
        claim,
        holds=holds,
        measured={
            **flat("proxy / delayed", proxy),
            **flat("proxy / delayed, just set out", early),
            **flat("prefetch-delayed / delayed", prefetched),
            **flat("prefetch-delayed / delayed without the notice", trees),
        },
        evidence=(
            f"Proxy costs {span(proxy)} times delayed (publishers long under way; {span(early)} times while "
            "they are still near the proxies they set out from). Prefetch-delayed sends the same tree "
            f"messages as delayed ({span(trees)} times), and the old broker's notice to the new one besides, "
            f"hop by hop like any message: {span(prefetched)} times delayed with it. The paper counts that "
            "notice for prefetching and says nothing of it here."
        ),
    )


def fig4b_order(claim: Claim, table: Table) -> Verdict:
    """Rebuilding is slowest with standard, then proxy, then delayed; prefetch-delayed hides it."""
    lines = {protocol: table.points("publishers", protocol, "none", TIME) for protocol in FOUR}
    slower = ratios(lines["standard"], lines["proxy"])
    nearer = ratios(lines["proxy"], lines["delayed"])
    same = ratios(lines["prefetch-delayed"], lines["delayed"])
    early = just_set_out(table, TIME)
    wait = max(table.points("publishers", "prefetch-delayed", "none", "visible_wait_ms").values())
    is_ordered = all(r > 1 for r in (*slower.values(), *nearer.values()))
    return judge(
        claim,
        holds=is_ordered and all(abs(r - 1) <= 0.1 for r in same.values()) and wait == 0,
        measured={
            **flat("standard / proxy", slower),
            **flat("proxy / delayed", nearer),
            **flat("proxy / delayed, just set out", early),
            **flat("prefetch-delayed / delayed", same),
            "prefetch-delayed visible wait, ms": wait,
            **{k: v for p in FOUR for k, v in flat(f"{p}, ms", lines[p]).items()},
        },
        evidence=(
            f"Standard takes {span(slower)} times proxy's time, proxy {span(nearer)} times delayed's "
            f"(publishers long under way; {span(early)} times while they are still near their proxies), "
            f"prefetch-delayed {span(same)} times delayed's; its publishers wait {wait:g} ms."
        ),
    )


def just_set_out(table: Table, measure: str) -> Points:
    """Proxy over delayed while publishers are still near the proxies they set out from."""
    return ratios(
        table.points("just-set-out", "proxy", "none", measure),
        table.points("just-set-out", "delayed", "none", measure),
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
        ends[protocol] = ratio(last(points), first(points))
    text = ", ".join(f"{protocol} {grown:.2f}" for protocol, grown in ends.items())
    return judge(
        claim,
        holds=all(abs(grown - 1) <= 0.25 for grown in ends.values()),
        measured={f"{protocol} last / first": grown for protocol, grown in ends.items()},
        evidence=f"Ratio of rebuilding times {where}: {text}.",
    )


def fig5c(claim: Claim, table: Table) -> Verdict:
    """Even prefetch-delayed pays for computations."""
    lines = {m: table.points("publishers", "prefetch-delayed", m, TIME) for m in ("none", "fast", "complex")}
    fast, complex_ = ratios(lines["fast"], lines["none"]), ratios(lines["complex"], lines["fast"])
    return judge(
        claim,
        holds=all(ratio >= 2 for ratio in fast.values()) and all(ratio >= 5 for ratio in complex_.values()),
        measured={**flat("fast / none", fast), **flat("complex / fast", complex_)},
        evidence=f"Prefetch-delayed: fast / none is {span(fast)}, complex / fast {span(complex_)}.",
    )


def fig6a(claim: Claim, table: Table) -> Verdict:
    """Cost rises with speed; the optimised protocols stay far below standard."""
    lines = {protocol: table.points("speed", protocol, "none", COST) for protocol in FOUR}
    ranks = {protocol: rank_correlation(list(p), list(p.values())) for protocol, p in lines.items()}
    apart = {protocol: ratios(lines["standard"], lines[protocol]) for protocol in OPTIMISED}
    text = ", ".join(f"{span(points)} times {protocol}" for protocol, points in apart.items())
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
            **flat("standard complex, s", seconds(slow)),
            **flat("busiest broker's load", table.points("speed", "standard", "complex", "utilisation_max")),
        },
        evidence=(
            f"From the lowest to the highest speed standard's time grows {growth:.1f} times with complex and "
            f"{flatness:.2f} times without computations."
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
            f"With a delay of 1 s delayed takes {span(time)} times standard's time and {span(cost)} times "
            "its messages."
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
                texts.append(f"{span(points)} times {part}'s {what} ({where})")
    verb = "beats" if beats else "does not beat"
    return judge(
        claim,
        holds=beats,
        measured=measured,
        evidence=f"Over the publisher sweep proxy+delayed {verb} both parts everywhere: {'; '.join(texts)}.",
    )


def span(points: Points) -> str:
    """The range of a line's values, for a sentence."""
    return wording.span(points.values())


def seconds(points: Points) -> Points:
    """A line of milliseconds in seconds."""
    return {x: value / 1000 for x, value in points.items()}
