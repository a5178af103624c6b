"""What a person is shown of the study: its figures, its two tables, and the constants behind them."""

from contextlib import suppress

from sojourn.report.page import DataTable
from sojourn.studies import base
from sojourn.studies.architectures import advice, checks, figures, parameters
from sojourn.studies.architectures.parameters import Scale
from sojourn.studies.architectures.quenching import break_even, ratios
from sojourn.studies.architectures.table import Table
from sojourn.studies.drawing import Figure
from sojourn.studies.wording import numbered

Outcome = base.Outcome[Scale, Table]

TITLE = "Central, quenched, broadcast, multicast, replicated (paper 003)"

FIGURES = (
    Figure("quench-bytes", ("D-quench-tradeoff",), figures.quench_bytes),
    Figure("quench-work", ("D-quench-tradeoff",), figures.quench_work),
    Figure("break-even", ("D-quench-tradeoff",), figures.break_even_lines),
    Figure("offline", ("D-quench-offline",), figures.offline),
    Figure("matching", ("D-scaling",), figures.matching),
    Figure("traffic", ("D-scaling",), figures.traffic),
    Figure("knowledge", ("D-scaling",), figures.knowledge),
    Figure("selectivity", ("D-scaling",), figures.selectivity),
    Figure("replication", ("D-table1",), figures.replication),
    Figure("waiting", ("D-exactly-once",), figures.waiting),
    Figure("queues", ("D-queues",), figures.queues),
    Figure("healing", ("D-adhoc-broker",), figures.healing),
)

MARKS = {True: "✓", False: "✗"}


def tables(outcome: Outcome) -> list[DataTable]:
    """Table 1 with its counterexamples, and which architecture when."""
    found = []
    # Where runs failed a table is left out; the claims that need them say so.
    with suppress(ValueError):
        cells = checks.cells_of(outcome.table)
        rows = [[cell.filter, cell.promise, MARKS[cell.holds], cell.story] for cell in cells]
        columns = ("filter at the displayer", "property", "holds", "counterexample")
        found.append(DataTable("table-1", "Table 1, from every small run", columns, rows))
    with suppress(KeyError):
        rows = advice.rows(outcome.table)
        found.append(DataTable("which-when", "Which architecture when", advice.COLUMNS, rows, NOTE))
    return found


NOTE = (
    "Bytes are for each event published. Comparisons are without an index: subscriptions that an event is "
    "held against. Replication goes with any of them where copies get lost: see the figure on replication."
)


def finding(table: Table) -> str:
    """When quenching pays, and what multicast saves."""
    churns = table.churns()
    shares = {churn: break_even(ratios(table, churn, "eager")) for churn in (churns[0], churns[-1])}
    said = [_from_share(share) for share in shares.values()]
    broad = table.line("brokers", "broadcast", "event_hops")
    pruned = table.line("brokers", "multicast", "event_hops")
    most = max(set(broad) & set(pruned))
    return (
        f"Sources that keep back what nobody wants save bytes {said[0]} while subscriptions hardly change "
        f"({churns[0]:g} changes an event), and {said[1]} when they change often ({churns[-1]:g}). With "
        f"{most:g} brokers multicast sends an event over {pruned[most]:.1f} links, broadcast over "
        f"{broad[most]:.1f}."
    )


def _from_share(share: float) -> str:
    if share > 1:
        return "never"
    return f"from {share:.0%} of unwanted events on" if share > 0 else "whatever the share of unwanted events"


def what_is_run(scale: Scale, seeds: int | None) -> str:
    """Half a sentence on how much that is."""
    return f"{numbered('seeds', seeds or scale.seeds)} per point, {scale.heals} histories of partitions"


def constants(outcome: Outcome) -> list[tuple[str, str]]:
    """The constants of the study."""
    scale = outcome.scale
    return [
        ("scale", f"{scale.name}: {what_is_run(scale, outcome.seeds)}"),
        ("the paper's numbers", "none: paper 003 argues without measuring, so every constant here is ours"),
        (
            "events and subscriptions",
            (
                f"readings of {parameters.EVENT_BYTES} bytes in {parameters.AREAS} areas with values below "
                "1000; a subscription wants one area and a range of values"
            ),
        ),
        (
            "links",
            (
                "24 bytes of header a message; subscriptions and quench updates go as the text of the "
                "filter; what each source is told is counted for each source, as over unicast"
            ),
        ),
        (
            "quench updates",
            ", ".join(
                f"{name}: narrowed after {after} left, at most {most} alternatives"
                for name, (after, most) in parameters.QUENCH_MODES.items()
            ),
        ),
        (
            "random runs of replicas",
            f"{parameters.REPLICA_EVENTS} events of four sources, delays up to 0.5 s",
        ),
    ]
