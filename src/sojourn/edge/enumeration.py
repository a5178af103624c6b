"""Every small run of a replicated system, and the table of properties that follows (paper 003, Table 1).

A run: up to five events from one or two sources; each event reaches or misses each of two brokers, in every
combination; each broker hands on what it received in the order it came, and the two streams reach the
displayer in every interleaving. The link to the displayer loses nothing (the paper's footnote 3). Every run
goes through the filters that ship.

Runs come with the fewest events first, then with the fewest copies, so that the first run that breaks a
property is a shortest story of why. Sources are numbered in the order of their first events: what only
differs in names is one run.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

from sojourn.edge.filters import FILTER_NAMES, DisplayerFilter, FilterName, displayer_filter
from sojourn.edge.properties import PROPERTIES, EventId, Violation, violations

EVENTS_MAX = 5
SOURCES_MAX = 2
BROKERS = (1, 2)


class SmallRun(NamedTuple):
    """What was published, who received it, and in which order copies reached the displayer."""

    events: tuple[EventId, ...]
    received: tuple[tuple[EventId, ...], tuple[EventId, ...]]
    """By broker: what reached it."""
    arrivals: tuple[tuple[int, EventId], ...]
    """Broker and event of each copy, in the order of arrival."""


class Cell(NamedTuple):
    """One cell of the table: whether the property held in all runs, and if not the first that breaks it."""

    filter: FilterName
    promise: str
    """The property."""
    runs: int
    broken: int
    """Runs in which the property does not hold."""
    example: SmallRun | None
    violation: Violation | None

    @property
    def holds(self) -> bool:
        """A tick in the table."""
        return self.broken == 0


def small_runs(events_max: int = EVENTS_MAX, sources_max: int = SOURCES_MAX) -> Iterator[SmallRun]:
    """Every run, shortest first."""
    for count in range(1, events_max + 1):
        for sources in _namings(count, sources_max):
            events = _numbered(sources)
            # Bit i of a loss pattern says that the broker missed event i.
            patterns = sorted(
                product(range(1 << count), repeat=2), key=lambda pair: -sum(map(int.bit_count, pair))
            )
            for lost in patterns:
                first, second = (
                    tuple(event for at, event in enumerate(events) if not pattern >> at & 1)
                    for pattern in lost
                )
                for arrivals in _interleavings(first, second):
                    yield SmallRun(events, (first, second), arrivals)


def _namings(count: int, sources_max: int) -> Iterator[tuple[int, ...]]:
    """The ways to deal events to sources, up to the sources' names."""
    for sources in product(range(sources_max), repeat=count):
        firsts = list(dict.fromkeys(sources))
        if firsts == sorted(firsts) and firsts[0] == 0 and firsts[-1] == len(firsts) - 1:
            yield sources


def _numbered(sources: Sequence[int]) -> tuple[EventId, ...]:
    counts: dict[int, int] = {}
    events = []
    for source in sources:
        counts[source] = counts.get(source, 0) + 1
        events.append((f"S{source + 1}", counts[source]))
    return tuple(events)


def _interleavings(
    first: tuple[EventId, ...], second: tuple[EventId, ...]
) -> Iterator[tuple[tuple[int, EventId], ...]]:
    total = len(first) + len(second)
    for places in combinations(range(total), len(first)):
        chosen = set(places)
        one, other = iter(first), iter(second)
        yield tuple((1, next(one)) if at in chosen else (2, next(other)) for at in range(total))


def shown_by(run: SmallRun, keep: DisplayerFilter) -> list[EventId]:
    """What a displayer with that filter shows of a run."""
    return [event for _, event in run.arrivals if keep.accept(*event)]


def table_of_properties(
    events_max: int = EVENTS_MAX,
    sources_max: int = SOURCES_MAX,
    make: Callable[[FilterName], DisplayerFilter] = displayer_filter,
) -> list[Cell]:
    """The nine cells of Table 1, each from every small run; `make` builds the filter of a name."""
    runs = 0
    broken = {(name, each): 0 for name in FILTER_NAMES for each in PROPERTIES}
    examples: dict[tuple[FilterName, str], tuple[SmallRun, Violation]] = {}
    for run in small_runs(events_max, sources_max):
        runs += 1
        union = set(run.received[0]).union(run.received[1])
        for name in FILTER_NAMES:
            found = violations(shown_by(run, make(name)), run.events, union)
            for each, violation in found.items():
                if violation is not None:
                    broken[name, each] += 1
                    examples.setdefault((name, each), (run, violation))
    cells = []
    for (name, each), count in broken.items():
        example, violation = examples.get((name, each), (None, None))
        cells.append(Cell(name, each, runs, count, example, violation))
    return cells


def story(cell: Cell) -> str:
    """The counterexample of a cross as a few sentences; of a tick, that there is none."""
    run, violation = cell.example, cell.violation
    if run is None or violation is None:
        return f"No counterexample among {cell.runs} runs."
    published = ", ".join(_name(event) for event in run.events)
    sentences = [f"Published: {published}."]
    for broker, received in zip(BROKERS, run.received, strict=True):
        missed = [event for event in run.events if event not in received]
        if missed:
            sentences.append(f"EB{broker} misses {', '.join(map(_name, missed))}.")
    copies = ", then ".join(f"{_name(event)} from EB{broker}" for broker, event in run.arrivals)
    shown = shown_by(run, displayer_filter(cell.filter))
    sentences.append(f"The displayer gets {copies}, and shows {', '.join(map(_name, shown)) or 'nothing'}:")
    sentences.append(_moral(violation, run) + ".")
    return " ".join(sentences)


def _moral(violation: Violation, run: SmallRun) -> str:
    name = _name(violation.event)
    if violation.wrong == "missing":
        holders = [
            f"EB{broker}" for broker, got in zip(BROKERS, run.received, strict=True) if violation.event in got
        ]
        return f"{name} is missing, though {' and '.join(holders)} received it"
    if violation.other is not None:
        return f"{name} comes after {_name(violation.other)}"
    return f"{name} is {violation.wrong}"


def _name(event: EventId) -> str:
    return f"{event[0]}#{event[1]}"
