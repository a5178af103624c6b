"""The claims of paper 003, each judged by one small function that holds the numbers the ledger states."""

import json
import math
from itertools import pairwise
from typing import NamedTuple

from sojourn.edge.filters import FILTER_NAMES
from sojourn.edge.properties import PROPERTIES
from sojourn.studies.architectures import parameters
from sojourn.studies.architectures.quenching import break_even, ratios
from sojourn.studies.architectures.table import Table
from sojourn.studies.cited import Told, in_words, whole
from sojourn.studies.claims import Claim, Number, Verdict, judge
from sojourn.studies.means import flat, rises
from sojourn.studies.wording import span

TABLE_1 = {
    ("none", "ordered"): False,
    ("none", "consistent"): False,
    ("none", "complete"): True,
    ("duplicates", "ordered"): False,
    ("duplicates", "consistent"): True,
    ("duplicates", "complete"): True,
    ("ordered", "ordered"): True,
    ("ordered", "consistent"): True,
    ("ordered", "complete"): False,
}
"""The paper's Table 1: a tick is True."""


class Cell(NamedTuple):
    """A cell of Table 1, from every small run."""

    filter: str
    promise: str
    """The property."""
    broken: float
    """Runs in which the property does not hold."""
    story: str
    """The counterexample, if there is one."""

    @property
    def holds(self) -> bool:
        """A tick in the table."""
        return self.broken == 0


def cells_of(table: Table) -> list[Cell]:
    """The nine cells that the enumeration found."""
    (key,) = [key for key in table.rows if key[0] == "table1"]
    stories: dict[str, str] = json.loads(str(table.rows[key][0]["stories"]))
    return [
        Cell(name, promise, table.total(f"broken {name} {promise}", "table1"), stories[f"{name} {promise}"])
        for name in FILTER_NAMES
        for promise in PROPERTIES
    ]


def table1(claim: Claim, table: Table) -> Verdict:
    """Ticks in all enumerated and all random runs, crosses with a counterexample."""
    cells = cells_of(table)
    found = {(cell.filter, cell.promise): cell.holds for cell in cells}
    runs = whole(table.total("runs", "table1"))
    random_runs = clients = 0.0
    broken: dict[str, float] = {}
    for series in ("2 brokers", "3 brokers"):
        random_runs += table.tasks("replicas", series)
        clients += table.total("clients", "replicas", series)
        for name in FILTER_NAMES:
            for each in PROPERTIES:
                key = f"{name} not {each}"
                broken[key] = broken.get(key, 0) + table.total(key, "replicas", series)
    ticks_hold = all(broken[f"{name} not {each}"] == 0 for (name, each), tick in TABLE_1.items() if tick)
    stories = [f"{cell.filter}, not {cell.promise}: {cell.story}" for cell in cells if not cell.holds]
    measured: dict[str, Number | Told] = {
        f"{cell.filter} {cell.promise}, runs that break it": in_words(cell.broken) for cell in cells
    }
    measured |= {f"at random, displayers with {key}": whole(value) for key, value in broken.items()}
    measured |= {"enumerated runs": runs, "random runs": whole(random_runs)}
    return judge(
        claim,
        holds=found == TABLE_1 and ticks_hold,
        measured=measured,
        evidence=f"All nine cells come out as printed over {runs.value} enumerated runs; the ticks also hold "
        f"for {clients:.0f} displayers a filter in {random_runs:.0f} random runs. " + " ".join(stories)
        if found == TABLE_1 and ticks_hold
        else f"Cells found: {found}; broken ticks at random: {broken}.",
    )


def quench_tradeoff(claim: Claim, table: Table) -> Verdict:
    """Saves where much is unwanted, costs where little is and subscriptions change; the line between."""
    churns = table.churns()
    calm, busy = ratios(table, churns[0], "eager"), ratios(table, churns[-1], "eager")
    lines = {
        mode: {churn: break_even(ratios(table, churn, mode)) for churn in churns}
        for mode in parameters.QUENCH_MODES
    }
    eager = list(lines["eager"].values())
    grows = all(later >= earlier for earlier, later in pairwise(eager)) and eager[-1] > eager[0]
    work = table.line(f"quench {churns[0]:g}", "eager", "comparisons_per_event")
    alternatives = table.line(f"quench {churns[0]:g}", "eager", "alternatives")
    measured: dict[str, Number] = {
        "bytes ratio, most unwanted, no churn": calm[-1][1],
        "bytes ratio, least unwanted, most churn": busy[0][1],
        **flat("comparisons an event", work),
        **flat("alternatives told", alternatives),
    }
    for mode, line in lines.items():
        measured |= {f"break-even share, {mode} @ {churn:g}": value for churn, value in line.items()}
    text = ", ".join(
        f"{value:.0%} at {churn:g}" for churn, value in lines["eager"].items() if value < math.inf
    )
    never = [f"{churn:g}" for churn, value in lines["eager"].items() if value == math.inf]
    return judge(
        claim,
        holds=calm[-1][1] < 1 and busy[0][1] > 1 and min(work.values()) > 0 and grows,
        measured=measured,
        evidence=f"With {calm[-1][0]:.0%} of events unwanted and no churn quenching sends {calm[-1][1]:.2f} "
        f"times the bytes; with {busy[0][0]:.0%} unwanted and {churns[-1]:g} subscription changes for each "
        f"event of a source, {busy[0][1]:.2f} times. It costs a source {span(work.values(), '.1f')} "
        f"comparisons an event, for {parameters.QUENCH_SUBSCRIPTIONS} subscriptions "
        f"merged into {span(alternatives.values(), '.0f')} alternatives. "
        f"It breaks even at an unwanted share of {text}"
        + (f" and never at {', '.join(never)}" if never else "")
        + " changes for each event.",
    )


