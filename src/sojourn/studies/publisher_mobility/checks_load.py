"""The claims on Figures 5(a) and 5(b): what routing computations do to the standard protocol.

The verdict rests on the study's own reading of the paper alone. Because these two figures turn on things
that the paper leaves open, its other readings are judged by the same conditions and stand beside it.
"""

from sojourn.studies.claims import Claim, Verdict
from sojourn.studies.conditions import Condition, judge_by, read_otherwise
from sojourn.studies.means import Points, Table, first, flat, last
from sojourn.studies.publisher_mobility.checks import TIME, seconds
from sojourn.studies.publisher_mobility.compare import Asked, Where, everywhere, grown
from sojourn.studies.publisher_mobility.grid import COLLAPSE_FROM, FOUR

READINGS = {
    "speed-each-move": "a speed drawn anew at every move",
    "in-step": "all publishers cross borders in step",
    "in-step-each-move": "in step, and a speed drawn anew at every move",
    "free-withdrawals": "withdrawals are free",
    "both": "withdrawals are free, and a speed drawn anew at every move",
    "insertion": "an insertion takes 2 ms with complex too",
    "insertion-each-move": "an insertion takes 2 ms, and a speed drawn anew at every move",
    "insertion-in-step-each-move": "an insertion takes 2 ms, in step, and a speed drawn anew at every move",
}
FLAT = Asked(1.25, above=False, equal=True)


def fig5a_conditions(table: Table, experiment: str) -> list[Condition] | None:
    """The fast class costs several times the time, and standard begins to grow; None where it was not run."""
    fast = Where(experiment, "standard", "fast")
    if not fast.points(table, TIME):
        return None
    longer = everywhere(table, fast, Where(experiment, "standard", "none"), TIME, Asked(5.0, equal=True))
    return [
        longer[-1],
        grown(table, fast, TIME, Asked(1.5, equal=True)),
        *(grown(table, Where(experiment, p, "fast"), TIME, FLAT) for p in ("delayed", "prefetch-delayed")),
    ]


def fig5a(claim: Claim, table: Table) -> Verdict:
    """Judge A-fig5a-order-of-magnitude."""
    fast = {protocol: table.points("publishers", protocol, "fast", TIME) for protocol in FOUR}
    none = table.points("publishers", "standard", "none", TIME)
    load = table.points("publishers", "standard", "fast", "utilisation_max")
    step = table.points("in-step", "standard", "fast", TIME)
    longer = last(fast["standard"]) / last(none)
    growth = {p: last(fast[p]) / first(fast[p]) for p in ("standard", "delayed", "prefetch-delayed")}
    conditions = fig5a_conditions(table, "publishers") or []
    return judge_by(
        claim,
        conditions,
        readings=read_otherwise(READINGS, lambda key: fig5a_conditions(table, key)),
        measured={
            "standard fast / none at the most publishers": longer,
            **{f"{protocol} last / first": grown_ for protocol, grown_ in growth.items()},
            **flat("standard none, ms", none),
            **flat("standard fast, ms", fast["standard"]),
            **flat("delayed fast, ms", fast["delayed"]),
            **flat("busiest broker's load, standard fast", load),
            **flat("standard fast, in step, ms", step),
        },
        evidence=(
            f"At the most publishers standard takes {longer:.1f} times as long with fast as without "
            f"computations; from fewest to most publishers its time grows {growth['standard']:.2f} times, "
            f"delayed's {growth['delayed']:.2f} and prefetch-delayed's {growth['prefetch-delayed']:.2f} "
            "times. A path of seven brokers costs 14 ms for the advertisement and 28 ms for the "
            f"subscriptions that come back, on top of {last(none):.0f} ms of links; more would have to come "
            f"from queues, and the busiest broker works only {last(load):.0%} of the time."
        ),
        cause=(
            f"Queues: with all publishers in step they form, and standard takes {first(step):.0f} ms at the "
            f"fewest and {last(step):.0f} ms at the most publishers, {last(step) / last(none):.1f} times its "
            "time without computations. How moves are spread in time the paper does not say."
        ),
    )


