"""The claims of paper 004, each judged by one small function that holds the numbers the ledger states."""

from collections.abc import Mapping

from sojourn.sim.manet_scenario import SCHEMES, Manet
from sojourn.studies.claims import Claim, Number, Verdict, judge
from sojourn.studies.manet.grid import NEAREST_NODE, NO_HELLO, SHORT_WALKS, SILENCE
from sojourn.studies.manet.parameters import NEAREST, OURS_CHANGES, SCENARIOS, SHORT_TTL, SIX
from sojourn.studies.manet.table import Points, Table
from sojourn.studies.means import first, flat, last, ratios

AODV = tuple(name for name in SIX if not SCHEMES[name].geographic)
GPSR = tuple(name for name in SIX if SCHEMES[name].geographic)
NO_MAP = ("r-gpsr", "b-gpsr")


def _lines(table: Table, scenario: str, measure: str) -> dict[str, Points]:
    return {scheme: table.line(scenario, scheme, measure) for scheme in SIX}


def _named(scenario: str, lines: Mapping[str, Points]) -> dict[str, Number]:
    measured: dict[str, Number] = {}
    for scheme, points in lines.items():
        measured |= flat(f"{scenario}, {scheme}", points)
    return measured


def void(claim: Claim, table: Table) -> Verdict:
    """Without a map, below half of the delivery with one, at every speed of both scenarios."""
    measured: dict[str, Number] = {}
    broken, parts = [], []
    for scenario in SCENARIOS:
        lines = _lines(table, scenario, "delivery_ratio")
        for bare in NO_MAP:
            share = ratios(lines[bare], lines[f"{bare}-map"])
            measured |= flat(f"{scenario}, {bare} over {bare}-map", share)
            broken += [
                f"{scenario}, {bare} at {x:g} ({value:.2f})" for x, value in share.items() if value >= 0.5
            ]
            parts.append(f"{min(share.values()):.2f} to {max(share.values()):.2f} ({scenario}, {bare})")
        measured |= _named(scenario, lines)
        measured |= {
            f"{scenario}, {scheme}, short walks": table.mean(scenario + SHORT_WALKS, scheme, "delivery_ratio")
            for scheme in GPSR
        }
    return judge(
        claim,
        holds=not broken,
        measured=measured,
        evidence=f"Delivery without a map over that with one: {', '.join(parts)}."
        + (f" Not below half: {'; '.join(broken)}." if broken else "")
        + " It is the share of topics whose place somebody is near: with our maps 14% of the ground by the "
        "freeway and half of it in the city.",
    )


def best_delivery(claim: Claim, table: Table) -> Verdict:
    """B-GPSR with a map has the best delivery of the six in more than half of the settings."""
    measured: dict[str, Number] = {}
    wins: dict[str, int] = {}
    settings = 0
    for scenario in SCENARIOS:
        lines = _lines(table, scenario, "delivery_ratio")
        measured |= _named(scenario, lines)
        for x in lines["b-gpsr-map"]:
            best = max(SIX, key=lambda scheme: lines[scheme][x])
            wins[best] = wins.get(best, 0) + 1
            settings += 1
    won = wins.get("b-gpsr-map", 0)
    ranking = ", ".join(f"{SCHEMES[name].title} in {count}" for name, count in sorted(wins.items()))
    gaps = "; ".join(
        f"{scenario} B-GPSR(map) {table.mean(scenario, 'b-gpsr-map', 'delivery_ratio'):.3f}, R-GPSR(map) "
        f"{table.mean(scenario, 'r-gpsr-map', 'delivery_ratio'):.3f}, best AODV "
        f"{max(table.mean(scenario, name, 'delivery_ratio') for name in AODV):.3f}"
        for scenario in SCENARIOS
    )
    return judge(
        claim,
        holds=won > settings / 2,
        measured={**measured, "settings": settings, **{f"best: {name}": n for name, n in wins.items()}},
        evidence=f"Of {settings} settings the best delivery has {ranking}. Means over speeds: {gaps}.",
    )


def rendezvous_sensitive(claim: Claim, table: Table) -> Verdict:
    """R-GPSR with a map loses more delivery from the slowest to the fastest than B-GPSR with one."""
    measured: dict[str, Number] = {}
    holds, parts = [], []
    for scenario in SCENARIOS:
        losses = {}
        for scheme in NEAREST:
            line = table.line(scenario, scheme, "delivery_ratio")
            losses[scheme] = first(line) - last(line)
            measured[f"{scenario}, {scheme}, lost"] = losses[scheme]
            measured |= flat(f"{scenario}, {scheme}", line)
        holds.append(losses["r-gpsr-map"] > losses["b-gpsr-map"])
        parts.append(f"{scenario}: R {losses['r-gpsr-map']:+.3f}, B {losses['b-gpsr-map']:+.3f}")
    return judge(
        claim,
        holds=all(holds),
        measured=measured,
        evidence=f"Delivery lost from the slowest to the fastest speed: {'; '.join(parts)}. The difference "
        "is small: a publisher's list is about a second older than what a broker knows, since advertisements "
        "are as frequent as subscriptions here.",
    )


