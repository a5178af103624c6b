"""The claims on Figures 8 to 11: overshoot, publication locality and delivery, one small function each."""

import math

from sojourn.studies.cited import select
from sojourn.studies.cited_points import asked
from sojourn.studies.cited_points import table as as_table
from sojourn.studies.claims import Claim, Verdict
from sojourn.studies.conditions import Condition, judge_by, read_as
from sojourn.studies.means import (
    Points,
    Table,
    falls,
    first,
    flat,
    last,
    ratio,
    ratios,
    rises,
)
from sojourn.studies.publisher_mobility.checks import COST, TIME, TIME_OF_ALL, ZEROS, span
from sojourn.studies.publisher_mobility.compare import Asked, Where, everywhere
from sojourn.studies.publisher_mobility.grid import FOUR
from sojourn.studies.statistics import crossing, recorded_crossing, straight_line


def fig8_conditions(table: Table, measure: str) -> list[Condition]:
    """Proxy's cost and time rise with the overshoot; its time meets prefetch-delayed's between 2 and 4."""
    rising = [
        Condition(f"proxy's {name} rises with every step", float(rises(points)), 0.5)
        for name, points in (
            ("cost", table.points("overshoot", "proxy", "none", COST)),
            ("time", table.points("overshoot", "proxy", "none", measure)),
        )
    ]
    where = proxy_crossing(table, "none", measure)
    seeds = crossings(table, "none", measure)
    what = f"the crossing {at_overshoot(where)}"
    return [
        *rising,
        Condition(what, where, 2.0, seeds, equal=True),
        Condition(what, where, 4.0, seeds, above=False, equal=True),
    ]


def fig8(claim: Claim, table: Table) -> Verdict:
    """An overshoot makes proxy dearer and slower, until prefetch-delayed overtakes it at about three."""
    cost = table.points("overshoot", "proxy", "none", COST)
    time = table.points("overshoot", "proxy", "none", TIME)
    other = table.points("overshoot", "prefetch-delayed", "none", TIME)
    share = table.points("overshoot", "proxy", "none", "rebuilding_share")
    where, where_of_all = proxy_crossing(table, "none"), proxy_crossing(table, "none", TIME_OF_ALL)
    conditions = fig8_conditions(table, TIME)
    return judge_by(
        claim,
        conditions,
        readings=[read_as(ZEROS, fig8_conditions(table, TIME_OF_ALL))],
        measured={
            "cost rises": rises(cost),
            "time rises": rises(time),
            "crossing": recorded_crossing(where),
            "crossing, arrivals at own proxies as zeros": recorded_crossing(where_of_all),
            **flat("proxy, messages/min", cost),
            **flat("proxy, ms", time),
            **flat("prefetch-delayed, ms", other),
            **flat("share of proxy's moves that leave the proxies", share),
            **flat("proxy by number of proxies, ms", table.points("proxies", "proxy", "none", TIME_OF_ALL)),
            **flat(
                "proxy by number of proxies, messages/min", table.points("proxies", "proxy", "none", COST)
            ),
        },
        evidence=(
            f"Proxy's cost goes from {first(cost):.0f} to {last(cost):.0f} messages a minute and its time "
            f"from {first(time):.2f} to {last(time):.2f} ms against {span(other)} ms; its time passes "
            f"prefetch-delayed's {at_overshoot(where)}. A mean counts the moves that leave the proxies, "
            f"{last(share):.0%} of a patrol's at the largest overshoot: at a proxy there is no rebuilding "
            f"(section 4.3). With the others as zeros it passes {at_overshoot(where_of_all)}."
            + _proxies(table)
        ),
    )


def _proxies(table: Table) -> str:
    """What more proxies do to a patrol through the same territory (section 5.2.6)."""
    cost = table.points("proxies", "proxy", "none", COST)
    fit = straight_line(list(cost), list(cost.values()))
    if not cost:
        return ""
    return (
        f" With {min(cost):g} to {max(cost):g} proxies for patrols through {max(cost):g} brokers the cost is "
        f"{', '.join(f'{value:.0f}' for value in cost.values())} messages a minute (a straight line has "
        f"{fit.said()}); the paper expects it to be about linear."
    )


