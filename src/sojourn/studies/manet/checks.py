"""The claims of paper 004, each judged by one small function that holds the numbers the ledger states.

Every figure in the evidence comes from the runs that are judged. What the runs isolate is stated as the
cause; what they only agree with is worded as a conjecture.
"""

from collections.abc import Mapping

import numpy as np

from sojourn.sim.manet_scenario import SCHEMES, Manet
from sojourn.studies.claims import Claim, Number, Verdict, judge
from sojourn.studies.manet.grid import NEAREST_NODE, NO_HELLO, SILENCE
from sojourn.studies.manet.parameters import NEAREST, OURS_CHANGES, SCENARIOS, SIX
from sojourn.studies.manet.table import Points, Table
from sojourn.studies.manet.walks import lines, named, otherwise
from sojourn.studies.means import first, flat, last, ratios
from sojourn.studies.wording import span

AODV = tuple(name for name in SIX if not SCHEMES[name].geographic)
GPSR = tuple(name for name in SIX if SCHEMES[name].geographic)
NO_MAP = ("r-gpsr", "b-gpsr")
DUE = ("due_attended", "due_alone")
GOT = ("got_attended", "got_alone")
FLOODS = ("route request", "route reply", "route error")


def _named(scenario: str, given: Mapping[str, Points]) -> dict[str, Number]:
    measured: dict[str, Number] = {}
    for scheme, points in given.items():
        measured |= flat(f"{scenario}, {scheme}", points)
    return measured


def _shorter(table: Table, measure: str) -> dict[str, Number]:
    """What the shorter limit of hops comes to, as means over speeds."""
    return {
        f"{scenario}, {scheme}, short walks": table.mean(named(scenario, scheme, short=True), scheme, measure)
        for scenario in SCENARIOS
        for scheme in GPSR
    }


def _when(table: Table, experiment: str, scheme: str, measured: dict[str, Number], *, present: bool) -> str:
    """Delivery of what was published while somebody was within K of its home, or while nobody was."""
    at = slice(0, 1) if present else slice(1, 2)
    found = table.share(experiment, scheme, GOT[at], DUE[at])
    if np.isnan(found):
        return "nothing due"
    name = "somebody" if present else "nobody"
    measured[f"{experiment}, {scheme}, delivered with {name} within K"] = found
    return f"{found:.3f}"


# ------------------------------------------------------------------------------ delivery


def _not_void(table: Table, *, short: bool) -> list[str]:
    broken = []
    for scenario in SCENARIOS:
        delivery = lines(table, scenario, "delivery_ratio", short=short)
        for bare in NO_MAP:
            share = ratios(delivery[bare], delivery[f"{bare}-map"])
            broken += [
                f"{scenario}, {bare} at {x:g} ({value:.2f})" for x, value in share.items() if value >= 0.5
            ]
    return broken


def void(claim: Claim, table: Table) -> Verdict:
    """Without a map, below half of the delivery with one, at every speed of both scenarios."""
    measured: dict[str, Number] = _shorter(table, "delivery_ratio")
    parts, homes = [], []
    for scenario in SCENARIOS:
        delivery = lines(table, scenario, "delivery_ratio")
        measured |= _named(scenario, delivery)
        for bare in NO_MAP:
            share = ratios(delivery[bare], delivery[f"{bare}-map"])
            measured |= flat(f"{scenario}, {bare} over {bare}-map", share)
            parts.append(f"{span(share.values())} ({scenario}, {bare})")
        near = {name: table.share(scenario, name, DUE[:1], DUE) for name in ("b-gpsr", "b-gpsr-map")}
        measured |= {f"{scenario}, {name}, due with somebody near": value for name, value in near.items()}
        with_somebody, with_nobody = (
            _when(table, scenario, "b-gpsr", measured, present=somebody) for somebody in (True, False)
        )
        homes.append(
            f"{scenario} {near['b-gpsr']:.0%} instead of {near['b-gpsr-map']:.0%} of what was due, of which "
            f"B-GPSR delivered {with_somebody}, and {with_nobody} of the rest"
        )
    broken = _not_void(table, short=False)
    return judge(
        claim,
        holds=not broken,
        measured=measured,
        evidence=f"Delivery without a map over that with one: {', '.join(parts)}."
        + (f" Not below half: {'; '.join(broken)}." if broken else "")
        + f" Without a map somebody is within K of a topic's place for fewer: {'; '.join(homes)}."
        + otherwise(broken, _not_void(table, short=True)),
    )


