"""Our AODV and radio beside ns-3's, where ns-3 is installed: `make ns3` in small."""

import json
import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "compare_ns3.py"


@pytest.mark.slow
@pytest.mark.skipif(util.find_spec("ns3") is None, reason="ns-3 is an extra: `make ns3` installs it")
@pytest.mark.skipif(shutil.which("g++") is None, reason="ns-3's program is compiled with g++")
def test_delivery_and_delay_are_ns3s_on_the_same_roads() -> None:
    """Where all nodes have paths, delivery is within five points of ns-3's, delay within a factor of two."""
    command = [sys.executable, str(SCRIPT), "--duration", "60", "--sides", "800"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["packets"] == 1200
    assert found["path_at_sending"] == 1.0
    assert abs(found["delivery"] - found["delivery_ns3"]) <= 0.05
    assert 0.5 < found["delay_ms"] / found["delay_ms_ns3"] < 2.0
    assert found["times_as_fast"] > 3
