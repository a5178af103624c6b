"""A broker that may open few files: clients do not take the last ones, and that is said in one sentence."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.live.raw_client import Raw

FILES = 64
WAIT_S = 60.0


def test_a_broker_without_files_for_more_clients_says_so_and_serves_on(tmp_path: Path) -> None:
    """It is called by more than it can take: no traceback, no busy loop, and who comes later is served."""
    config = tmp_path / "one.toml"
    config.write_text(
        '[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\nstore = "store"\npage = "127.0.0.1:0"\n'
    )
    said = tmp_path / "said"
    serve = f"ulimit -n {FILES}; exec {sys.executable} -m sojourn.cli.main serve {config}"
    with said.open("w") as log, subprocess.Popen(["/bin/sh", "-c", serve], stderr=log) as broker:
        port = int(_wait_for(said, r"mqtt://127\.0\.0\.1:(\d+)"))
        guests = [socket.create_connection(("127.0.0.1", port)) for _ in range(3 * FILES)]
        count = int(_wait_for(said, r"B1 has (\d+) connections, as many as the limit on open files"))
        assert FILES // 4 < count < FILES
        page = int(_wait_for(said, r"http://127\.0\.0\.1:(\d+)"))
        status, ready = _get(page, "/readyz")
        assert (status, "limit on open files" in ready) == (503, True)
        assert _get(page, "/healthz")[0] == 200, "a restart would help nobody"
        assert 'sojourn_refused_total{reason="no file left for a connection"}' in _get(page, "/metrics")[1]
        time.sleep(1.2)  # the broker reports every second, for which it opens files
        for guest in guests:
            guest.close()
        until = time.monotonic() + WAIT_S
        while True:
            try:
                with Raw(port) as client:
                    assert client.connect("late").reason_code == 0
                break
            except (OSError, EOFError):
                assert time.monotonic() < until, "who comes later is never served"
                time.sleep(0.05)
        while _get(page, "/readyz")[0] != 200:
            assert time.monotonic() < until, "it is never ready again"
            time.sleep(0.05)
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(WAIT_S) == 0
    text = said.read_text()
    assert "Traceback" not in text
    assert text.count("limit on open files") == 1


def _get(port: int, path: str) -> tuple[int, str]:
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    asking.request("GET", path)
    answer = asking.getresponse()
    return answer.status, answer.read().decode()


def _wait_for(said: Path, pattern: str) -> str:
    until = time.monotonic() + WAIT_S
    while (found := re.search(pattern, said.read_text())) is None:
        assert time.monotonic() < until, said.read_text()
        time.sleep(0.05)
    return found[1]