def fig9_conditions(table: Table, measure: str) -> list[Condition]:
    """The costlier the computations, the smaller the overshoot at which proxy is the slower one."""
    where = {model: proxy_crossing(table, model, measure) for model in ("none", "fast", "complex")}
    found = [Condition("the crossing with complex in the range", where["complex"], math.inf, above=False)]
    for early, late in (("complex", "fast"), ("fast", "none")):
        pairs = zip(crossings(table, late, measure), crossings(table, early, measure), strict=False)
        # Two crossings that are nowhere are no earlier and no later than each other.
        gap = 0.0 if where[late] == where[early] else where[late] - where[early]
        what = f"{early}'s crossing {at_overshoot(where[early])} no later than {late}'s"
        seeds = [a - b for a, b in pairs if math.isfinite(a) and math.isfinite(b)]
        found.append(Condition(what, gap, 0.0, seeds, equal=True))
    return found


def fig9(claim: Claim, table: Table) -> Verdict:
    """The costlier the computations, the sooner an overshoot makes proxy the slower one."""
    models = ("none", "fast", "complex")
    where = {model: proxy_crossing(table, model) for model in models}
    of_all = {model: proxy_crossing(table, model, TIME_OF_ALL) for model in models}
    ends = {
        model: ratio(
            last(table.points("overshoot", "proxy", model, TIME)),
            last(table.points("overshoot", "prefetch-delayed", model, TIME)),
        )
        for model in models
    }
    conditions = fig9_conditions(table, TIME)
    return judge_by(
        claim,
        conditions,
        readings=[read_as(ZEROS, fig9_conditions(table, TIME_OF_ALL))],
        measured={
            **{f"crossing {model}": recorded_crossing(at) for model, at in where.items()},
            **{
                f"crossing {model}, arrivals at own proxies as zeros": recorded_crossing(at)
                for model, at in of_all.items()
            },
            **{f"proxy / prefetch-delayed at the largest overshoot, {model}": r for model, r in ends.items()},
        },
        evidence=(
            "Proxy's time passes prefetch-delayed's "
            f"{', '.join(f'{at_overshoot(at)} with {model}' for model, at in where.items())} (paper: 3, 2 "
            "and about 1); at the largest "
            f"overshoot it is {', '.join(f'{r:.2f} times with {model}' for model, r in ends.items())}. "
            "With arrivals at own proxies as zeros it passes "
            f"{', '.join(f'{at_overshoot(at)} with {model}' for model, at in of_all.items())}."
        ),
    )


def crossings(table: Table, computations: str, measure: str) -> list[float]:
    """The crossing seed by seed; nowhere is infinite."""
    proxy, other = (
        {
            x: table.seeds("overshoot", name, computations, measure, x)
            for x in table.points("overshoot", name, computations, measure)
        }
        for name in ("proxy", "prefetch-delayed")
    )
    xs = sorted(proxy.keys() & other.keys())
    common = set.intersection(*(set(line[x]) for line in (proxy, other) for x in xs)) if xs else set()
    return [crossing(xs, [ratio(proxy[x][seed], other[x][seed]) for x in xs]) for seed in sorted(common)]


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


def fig10_conditions(table: Table, measure: str) -> list[Condition]:
    """Lines fall, proxy is fastest at the highest locality, and wins no earlier with complex."""
    found = []
    for protocol in FOUR:
        for what in (COST, measure):
            points = table.points("locality", protocol, "none", what)
            found.append(Condition(f"{protocol} {what} falls", float(falls(points)), 0.5))
    proxy = Where("locality", "proxy", "none")
    for protocol in FOUR:
        if protocol != "proxy":
            below = Asked(1.0, above=False)
            found += everywhere(table, proxy, Where("locality", protocol, "none"), measure, below)[-1:]
    wins = {model: proxy_wins(table, model, measure) for model in ("none", "complex")}
    gap = 0.0 if wins["complex"] == wins["none"] else wins["complex"] - wins["none"]
    found.append(Condition("proxy wins no earlier with complex", gap, 0.0, equal=True))
    return found


