"""The claims of paper 004 on delay and on load, as conditions with the ledger's numbers."""

from sojourn.sim.manet.scenario import Manet
from sojourn.studies.claims import Claim, Number, Verdict
from sojourn.studies.conditions import Condition, broken, judge_by, read_otherwise
from sojourn.studies.manet.checks import by_scheme, shown
from sojourn.studies.manet.parameters import NO_HELLO, SCENARIOS, SIX, WAITS
from sojourn.studies.manet.readings import AODV, GPSR, NO_MAP, OURS, Lines, apart, names, paired
from sojourn.studies.manet.table import Table
from sojourn.studies.means import first, last, ratio

FLOODS = ("route request", "route reply", "route error")


def _slower(given: Lines, scenario: str, x: float, slow: str, fast: str) -> Condition:
    """That one scheme has the longer delay at a speed."""
    delays = given.lines(scenario, "delay_ms")
    seeds = paired(given.seeds(scenario, slow, "delay_ms", x), given.seeds(scenario, fast, "delay_ms", x))
    slow_ms, fast_ms = (delays[name].get(x, float("nan")) for name in (slow, fast))
    what = f"{scenario} at {x:g}: {slow} ({slow_ms:.0f} ms) slower than {fast} ({fast_ms:.0f} ms)"
    return Condition(what, ratio(slow_ms, fast_ms), 1.0, seeds)


def delay_conditions(table: Table, reading: str) -> list[Condition]:
    """Orderings of mean delays at every speed, and which scheme's delay rises most."""
    given = Lines(table, reading)
    found: list[Condition] = []
    for scenario in SCENARIOS:
        delays = given.lines(scenario, "delay_ms")
        mapped = [name for name in SIX if name not in NO_MAP]
        for x in delays["b-gpsr-map"]:
            at = {scheme: delays[scheme].get(x, float("nan")) for scheme in SIX}
            slowest = max(mapped, key=lambda name: at[name])
            found += [_slower(given, scenario, x, name, slowest) for name in NO_MAP]
            others = [name for name in GPSR if name != "b-gpsr-map"]
            fastest = min(others, key=lambda name: at[name])
            found.append(_slower(given, scenario, x, fastest, "b-gpsr-map"))
        rises = {scheme: last(line) - first(line) for scheme, line in delays.items()}
        steepest = max(("r-gpsr", "r-gpsr-map"), key=lambda name: rises[name])
        other = max(
            (name for name in SIX if name not in ("r-gpsr", "r-gpsr-map")), key=lambda name: rises[name]
        )
        risen = f"{rises[steepest]:.0f} ms; {other} {rises[other]:.0f} ms"
        what = f"{scenario}: R-GPSR rises most with speed ({risen})"
        seeds = [
            r - o
            for r, o in zip(_rises(given, scenario, steepest), _rises(given, scenario, other), strict=False)
        ]
        found.append(Condition(what, rises[steepest] - rises[other], 0.0, seeds))
    return found


def _rises(given: Lines, scenario: str, scheme: str) -> list[float]:
    """How much a scheme's delay rises from the slowest speed to the fastest, seed by seed."""
    line = given.lines(scenario, "delay_ms")[scheme]
    slow, fast = (given.seeds(scenario, scheme, "delay_ms", x) for x in (min(line), max(line)))
    return apart(fast, slow)


def _why_delays(table: Table, measured: dict[str, Number]) -> str:
    """What the runs tell of the delays: hops, and waiting for routes."""
    hops, waits = [], []
    for scenario in SCENARIOS:
        count = {scheme: table.mean(scenario, scheme, "hops") for scheme in SIX}
        measured |= {f"{scenario}, {scheme}, hops of a delivery": value for scheme, value in count.items()}
        hops.append(f"{count['b-gpsr-map']:.1f} and {count['r-gpsr-map']:.1f} ({scenario})")
        mean, median = (table.mean(scenario, "b-aodv", name) for name in ("delay_ms", "delay_median_ms"))
        waits.append(f"{median:.0f} and {mean:.0f} ms ({scenario})")
    return (
        f" An event took {', '.join(hops)} hops with B-GPSR(map), by way of the home, and with R-GPSR(map), "
        f"straight. Median and mean with B-AODV are {', '.join(waits)}: few events wait long; for a route, "
        "we suppose."
    )