def _winners(table: Table, *, short: bool) -> dict[str, int]:
    """In how many settings each scheme has the best delivery."""
    wins: dict[str, int] = {}
    for scenario in SCENARIOS:
        delivery = lines(table, scenario, "delivery_ratio", short=short)
        for x in delivery["b-gpsr-map"]:
            best = max(SIX, key=lambda scheme: delivery[scheme][x])
            wins[best] = wins.get(best, 0) + 1
    return wins


def _ranking(wins: dict[str, int]) -> str:
    return ", ".join(f"{SCHEMES[name].title} in {count}" for name, count in sorted(wins.items()))


def _not_best(wins: dict[str, int]) -> list[str]:
    return [] if 2 * wins.get("b-gpsr-map", 0) > sum(wins.values()) else [f"the best are {_ranking(wins)}"]


def best_delivery(claim: Claim, table: Table) -> Verdict:
    """B-GPSR with a map has the best delivery of the six in more than half of the settings."""
    measured: dict[str, Number] = _shorter(table, "delivery_ratio")
    for scenario in SCENARIOS:
        measured |= _named(scenario, lines(table, scenario, "delivery_ratio"))
    wins, short_wins = _winners(table, short=False), _winners(table, short=True)
    settings = sum(wins.values())
    gaps = "; ".join(
        f"{scenario} B-GPSR(map) {table.mean(scenario, 'b-gpsr-map', 'delivery_ratio'):.3f}, R-GPSR(map) "
        f"{table.mean(scenario, 'r-gpsr-map', 'delivery_ratio'):.3f}, best AODV "
        f"{max(table.mean(scenario, name, 'delivery_ratio') for name in AODV):.3f}"
        for scenario in SCENARIOS
    )
    return judge(
        claim,
        holds=not _not_best(wins),
        measured={
            **measured,
            "settings": settings,
            **{f"best: {name}": count for name, count in wins.items()},
            **{f"best with short walks: {name}": count for name, count in short_wins.items()},
        },
        evidence=f"Of {settings} settings the best delivery has {_ranking(wins)}. Means over speeds: {gaps}."
        + otherwise(_not_best(wins), _not_best(short_wins)),
    )


def _losses(table: Table, scenario: str, *, short: bool) -> dict[str, float]:
    """Delivery lost from the slowest speed to the fastest."""
    delivery = lines(table, scenario, "delivery_ratio", short=short)
    return {scheme: first(delivery[scheme]) - last(delivery[scheme]) for scheme in NEAREST}


def _not_sensitive(table: Table, *, short: bool) -> list[str]:
    losses = {scenario: _losses(table, scenario, short=short) for scenario in SCENARIOS}
    return [
        f"{scenario}, R {lost['r-gpsr-map']:+.3f}, B {lost['b-gpsr-map']:+.3f}"
        for scenario, lost in losses.items()
        if lost["r-gpsr-map"] <= lost["b-gpsr-map"]
    ]


