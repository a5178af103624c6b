"""The script that kills brokers runs from beginning to end and finds nothing missing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("options", [[], ["--delete-stores"]], ids=["stores kept", "stores deleted"])
def test_nothing_acknowledged_is_lost_while_brokers_are_killed(options: list[str], tmp_path: Path) -> None:
    """Brokers are killed in turn for half a minute; those that keep their stores lose nothing."""
    command = [sys.executable, "scripts/kill_brokers.py", "--seconds", "30", "--every", "8", "--any-ports"]
    ended = subprocess.run(
        [*command, "--keep", str(tmp_path), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "killed B3" in ended.stdout