def delay(claim: Claim, table: Table) -> Verdict:
    """The orderings of mean delays at every speed; see the parts below."""
    measured: dict[str, Number] = {}
    broken: list[str] = []
    for scenario in SCENARIOS:
        lines = _lines(table, scenario, "delay_ms")
        measured |= _named(scenario, lines)
        measured |= _named(f"{scenario}, median", _lines(table, scenario, "delay_median_ms"))
        for x in lines["b-gpsr-map"]:
            at = {scheme: lines[scheme].get(x, float("nan")) for scheme in SIX}
            others = [at[name] for name in SIX if name not in NO_MAP]
            if not min(at[name] for name in NO_MAP) > max(others):
                broken.append(f"{scenario} at {x:g}: GPSR without a map is not the slowest")
            if not at["b-gpsr-map"] < min(at[name] for name in GPSR if name != "b-gpsr-map"):
                broken.append(f"{scenario} at {x:g}: B-GPSR(map) is not the fastest over GPSR")
        measured |= {
            f"{scenario}, {scheme}, short walks": table.mean(scenario + SHORT_WALKS, scheme, "delay_ms")
            for scheme in GPSR
        }
        rises = {scheme: last(line) - first(line) for scheme, line in lines.items()}
        measured |= {f"{scenario}, rise of {scheme}": rise for scheme, rise in rises.items()}
        if max(rises, key=lambda name: rises[name]) not in ("r-gpsr", "r-gpsr-map"):
            broken.append(f"{scenario}: {max(rises, key=rises.__getitem__)} rises most with speed")
    shown = "; ".join(broken[:4]) + (f"; and {len(broken) - 4} more" if len(broken) > 4 else "")
    reason = (
        " Packets for a void walk round it and are lost, so they have no delay; they slow down those that "
        "are delivered, by as much as they may walk. R-GPSR sends straight to subscribers, B-GPSR by way of "
        "the home, which takes about twice the hops; the age of a list is no part of an event's delay. Over "
        "AODV a packet waits while its route is sought, for seconds where no path exists yet."
    )
    walks = "; ".join(
        f"{scenario} "
        + ", ".join(f"{name} {measured[f'{scenario}, {name}, short walks']:.0f} ms" for name in GPSR)
        for scenario in SCENARIOS
    )
    reason += f" With {SHORT_TTL} hops instead of {Manet().ttl}, means over speeds: {walks}."
    return judge(
        claim,
        holds=not broken,
        measured=measured,
        evidence="All orderings hold." if not broken else f"Not so: {shown}.{reason}",
    )


def load(claim: Claim, table: Table) -> Verdict:
    """Every GPSR scheme above every AODV one, and brokers below rendezvous, by means over speeds."""
    measured: dict[str, Number] = {}
    broken, parts = [], []
    for scenario in SCENARIOS:
        means = {scheme: table.mean(scenario, scheme, "load_bytes_s") for scheme in SIX}
        beacons = {scheme: table.mean(scenario, scheme, "control_bytes_s") for scheme in SIX}
        measured |= {f"{scenario}, {scheme}": value for scheme, value in means.items()}
        measured |= {f"{scenario}, {scheme}, routing messages": value for scheme, value in beacons.items()}
        measured |= {
            f"{scenario}, {scheme} without hello": table.mean(scenario + NO_HELLO, scheme, "load_bytes_s")
            for scheme in AODV
        }
        for low in AODV:
            broken += [f"{scenario}: {high} not above {low}" for high in GPSR if means[high] <= means[low]]
        for kind in ("aodv", "gpsr", "gpsr-map"):
            if means[f"b-{kind}"] >= means[f"r-{kind}"]:
                broken.append(f"{scenario}: b-{kind} not below r-{kind}")
        parts.append(f"{scenario}: " + ", ".join(f"{name} {value:.0f}" for name, value in means.items()))
        messages = ", ".join(f"{name} {beacons[name]:.0f}" for name in ("b-aodv", "b-gpsr-map"))
        parts.append(f"of which routing messages {messages}")
    return judge(
        claim,
        holds=not broken,
        measured=measured,
        evidence=f"Bytes a node and second: {'; '.join(parts)}."
        + (f" Not so: {'; '.join(broken)}." if broken else "")
        + " Beacons are not what GPSR costs here, since every packet counts as one: it is packets that walk "
        "round voids. A broker's publisher sends whole events to homes that may be out of reach, and those "
        "walk; a rendezvous' publisher that got no list sends nothing. AODV's floods cost more than beacons "
        "would.",
    )


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
    worse, parts = [], []
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
        + (
            f" Not better: {', '.join(worse)}. There, nobody is within K of a home at one time in ten, and "
            "then nobody acts for it; the nearest node in radio range does."
            if worse
            else ""
        ),
    )
