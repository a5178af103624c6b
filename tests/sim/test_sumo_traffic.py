"""Every scheme on SUMO's traffic, where SUMO is installed: `make sumo` in small."""

import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from sojourn.sim.manet.scenario import SCHEMES

SCRIPT = Path(__file__).parents[2] / "scripts" / "sumo_traffic.py"


@pytest.mark.slow
@pytest.mark.skipif(util.find_spec("sumo") is None, reason="SUMO is an extra: `make sumo` installs it")
def test_every_scheme_runs_on_sumos_traffic(tmp_path: Path) -> None:
    """A row a scheme and movement, deliveries on both, and a page with the figures."""
    command = [sys.executable, str(SCRIPT), "--out", str(tmp_path), "--seeds", "1", "--duration", "100"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, *rows, page = done.stdout.splitlines()
    found = {tuple(row.split()[:2]): float(row.split()[2]) for row in rows}
    assert set(found) == {(scheme, movement) for scheme in SCHEMES for movement in ("SUMO", "model")}
    assert all(0 < delivery <= 1 for delivery in found.values())
    assert "on SUMO's traffic" in Path(page).read_text(encoding="utf-8").replace("&#x27;", "'")