def rendezvous_sensitive(claim: Claim, table: Table) -> Verdict:
    """R-GPSR with a map loses more delivery from the slowest to the fastest than B-GPSR with one."""
    measured: dict[str, Number] = {}
    parts, ages = [], []
    for scenario in SCENARIOS:
        lost = _losses(table, scenario, short=False)
        age = {scheme: table.mean(scenario, scheme, "age_s") for scheme in NEAREST}
        for scheme in NEAREST:
            measured[f"{scenario}, {scheme}, lost"] = lost[scheme]
            measured[f"{scenario}, {scheme}, age of subscriptions used, s"] = age[scheme]
            measured |= flat(f"{scenario}, {scheme}", table.line(scenario, scheme, "delivery_ratio"))
        parts.append(f"{scenario}: R {lost['r-gpsr-map']:+.3f}, B {lost['b-gpsr-map']:+.3f}")
        ages.append(f"{age['r-gpsr-map']:.2f} and {age['b-gpsr-map']:.2f} s ({scenario})")
    broken = _not_sensitive(table, short=False)
    return judge(
        claim,
        holds=not broken,
        measured=measured,
        evidence=f"Delivery lost from the slowest to the fastest speed: {'; '.join(parts)}. The places by "
        f"which events were sent were known for {', '.join(ages)} with R and with B."
        + otherwise(broken, _not_sensitive(table, short=True)),
    )


# ------------------------------------------------------------------------------ delay and load


def _delays_broken(table: Table, *, short: bool) -> list[str]:
    broken: list[str] = []
    for scenario in SCENARIOS:
        delays = lines(table, scenario, "delay_ms", short=short)
        for x in delays["b-gpsr-map"]:
            at = {scheme: delays[scheme].get(x, float("nan")) for scheme in SIX}
            others = [at[name] for name in SIX if name not in NO_MAP]
            if not min(at[name] for name in NO_MAP) > max(others):
                broken.append(f"{scenario} at {x:g}: GPSR without a map is not the slowest")
            if not at["b-gpsr-map"] < min(at[name] for name in GPSR if name != "b-gpsr-map"):
                broken.append(f"{scenario} at {x:g}: B-GPSR(map) is not the fastest over GPSR")
        rises = {scheme: last(line) - first(line) for scheme, line in delays.items()}
        most = max(rises, key=rises.__getitem__)
        if most not in ("r-gpsr", "r-gpsr-map"):
            broken.append(f"{scenario}: {most} rises most with speed")
    return broken


def _why_delays(table: Table, measured: dict[str, Number]) -> str:
    """What the runs tell of the delays: hops, walks, and waiting for routes."""
    hops, walks, waits = [], [], []
    for scenario in SCENARIOS:
        count = {scheme: table.mean(scenario, scheme, "hops") for scheme in SIX}
        measured |= {f"{scenario}, {scheme}, hops of a delivery": value for scheme, value in count.items()}
        hops.append(f"{count['b-gpsr-map']:.1f} and {count['r-gpsr-map']:.1f} ({scenario})")
        for scheme in NO_MAP:
            long, short = (
                table.mean(scenario, scheme, "delay_ms"),
                measured[f"{scenario}, {scheme}, short walks"],
            )
            walks.append(f"{scenario} {scheme} {long:.0f} and {short:.0f} ms")
        mean, median = (table.mean(scenario, "b-aodv", name) for name in ("delay_ms", "delay_median_ms"))
        waits.append(f"{median:.0f} and {mean:.0f} ms ({scenario})")
    return (
        f" An event took {', '.join(hops)} hops with B-GPSR(map), by way of the home, and with R-GPSR(map), "
        "straight; the age of a list is no part of an event's delay. Without a map, packets that walk round "
        "a void are lost and have no delay, but are in the way of others: mean delays with the long and the "
        f"short limit are {', '.join(walks)}. Median and mean with B-AODV are {', '.join(waits)}: few events "
        "wait long; for a route, we suppose."
    )


