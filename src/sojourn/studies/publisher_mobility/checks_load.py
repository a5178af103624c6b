"""The claims on Figures 5(a) and 5(b): what routing computations do to the standard protocol.

The verdict rests on the study's own reading of the paper alone. Because these two figures turn on things
that the paper leaves open, its other readings are measured too and stand in the evidence.
"""

from sojourn.studies.claims import Claim, Verdict, judge
from sojourn.studies.publisher_mobility.checks import TIME, seconds
from sojourn.studies.publisher_mobility.grid import FOUR
from sojourn.studies.publisher_mobility.table import Points, Table, first, flat, last

READINGS = {
    "speed-each-move": "a speed drawn anew at every move",
    "free-withdrawals": "withdrawals free",
    "both": "both of these",
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
            "computations; "
            f"from fewest to most publishers its time grows {growth['standard']:.2f} times, delayed's "
            f"{growth['delayed']:.2f} and prefetch-delayed's {growth['prefetch-delayed']:.2f} times. A "
            "path of seven "
            "brokers costs 14 ms for the advertisement and 28 ms for the subscriptions that come back, on "
            "top of "
            f"{last(none):.0f} ms of links; more would have to come from queues, and the busiest broker "
            "works only "
            f"{last(load):.0%} of the time. If all publishers cross borders in step, queues do form, and "
            "standard "
            f"takes {first(step):.0f} ms at the fewest and {last(step):.0f} ms at the most publishers, "
            f"{last(step) / last(none):.1f} times its time without computations."
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
    doubled = ", ".join(f"{watched[0][x]:.3g} s becomes {watched[1][x]:.3g} s at {x:g}" for x in watched[1])
    others = "; ".join(f"{READINGS[name]}: {_line(points)}" for name, points in readings.items())
    return judge(
        claim,
        holds=last(standard) > 60 and growth >= 10 and max(delayed.values()) < 10,
        measured={
            **flat("standard, s", standard),
            **flat("delayed, s", delayed),
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
            "delayed "
            f"needs {max(delayed.values()):.2f} s at most. Watched twice as long, {doubled}: what grows "
            "with the time "
            f"watched is overload, no transient. The busiest broker is busy {_line(load, '.0%', '')}, and "
            "the backlog "
            f"takes {_line(worked_off, '.1f', ' times the run')} to work off, so standard has collapsed "
            "wherever that "
            f"is well above 1. Other readings of what the paper leaves open: {others}."
        ),
    )


def _line(points: Points, form: str = ".3g", unit: str = " s") -> str:
    """A line's values for a sentence."""
    return ", ".join(f"{value:{form}}{unit} at {x:g}" for x, value in points.items())
