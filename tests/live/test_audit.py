"""The audit log: every refusal with who and why, in lines that nobody forges and files with a limit."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from sojourn.live import audit
from sojourn.live.audit import LINES_S_MAX, AuditLog
from sojourn.live.brokers.admission import hash_password
from tests.live.raw_client import Raw, running_broker


def lines(path: Path) -> list[dict[str, Any]]:
    """What stands in a log."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_refusals_are_noted_with_who_and_why(tmp_path: Path) -> None:
    """Connects, subscriptions and publishes; no password, and no line that a client wrote."""
    path = tmp_path / "one.toml"
    path.write_text(
        '[security]\naudit = "audit"\nanonymous = false\n[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'
        f'[[users]]\nname = "ann"\npassword = "{hash_password("secret")}"\npublish = []\nsubscribe = []\n'
    )
    name = 'x\n{"what": "forged"}'
    with running_broker(str(path)) as broker:
        with Raw(broker.port) as client:
            client.connect(name, username="ann", password=b"hunter2")
        with Raw(broker.port) as client:
            client.connect("phone", username="ann", password=b"secret")
            client.subscribe("a/#")
            client.publish("b", b"", 1)
    log = tmp_path / "audit" / "B1.jsonl"
    found = [(line["what"], line["why"], line["client"], line["user"]) for line in lines(log)]
    assert found == [
        ("connect", "bad_user_name_or_password", name, "ann"),
        ("subscribe", "not_authorized", "phone", "ann"),
        ("publish", "not_authorized", "phone", "ann"),
    ]
    assert "hunter2" not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700


def test_a_flood_is_counted_and_a_full_file_is_kept_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many lines a second, then a number; two files at the most."""
    log = AuditLog(tmp_path, "B1")
    for _ in range(LINES_S_MAX + 30):
        log.note(1_000.5, {"what": "connect", "client": "x" * 10_000})
    log.note(1_001.5, {"what": "connect"})
    found = lines(log.path)
    assert len(found) == LINES_S_MAX + 1
    assert found[-1]["left_out_before"] == 30
    assert max(len(line.get("client", "")) for line in found) == audit.TEXT_MAX
    monkeypatch.setattr(audit, "FILE_BYTES_MAX", 2_000)
    for second in range(200):
        log.note(2_000.0 + second, {"what": "connect", "client": "phone"})
    assert {path.name for path in tmp_path.iterdir()} == {"B1.jsonl", "B1.jsonl.1"}
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 20_000
    assert log.path.stat().st_size <= 2_000


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    """It is said in the broker's own log instead."""
    (tmp_path / "file").write_text("")
    AuditLog(tmp_path / "file", "B1").note(1.0, {"what": "connect"})