def delay(claim: Claim, table: Table) -> Verdict:
    """The orderings of mean delays at every speed; see the parts above."""
    measured: dict[str, Number] = _shorter(table, "delay_ms")
    for scenario in SCENARIOS:
        delays = lines(table, scenario, "delay_ms")
        measured |= _named(scenario, delays)
        measured |= _named(f"{scenario}, median", lines(table, scenario, "delay_median_ms"))
        measured |= {
            f"{scenario}, rise of {scheme}": last(line) - first(line) for scheme, line in delays.items()
        }
    broken = _delays_broken(table, short=False)
    shown = "; ".join(broken[:4]) + (f"; and {len(broken) - 4} more" if len(broken) > 4 else "")
    why = _why_delays(table, measured)
    return judge(
        claim,
        holds=not broken,
        measured=measured,
        evidence=("All orderings hold." if not broken else f"Not so: {shown}.")
        + why
        + otherwise(broken, _delays_broken(table, short=True)),
    )


def _loads_broken(table: Table, *, short: bool) -> list[str]:
    broken = []
    for scenario in SCENARIOS:
        means = {
            scheme: table.mean(named(scenario, scheme, short=short), scheme, "load_bytes_s") for scheme in SIX
        }
        for low in AODV:
            broken += [f"{scenario}: {high} not above {low}" for high in GPSR if means[high] <= means[low]]
        broken += [
            f"{scenario}: b-{kind} not below r-{kind}"
            for kind in ("aodv", "gpsr", "gpsr-map")
            if means[f"b-{kind}"] >= means[f"r-{kind}"]
        ]
    return broken


def _why_loads(table: Table, measured: dict[str, Number]) -> str:
    """What the load is made of: beacons and floods, and events on their way to homes."""
    parts = []
    for scenario in SCENARIOS:
        beacons = table.rate(scenario, "b-gpsr-map", ["beacon"])
        floods = table.rate(scenario, "b-aodv", FLOODS)
        homeward = {
            short: table.rate(named(scenario, "b-gpsr", short=short), "b-gpsr", ["event"])
            for short in (False, True)
        }
        measured |= {
            f"{scenario}, b-gpsr-map, beacons": beacons,
            f"{scenario}, b-aodv, requests, replies, errors": floods,
            f"{scenario}, b-gpsr, events to homes": homeward[False],
            f"{scenario}, b-gpsr, events to homes, short walks": homeward[True],
        }
        parts.append(
            f"{scenario}: beacons of B-GPSR(map) {beacons:.0f}, requests, replies and errors of B-AODV "
            f"{floods:.0f}; events on their way to homes with B-GPSR {homeward[False]:.0f}, with short walks "
            f"{homeward[True]:.0f}"
        )
    return (
        f" Of these, {'; '.join(parts)}. A node cannot send more than one beacon in {Manet().beacon_s:g} s, "
        "and every packet counts as one. A broker's publisher sends whole events towards homes, whoever is "
        "there; a rendezvous' publisher that got no list sends nothing: that this is why brokers do not come "
        "cheaper everywhere is a conjecture."
    )


def load(claim: Claim, table: Table) -> Verdict:
    """Every GPSR scheme above every AODV one, and brokers below rendezvous, by means over speeds."""
    measured: dict[str, Number] = _shorter(table, "load_bytes_s")
    parts = []
    for scenario in SCENARIOS:
        means = {scheme: table.mean(scenario, scheme, "load_bytes_s") for scheme in SIX}
        measured |= {f"{scenario}, {scheme}": value for scheme, value in means.items()}
        measured |= {
            f"{scenario}, {scheme}, routing messages": table.mean(scenario, scheme, "control_bytes_s")
            for scheme in SIX
        }
        measured |= {
            f"{scenario}, {scheme} without hello": table.mean(scenario + NO_HELLO, scheme, "load_bytes_s")
            for scheme in AODV
        }
        parts.append(f"{scenario}: " + ", ".join(f"{name} {value:.0f}" for name, value in means.items()))
    broken = _loads_broken(table, short=False)
    why = _why_loads(table, measured)
    return judge(
        claim,
        holds=not broken,
        measured=measured,
        evidence=f"Bytes a node and second: {'; '.join(parts)}."
        + (f" Not so: {'; '.join(broken)}." if broken else "")
        + why
        + otherwise(broken, _loads_broken(table, short=True)),
    )


