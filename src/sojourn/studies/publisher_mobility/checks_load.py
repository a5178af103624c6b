"""The claims on Figures 5(a) and 5(b): what routing computations do to the standard protocol.

The verdict rests on the study's own reading of the paper alone. Because these two figures turn on things
that the paper leaves open, its other readings are measured too and stand in the evidence.
"""

from sojourn.studies.claims import Claim, Verdict, judge
from sojourn.studies.means import Points, Table, first, flat, last
from sojourn.studies.publisher_mobility.checks import TIME, seconds
from sojourn.studies.publisher_mobility.grid import FOUR

READINGS = {
    "speed-each-move": "a speed drawn anew at every move",
    "free-withdrawals": "withdrawals free",
    "both": "withdrawals free and a speed drawn at every move",
    "in-step": "all publishers crossing borders in step",
}


def fig5a(claim: Claim, table: Table) -> Verdict:
    """The fast class costs several times the time, and standard begins to grow."""
    fast = {protocol: table.points("publishers", protocol, "fast", TIME) for protocol in FOUR}
    none = table.points("publishers", "standard", "none", TIME)
    load = table.points("publishers", "standard", "fast", "utilisation_max")
    step = table.points("in-step", "standard", "fast", TIME)
    longer = last(fast["standard"]) / last(none)
    growth = {p: last(fast[p]) / first(fast[p]) for p in ("standard", "delayed", "prefetch-delayed")}
    is_flat = growth["delayed"] <= 1.25 and growth["prefetch-delayed"] <= 1.25
    return judge(
        claim,
        holds=longer >= 5 and growth["standard"] >= 1.5 and is_flat,
        measured={
            "standard fast / none at the most publishers": longer,
            **{f"{protocol} last / first": grown for protocol, grown in growth.items()},
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
            f"from queues, and the busiest broker works only {last(load):.0%} of the time. If all publishers "
            f"cross borders in step, queues do form, and standard takes {first(step):.0f} ms at the fewest "
            f"and {last(step):.0f} ms at the most publishers, {last(step) / last(none):.1f} times its time "
            "without computations."
        ),
    )


def fig5b(claim: Claim, table: Table) -> Verdict:
    """With the complex class standard collapses and delayed does not."""
    standard = seconds(table.points("publishers", "standard", "complex", TIME))
    delayed = seconds(table.points("publishers", "delayed", "complex", TIME))
    load = table.points("publishers", "standard", "complex", "utilisation_max")
    worked_off = table.points("publishers", "standard", "complex", "worked_off_ratio")
    watched = [seconds(table.points(f"collapse-x{n}", "standard", "complex", TIME)) for n in (1, 2)]
    readings = {name: seconds(table.points(name, "standard", "complex", TIME)) for name in READINGS}
    growth = last(standard) / standard[100.0]
    rarer, rarer_delayed = (
        seconds(table.points("speed-each-move", p, "complex", TIME)) for p in ("standard", "delayed")
    )
    rarer_growth = last(rarer) / rarer[100.0]
    rarer_holds = _collapses(rarer, rarer_growth, rarer_delayed)
    doubled = ", ".join(
        f"{_short(watched[0][x])} s becomes {_short(watched[1][x])} s at {x:g}" for x in watched[1]
    )
    is_steady = all(watched[1][x] >= watched[0][x] for x in watched[1])
    trend = "it does not come down" if is_steady else "part of it is a transient"
    others = "; ".join(
        f"{READINGS[name]}: {_line(points)}" for name, points in readings.items() if name != "speed-each-move"
    )
    return judge(
        claim,
        holds=_collapses(standard, growth, delayed),
        measured={
            **flat("standard, s", standard),
            **flat("delayed, s", delayed),
            **flat("proxy, s", seconds(table.points("publishers", "proxy", "complex", TIME))),
            "standard at the most / at 100": growth,
            "standard at the most / at 100, speed drawn at every move": rarer_growth,
            "the check holds with a speed drawn at every move": rarer_holds,
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
            f"subtree with a subscriber. Watched twice as long, {doubled}: {trend}. A network that still "
            "keeps up at 100 publishers needs fewer moves. With a speed drawn anew at every move, which "
            f"makes them four times rarer, standard takes {_line(rarer)}, {rarer_growth:.1f} times from 100 "
            f"to the most, and the check {'holds' if rarer_holds else 'does not hold'} on that reading. "
            f"Other readings of what the paper leaves open: {others}."
        ),
    )


def _collapses(standard: Points, growth: float, delayed: Points) -> bool:
    """The check of A-fig5b on one reading."""
    return last(standard) > 60 and growth >= 10 and max(delayed.values()) < 10


def _line(points: Points, unit: str = " s") -> str:
    """A line's values for a sentence."""
    return ", ".join(f"{_short(value)}{unit} at {x:g}" for x, value in points.items())


def _short(value: float) -> str:
    """Three digits or, above a thousand, whole ones."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
