"""The claims on Figures 4, 5(c), 6 and 7 and on sections 4.6 and 5.2.4, each judged by one small function.

A check takes the table of means and its claim and returns a verdict; it holds the numbers that
`claims.toml` states and no others. The other claims stand next door.
"""

import math

from sojourn.studies import wording
from sojourn.studies.claims import Claim, Verdict, judge
from sojourn.studies.conditions import Condition, broken, deciding, judge_by, read_otherwise
from sojourn.studies.means import Points, Table, first, flat, last, ratios
from sojourn.studies.publisher_mobility.compare import ABOVE_ONE, Asked, Where, about, everywhere, grown
from sojourn.studies.publisher_mobility.grid import FOUR
from sojourn.studies.publisher_mobility.parameters import LIGHT_PUBLISHERS
from sojourn.studies.statistics import rank_correlation, straight_line

OPTIMISED = ("proxy", "delayed", "prefetch-delayed")
COST = "messages_per_min"
TREES = "tree_messages_per_min"
TIME = "rebuild_ms"
TIME_OF_ALL = "rebuild_all_ms"
ZEROS = "arrivals at own proxies count as zeros"
NO_NOTICE = "the notice to the next broker is no message of tree rebuilding"
SET_OUT = "publishers have just set out from their proxies"


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
    standard = Where("publishers", "standard", "none")
    means, conditions = {}, []
    for protocol in OPTIMISED:
        other = Where("publishers", protocol, "none")
        points = ratios(standard.points(table, COST), other.points(table, COST))
        means[protocol] = sum(points.values()) / len(points)
        measured |= {f"mean standard / {protocol}": means[protocol], **flat(f"standard / {protocol}", points)}
        by_point = [condition.seeds for condition in everywhere(table, standard, other, COST, Asked(10.0))]
        seeds = [sum(column) / len(column) for column in zip(*by_point, strict=False)]
        what = f"standard over {protocol}, {means[protocol]:.1f}"
        conditions.append(Condition(what, means[protocol], 10.0, seeds))
    text = ", ".join(f"{ratio:.1f} times {protocol}'s" for protocol, ratio in means.items())
    return judge_by(
        claim,
        conditions,
        measured=measured,
        evidence=f"Averaged over the sweep, standard's messages are {text}.",
    )


