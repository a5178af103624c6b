"""Draws the states of a protocol from its transition table, as a picture and as a table.

States stand on a circle; an arrow stands for all facts that lead from one state to another, with their names
beside its beginning. What leaves a state as it is, is only in the table below the picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from words import table

from sojourn.adhoc.election import states as election
from sojourn.adhoc.tree import states as tree
from sojourn.mobility import copies, stays

TABLES: dict[str, Mapping[tuple[Any, Any], Any]] = {
    "mobility.stays": stays.TABLE,
    "mobility.copies": copies.TABLE,
    "adhoc.tree.states": tree.TRANSITIONS,
    "adhoc.election.states": election.TRANSITIONS,
}
WIDTH, HEIGHT, ACROSS, DOWN = 900, 620, 320, 240
BOX = (110, 34)
BEND = 26
LINE_PX = 12


def figure(name: str) -> str:
    """The picture and the table of a protocol, as they stand in a page."""
    return f"\n{picture(name)}\n\n{facts_table(name)}"


def moves(name: str) -> dict[tuple[str, str], list[str]]:
    """The facts that lead from each state to another one."""
    found: dict[tuple[str, str], list[str]] = {}
    for (state, turn), follows in TABLES[name].items():
        after = getattr(follows, "state", follows)
        if after is not state:
            found.setdefault((state.name, after.name), []).append(_words(turn.name))
    return found


def facts_table(name: str) -> str:
    """What follows from each fact in each state; a dash is what cannot happen."""
    transitions = TABLES[name]
    states = list(dict.fromkeys(state for state, _ in transitions))
    turns = list(dict.fromkeys(turn for _, turn in transitions))
    rows = []
    for state in states:
        nexts = [transitions.get((state, turn)) for turn in turns]
        cells = ["-" if one is None else getattr(one, "state", one).name for one in nexts]
        rows.append((f"**{state.name}**", *cells))
    return table(("state", *(_words(turn.name) for turn in turns)), rows)


def picture(name: str) -> str:
    """The states and the ways between them, as SVG without anything from elsewhere."""
    names = list(dict.fromkeys(state.name for state, _ in TABLES[name]))
    places = {one: _place(number, len(names)) for number, one in enumerate(names)}
    drawn = "".join(_arrow(places[one], places[other], facts) for (one, other), facts in moves(name).items())
    drawn += "".join(_state(one, *place) for one, place in places.items())
    mark = f"arrow-{name.replace('.', '-')}"
    head = (
        f'<marker id="{mark}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="currentColor"/></marker>'
    )
    return (
        f'<svg class="states" role="img" aria-label="States of {escape(name)}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" xmlns="http://www.w3.org/2000/svg"><defs>{head}</defs>'
        f"{drawn.replace('ARROW', f'url(#{mark})')}</svg>"
    )


def _words(name: str) -> str:
    return name.lower().replace("_", " ")


def _place(number: int, count: int) -> tuple[float, float]:
    angle = 2 * math.pi * number / count - math.pi / 2
    return WIDTH / 2 + ACROSS * math.cos(angle), HEIGHT / 2 + DOWN * math.sin(angle)


def _state(name: str, x: float, y: float) -> str:
    wide, high = BOX
    return (
        f'<rect x="{x - wide / 2:.0f}" y="{y - high / 2:.0f}" width="{wide}" height="{high}" rx="8"/>'
        f'<text class="state" x="{x:.0f}" y="{y + 5:.0f}">{escape(name)}</text>'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float], facts: list[str]) -> str:
    """A bent arrow, so that there and back are two lines, with its facts a third of the way along."""
    (x, y), (to_x, to_y) = start, end
    length = math.hypot(to_x - x, to_y - y)
    along = ((to_x - x) / length, (to_y - y) / length)
    bent = ((x + to_x) / 2 - along[1] * BEND * 2, (y + to_y) / 2 + along[0] * BEND * 2)
    x, y = _edge(start, bent)
    to_x, to_y = _edge(end, bent)
    share = 0.34
    left = (1 - share) ** 2, 2 * share * (1 - share), share**2
    at_x = left[0] * x + left[1] * bent[0] + left[2] * to_x
    at_y = left[0] * y + left[1] * bent[1] + left[2] * to_y - (len(facts) - 1) * LINE_PX / 2
    lines = "".join(
        f'<tspan x="{at_x:.0f}" y="{at_y + number * LINE_PX:.0f}">{escape(fact)}</tspan>'
        for number, fact in enumerate(facts)
    )
    return (
        f'<path d="M{x:.0f} {y:.0f} Q{bent[0]:.0f} {bent[1]:.0f} {to_x:.0f} {to_y:.0f}" '
        f'marker-end="ARROW"/><text>{lines}</text>'
    )


def _edge(centre: tuple[float, float], towards: tuple[float, float]) -> tuple[float, float]:
    """Where a line from the middle of a state leaves its box."""
    wide, high = BOX[0] / 2 + 3, BOX[1] / 2 + 3
    across, down = towards[0] - centre[0], towards[1] - centre[1]
    share = min(
        wide / abs(across) if across else math.inf,
        high / abs(down) if down else math.inf,
    )
    return centre[0] + across * share, centre[1] + down * share
