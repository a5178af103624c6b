"""Mosquitto as a process of its own, which cannot say which port it got: it is given one, or another."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
TRIES = 5
START_S = 20.0


class Mosquitto:
    """A Mosquitto that can be killed and started again."""

    def __init__(self, folder: Path, lines: str = "") -> None:
        self._config = folder / "mosquitto.conf"
        for _ in range(TRIES):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = int(probe.getsockname()[1])
            self._config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\n{lines}")
            if self._starts():
                break
        else:
            raise AssertionError(f"Mosquitto got none of {TRIES} ports")
        self.url = f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Run it again and wait until it listens."""
        assert self._starts(), "Mosquitto ended at once"

    def _starts(self) -> bool:
        assert MOSQUITTO is not None
        self.process = subprocess.Popen([MOSQUITTO, "-c", str(self._config)], stderr=subprocess.DEVNULL)
        until = time.monotonic() + START_S
        while self.process.poll() is None:
            assert time.monotonic() < until, "Mosquitto does not listen"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self.process.poll() is None
            time.sleep(0.02)
        return False

    def kill(self) -> None:
        """Stop it without grace."""
        self.process.kill()
        self.process.wait()
