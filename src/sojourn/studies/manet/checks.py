"""The claims of paper 004 on delivery, policy and proximity, as conditions with the ledger's numbers.

Every figure in the evidence comes from the runs that are judged. What the runs isolate is stated as the
cause; what they only agree with is worded as a conjecture.
"""

import math

import numpy as np

from sojourn.sim.manet.scenario import SCHEMES, Manet
from sojourn.studies.cited import Cited, Told, cited_as, half, said, select, text, whole
from sojourn.studies.cited_points import asked
from sojourn.studies.cited_points import table as as_table
from sojourn.studies.claims import Claim, Margin, Number, Reading, Verdict, judge, named
from sojourn.studies.conditions import Condition, broken, judge_by, read_otherwise
from sojourn.studies.manet.grid import SILENCE
from sojourn.studies.manet.parameters import MAPPED, NEAREST, OURS_CHANGES, READINGS, SCENARIOS, SIX
from sojourn.studies.manet.readings import AODV, GPSR, NO_MAP, OURS, Lines, apart, names, paired
from sojourn.studies.manet.table import Points, Table
from sojourn.studies.means import first, flat, last, ratios
from sojourn.studies.statistics import student
from sojourn.studies.wording import span

Numbers = dict[str, Number | Told]
DUE = ("due_attended", "due_alone")
GOT = ("got_attended", "got_alone")


def by_scheme(scenario: str, given: dict[str, Points]) -> dict[str, Number]:
    """Lines as named numbers, for a verdict's record."""
    measured: dict[str, Number] = {}
    for scheme, points in given.items():
        measured |= flat(f"{scenario}, {scheme}", points)
    return measured


def shown(not_so: list[str], most: int = 4) -> str:
    """What is not so, as a sentence; nothing where all is."""
    more = f"; and {len(not_so) - most} more" if len(not_so) > most else ""
    return f" Not so: {'; '.join(not_so[:most])}{more}." if not_so else ""


def _when(table: Table, experiment: str, scheme: str, measured: Numbers, *, present: bool) -> str:
    """Delivery of what was published while somebody was within K of its home, or while nobody was."""
    at = slice(0, 1) if present else slice(1, 2)
    found = table.share(experiment, scheme, GOT[at], DUE[at])
    if np.isnan(found):
        return "nothing due"
    name = "somebody" if present else "nobody"
    measured[f"{experiment}, {scheme}, delivered with {name} within K"] = found
    return f"{found:.3f}"


def city(table: Table, measured: Numbers) -> str:
    """How much of each map is void, and how many pairs of nodes had a path, as the runs measured it."""
    parts = []
    for scenario in SCENARIOS:
        void_, paths = (table.mean(scenario, "b-gpsr", name) for name in ("void", "paths"))
        measured |= {f"{scenario}, void share of the map": void_, f"{scenario}, pairs with a path": paths}
        parts.append(f"{scenario} {void_:.0%} and {paths:.1%}")
    return f" Share of the square beyond K of a road, and of pairs with a path: {', '.join(parts)}."


# ------------------------------------------------------------------------------ without a map


def void_conditions(table: Table, reading: str) -> list[Condition]:
    """Without a map, below half of the delivery with one, at every speed of both scenarios."""
    given = Lines(table, reading)
    found = []
    for scenario in SCENARIOS:
        delivery = given.lines(scenario, "delivery_ratio")
        for bare in NO_MAP:
            for x, share in ratios(delivery[bare], delivery[f"{bare}-map"]).items():
                seeds = paired(
                    given.seeds(scenario, bare, "delivery_ratio", x),
                    given.seeds(scenario, f"{bare}-map", "delivery_ratio", x),
                )
                what = f"{scenario}, {bare} at {x:g} m/s, {share:.2f} of that with a map"
                found.append(Condition(what, share, 0.5, seeds, above=False))
    return found


def void(claim: Claim, table: Table) -> Verdict:
    """Judge E-void."""
    measured: Numbers = {}
    parts, homes = [], []
    for scenario in SCENARIOS:
        delivery = Lines(table, OURS).lines(scenario, "delivery_ratio")
        measured |= by_scheme(scenario, delivery)
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
    conditions = void_conditions(table, OURS)
    where = city(table, measured)
    return judge_by(
        claim,
        conditions,
        measured=measured,
        readings=read_otherwise(names(), lambda key: void_conditions(table, key)),
        evidence=f"Delivery without a map over that with one: {', '.join(parts)}."
        + shown(broken(conditions))
        + where
        + f" Without a map somebody is within K of a topic's place for fewer: {'; '.join(homes)}.",
        cause="Events that were due while somebody was within K of their topic's place were told apart from "
        f"the others: {'; '.join(homes)}. What is delivered without a map depends on that; how many topics "
        "have such a place is the map's doing, which the paper does not give.",
    )


