"""The terminal view of a running city: publishers in the street, trees torn down and grafted above it.

`CityView` takes what the simulated world reports and draws it; it decides nothing and draws no number. Each
broker is as wide as the leaves below it, so that a flood lights up the whole picture and a graft two or
three cells of it. `watch_run` gives the view its frames at a readable pace.
"""

import time
from collections import Counter, deque

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sojourn.sim.publishers.movement import Movement
from sojourn.sim.publishers.world import World
from sojourn.sim.results import HOP_NAMES, RunResult
from sojourn.sim.scenario import Scenario
from sojourn.sim.streams import Streams
from sojourn.sim.topology import Topology, make_topology

FRAMES_A_SECOND = 12
GLOW_FRAMES = 6
"""How many frames a broker stays lit after a message."""
MOVES_SHOWN = 8

STYLES = {
    "advertise": "black on green",
    "subscribe": "black on cyan",
    "unadvertise": "white on red",
    "unsubscribe": "white on magenta",
    "prefetch": "black on yellow",
    "publish": "black on white",
}
"""Building is green and blue, tearing down is red."""


class CityView:
    """What is known of the city at the simulated present, and how it looks."""

    def __init__(self, scenario: Scenario, topology: Topology) -> None:
        self._scenario = scenario
        self._names = topology.names
        self._place = {broker: place for place, broker in enumerate(topology.leaves)}
        self._levels = _levels(topology)
        self._lit: dict[int, tuple[str, int]] = {}
        self._here: Counter[int] = Counter()
        self._away = 0
        self._by_kind: Counter[str] = Counter()
        self._moves: deque[int] = deque(maxlen=MOVES_SHOWN)
        self._moved = 0
        self._latest: dict[int, int] = {}
        self._text: dict[int, str] = {}
        self._hops: dict[int, Counter[str]] = {}
        self._tree: dict[int, str] = {}
        self.now_s = 0.0

    def started(self, brokers: list[int]) -> None:
        """Each publisher's first broker."""
        self._here.update(brokers)

    def left(self, now_s: float, publisher: int, broker: int) -> None:
        """A publisher lost its broker; moves are numbered from 1 in that order, as their causes are."""
        self._here[broker] -= 1
        self._away += 1
        self._moved += 1
        move = self._latest[publisher] = self._moved
        self._moves.append(move)
        self._text[move] = f"{now_s:7.1f} s  p{publisher} from {self._names[broker]}"
        self._hops[move] = Counter()
        for old in [known for known in self._text if known not in self._moves]:
            del self._text[old], self._hops[old]
            self._tree.pop(old, None)

    def arrived(self, now_s: float, publisher: int, broker: int) -> None:
        """A publisher reached its new broker."""
        del now_s
        self._here[broker] += 1
        self._away -= 1
        move = self._latest[publisher]
        if move in self._text:
            self._text[move] += f" to {self._names[broker]}"

    def built(self, now_s: float, publisher: int, cause: int, seconds: float) -> None:
        """The last message that builds a publisher's tree has been processed."""
        del now_s, publisher
        self._tree[cause // 2] = f"{self._tree.get(cause // 2, '')}built in {_time(seconds)}  "

    def torn_down(self, now_s: float, publisher: int, cause: int, seconds: float) -> None:
        """The last message that tears a publisher's old tree down has been processed."""
        del now_s, publisher
        self._tree[cause // 2] = f"{self._tree.get(cause // 2, '')}torn down in {_time(seconds)}  "

    def hop(self, now_s: float, kind: int, sender: int, receiver: int, cause: int) -> None:
        """A message went from one broker to the next."""
        del now_s, sender
        name = HOP_NAMES[kind]
        self._by_kind[name] += 1
        self._lit[receiver] = (name, GLOW_FRAMES)
        hops = self._hops.get(cause // 2)
        if hops is not None:
            hops[name] += 1

    def frame(self) -> RenderableType:
        """The picture of this moment; what is lit grows dimmer by one frame."""
        picture = Group(self._header(), Text(), *self._tree_rows(), *self._street(), Text(), self._tables())
        self._lit = {broker: (kind, left - 1) for broker, (kind, left) in self._lit.items() if left > 1}
        return Panel(picture, title="sojourn simulate", border_style="dim")

    def _header(self) -> RenderableType:
        scenario = self._scenario
        end_s = scenario.warmup_s + scenario.duration_s
        phase = (
            "warm-up" if self.now_s < scenario.warmup_s else "measured" if self.now_s < end_s else "draining"
        )
        grid = Table.grid(padding=(0, 2))
        grid.add_row(
            Text(
                f"{scenario.protocol}, {scenario.publishers} publishers, {scenario.subscribers} subscribers"
            ),
            ProgressBar(total=end_s, completed=min(self.now_s, end_s), width=24),
            Text(f"{self.now_s:7.1f} of {end_s:g} s ({phase})"),
        )
        return grid

    def _tree_rows(self) -> list[Text]:
        leaves = len(self._place)
        rows = []
        for level in self._levels:
            width = max(1, leaves // len(level))
            row = Text()
            for broker in level:
                kind = self._lit.get(broker, ("", 0))[0]
                # A gap after each broker, but for the leaves, which are one cell wide.
                lit, gap = (width - 1, " ") if width > 1 else (1, "")
                row.append(" " * lit if kind else "▁" * lit, style=STYLES.get(kind, "dim"))
                row.append(gap)
            rows.append(row)
        return rows

    def _street(self) -> list[Text]:
        row = Text()
        for broker in self._place:
            count = self._here[broker]
            row.append(str(min(count, 9)) if count > 0 else "·", style="bold" if count > 0 else "dim")
        return [
            row,
            Text(f"publishers at each leaf, west to east; {self._away} between two brokers", style="dim"),
        ]

    def _tables(self) -> RenderableType:
        kinds = Table("messages", "hops", box=None)
        for kind, style in STYLES.items():
            if self._by_kind[kind] or kind != "publish":
                kinds.add_row(Text(f" {kind} ", style=style), f"{self._by_kind[kind]:,}")
        moves = Table("latest moves", "hops", "tree", box=None)
        for move in reversed(self._moves):
            hops = self._hops[move]
            row = Text(" ").join(
                Text(f" {hops[kind]} ", style=style) for kind, style in STYLES.items() if hops[kind]
            )
            moves.add_row(self._text[move], row or Text("-", style="dim"), self._tree.get(move, ""))
        grid = Table.grid(padding=(0, 4))
        grid.add_row(kinds, moves)
        return grid


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def _levels(topology: Topology) -> list[list[int]]:
    """Brokers by their distance from broker 0 when that is a tree over the street, else the leaves alone."""
    if topology.links != topology.brokers - 1:
        return [topology.leaves]
    depth = {0: 0}
    waiting = [0]
    for broker in waiting:
        for near in topology.neighbours[broker]:
            if near not in depth:
                depth[near] = depth[broker] + 1
                waiting.append(near)
    levels: list[list[int]] = [[] for _ in range(max(depth.values()) + 1)]
    for broker in sorted(depth):
        levels[depth[broker]].append(broker)
    fits = all(len(topology.leaves) % len(level) == 0 for level in levels)
    return levels if fits else [topology.leaves]


class _Player:
    """Feeds the view from a world's reports and shows a frame whenever one is due."""

    def __init__(self, view: CityView, live: Live, pace: float) -> None:
        self._view = view
        self._live = live
        self._step_s = (pace or 20.0) / FRAMES_A_SECOND
        self._pause_s = 1 / FRAMES_A_SECOND if pace else 0.0
        self._next_s = 0.0
        self._shown = time.perf_counter()

    def __call__(self, now_s: float, what: tuple[str, *tuple[object, ...]]) -> None:
        while now_s >= self._next_s:
            self._show()
        name, *facts = what
        getattr(self._view, name.replace("-", "_"))(now_s, *facts)

    def _show(self) -> None:
        self._view.now_s = self._next_s
        self._live.update(self._view.frame(), refresh=True)
        self._next_s += self._step_s
        spare_s = self._pause_s - (time.perf_counter() - self._shown)
        if spare_s > 0:
            time.sleep(spare_s)
        self._shown = time.perf_counter()


def watch_run(scenario: Scenario, *, pace: float, console: Console | None = None) -> RunResult:
    """Run a scenario and show it at so many simulated seconds per second; 0 shows it without a pause."""
    topology = make_topology(scenario)
    view = CityView(scenario, topology)
    movement = Movement(scenario, topology, Streams(scenario.seed))
    view.started([movement.start(publisher) for publisher in range(scenario.publishers)])
    screen = console or Console()
    with Live(console=screen, auto_refresh=False) as live:
        result = World(scenario, observer=_Player(view, live, pace)).run()
        live.update(view.frame(), refresh=True)
    if not screen.is_terminal:
        screen.print()
    return result
