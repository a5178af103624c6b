"""`sojourn doctor`: what is wrong is told with the way out, and only that is an error."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from sojourn.cli import doctor as doctors
from sojourn.cli.main import main


def ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, Any]:
    """Call the doctor; return the exit code and the findings."""
    monkeypatch.setattr("sys.argv", ["sojourn", "doctor", "--json", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    assert isinstance(code, int)
    return code, json.loads(capsys.readouterr().out or "null")


def test_a_machine_with_everything_is_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the machine is that runs these tests: all extras, Java, and kernels that are kept."""
    code, found = ask(monkeypatch, capsys, "--needs", "bench")
    assert code == 0
    assert {found[what]["state"] for what in ("python", "[bench]", "java", "kernels")} == {"ok"}


def test_what_is_missing_is_wrong_only_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Spark a broker is a whole broker."""
    there = doctors._is_there
    monkeypatch.setattr(doctors, "_is_there", lambda name: name != "pyspark" and there(name))
    code, found = ask(monkeypatch, capsys)
    assert code == 0
    assert found["[spark]"] == {"state": "missing", "text": "no Spark: pip install 'sojourn[spark]'"}
    code, found = ask(monkeypatch, capsys, "--needs", "spark")
    assert code == 1
    assert found["[spark]"]["state"] == "wrong"
    assert ask(monkeypatch, capsys, "--needs", "sparc") == (2, None)


def test_java_that_is_missing_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With what to install."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    code, found = ask(monkeypatch, capsys, "--needs", "spark")
    assert code == 1
    assert "openjdk" in found["java"]["text"]


def test_ports_and_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that somebody has is worth a note; a clock of the last century is wrong."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = doctors._port(port, "a port", "take another")
        assert (found.state, found.text) == ("note", "somebody else has it; a port (take another)")
    assert doctors._port(port, "a port", "take another").state == "ok"
    monkeypatch.setattr(time, "time", lambda: 900_000_000.0)
    assert doctors._clock().state == "wrong"


def test_each_port_is_told_with_its_own_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--port` is where clients connect; a page's port stands in the file of its broker."""

    class Taken(socket.socket):
        def bind(self, address: object) -> None:
            raise OSError(f"somebody has {address}")

    monkeypatch.setattr("socket.socket", Taken)
    found = {one.what: one for one in doctors.examine([]) if one.what.startswith("port ")}
    assert {one.state for one in found.values()} == {"note"}
    assert "`serve --port` without a file" in found["port 1883"].text
    assert "--port" not in found["port 8080"].text
    assert "`page` in its broker's file" in found["port 8080"].text