def fig10(claim: Claim, table: Table) -> Verdict:
    """Locality makes rebuilding cheaper for all, and proxy the fastest in the end."""
    lines = {(p, m): table.points("locality", p, "none", m) for p in FOUR for m in (COST, TIME)}
    not_falling = [f"{p} {m}" for (p, m), points in lines.items() if not falls(points)]
    at_end = {p: last(lines[p, TIME]) for p in FOUR}
    wins = {model: proxy_wins(table, model) for model in ("none", "complex")}
    conditions = fig10_conditions(table, TIME)
    fastest = min(at_end, key=lambda protocol: at_end[protocol])
    near = last(lines["standard", COST]) / last(lines["delayed", COST])
    start = first(lines["standard", COST]) / first(lines["delayed", COST])
    falling_text = (
        "All costs and times fall" if not not_falling else f"Not every step falls: {', '.join(not_falling)}"
    )
    return judge_by(
        claim,
        conditions,
        readings=[read_as(ZEROS, fig10_conditions(table, TIME_OF_ALL))],
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


def proxy_wins(table: Table, computations: str, measure: str = TIME) -> float:
    """The least locality from which on proxy rebuilds fastest of the four; infinity if it never does."""
    lines = {p: table.points("locality", p, computations, measure) for p in FOUR}
    xs = sorted(lines["proxy"])
    won = math.inf
    for x in reversed(xs):
        if any(lines[p][x] <= lines["proxy"][x] for p in FOUR if p != "proxy"):
            break
        won = x
    named = {p: p.replace("-", "_") for p in FOUR}
    rows = [{"x": x, **{named[p]: lines[p][x] for p in FOUR}} for x in xs]
    others = ", ".join(named[p] for p in FOUR if p != "proxy")
    beaten = select(f"max(x) FILTER (WHERE least({others}) <= proxy)", as_table(rows))
    return asked(
        f"coalesce(min(x) FILTER (WHERE x > coalesce({beaten}, -1)), double('infinity'))",
        as_table(rows),
        won,
        [lines[p][x] for p in FOUR for x in xs],
    )


def _share(locality: float) -> str:
    return "nowhere" if locality == math.inf else f"{locality:.0%}"


def fig11_conditions(table: Table, none: Points, slow: Points, measure: str) -> list[Condition]:
    """All arrives without computations, and less than 70% with complex at the most publishers."""
    least, most = min(none, key=none.__getitem__), max(slow)
    free = table.seeds("delivery", "standard", "none", "delivery_ratio", least)
    dear = table.seeds("delivery", "standard", "complex", measure, most)
    return [
        Condition(f"{none[least]:.1%} without computations", none[least], 0.99, [*free.values()], equal=True),
        Condition(f"{slow[most]:.0%} with complex", slow[most], 0.7, [*dear.values()], above=False),
    ]


def fig11(claim: Claim, table: Table) -> Verdict:
    """Without computations everything seems to arrive; with the complex class it does not."""
    none, fast, slow = (
        table.points("delivery", "standard", model, "delivery_ratio") for model in ("none", "fast", "complex")
    )
    in_time = table.points("delivery", "standard", "complex", "delivered_in_time_ratio")
    text = ", ".join(f"{share:.1%} at {x:g}" for x, share in slow.items())
    early = ", ".join(f"{share:.1%} at {x:g}" for x, share in in_time.items())
    conditions = [
        *(fig11_conditions(table, none, slow, "delivery_ratio")),
        Condition("complex falls", float(falls(slow) and last(slow) < first(slow)), 0.5),
    ]
    within = [
        *(fig11_conditions(table, none, in_time, "delivered_in_time_ratio")),
        Condition("complex falls", float(falls(in_time) and last(in_time) < first(in_time)), 0.5),
    ]
    return judge_by(
        claim,
        conditions,
        readings=[read_as("what arrives after the end of the run does not count", within)],
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