# ------------------------------------------------------------------------------ the best of six


def _rivals(given: Lines) -> list[tuple[str, str, float, list[float]]]:
    """By setting: its name, the best scheme, and how far B-GPSR(map) lies ahead of the best other one."""
    found = []
    for scenario in SCENARIOS:
        delivery = given.lines(scenario, "delivery_ratio")
        for x in delivery["b-gpsr-map"]:
            others = [name for name in SIX if name != "b-gpsr-map"]
            rival = max(others, key=lambda name: delivery[name][x])
            ahead = delivery["b-gpsr-map"][x] - delivery[rival][x]
            seeds = apart(
                given.seeds(scenario, "b-gpsr-map", "delivery_ratio", x),
                given.seeds(scenario, rival, "delivery_ratio", x),
            )
            best = "b-gpsr-map" if ahead > 0 else rival
            found.append((f"{scenario} at {x:g}", best, ahead, seeds))
    return found


def _best(given: Lines) -> tuple[dict[str, int], int, Margin]:
    """Settings that each scheme wins, how many of them are ties, and the margin of the majority.

    Where the leader's lead is within its interval the setting is a tie, and may be anybody's: so the share of
    ties is what the count of wins is uncertain by.
    """
    wins: dict[str, int] = {}
    ties = 0
    settings = _rivals(given)
    for name, best, ahead, seeds in settings:
        wins[best] = wins.get(best, 0) + 1
        margin = Condition(name, ahead, 0.0, seeds).margin
        ties += margin.within or margin.half is None
    share = wins.get("b-gpsr-map", 0) / len(settings)
    of = "share of settings in which B-GPSR(map) is best, above a half; its interval are the ties"
    return wins, ties, Margin(of=of, value=share - 0.5, half=ties / len(settings))


def _told(table: Table, wins: dict[str, int], ties: int) -> Numbers:
    """How many settings there are, are ties, and are won by whom, with the queries that count them."""
    given = Lines(table, OURS)
    rows, used = [], list[float]()
    for scenario in SCENARIOS:
        delivery = given.lines(scenario, "delivery_ratio")
        for x in delivery["b-gpsr-map"]:
            row = {name.replace("-", "_"): delivery[name][x] for name in SIX}
            rival = max((name for name in SIX if name != "b-gpsr-map"), key=lambda name: delivery[name][x])
            used += row.values()
            rows.append(row | {"half": _half_apart(scenario, x, "b-gpsr-map", rival, given)})
    settings, first_, others = as_table(rows), "b_gpsr_map", [name.replace("-", "_") for name in SIX]
    others.remove(first_)
    most = f"greatest({', '.join(others)})"
    won = {"b-gpsr-map": f"{first_} > {most}"}
    for at, name in enumerate(others):
        earlier = "".join(f" AND {each} < {most}" for each in others[:at])
        won[name.replace("_", "-")] = f"{first_} <= {most} AND {name} = {most}{earlier}"
    tied = f"coalesce(abs({first_} - {most}) <= half, true)"

    def count(which: str, value: int) -> Told:
        return whole(asked(f"count_if({which})", settings, value, used))

    return {
        "settings": count("true", len(rows)),
        "settings in which the best two are within their interval": count(tied, ties),
        **{f"best: {name}": count(won[name], times) for name, times in wins.items()},
    }


def _half_apart(scenario: str, x: float, one: str, other: str, given: Lines) -> float:
    """Half the interval of how far one scheme lies ahead of another, seed by seed, to be asked by a query."""
    ahead = " - ".join(f"max(delivery_ratio) FILTER (WHERE series = {text(name)})" for name in (one, other))
    where = f"experiment = {text(scenario)} AND x = {said(x)} AND error IS NULL GROUP BY seed"
    seeds = given.seeds(scenario, one, "delivery_ratio", x)
    factor = half("ahead", student(max(2, len(seeds))))
    return Cited(math.nan, select(factor, select(f"{ahead} AS ahead", f"runs WHERE {where}")))


def _ranking(wins: dict[str, int]) -> str:
    return ", ".join(f"{SCHEMES[name].title} in {count}" for name, count in sorted(wins.items()))


def _majority(wins: dict[str, int]) -> bool:
    return 2 * wins.get("b-gpsr-map", 0) > sum(wins.values())