def quench_offline(claim: Claim, table: Table) -> Verdict:
    """Fewer interesting events lost than with oldest-first, and none where the buffer suffices."""
    measured: dict[str, Number] = {}
    better, enough, parts = [], [], []
    for series in table.series("offline"):
        oldest = table.line("offline", series, "lost_oldest")
        quench = table.line("offline", series, "lost_quench")
        interesting = table.line("offline", series, "interesting")
        measured |= flat(f"{series}, oldest first", oldest) | flat(f"{series}, quench first", quench)
        for buffer, lost in oldest.items():
            if buffer >= parameters.OFFLINE_EVENTS:
                enough.append(lost == 0 and quench[buffer] == 0)
            else:
                better.append(quench[buffer] < lost)
        half = sorted(oldest)[len(oldest) // 2]
        parts.append(
            f"{series} subscriptions: {quench[half]:.1f} against {oldest[half]:.1f} of "
            f"{interesting[half]:.1f} interesting events lost with room for {half:g} of "
            f"{parameters.OFFLINE_EVENTS}"
        )
    if not better or not enough:
        raise KeyError("offline")
    return judge(
        claim,
        holds=all(better) and all(enough),
        measured=measured,
        evidence=f"Quench first loses fewer at {sum(better)} of {len(better)} points ({'; '.join(parts)}). "
        f"With room for all, nothing is lost at {sum(enough)} of {len(enough)} points, what only new "
        "subscriptions want included.",
    )


def scaling(claim: Claim, table: Table) -> Verdict:
    """Matching falls as 1/M under broadcast; multicast's share of the traffic falls with selectivity."""
    central = table.line("brokers", "central", "compared_mean")[1.0]
    compared = table.line("brokers", "broadcast", "compared_mean")
    share = {brokers: value * brokers / central for brokers, value in compared.items()}
    wide = table.line("selectivity", "broadcast", "event_hops")
    pruned = table.line("selectivity", "multicast", "event_hops")
    traffic = {width: pruned[width] / wide[width] for width in wide}
    entries = table.line("brokers", "multicast", "entries_mean")
    own = table.line("brokers", "broadcast", "entries_mean")
    lost = sum(
        table.total("lost", experiment, series)
        for experiment in ("brokers", "selectivity")
        for series in table.series(experiment)
    )
    most = max(compared)
    narrow, broad = min(traffic), max(traffic)
    measured: dict[str, Number] = {
        "comparisons an event, one broker": central,
        **flat("comparisons an event and broker, broadcast", compared),
        **flat("the same times M over one broker's", share),
        **flat(
            "comparisons an event and broker, multicast", table.line("brokers", "multicast", "compared_mean")
        ),
        **flat("event hops, broadcast", table.line("brokers", "broadcast", "event_hops")),
        **flat("event hops, flooding", table.line("brokers", "flooding", "event_hops")),
        **flat("event hops, multicast", table.line("brokers", "multicast", "event_hops")),
        **flat("multicast over broadcast traffic, by width", traffic),
        **flat("entries a broker, multicast", entries),
        **flat("entries a broker, broadcast", own),
        **flat("hops to tell a subscription, multicast", table.line("brokers", "multicast", "interest_hops")),
        "events lost": lost,
    }
    return judge(
        claim,
        holds=all(0.9 <= value <= 1.1 for value in share.values()) and rises(traffic) and lost == 0,
        measured=measured,
        evidence=f"Under broadcast a broker compares an event with {compared[most]:.1f} subscriptions at "
        f"{most:g} brokers and {central:.0f} at one, {span(share.values())} "
        f"times 1/M, while every event still takes M - 1 hops. Multicast takes {traffic[narrow]:.2f} of "
        f"broadcast's hops with narrow subscriptions ({narrow:g} of 1000 values) and {traffic[broad]:.2f} "
        f"with wide ones ({broad:g}); for that each broker knows {entries[most]:.0f} subscriptions "
        f"instead of {own[most]:.0f}, since narrow ones hardly cover each other.",
    )


def exactly_once(claim: Claim, table: Table) -> Verdict:
    """No loss and no duplicate over random moves while old brokers are down or cut off."""
    series = [each for each in table.series("roam") if each.startswith("log")]
    sums = {
        name: sum(table.total(name, "roam", each) for each in series)
        for name in ("expected", "lost", "duplicated", "unwanted", "moves", "while_old_down")
    }
    careless = [each for each in table.series("roam") if each.startswith("careless")]
    doubled = sum(table.total("duplicated", "roam", each) for each in careless)
    missing = sum(table.total("lost", "roam", each) for each in careless)
    owed = sum(table.total("expected", "roam", each) for each in careless)
    measured: dict[str, Number | Told] = {
        f"with the log, {name}": whole(value) for name, value in sums.items()
    }
    held = {}
    for each in table.series("roam"):
        held[each] = table.mean("held_mean_s", "roam", each)
        measured[f"{each}: seconds until shown"] = held[each]
        measured[f"{each}: bytes handed over a move"] = table.mean("handover_bytes_per_move", "roam", each)
        measured[f"{each}: lost"] = whole(table.total("lost", "roam", each))
        measured[f"{each}: duplicated"] = whole(table.total("duplicated", "roam", each))
    return judge(
        claim,
        holds=sums["lost"] == sums["duplicated"] == sums["unwanted"] == 0 and sums["while_old_down"] > 0,
        measured=measured,
        evidence=f"{sums['lost']:.0f} lost and {sums['duplicated']:.0f} doubled of {sums['expected']:.0f} "
        f"events over {sums['moves']:.0f} connections, {sums['while_old_down']:.0f} of them while the old "
        f"broker was down or a link on either side cut. An event waits {held['log, multicast']:.2f} s on the "
        f"average with the log, {held['wait, multicast']:.2f} s if everything waits for all old brokers. "
        f"Brokers that do not ask each other double {doubled:.0f} and lose {missing:.0f} of {owed:.0f}.",
    )


def queues(claim: Claim, table: Table) -> Verdict:
    """Every policy leaves what an informed reader would keep; what is sent at reconnection."""
    measured: dict[str, Number] = {}
    wrong = streams = 0.0
    parts = []
    for policy in parameters.QUEUE_POLICIES:
        wrong += table.total("wrong", "queues", policy)
        streams += table.total("streams", "queues", policy)
        sent = table.line("queues", policy, "bytes_sent")
        measured |= flat(f"{policy}: bytes at reconnection", sent)
        parts.append(f"{policy} {sent[max(sent)]:.0f}")
    longest = max(table.xs("queues", "all"))
    return judge(
        claim,
        holds=wrong == 0,
        measured={"streams in which the queue differs": whole(wrong), "streams": whole(streams), **measured},
        evidence=f"In {streams - wrong:.0f} of {streams:.0f} random streams the queue is what a reader who "
        f"saw everything would keep. Bytes at reconnection after {longest:g} missed events: "
        f"{', '.join(parts)}.",
    )


def adhoc_broker(claim: Claim, table: Table) -> Verdict:
    """One broker with every live subscription after any history, and nothing lost it would have kept."""
    names = ("histories", "one_broker", "owed", "lost", "duplicated", "unwanted", "merges")
    sums = {name: table.total(name, "heal") + table.total(name, "refresh") for name in names}
    measured: dict[str, Number | Told] = {name: whole(value) for name, value in sums.items()}
    medians = {}
    for refresh in table.xs("refresh", ""):
        healed = table.listed("healed_s", "refresh", "", refresh)
        shown = table.listed("delivered_s", "refresh", "", refresh)
        medians[refresh] = healed.quantile(0.5)
        measured |= {
            f"seconds to one broker, median @ {refresh:g}": medians[refresh],
            f"seconds to one broker, most @ {refresh:g}": healed.most(),
            f"seconds to all shown, median @ {refresh:g}": shown.quantile(0.5),
        }
    worst = max(table.listed("healed_s", "refresh", "", x).most() / x for x in medians)
    text = ", ".join(f"{value:.2f} s at {refresh:g} s" for refresh, value in medians.items())
    clean = sums["lost"] == sums["duplicated"] == sums["unwanted"] == 0
    return judge(
        claim,
        holds=sums["one_broker"] == sums["histories"] and clean,
        measured=measured,
        evidence=f"{sums['one_broker']:.0f} of {sums['histories']:.0f} histories of partitions end with one "
        f"broker that has every live subscription, after {sums['merges']:.0f} hand-overs in all; "
        f"{sums['lost']:.0f} lost and {sums['duplicated']:.0f} doubled of {sums['owed']:.0f} events owed. "
        f"Median time to one broker by refresh period: {text}; never more than {worst:.1f} periods.",
    )