def _waiting(table: Table, measured: dict[str, Number]) -> str:
    """What waiting for the list adds to R-GPSR(map)'s delay, at the speeds of that reading."""
    parts = []
    for scenario in SCENARIOS:
        try:
            waits = table.line(scenario + WAITS, "r-gpsr-map", "delay_ms")
        except KeyError:
            continue
        sends = table.line(scenario, "r-gpsr-map", "delay_ms")
        straight, waited = (sum(line[x] for x in waits) / len(waits) for line in (sends, waits))
        measured |= {f"{scenario}, r-gpsr-map, delay if it waits for the list": waited}
        parts.append(f"{straight:.0f} and {waited:.0f} ms ({scenario})")
    if not parts:
        return ""
    return f"With the list at hand and waiting for it, R-GPSR(map) takes {', '.join(parts)}."


def delay(claim: Claim, table: Table) -> Verdict:
    """Judge E-delay."""
    measured: dict[str, Number] = {}
    given = Lines(table, OURS)
    for scenario in SCENARIOS:
        delays = given.lines(scenario, "delay_ms")
        measured |= by_scheme(scenario, delays)
        measured |= by_scheme(f"{scenario}, median", given.lines(scenario, "delay_median_ms"))
        measured |= {
            f"{scenario}, rise of {scheme}": last(line) - first(line) for scheme, line in delays.items()
        }
    conditions = delay_conditions(table, OURS)
    why = _why_delays(table, measured)
    return judge_by(
        claim,
        conditions,
        measured=measured,
        readings=read_otherwise(names(), lambda key: delay_conditions(table, key)),
        evidence=("All orderings hold." if not broken(conditions) else "")
        + shown(broken(conditions)).lstrip()
        + why,
        cause="Sections 3.2.2 and 5 contradict each other on rendezvous: by the first a publisher has the "
        "list and sends straight to subscribers, by the second it waits for the list. "
        + _waiting(table, measured),
    )


def load_conditions(table: Table, reading: str) -> list[Condition]:
    """Every GPSR scheme above every AODV one, and brokers below rendezvous, by means over speeds."""
    given = Lines(table, reading)
    found = []
    for scenario in SCENARIOS:
        means = {scheme: given.mean(scenario, scheme, "load_bytes_s") for scheme in SIX}
        seeds = {scheme: given.mean_seeds(scenario, scheme, "load_bytes_s") for scheme in SIX}
        wanted = [(high, low) for high in GPSR for low in AODV]
        wanted += [(f"r-{kind}", f"b-{kind}") for kind in ("aodv", "gpsr", "gpsr-map")]
        for high, low in wanted:
            what = f"{scenario}: {high} ({means[high]:.0f}) above {low} ({means[low]:.0f})"
            found.append(
                Condition(what, ratio(means[high], means[low]), 1.0, paired(seeds[high], seeds[low]))
            )
    return found


def _why_loads(table: Table, measured: dict[str, Number]) -> str:
    """What the load is made of: beacons and floods, and events on their way to homes."""
    parts = []
    for scenario in SCENARIOS:
        beacons = table.rate(scenario, "b-gpsr-map", ["beacon"])
        floods = table.rate(scenario, "b-aodv", FLOODS)
        homeward = table.rate(scenario, "b-gpsr", ["event"])
        asking = table.rate(scenario, "r-gpsr", ["advertise", "list"])
        measured |= {
            f"{scenario}, b-gpsr-map, beacons": beacons,
            f"{scenario}, b-aodv, requests, replies, errors": floods,
            f"{scenario}, b-gpsr, events to homes": homeward,
            f"{scenario}, r-gpsr, advertisements and lists": asking,
        }
        parts.append(
            f"{scenario}: beacons of B-GPSR(map) {beacons:.0f}, requests, replies and errors of B-AODV "
            f"{floods:.0f}; events on their way to homes with B-GPSR {homeward:.0f}, advertisements and "
            f"lists with R-GPSR {asking:.0f}"
        )
    return (
        f" Of these, {'; '.join(parts)}. A node cannot send more than one beacon in {Manet().beacon_s:g} s, "
        "and every packet counts as one."
    )


def load(claim: Claim, table: Table) -> Verdict:
    """Judge E-load."""
    measured: dict[str, Number] = {}
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
    conditions = load_conditions(table, OURS)
    why = _why_loads(table, measured)
    return judge_by(
        claim,
        conditions,
        measured=measured,
        readings=read_otherwise(names(), lambda key: load_conditions(table, key)),
        evidence=f"Bytes a node and second: {'; '.join(parts)}." + shown(broken(conditions)) + why,
        cause="The load was taken apart by kind of message:" + why,
    )