def _best_otherwise(table: Table) -> list[Reading]:
    found = []
    for key, name in names().items():
        try:
            wins, ties, margin = _best(Lines(table, key))
        except KeyError:
            continue
        tie = ", a tie" if margin.within else ""
        note = f"best of {sum(wins.values())} settings: {_ranking(wins)}; {ties} ties{tie}"
        found.append(Reading(name=name, verdict=named(holds=_majority(wins)), note=note))
    return found


def best_delivery(claim: Claim, table: Table) -> Verdict:
    """B-GPSR with a map has the best delivery of the six in more than half of the settings."""
    measured: Numbers = {}
    for scenario in SCENARIOS:
        measured |= by_scheme(scenario, Lines(table, OURS).lines(scenario, "delivery_ratio"))
    wins, ties, margin = _best(Lines(table, OURS))
    settings = sum(wins.values())
    gaps = "; ".join(
        f"{scenario} B-GPSR(map) {table.mean(scenario, 'b-gpsr-map', 'delivery_ratio'):.3f}, R-GPSR(map) "
        f"{table.mean(scenario, 'r-gpsr-map', 'delivery_ratio'):.3f}, best AODV "
        f"{max(table.mean(scenario, name, 'delivery_ratio') for name in AODV):.3f}"
        for scenario in SCENARIOS
    )
    return judge(
        claim,
        holds=_majority(wins),
        measured={
            **measured,
            **_told(table, wins, ties),
        },
        margin=margin,
        readings=_best_otherwise(table),
        evidence=f"Of {settings} settings the best delivery has {_ranking(wins)}; in {ties} of them the lead "
        f"is within its interval, or there is none. Means over speeds: {gaps}.",
    )


# ------------------------------------------------------------------------------ speed


def sensitive_conditions(table: Table, reading: str) -> list[Condition]:
    """R-GPSR with a map loses more delivery from the slowest to the fastest than B-GPSR with one."""
    given = Lines(table, reading)
    found = []
    for scenario in SCENARIOS:
        delivery = given.lines(scenario, "delivery_ratio")
        lost = {scheme: first(delivery[scheme]) - last(delivery[scheme]) for scheme in MAPPED}
        ends = min(delivery["b-gpsr-map"]), max(delivery["b-gpsr-map"])
        slow, fast = (
            {scheme: given.seeds(scenario, scheme, "delivery_ratio", x) for scheme in MAPPED} for x in ends
        )
        by_r, by_b = (apart(slow[scheme], fast[scheme]) for scheme in MAPPED)
        seeds = [r - b for r, b in zip(by_r, by_b, strict=False)]
        what = f"{scenario}: R loses {lost['r-gpsr-map']:+.3f}, B {lost['b-gpsr-map']:+.3f}"
        found.append(Condition(what, lost["r-gpsr-map"] - lost["b-gpsr-map"], 0.0, seeds))
    return found


def rendezvous_sensitive(claim: Claim, table: Table) -> Verdict:
    """Judge E-rendezvous-sensitive."""
    measured: Numbers = {}
    ages = []
    for scenario in SCENARIOS:
        age = {scheme: table.mean(scenario, scheme, "age_s") for scheme in MAPPED}
        for scheme in MAPPED:
            measured[f"{scenario}, {scheme}, age of subscriptions used, s"] = age[scheme]
            measured |= flat(f"{scenario}, {scheme}", table.line(scenario, scheme, "delivery_ratio"))
        ages.append(f"{age['r-gpsr-map']:.2f} and {age['b-gpsr-map']:.2f} s ({scenario})")
    conditions = sensitive_conditions(table, OURS)
    measured |= {f"{c.what.partition(':')[0]}, R's loss less B's": c.value for c in conditions}
    return judge_by(
        claim,
        conditions,
        measured=measured,
        readings=read_otherwise(names(), lambda key: sensitive_conditions(table, key)),
        evidence="Delivery lost from the slowest to the fastest speed: "
        f"{'; '.join(condition.what for condition in conditions)}. The places by "
        f"which events were sent were known for {', '.join(ages)} with R and with B.",
        cause=f"The places that a publisher sends by are older than those of a broker, as the paper expects "
        f"({', '.join(ages)}): where R loses no more, that age decides less than the way by the home does.",
    )


# ------------------------------------------------------------------------------ policy and proximity