# ------------------------------------------------------------------------------ policy and proximity


def policy(claim: Claim, table: Table) -> Verdict:
    """Nothing reaches anybody against topic, content or policy; silent subscriptions run out in time."""
    unauthorised = int(table.column("unauthorised").sum())
    delivered = int(table.column("delivered").sum())
    stale = table.column("stale_s", SILENCE)
    sent = int(table.column("stale_sent", SILENCE).sum())
    limits = table.runs[table.runs["experiment"].str.contains(SILENCE, regex=False)]["series"].map(
        lambda name: OURS_CHANGES["soft_state_s"] if SCHEMES[name].repair else Manet().soft_state_s
    )
    late = int((stale > limits[stale.index]).sum())
    return judge(
        claim,
        holds=unauthorised == 0 and late == 0 and sent > 0,
        measured={
            "deliveries": delivered,
            "against topic, content or policy": unauthorised,
            "events sent to silent subscribers": sent,
            "oldest subscription used, s": float(stale.max()),
            "runs that used one past its time": late,
        },
        evidence=f"Of {delivered:,} deliveries {unauthorised} were against topic, content filter or policy. "
        f"A third of the subscribers fell silent in some runs: {sent} events were still sent to them, by "
        f"subscriptions no older than {stale.max():.2f} s; the timeout is {Manet().soft_state_s:g} s, with "
        f"repair {OURS_CHANGES['soft_state_s']:g} s. No "
        "message carries state from one home node to the next; there is none for it.",
    )


def proximity(claim: Claim, table: Table) -> Verdict:
    """Delivery with proximity selection at least that without, and no duplicates in either."""
    measured: dict[str, Number] = {}
    worse, parts, whens = [], [], []
    for scenario in SCENARIOS:
        for scheme in NEAREST:
            near = table.mean(scenario, scheme, "delivery_ratio")
            alone = table.mean(scenario + NEAREST_NODE, scheme, "delivery_ratio")
            measured[f"{scenario}, {scheme}"] = near
            measured[f"{scenario}, {scheme}, nearest node"] = alone
            measured[f"{scenario}, {scheme}, load"] = table.mean(scenario, scheme, "load_bytes_s")
            measured[f"{scenario}, {scheme}, nearest node, load"] = table.mean(
                scenario + NEAREST_NODE, scheme, "load_bytes_s"
            )
            parts.append(f"{scenario}, {scheme}: {near:.3f} against {alone:.3f}")
            worse += [f"{scenario}, {scheme}"] if near < alone else []
            absent = table.share(scenario, scheme, DUE[1:], DUE)
            measured[f"{scenario}, {scheme}, due with nobody within K"] = absent
            present, lonely = (
                " against ".join(
                    _when(table, name, scheme, measured, present=somebody)
                    for name in (scenario, scenario + NEAREST_NODE)
                )
                for somebody in (True, False)
            )
            rest = f", and for the {absent:.0%} due while nobody was, {lonely}" if absent else " (always so)"
            whens.append(f"{scenario}, {scheme}: {present}{rest}")
    duplicates = int(table.column("duplicates").sum())
    copies, delivered = int(table.column("copies").sum()), int(table.column("delivered").sum())
    measured |= {"duplicates": duplicates, "copies that subscribers held back": copies}
    return judge(
        claim,
        holds=not worse and duplicates == 0,
        measured=measured,
        evidence=f"Mean delivery with proximity selection and with the nearest node: {'; '.join(parts)}. "
        f"{duplicates} duplicates reached an application; subscribers held back {copies} copies beside "
        f"{delivered:,} deliveries, made where an acknowledgement was lost and a packet went two ways."
        + (f" Not better: {', '.join(worse)}." if worse else "")
        + f" While somebody was within K of the home, delivery was {'; '.join(whens)}. Where nobody is "
        "within K, nobody acts for a home; the nearest node in radio range does, without the selection.",
    )
