"""The audit log: every refusal with who and why, in lines that nobody forges and files with a limit."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from sojourn.live import audit
from sojourn.live.audit import ADDRESS_LINES_S_MAX, LINES_S_MAX, AuditLog
from sojourn.live.brokers import witnesses
from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.server import Server
from sojourn.live.config import load_config
from sojourn.live.page.metrics import BrokerMetrics
from sojourn.live.store.folder import StoreFolder
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
    for number in range(LINES_S_MAX + 30):
        log.note(1_000.5, {"what": "connect", "client": "x" * 10_000, "address": f"127.0.0.{number}"})
    log.note(1_001.5, {"what": "connect"})
    found = lines(log.path)
    assert len(found) == LINES_S_MAX + 1
    assert found[-1]["left_out_before"] == 30
    assert max(len(line.get("client", "")) for line in found) == audit.TEXT_MAX
    log.note(1_002.5, {"what": "connect", "client": "\U0001f600" * 10_000})
    written = log.path.read_text().splitlines()[-1]
    assert "\\ud83d" in written
    assert len(written) < 2 * audit.TEXT_MAX, "what JSON writes longer has no more room for that"
    monkeypatch.setattr(audit, "FILE_BYTES_MAX", 2_000)
    for second in range(200):
        log.note(2_000.0 + second, {"what": "connect", "client": "phone"})
    assert {path.name for path in tmp_path.iterdir()} == {"B1.jsonl", "B1.jsonl.1"}
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 20_000
    assert log.path.stat().st_size <= 2_000


def test_who_is_refused_very_often_hides_nobody_else(tmp_path: Path) -> None:
    """One address has a share of the lines of a second, and the next line says that it had more."""
    log = AuditLog(tmp_path, "B1")
    for number in range(LINES_S_MAX):
        log.note(1.0, {"what": "connect", "address": "127.0.0.9"})
        log.note(1.0, {"what": "link", "peer": f"127.0.0.8:{40_000 + number}"})
    log.note(1.5, {"what": "connect", "address": "127.0.0.1"})
    found = lines(log.path)
    assert len(found) == 2 * ADDRESS_LINES_S_MAX + 1
    assert found[-1]["address"] == "127.0.0.1"
    assert found[-1]["left_out_before"] == 2 * (LINES_S_MAX - ADDRESS_LINES_S_MAX)
    assert found[-1]["left_out_most_of"] in ("127.0.0.8", "127.0.0.9")


def test_a_host_has_one_share_of_lines_whatever_it_is_refused_for(tmp_path: Path) -> None:
    """By all addresses that it can have, at the ports for clients and for neighbours; lines name each."""
    log = AuditLog(tmp_path, "B1")
    for number in range(LINES_S_MAX):
        log.note(1.0, {"what": "connect", "address": f"2001:db8::{number:x}"})
        log.note(1.0, {"what": "connect", "peer": "192.0.2.1"})
        log.note(1.0, {"what": "link", "peer": "a stranger at 192.0.2.2"})
    log.note(1.0, {"what": "connect", "address": "2001:db8:0:1::1"})
    found = lines(log.path)
    assert len(found) == 3 * ADDRESS_LINES_S_MAX + 1
    assert [line["address"] for line in found if "address" in line] == [
        *(f"2001:db8::{number:x}" for number in range(ADDRESS_LINES_S_MAX)),
        "2001:db8:0:1::1",
    ]


def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    """It is said in the broker's own log instead."""
    (tmp_path / "file").write_text("")
    AuditLog(tmp_path / "file", "B1").note(1.0, {"what": "connect"})


def test_a_full_disk_leaves_no_piece_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written is told by the next line that is, and counted; nothing is glued to it."""
    log = AuditLog(tmp_path, "B1")
    for number in range(LINES_S_MAX + 5):
        log.note(1.0, {"what": f"before {number}", "address": f"127.0.0.{number}"})
    with monkeypatch.context() as full:
        write = os.write
        full.setattr(os, "write", lambda file, line: write(file, line[:10]))
        log.note(2.0, {"what": "lost"})
        log.note(3.0, {"what": "lost"})
    with log.path.open("ab") as file:
        file.write(b'{"at": "20')  # a process that was killed
    log.note(4.0, {"what": "after"})
    log.note(5.0, {"what": "at last"})
    *whole, torn, after, last = log.path.read_text().splitlines()
    assert [json.loads(line)["what"] for line in whole] == [
        f"before {number}" for number in range(LINES_S_MAX)
    ]
    assert torn == '{"at": "20'
    found = json.loads(after)
    assert (found["what"], found["lost_before"], found["left_out_before"]) == ("after", 2, 5)
    assert not {"lost_before", "left_out_before"} & json.loads(last).keys()
    assert log.lost == 2


def test_what_others_could_read_is_narrowed(tmp_path: Path) -> None:
    """The file of a log that was there before; not its folder, in which others may have files of theirs."""
    folder = tmp_path / "audit"
    folder.mkdir()
    log = AuditLog(folder, "B1")
    log.path.touch()
    log.path.chmod(0o644)
    folder.chmod(0o755)
    assert log.trouble() is None
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, log.path)] == [0o755, 0o600]


def test_a_start_and_a_reload_say_that_the_log_cannot_be_written(tmp_path: Path) -> None:
    """Before there is anything to write; what is lost then is in the metrics."""
    path = tmp_path / "one.toml"
    path.write_text(
        '[security]\naudit = "audit"\nanonymous = false\n[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'
    )
    (tmp_path / "audit").write_text("no folder")

    async def scenario() -> None:
        server = Server(load_config(path), "B1")
        server.reread = lambda: load_config(path)
        address = await server.start()
        assert "B1.jsonl cannot be written: " in await server.reload()
        with await asyncio.to_thread(Raw, address.port) as client:
            await asyncio.to_thread(client.connect, "phone")
        assert server.observer is not None
        assert b"sojourn_audit_lost_total 1.0" in BrokerMetrics(server.observer).text()
        (tmp_path / "audit").unlink()
        assert "cannot be written" not in await server.reload()
        assert b"sojourn_audit_lost_total 1.0" in BrokerMetrics(server.observer).text()
        await server.stop()

    with pytest.MonkeyPatch.context() as patched:
        said: list[str] = []
        patched.setattr(witnesses._log, "warning", lambda text, *rest: said.append(text % rest))
        asyncio.run(scenario())
    assert [text for text in said if text.startswith("B1 serves, but the audit log ")]


def test_a_store_that_others_could_read_is_narrowed(tmp_path: Path) -> None:
    """It may be from elsewhere, or from before folders were for their owner alone."""
    StoreFolder.taken(tmp_path / "store", "B1").close()
    (tmp_path / "store").chmod(0o755)
    StoreFolder.taken(tmp_path / "store", "B1").close()
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700
