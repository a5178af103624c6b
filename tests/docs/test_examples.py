"""Every program of `examples/` runs against brokers that `sojourn serve` started, and says what it should."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.terminals import Terminal, own_host, surroundings

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
RUN_S = 240


def run(program: str, *arguments: str) -> str:
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / program), *arguments],
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", ["moving_car.py", "quenching_sensor.py", "replicas.py"])
def test_where_no_broker_runs_one_sentence_says_so(program: str) -> None:
    """And not a traceback."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and not listened to
        address = f"mqtt://127.0.0.1:{nobody.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / program), address, address],
            capture_output=True, text=True, timeout=RUN_S, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert re.fullmatch(r".*`sojourn serve` starts a broker\.\n", done.stderr)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Three linked brokers."""
    folder, host = tmp_path_factory.mktemp("line"), own_host()
    with ExitStack() as ends:
        terminal = Terminal(folder, folder, "no host to replace")
        ends.callback(terminal.stop)
        terminal.type("sojourn init line line.toml")
        terminal.wait_for(["…"], to_the_end=True)
        file = folder / "line.toml"
        file.write_text(file.read_text().replace("127.0.0.1", host))
        terminal.type("sojourn serve line.toml --all")
        terminal.wait_for(["…", "sojourn: ready; Ctrl-C stops them all"], to_the_end=False)
        yield [f"mqtt://{host}:{1883 + number}" for number in range(3)]


def test_a_car_misses_nothing(urls: list[str]) -> None:
    """It visits all brokers."""
    assert run("moving_car.py", *urls) == (
        "the car drove B1 -> B2 -> B3 and heard 10 of 10 fast cars\neach once and in order\n"
    )


def test_a_sensor_keeps_back_what_nobody_wants(urls: list[str]) -> None:
    """Also what somebody at another broker does not want."""
    said = run("quenching_sensor.py", urls[0], urls[2]).splitlines()
    assert said == [
        "nobody asked: 6 of 6 kept back",
        "somebody asked: 4 of 6 kept back, [35, 41] heard",
    ]


def test_replicas_show_each_event_once(tmp_path: Path) -> None:
    """Of two brokers that know nothing of each other."""
    host = own_host()
    with ExitStack() as ends:
        for port in (1883, 1884):
            terminal = Terminal(tmp_path, tmp_path, "no host to replace")
            ends.callback(terminal.stop)
            terminal.type(f"sojourn serve --host {host} --port {port}")
            terminal.wait_for([f"sojourn: broker … listens on mqtt://{host}:{port} …"], to_the_end=False)
        said = run("replicas.py", f"mqtt://{host}:1883", f"mqtt://{host}:1884")
    assert said == "shown from 2 replicas: 0 to 19, 20 events\neach once and in order\n"


def test_cars_of_sumo_move_between_brokers(urls: list[str], tmp_path: Path) -> None:
    """A file as SUMO writes it: two cars drive through the city, one of them stands for a while."""
    steps: list[list[tuple[int, int, float]]] = [
        [(0, 100, 10), (1, 900, 10)],
        [(0, 400, 0), (1, 600, 10)],
        [(0, 500, 0.2), (1, 100, 10)],
    ]
    text = "".join(
        f'<timestep time="{5 * number}.00">'
        + "".join(f'<vehicle id="{car}" x="{x}.0" y="0.0" speed="{speed}"/>' for car, x, speed in seen)
        + "</timestep>"
        for number, seen in enumerate(steps)
    )
    file = tmp_path / "fcd.xml"
    file.write_text(f"<fcd-export>{text}</fcd-export>")
    assert run("sumo_city.py", str(file), *urls) == "2 cars moved 3 times and heard 4 of 4 events\n"


def test_the_notebook_is_small_and_has_no_outputs() -> None:
    """What was found belongs to who ran it."""
    path = EXAMPLES / "trace.ipynb"
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert path.stat().st_size < 20_000
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    for cell in cells:
        compile("".join(cell["source"]), path.name, "exec")


@pytest.mark.slow
def test_the_notebook_reads_a_trace(tmp_path: Path) -> None:
    """All cells in order, on the trace of a simulated building."""
    simulated = subprocess.run(
        ["sojourn", "simulate", "roaming", "--duration-s", "20", "--trace", str(tmp_path / "trace")],  # noqa: S607 - from the path, as a user has it
        env=surroundings(), capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert simulated.returncode == 0, simulated.stderr
    cells = json.loads((EXAMPLES / "trace.ipynb").read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SOJOURN_TRACE": str(tmp_path / "trace")},
        capture_output=True, text=True, timeout=RUN_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"'lost': 0, 'duplicated': 0, 'out_of_order': 0", done.stdout), done.stdout
    assert "moves" in done.stdout