def fig4a_prefetching(claim: Claim, table: Table) -> Verdict:
    """Prefetching alone does not graft in time and costs what standard does."""
    prefetching, standard = (Where("publishers", name, "none") for name in ("prefetching", "standard"))
    conditions = everywhere(table, prefetching, standard, COST, Asked(0.95, equal=True))
    points = ratios(prefetching.points(table, COST), standard.points(table, COST))
    return judge(
        claim,
        holds=bool(points) and not broken(conditions),
        margin=deciding(conditions),
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
    conditions = _cheaper(table, "publishers")
    return judge_by(
        claim,
        conditions,
        readings=[
            *read_otherwise({"publishers": NO_NOTICE}, lambda key: _cheaper(table, key, TREES)),
            *read_otherwise({"just-set-out": SET_OUT}, lambda key: _cheaper(table, key)),
        ],
        cause="The notice from the old broker to the new one, which only prefetching protocols send: without "
        f"it prefetch-delayed sends {span(trees)} times what delayed sends.",
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


def _cheaper(table: Table, experiment: str, measure: str = COST) -> list[Condition]:
    """Delayed below proxy, and prefetch-delayed within a tenth of delayed where it was run."""
    delayed = Where(experiment, "delayed", "none")
    found = everywhere(table, Where(experiment, "proxy", "none"), delayed, measure, ABOVE_ONE)
    for same in everywhere(table, Where(experiment, "prefetch-delayed", "none"), delayed, measure, ABOVE_ONE):
        found += about(same, 0.1)
    return found


def _slower(table: Table, experiment: str, measure: str) -> list[Condition]:
    """Standard above proxy above delayed, and prefetch-delayed within a tenth of delayed where it was run."""
    standard, proxy, delayed, prefetched = (Where(experiment, name, "none") for name in FOUR)
    found = everywhere(table, standard, proxy, measure, ABOVE_ONE)
    found += everywhere(table, proxy, delayed, measure, ABOVE_ONE)
    for same in everywhere(table, prefetched, delayed, measure, ABOVE_ONE):
        found += about(same, 0.1)
    return found


def fig4b_order(claim: Claim, table: Table) -> Verdict:
    """Rebuilding is slowest with standard, then proxy, then delayed; prefetch-delayed hides it."""
    lines = {protocol: table.points("publishers", protocol, "none", TIME) for protocol in FOUR}
    slower = ratios(lines["standard"], lines["proxy"])
    nearer = ratios(lines["proxy"], lines["delayed"])
    same = ratios(lines["prefetch-delayed"], lines["delayed"])
    early = just_set_out(table, TIME)
    wait = max(table.points("publishers", "prefetch-delayed", "none", "visible_wait_ms").values())
    conditions = _slower(table, "publishers", TIME)
    readings = read_otherwise({"publishers": ZEROS}, lambda key: _slower(table, key, TIME_OF_ALL))
    readings += read_otherwise({"just-set-out": SET_OUT}, lambda key: _slower(table, key, TIME))
    return judge_by(
        claim,
        conditions,
        also=wait == 0,
        readings=readings,
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
    return _flat_over(claim, table, "publishers", "from the fewest to the most publishers", {})


def fig6b_flat(claim: Claim, table: Table) -> Verdict:
    """Without computations the time does not depend on the speed."""
    where = "from the lowest to the highest speed"
    return _flat_over(claim, table, "speed", where, {"speed-just-set-out": SET_OUT})


def _flat_conditions(table: Table, experiment: str, measure: str) -> list[Condition]:
    found: list[Condition] = []
    for protocol in FOUR:
        found += about(grown(table, Where(experiment, protocol, "none"), measure, ABOVE_ONE), 0.25)
    return found


def _flat_over(claim: Claim, table: Table, experiment: str, where: str, readings: dict[str, str]) -> Verdict:
    conditions = _flat_conditions(table, experiment, TIME)
    ends = {
        protocol: grown(table, Where(experiment, protocol, "none"), TIME, ABOVE_ONE).value
        for protocol in FOUR
    }
    text = ", ".join(f"{protocol} {times:.2f}" for protocol, times in ends.items())
    others = read_otherwise({experiment: ZEROS}, lambda key: _flat_conditions(table, key, TIME_OF_ALL))
    others += read_otherwise(readings, lambda key: _flat_conditions(table, key, TIME))
    return judge_by(
        claim,
        conditions,
        readings=others,
        measured={f"{protocol} last / first": times for protocol, times in ends.items()},
        evidence=f"Ratio of rebuilding times {where}: {text}.",
        cause="The proxy protocol alone remembers where a publisher set out: how long publishers have been "
        "under way, and whether arrivals at own proxies count, decides how far they are from there.",
    )


def fig5c(claim: Claim, table: Table) -> Verdict:
    """Even prefetch-delayed pays for computations."""
    lines = {m: Where("publishers", "prefetch-delayed", m) for m in ("none", "fast", "complex")}
    points = {model: line.points(table, TIME) for model, line in lines.items()}
    fast, complex_ = ratios(points["fast"], points["none"]), ratios(points["complex"], points["fast"])
    conditions = everywhere(table, lines["fast"], lines["none"], TIME, Asked(2.0, equal=True))
    conditions += everywhere(table, lines["complex"], lines["fast"], TIME, Asked(5.0, equal=True))
    return judge(
        claim,
        holds=bool(conditions) and not broken(conditions),
        margin=deciding(conditions),
        measured={**flat("fast / none", fast), **flat("complex / fast", complex_)},
        evidence=f"Prefetch-delayed: fast / none is {span(fast)}, complex / fast {span(complex_)}.",
    )


def fig6a(claim: Claim, table: Table) -> Verdict:
    """Cost rises with speed; the optimised protocols stay far below standard."""
    lines = {protocol: table.points("speed", protocol, "none", COST) for protocol in FOUR}
    ranks = {protocol: rank_correlation(list(p), list(p.values())) for protocol, p in lines.items()}
    apart = {protocol: ratios(lines["standard"], lines[protocol]) for protocol in OPTIMISED}
    text = ", ".join(f"{span(points)} times {protocol}" for protocol, points in apart.items())
    standard = Where("speed", "standard", "none")
    conditions = [
        condition
        for protocol in OPTIMISED
        for condition in everywhere(table, standard, Where("speed", protocol, "none"), COST, Asked(7.0))
    ]
    return judge(
        claim,
        holds=all(rank >= 1 - 1e-9 for rank in ranks.values()) and not broken(conditions),
        margin=deciding(conditions),
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
    load = table.points("speed", "standard", "complex", "utilisation_max")
    lighter = {f"speed-{count}-publishers": f"{count} publishers" for count in LIGHT_PUBLISHERS}
    loads = {key: table.points(key, "standard", "complex", "utilisation_max") for key in lighter}
    named = {
        key: f"{name}, where the busiest broker works {last(loads[key]):.0%} of the time at most"
        for key, name in lighter.items()
        if loads[key]
    }
    conditions = _speed_conditions(table, "speed")
    return judge_by(
        claim,
        conditions,
        readings=read_otherwise(named, lambda key: _speed_conditions(table, key)),
        measured={
            "complex last / first": growth,
            "none last / first": flatness,
            **flat("standard complex, s", seconds(slow)),
            **flat("busiest broker's load", load),
            **{k: v for key in named for k, v in flat(f"load, {lighter[key]}", loads[key]).items()},
        },
        evidence=(
            f"From the lowest to the highest speed standard's time grows {growth:.1f} times with complex and "
            f"{flatness:.2f} times without computations. The busiest broker works {first(load):.0%} of the "
            f"time at the lowest and {last(load):.0%} at the highest speed: under overload the time grows "
            "whatever the protocol, so the check is also put where the network keeps up."
        ),
    )


def _speed_conditions(table: Table, experiment: str) -> list[Condition]:
    slow, none = (Where(experiment, "standard", model) for model in ("complex", "none"))
    return [
        grown(table, slow, TIME, Asked(2.0, equal=True)),
        *about(grown(table, none, TIME, ABOVE_ONE), 0.25),
    ]


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
    delayed, standard = (Where("short-delay", name, "none") for name in ("delayed", "standard"))
    conditions = everywhere(table, delayed, standard, COST, Asked(0.95, equal=True))
    for condition in everywhere(table, delayed, standard, TIME, ABOVE_ONE):
        conditions += about(condition, 0.1)
    return judge(
        claim,
        holds=bool(conditions) and not broken(conditions),
        margin=deciding(conditions),
        measured={**flat("delayed / standard time", time), **flat("delayed / standard messages", cost)},
        evidence=(
            f"With a delay of 1 s delayed takes {span(time)} times standard's time and {span(cost)} times "
            "its messages."
        ),
    )


def combination(claim: Claim, table: Table) -> Verdict:
    """Whether proxy+delayed beats both of its parts."""
    measured: dict[str, float] = {}
    beats, texts, conditions = True, [], list[Condition]()
    for experiment, where in (("publishers", "publishers"), ("overshoot", "patrols")):
        for measure, what in ((COST, "messages"), (TIME, "time")):
            both = table.points(experiment, "proxy+delayed", "none", measure)
            for part in ("proxy", "delayed"):
                points = ratios(both, table.points(experiment, part, "none", measure))
                # Where neither has anything to rebuild there is nothing to beat.
                points = {x: ratio for x, ratio in points.items() if not math.isnan(ratio)}
                if experiment == "publishers":
                    beats = beats and all(ratio < 1 for ratio in points.values())
                    ours, theirs = (Where(experiment, name, "none") for name in ("proxy+delayed", part))
                    conditions += everywhere(table, ours, theirs, measure, Asked(1.0, above=False))
                measured |= flat(f"{what} proxy+delayed / {part}, {where}", points)
                texts.append(f"{span(points)} times {part}'s {what} ({where})")
    verb = "beats" if beats else "does not beat"
    return judge(
        claim,
        holds=beats,
        margin=deciding(conditions),
        measured=measured,
        evidence=f"Over the publisher sweep proxy+delayed {verb} both parts everywhere: {'; '.join(texts)}.",
    )


def span(points: Points) -> str:
    """The range of a line's values, for a sentence."""
    return wording.span(points.values())


def seconds(points: Points) -> Points:
    """A line of milliseconds in seconds."""
    return {x: value / 1000 for x, value in points.items()}
