"""The terminal view of a mobile network: roads, nodes, homes of topics, and packets hopping between them.

Events are green, perimeter walks red, everything else that is routed blue; whoever broadcasts lights up. The
view reads the network's log of hops and draws; it decides nothing.
"""

import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from sojourn.adhoc.packets import DELIVERY, EVENT, EVERYBODY, PERIMETER
from sojourn.sim.manet import state
from sojourn.sim.manet.world import World

FRAMES_A_SECOND = 12
COLUMNS, ROWS = 96, 40
"""Of the map, where there is room for it."""
FRAME_COLUMNS, FRAME_ROWS = 4, 7
"""What a terminal must have beside the map: the frame, two lines of numbers, two of legend, the cursor's."""
HOPS_LOGGED = 1 << 14
HOPS_DRAWN = 300
"""Of one frame; the latest are drawn."""

ROAD, NODE, HOME, EVENT_HOP, WALK_HOP, OTHER_HOP, SPEAKS = (
    "grey35", "bold white", "bold yellow", "bold green", "bold red", "blue", "black on cyan",
)  # fmt: skip


class ManetView:
    """What the network looks like at a moment."""

    def __init__(self, world: World, columns: int = COLUMNS, rows: int = ROWS) -> None:
        self._world = world
        self._columns, self._rows = columns, rows
        self._seen = 0
        self._walks = 0
        self._roads = self._road_cells()
        subscribers = {int(row["node"]) for row in world.subscriptions}
        publishers = {int(row["node"]) for row in world.publications}
        self._faces = [
            "▲" if node in publishers else "o" if node in subscribers else "•"
            for node in range(world.manet.nodes)
        ]

    def _cell(self, x: float, y: float) -> tuple[int, int]:
        width, height = self._world.map.area_m
        column = min(max(int(x / width * (self._columns - 1)), 0), self._columns - 1)
        row = min(max(int((1 - y / height) * (self._rows - 1)), 0), self._rows - 1)
        return row, column

    def _between(self, one: tuple[int, int], other: tuple[int, int]) -> list[tuple[int, int]]:
        steps = max(abs(one[0] - other[0]), abs(one[1] - other[1]), 1)
        return [
            (
                round(one[0] + (other[0] - one[0]) * at / steps),
                round(one[1] + (other[1] - one[1]) * at / steps),
            )
            for at in range(steps + 1)
        ]

    def _road_cells(self) -> set[tuple[int, int]]:
        return {self._cell(x, y) for x, y in self._world.map.waypoints(5.0)}

    def frame(self) -> RenderableType:
        """The picture of this moment, with the hops since the last one."""
        cells: dict[tuple[int, int], tuple[str, str]] = dict.fromkeys(self._roads, ("·", ROAD))
        self._draw_hops(cells)
        net = self._world.net
        for topic, (x, y) in enumerate(self._world.homes):
            cells[self._cell(x, y)] = (chr(ord("A") + topic % 26), HOME)
        width, height = self._world.map.area_m
        for node, face in enumerate(self._faces):
            x, y = float(net.macs[node]["x"]), float(net.macs[node]["y"])
            if 0 <= x <= width and 0 <= y <= height:
                cell = self._cell(x, y)
                if cells.get(cell, ("", ""))[1] != HOME:
                    style = SPEAKS if cells.get(cell, ("", ""))[1] == SPEAKS else NODE
                    cells[cell] = (face, style)
        lines = []
        for row in range(self._rows):
            line = Text()
            for column in range(self._columns):
                mark, style = cells.get((row, column), (" ", ""))
                line.append(mark, style=style)
            lines.append(line)
        return Panel(Group(self._header(), *lines, self._legend()), title="sojourn simulate manet")

    def _draw_hops(self, cells: dict[tuple[int, int], tuple[str, str]]) -> None:
        net = self._world.net
        count = self._world.number(state.HOPS_LOGGED)
        for number in range(max(self._seen, count - HOPS_DRAWN), count):
            hop = net.hops[number % len(net.hops)]
            sender = net.macs[hop["sender"]]
            start = self._cell(float(sender["x"]), float(sender["y"]))
            if hop["to"] == EVERYBODY:
                cells[start] = ("•", SPEAKS)
                continue
            to = net.macs[hop["to"]]
            walks = hop["mode"] == PERIMETER
            self._walks += int(walks)
            style = WALK_HOP if walks else EVENT_HOP if hop["what"] in (EVENT, DELIVERY) else OTHER_HOP
            for cell in self._between(start, self._cell(float(to["x"]), float(to["y"]))):
                if cells.get(cell, ("", ""))[1] not in (EVENT_HOP, WALK_HOP):
                    cells[cell] = ("∙", style)
        self._seen = count

    def _header(self) -> Text:
        world = self._world
        measured = world.measured()
        due = int(world.expected()[world.publications["made_s"] <= world.now_s].sum())
        share = f"{measured.delivered / due:.0%} of {due}" if due else "none due"
        return Text(
            f"{world.scheme.title}, {world.manet.nodes} nodes, {world.manet.map}   "
            f"{world.now_s:7.1f} of {world.manet.duration_s:g} s   delivered {share}   "
            f"hops {self._seen:,}, {self._walks:,} of those drawn round voids"
        )

    def _legend(self) -> Text:
        line = Text()
        for mark, style, what in (
            ("A", HOME, "a topic's home"),
            ("▲", NODE, "publisher"),
            ("o", NODE, "subscriber"),
            ("∙", EVENT_HOP, "event"),
            ("∙", WALK_HOP, "perimeter walk"),
            ("∙", OTHER_HOP, "other packets"),
            ("•", SPEAKS, "broadcast"),
        ):
            line.append(mark, style=style)
            line.append(f" {what}   ", style="dim")
        return line


def fitting(screen: Console) -> tuple[int, int]:
    """Columns and rows of the map that a terminal has room for; elsewhere there is enough."""
    if not screen.is_terminal:
        return COLUMNS, ROWS
    width, height = screen.size
    return max(min(COLUMNS, width - FRAME_COLUMNS), 16), max(min(ROWS, height - FRAME_ROWS), 6)


def watch_manet(world: World, *, pace: float, console: Console | None = None) -> None:
    """Run a world to its end and show it at so many simulated seconds per second; 0: without a pause."""
    screen = console or Console()
    view = ManetView(world, *fitting(screen))
    pause_s = 1 / FRAMES_A_SECOND if pace else 0.0
    with Live(console=screen, auto_refresh=False) as live:
        shown = time.perf_counter()
        for _ in world.steps((pace or 20.0) / FRAMES_A_SECOND):
            live.update(view.frame(), refresh=True)
            spare_s = pause_s - (time.perf_counter() - shown)
            if spare_s > 0:
                time.sleep(spare_s)
            shown = time.perf_counter()
    if not screen.is_terminal:
        screen.print()