def fig5b_conditions(table: Table, experiment: str) -> list[Condition] | None:
    """With the complex class standard collapses and delayed does not; None where it was not run."""
    standard, delayed = (Where(experiment, p, "complex") for p in ("standard", "delayed"))
    points = seconds(standard.points(table, TIME))
    if not points:
        return None
    most = max(points)
    in_seeds = [value / 1000 for value in standard.at(table, TIME, most).values()]
    slow = seconds(delayed.points(table, TIME))
    worst = max(slow, key=slow.__getitem__)
    slow_seeds = [value / 1000 for value in delayed.at(table, TIME, worst).values()]
    return [
        Condition(
            f"standard above 60 s at {most:g} ({_short(points[most])} s)", points[most], 60.0, in_seeds
        ),
        grown(table, standard, TIME, Asked(10.0, equal=True), start=COLLAPSE_FROM),
        Condition(
            f"delayed below 10 s ({_short(slow[worst])} s)", slow[worst], 10.0, slow_seeds, above=False
        ),
    ]


def fig5b(claim: Claim, table: Table) -> Verdict:
    """Judge A-fig5b-collapse."""
    standard = seconds(table.points("publishers", "standard", "complex", TIME))
    delayed = seconds(table.points("publishers", "delayed", "complex", TIME))
    load = table.points("publishers", "standard", "complex", "utilisation_max")
    worked_off = table.points("publishers", "standard", "complex", "worked_off_ratio")
    watched = [seconds(table.points(f"collapse-x{n}", "standard", "complex", TIME)) for n in (1, 2)]
    readings = {name: seconds(table.points(name, "standard", "complex", TIME)) for name in READINGS}
    growth = last(standard) / standard[COLLAPSE_FROM]
    doubled = ", ".join(
        f"{_short(watched[0][x])} s becomes {_short(watched[1][x])} s at {x:g}" for x in watched[1]
    )
    is_steady = all(watched[1][x] >= watched[0][x] for x in watched[1])
    trend = "it does not come down" if is_steady else "part of it is a transient"
    others = "; ".join(f"{READINGS[name]}: {_line(points)}" for name, points in readings.items() if points)
    conditions = fig5b_conditions(table, "publishers") or []
    return judge_by(
        claim,
        conditions,
        readings=read_otherwise(READINGS, lambda key: fig5b_conditions(table, key)),
        measured={
            **flat("standard, s", standard),
            **flat("delayed, s", delayed),
            **flat("proxy, s", seconds(table.points("publishers", "proxy", "complex", TIME))),
            "standard at the most / at 100": growth,
            **flat("busiest broker's load, standard", load),
            **flat("time to work everything off / time of the run", worked_off),
            **{k: v for n in (1, 2) for k, v in flat(f"standard watched x{n}, s", watched[n - 1]).items()},
            **{
                k: v
                for name in READINGS
                for k, v in flat(f"standard, {READINGS[name]}, s", readings[name]).items()
            },
        },
        evidence=(
            f"Standard rebuilds in {_line(standard)} publishers, {growth:.1f} times from 100 to the most; "
            f"delayed needs {max(delayed.values()):.2f} s at most. Standard is overloaded wherever the "
            f"backlog takes longer than the run to work off ({_line(worked_off, ' times')}): each move costs "
            "the root an advertisement and its withdrawal, and a subscription and its withdrawal from every "
            f"subtree with a subscriber. Watched twice as long, {doubled}: {trend}."
        ),
        cause=(
            "The load: a network that still keeps up at 100 publishers needs fewer moves or cheaper ones. "
            f"Standard's times under the other readings: {others}."
        ),
    )


def _line(points: Points, unit: str = " s") -> str:
    """A line's values for a sentence."""
    return ", ".join(f"{_short(value)}{unit} at {x:g}" for x, value in points.items())


def _short(value: float) -> str:
    """Three digits or, above a thousand, whole ones."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
