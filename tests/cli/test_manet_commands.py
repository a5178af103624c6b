"""Mobile networks from the command line: one run as JSON, watched, traced; and a row of the benchmark."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from sojourn.cli.bench_manet import measure, rows
from sojourn.cli.main import app
from sojourn.cli.watch_manet import COLUMNS, HOPS_LOGGED, ROWS, ManetView, fitting, watch_manet
from sojourn.errors import SojournError
from sojourn.sim.manet.scenario import SCHEMES, Manet
from sojourn.sim.manet.world import World

SHORT = ["simulate", "manet", "--duration-s=30", "--warmup-s=5", "--publish-s=2", "--map=city:600"]


def test_a_run_is_repeatable_json() -> None:
    """The same command prints the same measures, but for the time it took."""
    found = []
    for _ in range(2):
        done = CliRunner().invoke(app, [*SHORT, "--scheme=b-gpsr-map", "--json"], catch_exceptions=False)
        row = json.loads(done.stdout)
        row.pop("wall_s")
        found.append(row)
    assert found[0] == found[1]
    assert found[0]["delivery_ratio"] > 0.5


def test_a_run_leaves_a_trace(tmp_path: Path) -> None:
    """With --trace the tables that `sojourn audit` reads are written."""
    CliRunner().invoke(app, [*SHORT, f"--trace={tmp_path}", "--json"], catch_exceptions=False)
    assert {path.name for path in tmp_path.iterdir()} >= {"publications", "interests", "deliveries", "runs"}


def test_the_view_shows_nodes_homes_and_perimeter_walks() -> None:
    """Homes stand on the map by letters, and walks round voids are told from other hops."""
    world = World(Manet(scheme="b-gpsr", duration_s=12.0, warmup_s=5.0), hops_logged=HOPS_LOGGED)
    view = ManetView(world)
    screen = Console(width=120, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115  closed at exit
    for _ in world.steps(3.0):
        screen.print(view.frame())
    text = screen.export_text()
    assert "perimeter walk" in text
    assert "▲" in text
    assert "A" in text
    assert view._walks > 0
    watched = World(Manet(duration_s=2.0, warmup_s=1.0), hops_logged=HOPS_LOGGED)
    watch_manet(watched, pace=0, console=Console(width=120, file=Path("/dev/null").open("w")))  # noqa: SIM115 - closed at exit
    assert watched.now_s == 2.0


def test_the_view_fits_the_terminal() -> None:
    """On 80 by 24 characters all of the map is seen; a pipe and a large terminal have room."""
    world = World(Manet(duration_s=2.0, warmup_s=1.0), hops_logged=HOPS_LOGGED)
    small = Console(width=80, height=24, force_terminal=True, record=True, file=io.StringIO())
    small.print(ManetView(world, *fitting(small)).frame())
    lines = small.export_text().splitlines()
    assert len(lines) < 24
    assert max(len(line) for line in lines) <= 80
    assert fitting(Console(width=200, height=60, force_terminal=True, file=io.StringIO())) == (COLUMNS, ROWS)
    assert fitting(Console(file=io.StringIO())) == (COLUMNS, ROWS)


def test_an_unknown_scheme_is_refused_in_a_sentence() -> None:
    """The sentence names the schemes there are."""
    with pytest.raises(SojournError, match=r"scheme may be .*b-gpsr-map"):
        CliRunner().invoke(app, ["simulate", "manet", "--scheme=smoke"], catch_exceptions=False)


def test_a_row_of_the_benchmark_says_what_it_measured() -> None:
    """Rows reach a thousand nodes on 5 km; one small row has its figures."""
    every = rows()
    assert any(manet.nodes == 1000 and manet.map.startswith("city:5000") for manet in every.values())
    row = measure(Manet(duration_s=5.0, warmup_s=1.0))
    assert row["events"] > 0
    assert row["seconds"] > 0
    assert set(SCHEMES) >= {manet.scheme for manet in every.values()}
