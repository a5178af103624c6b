"""Every scheme of the mobile network study on SUMO's traffic, beside our Manhattan model (`make sumo`).

Needs the optional package `eclipse-sumo`. SUMO makes a grid of streets and drives on it: vehicles follow each
other, give way at crossings and queue there. The model drives on the same grid, as fast on average. Both have
the police scenario of Table 1 (paper 004); topics, people and events of a seed are the same. Writes one page,
prints one row per scheme and movement. It judges no claim: the paper has no such traffic.
"""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from sojourn.report.page import Chart, DataTable, Page, render
from sojourn.sim.manet.fcd import AWAY_M, make_fcd, read_fcd
from sojourn.sim.manet.movement import TICK_S
from sojourn.sim.manet.scenario import SCHEMES, Manet
from sojourn.sim.manet.world import World
from sojourn.studies.manet.figures import Y_TITLES
from sojourn.studies.manet.parameters import MANHATTAN, OURS, OURS_CHANGES, SCENARIOS
from sojourn.studies.manet.runs import measure

CROSSINGS, STREET_M = 4, 350.0
WARMUP_S = 60.0
"""Until SUMO has all vehicles on the road."""
MOVEMENTS = ("SUMO", "model")
MEASURES = {"delivery_ratio": 3, "delay_ms": 0, "load_bytes_s": 0}
"""With the decimals that are printed."""
TITLES = {"delivery_ratio": "Delivery", "delay_ms": "Delay", "load_bytes_s": "Load"}

Track = NDArray[np.float32]
Rows = dict[tuple[str, str], list[dict[str, Any]]]
"""Measures of every run, by scheme and movement."""


def main() -> None:
    """Run every scheme on both movements and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/sumo"), help="folder for SUMO's files and the page"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--duration", type=float, default=300.0, help="simulated seconds")
    given = parser.parse_args()
    rows: Rows = {}
    speeds: dict[str, list[float]] = {name: [] for name in MOVEMENTS}
    for seed in range(1, given.seeds + 1):
        fcd = _drive(given.out / str(seed), seed, given.duration)
        driven = read_fcd(fcd, SCENARIOS[MANHATTAN]["nodes"], given.duration, TICK_S)
        modelled = _modelled(seed, given.duration, mean_speed(driven))
        for movement, track in zip(MOVEMENTS, (driven, modelled), strict=True):
            speeds[movement].append(mean_speed(track))
            for scheme in SCHEMES:
                sys.stderr.write(f"seed {seed}, {movement}, {scheme}\n")
                world = World(_manet(scheme, seed, given.duration), track=track)
                rows.setdefault((scheme, movement), []).append(measure(world.run()))
    page = given.out / "traffic.html"
    page.write_text(render(_page(rows, speeds, given)), encoding="utf-8")
    for row in table(rows):
        sys.stdout.write("  ".join(f"{cell:>12}" for cell in row) + "\n")
    sys.stdout.write(f"{page}\n")


def _drive(folder: Path, seed: int, duration_s: float) -> Path:
    """Have SUMO drive; its tools leave files where they are called."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder):
        return make_fcd(
            Path.cwd(), seed=seed, crossings=CROSSINGS, street_m=STREET_M, end_s=int(duration_s) + 1
        )


def _manet(scheme: str, seed: int, duration_s: float, speed_m_s: float = 10.0) -> Manet:
    side_m = STREET_M * (CROSSINGS - 1)
    given = {
        **SCENARIOS[MANHATTAN],
        "map": f"city:{side_m:g}:{STREET_M:g}",
        "warmup_s": WARMUP_S,
        **(OURS_CHANGES if scheme == OURS else {}),
    }
    return Manet(scheme=scheme, seed=seed, duration_s=duration_s, speed_m_s=speed_m_s, **given)


def _modelled(seed: int, duration_s: float, speed_m_s: float) -> Track:
    """The model's movement with the given mean speed; the model is told the fastest."""
    tried = World(_manet("b-aodv", seed, duration_s)).track
    fastest = 10.0 * speed_m_s / mean_speed(tried)
    return World(_manet("b-aodv", seed, duration_s, fastest)).track


def mean_speed(track: Track) -> float:
    """Metres a second, of vehicles that are on the road."""
    there = (track[:, :, 0] < AWAY_M / 2)[1:] & (track[:, :, 0] < AWAY_M / 2)[:-1]
    steps = np.linalg.norm(np.diff(track, axis=0), axis=2)
    return float(steps[there].mean() / TICK_S)


def mean(rows: list[dict[str, Any]], name: str) -> float:
    """Over seeds that have one."""
    found = [float(row[name]) for row in rows if row[name] is not None]
    return float(np.mean(found)) if found else float("nan")


def table(rows: Rows) -> list[list[str]]:
    """One row per scheme and movement, as text."""
    head = [["scheme", "movement", "delivery", "delay ms", "bytes a node and s"]]
    return head + [
        [scheme, movement, *(f"{mean(found, name):.{digits}f}" for name, digits in MEASURES.items())]
        for (scheme, movement), found in rows.items()
    ]


def best(rows: Rows, movement: str) -> str:
    """The scheme that delivers most on a movement, and how much."""
    delivery = {scheme: mean(rows[scheme, movement], "delivery_ratio") for scheme in SCHEMES}
    first = max(delivery, key=delivery.__getitem__)
    return f"on {movement} {SCHEMES[first].title} ({delivery[first]:.3f})"


def _bars(rows: Rows, name: str) -> go.Figure:
    figure = go.Figure()
    for movement in MOVEMENTS:
        values = [mean(rows[scheme, movement], name) for scheme in SCHEMES]
        titles = [scheme.title for scheme in SCHEMES.values()]
        figure.add_trace(go.Bar(x=titles, y=values, name=movement))
    title = f"{TITLES[name]}: {Y_TITLES[name]}, on SUMO's traffic and on the model's"
    figure.update_layout(title=title, xaxis_title="scheme", yaxis_title=Y_TITLES[name], barmode="group")
    return figure


def _page(
    rows: Rows,
    speeds: dict[str, list[float]],
    given: argparse.Namespace,
) -> Page:
    head, *body = table(rows)
    return Page(
        title="Publish/subscribe without infrastructure on SUMO's traffic",
        summary=f"Best delivery: {', '.join(best(rows, movement) for movement in MOVEMENTS)}.",
        facts=[
            (
                "roads",
                f"{CROSSINGS} by {CROSSINGS} streets, {STREET_M:g} m apart, made by SUMO's netgenerate",
            ),
            ("vehicles", "60, those longest on the road of 120 that SUMO drives"),
            *((f"mean speed, {name}", f"{np.mean(found):.1f} m/s") for name, found in speeds.items()),
            ("scenario", "Table 1, police surveillance: 6 topics, 2 publishers, 5 subscribers, 1,024 bytes"),
            ("runs", f"seeds 1 to {given.seeds}, {given.duration:g} s, the first {WARMUP_S:g} s not counted"),
        ],
        charts=[Chart(anchor=name, figure=_bars(rows, name), claims=()) for name in MEASURES],
        claims=[],
        command="make sumo",
        tables=[DataTable(anchor="numbers", title="Means over seeds", columns=head, rows=body)],
    )


if __name__ == "__main__":
    main()