def policy(claim: Claim, table: Table) -> Verdict:
    """Nothing reaches anybody against topic, content or policy; silent subscriptions run out in time."""
    unauthorised, delivered = (whole(table.sum_of(name)) for name in ("unauthorised", "delivered"))
    stale = table.column("stale_s", SILENCE)
    sent = whole(table.sum_of("stale_sent", SILENCE))
    repaired = {name for name in SCHEMES if SCHEMES[name].repair}
    limits = table.runs[table.runs["experiment"].str.contains(SILENCE, regex=False)]["series"].map(
        lambda name: OURS_CHANGES["soft_state_s"] if name in repaired else Manet().soft_state_s
    )
    ours, plain = said(OURS_CHANGES["soft_state_s"]), said(Manet().soft_state_s)
    limit = f"CASE WHEN series IN ({', '.join(map(text, sorted(repaired)))}) THEN {ours} ELSE {plain} END"
    passed = float((stale > limits[stale.index]).sum())
    late = whole(table.over_all(f"count_if(stale_s > {limit})", passed, SILENCE))
    return judge(
        claim,
        holds=unauthorised.value == 0 and late.value == 0 and int(sent.value) > 0,
        measured={
            "deliveries": delivered,
            "against topic, content or policy": unauthorised,
            "events sent to silent subscribers": sent,
            "oldest subscription used, s": table.over_all("max(stale_s)", float(stale.max()), SILENCE),
            "runs that used one past its time": late,
        },
        evidence=f"Of {delivered.value:,} deliveries {unauthorised.value} were against topic, content "
        f"filter or policy. A third of the subscribers fell silent in some runs: {sent.value} events were "
        f"still sent to them, by subscriptions no older than {stale.max():.2f} s; the timeout is "
        f"{Manet().soft_state_s:g} s, with repair {OURS_CHANGES['soft_state_s']:g} s. No "
        "message carries state from one home node to the next; there is none for it.",
    )


def proximity_conditions(table: Table) -> list[Condition]:
    """Delivery with proximity selection at least that with the nearest node alone, over the same speeds."""
    found = []
    near, alone = Lines(table, OURS), Lines(table, NEAREST)
    for scenario in SCENARIOS:
        for scheme in MAPPED:
            speeds = alone.lines(scenario, "delivery_ratio")[scheme]
            with_, without = (
                {x: given.seeds(scenario, scheme, "delivery_ratio", x) for x in speeds}
                for given in (near, alone)
            )
            means = [
                sum(sum(row.values()) / len(row) for row in rows.values()) / len(rows)
                for rows in (with_, without)
            ]
            pairs = [apart(with_[x], without[x]) for x in speeds]
            seeds = [sum(column) / len(column) for column in zip(*pairs, strict=False)]
            what = f"{scenario}, {scheme}: {means[0]:.3f} against {means[1]:.3f}"
            lines = [given.lines(scenario, "delivery_ratio")[scheme] for given in (near, alone)]
            one, other = (sum(line[x] for x in speeds) / len(speeds) for line in lines)
            gain = cited_as(means[0] - means[1], one - other)
            found.append(Condition(what, gain, 0.0, seeds, equal=True))
    return found


def proximity(claim: Claim, table: Table) -> Verdict:
    """Judge E-proximity: delivery no worse, and no duplicates in either."""
    measured: Numbers = {}
    conditions = proximity_conditions(table)
    whens = []
    for scenario in SCENARIOS:
        for scheme in MAPPED:
            absent = table.share(scenario, scheme, DUE[1:], DUE)
            measured[f"{scenario}, {scheme}, due with nobody within K"] = absent
            present, lonely = (
                " against ".join(
                    _when(table, name, scheme, measured, present=somebody)
                    for name in (scenario, scenario + NEAREST)
                )
                for somebody in (True, False)
            )
            rest = f", and for the {absent:.0%} due while nobody was, {lonely}" if absent else " (always so)"
            whens.append(f"{scenario}, {scheme}: {present}{rest}")
    duplicates, copies, delivered = (
        whole(table.sum_of(name)) for name in ("duplicates", "copies", "delivered")
    )
    measured |= {condition.what.partition(":")[0] + ", gain": condition.value for condition in conditions}
    measured |= {"duplicates": duplicates, "copies that subscribers held back": copies}
    return judge_by(
        claim,
        conditions,
        also=duplicates.value == 0,
        measured=measured,
        evidence="Mean delivery with proximity selection and with the nearest node alone: "
        f"{'; '.join(condition.what for condition in conditions)}. "
        f"{duplicates.value} duplicates reached an application; subscribers held back {copies.value} copies "
        f"beside {delivered.value:,} deliveries, made where an acknowledgement was lost and a packet went "
        "two ways."
        + shown(broken(conditions))
        + f" While somebody was within K of the home, delivery was {'; '.join(whens)}. In both, a packet "
        "that has walked round its void is dropped (section 3.1), and the nearest node within radio range "
        "of a place acts for it.",
        cause=f"Events due while somebody was within K of the home were told apart: {'; '.join(whens)}.",
    )


assert set(READINGS[NEAREST].schemes) == set(GPSR)
