"""`sojourn serve`: logs for machines, reports, and all brokers of a file with one end."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from rich.console import Console
from tests.live.raw_client import Raw
from tests.running import running

from sojourn.cli.logs import JsonLines, TextLines
from sojourn.cli.main import main
from sojourn.cli.serve import StatusLines
from sojourn.cli.serve_all import (
    FAILURES_MAX,
    LONGEST_PAUSE_S,
    STEADY_S,
    Keeper,
    Watched,
    view,
    wait_for_brokers,
    wait_for_links,
)
from sojourn.live.addresses import FolderBook
from sojourn.live.brokers.fleet import FleetError
from sojourn.live.config import read_config
from sojourn.live.links.secret import write_secret
from sojourn.live.page.status import LinkState, Report

SOJOURN = [sys.executable, "-m", "sojourn.cli.main"]


def two_brokers(folder: Path) -> Path:
    """The configuration of two brokers with stores."""
    text = 'links = [["B1", "B2"]]\nnetwork.secret = "network.secret"\n'
    write_secret(folder / "network.secret")
    for number in (0, 1):
        text += f'[[brokers]]\nname = "B{number + 1}"\nlisten = "127.0.0.1:0"\npeers = "127.0.0.1:0"\n'
        text += f'store = "stores/B{number + 1}"\n'
    path = folder / "two.toml"
    path.write_text(text)
    return path


def test_all_brokers_run_come_back_and_stop_together(tmp_path: Path) -> None:
    """A broker that is killed is started again and serves from its store; SIGTERM ends them all."""
    path = two_brokers(tmp_path)
    command = [*SOJOURN, "serve", str(path), "--all", "--logs", str(tmp_path / "logs"), "--log", "json"]
    with running(command, stderr=subprocess.PIPE) as fleet:
        assert fleet.stderr is not None
        said = read_until(fleet.stderr, "Ctrl-C stops them all")
        port = int(re.search(r"broker B2 listens on mqtt://127.0.0.1:(\d+)", said)[1])  # type: ignore[index]  # it is there, or the test fails
        logs = (tmp_path / "logs").glob("*.log")
        assert said.splitlines()[-1].endswith(" ready; Ctrl-C stops them all")
        assert any(is_link_up(line) for log in logs for line in log.read_text().splitlines())
        children = list(map(int, Path(f"/proc/{fleet.pid}/task/{fleet.pid}/children").read_text().split()))
        assert len(children) == 2
        with Raw(port) as client:
            client.connect("kept", session_expiry_interval=600)
        os.kill(children[1], signal.SIGKILL)
        said = read_until(fleet.stderr, "started again")
        assert "B2 was ended by signal 9" in said
        assert connect_again(port, "kept").session_present
        fleet.send_signal(signal.SIGTERM)
        _, said = fleet.communicate(timeout=30)
        assert "listens on" not in said, "it came back where it was"
    assert fleet.returncode == 0
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    lines = [json.loads(line) for line in (tmp_path / "logs" / "B2.log").read_text().splitlines()]
    events = [line["event"] for line in lines]
    assert events.count("revived") == 2
    assert {"at", "level", "logger", "event"} <= lines[0].keys()
    assert any(line["event"] == "link" and line["peer"] == "B1" and line["up"] for line in lines)


def test_one_damaged_store_stops_one_broker(tmp_path: Path) -> None:
    """The others serve; that one is named with what is wrong and the way out, and given up in the end."""
    path = two_brokers(tmp_path)
    store = tmp_path / "stores" / "B1"
    store.mkdir(parents=True)
    (store / "about").write_text("no store")
    command = [*SOJOURN, "serve", str(path), "--all", "--logs", str(tmp_path / "logs")]
    with running(command, stderr=subprocess.PIPE) as fleet:
        assert fleet.stderr is not None
        said = read_until(fleet.stderr, "Ctrl-C stops them all")
        assert f"sojourn store repair {store}" in said
        assert said.splitlines()[-1].endswith(" ready, without B1; Ctrl-C stops them all")
        port = int(re.search(r"broker B2 listens on mqtt://127.0.0.1:(\d+)", said)[1])  # type: ignore[index]  # it is there, or the test fails
        with Raw(port) as client:
            assert client.connect("guest").reason_code == 0
        if "given up" not in said:
            said += read_until(fleet.stderr, "given up")
        assert "no link" not in said, "one that fails is not waited for"
        assert "B1 ended with code 2 and is given up" in said
        assert "Traceback" not in said
        fleet.send_signal(signal.SIGTERM)
        fleet.communicate(timeout=30)
    assert fleet.returncode == 0


def is_link_up(line: str) -> bool:
    """Whether a broker logs there that it is linked with another."""
    entry = json.loads(line)
    return bool(entry["event"] == "link" and entry["up"])


def read_until(stream: Any, text: str) -> str:
    """Read lines up to one with a text."""
    said = ""
    line: str
    for line in stream:
        said += line
        if text in line:
            return said
    raise AssertionError(f"never said {text!r}: {said}")


def connect_again(port: int, client_id: str) -> Any:
    """Connect once the broker is back."""
    until = time.monotonic() + 30
    while True:
        try:
            with Raw(port) as client:
                return client.connect(client_id, clean_start=False, session_expiry_interval=600)
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--all"], "give FILE"),
        (["two.toml", "--all", "--broker", "B1"], "none of the other choices"),
        (["two.toml"], "say which with --broker, or --all"),
    ],
)
def test_choices_that_do_not_fit(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Options that contradict one another are refused in a sentence."""
    two_brokers(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["sojourn", "serve", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


class FakeFleet:
    """Processes that end whenever they are looked at."""

    def __init__(self, code: int) -> None:
        self.processes = {"B1": self}
        self.returncode = code
        self.restarted = 0

    def poll(self) -> int:
        """It has ended."""
        return self.returncode

    def restart(self, _name: str) -> None:
        """It begins again."""
        self.restarted += 1

    def report(self, _name: str) -> None:
        """It says nothing."""

    def listening(self, _name: str) -> None:
        """It says nothing."""

    def log(self, _name: str) -> str:
        """What it said before."""
        return "sojourn: The store is broken.\n"

    def log_path(self, name: str) -> Path:
        """Where that is."""
        return Path(name)

    def has_left(self, _name: str) -> bool:
        """Whether it left the network in order."""
        return self.returncode == 0


def test_a_broker_that_has_left_is_not_started_again() -> None:
    """Its end is said once, and that is all."""
    fleet = FakeFleet(0)
    said: list[str] = []
    keeper = Keeper(fleet, said.append)  # type: ignore[arg-type]  # a stand-in
    for second in range(100):
        keeper.look(1_000.0 + second)
    assert said == ["B1 has left the network"]
    assert not fleet.restarted


def test_a_broker_that_ends_again_and_again_is_given_up() -> None:
    """One that never serves is started a few times, with pauses that grow, and its last words are told."""
    fleet = FakeFleet(2)
    said: list[str] = []
    keeper = Keeper(fleet, said.append)  # type: ignore[arg-type]  # a stand-in
    now, starts = 1_000.0, []
    while not keeper.all_given_up:
        before = fleet.restarted
        keeper.look(now)
        if fleet.restarted > before:
            starts.append(now)
        now += 0.125
        assert now < 1_100.0, "it is given up some day"
    pauses = [later - earlier for earlier, later in pairwise(starts)]
    assert fleet.restarted == FAILURES_MAX - 1
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[0]
    assert "given up" in said[-1]
    assert "The store is broken." in said[-1]


class Dying(FakeFleet):
    """A broker that serves until it is killed."""

    def __init__(self) -> None:
        super().__init__(-9)
        self.is_dead = False

    def poll(self) -> int | None:  # type: ignore[override]  # it lives at first
        """Whether it was killed."""
        return self.returncode if self.is_dead else None

    def restart(self, name: str) -> None:
        """It lives again."""
        super().restart(name)
        self.is_dead = False

    def report(self, _name: str) -> Report | None:  # type: ignore[override]  # it tells while it lives
        """How it is doing."""
        return None if self.is_dead else a_report()


@pytest.mark.parametrize("every_s", [60.0, 10.0])
def test_a_broker_that_is_killed_again_and_again_comes_back(every_s: float) -> None:
    """Somebody kills it for an hour: it is never given up, and at once back if it had run for a while."""
    fleet = Dying()
    keeper = Keeper(fleet, lambda _text: None)  # type: ignore[arg-type]  # a stand-in
    now, longest_s = 0.0, 0.0
    for watched in keeper.watched.values():
        watched.since_s = now
    while now < 3_600.0:
        now += every_s
        fleet.is_dead, killed_s = True, now
        while fleet.is_dead:
            keeper.look(now)
            now += 0.1
            assert not keeper.all_given_up
        longest_s = max(longest_s, now - killed_s)
    assert longest_s < (0.6 if every_s > STEADY_S else LONGEST_PAUSE_S + 0.6)


def a_report(**links: bool) -> Report:
    """What a broker in trouble tells of itself and its links."""
    return Report(
        at_s=1.0, started_s=0.0, clients=12, sessions=14, published=1, delivered=1, published_rate=3.0,
        delivered_rate=1234.0, handoff_rate=0.0, dropped={"queue full": 7}, refused={"bad_user": 2},
        queue_bytes=2048, handoffs=4, handoff_sum_s=0.01, handoff_buckets=[], store="full", store_bytes=0,
        links={peer: LinkState(up=up, queue_bytes=0, queue_frames=0, refused=0)
               for peer, up in links.items()},
        refusing="no room",
    )  # fmt: skip


class Telling(FakeFleet):
    """Processes that run; B1 tells of its links, of which one stands soon and one after so many reports."""

    def __init__(self, after: int) -> None:
        super().__init__(0)
        self.told = 0
        self.after = after

    def poll(self) -> None:  # type: ignore[override]  # they run
        """They run."""

    def report(self, _name: str) -> Report:  # type: ignore[override]  # they tell
        """How B1 is doing."""
        self.told += 1
        return a_report(B2=self.told > 1, B3=self.told > self.after)


@pytest.mark.parametrize("after", [3, 1_000])
def test_links_are_waited_for_and_missed(after: int) -> None:
    """Until all stand, and no longer than is said; those that do not are named."""
    fleet = Telling(after)
    said: list[str] = []
    keeper = Keeper(fleet, said.append)  # type: ignore[arg-type]  # a stand-in
    assert keeper.missing() == ["of B1"]
    wait_for_links(keeper, threading.Event(), said.append, 60.0 if after == 3 else 0.5)
    assert fleet.told > 2
    assert keeper.missing() == ([] if after == 3 else ["B1-B3"])
    assert any("no link B1-B3;" in text for text in said) == (after != 3)


def test_brokers_that_take_their_time_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before two seconds of silence are over, and again while it lasts; not if all listen at once."""
    monkeypatch.setattr("sojourn.cli.serve_all.SILENT_S", 0.0)
    monkeypatch.setattr("sojourn.cli.serve_all.SAY_EVERY_S", 0.0)
    monkeypatch.setattr("sojourn.cli.serve_all.HASTE_S", 0.0)

    class Slow:
        left: ClassVar = [["B1", "B2"], ["B2"], []]

        def silent(self) -> list[str]:
            return self.left.pop(0)

        def look(self, _now: float) -> None: ...

        def check_some_start(self) -> None: ...

    said: list[str] = []
    wait_for_brokers(Slow(), threading.Event(), said.append)  # type: ignore[arg-type]  # all it is asked
    assert said == ["waiting for B1, B2 to listen, for 0 s", "waiting for B2 to listen, for 0 s"]


def test_the_view_shows_what_is_wrong(tmp_path: Path) -> None:
    """A link that is down, a broker that refuses and one that is gone are all in the picture."""
    config = read_config(two_brokers(tmp_path).read_text())
    report = a_report(B2=False)
    console = Console(width=140, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123 - closed at exit
    console.print(view(config, {"B1": Watched(0.0, report), "B2": Watched(0.0, start_at_s=2.0)}))
    text = console.export_text()
    for part in ("B2 down", "refuses", "ended, comes back", "1,234", "2.0 KiB", "7 queue full", "2 bad user"):
        assert part in text, text


def test_log_lines_carry_their_fields() -> None:
    """Both formats say the fields that came with a record; the JSON one is an object whatever they hold."""
    record = logging.makeLogRecord(
        {"name": "sojourn.node", "levelname": "INFO", "msg": "link %s", "args": ("x",), "peer": "B2",
         "odd": {1, 2}}
    )  # fmt: skip
    line = json.loads(JsonLines().format(record))
    assert line["event"] == "link x"
    assert line["peer"] == "B2"
    assert line["level"] == "info"
    assert line["odd"] == "{1, 2}"
    assert TextLines().format(record).endswith("INFO sojourn.node link x peer=B2 odd={1, 2}")


def test_nobody_forges_a_log_line() -> None:
    """What a client calls itself stays on the line it is mentioned in, in both formats."""
    name = "x\n2026-01-01 00:00:00,000 ERROR sojourn.node all is lost\x1b[2J\u2028é"
    record = logging.makeLogRecord({"name": "sojourn", "levelname": "INFO", "msg": name, "client": name})
    for line in (TextLines().format(record), JsonLines().format(record)):
        assert len(line.splitlines()) == 1
        assert line.isprintable()
    assert "é" in TextLines().format(record)


def test_nobody_forges_a_log_line_by_an_error() -> None:
    """What an error quotes of a client stands behind a mark that no record begins with."""
    name = "x\n2026-01-01 00:00:00,000 ERROR sojourn.node all is lost\x1b[2J"
    try:
        int(name)
    except ValueError:
        record = logging.LogRecord("sojourn", logging.ERROR, "", 0, "wrong", (), sys.exc_info())
    first, *rest = TextLines().format(record).split("\n")
    assert "wrong" in first
    assert rest
    assert all(line.startswith("  | ") and line.isprintable() for line in rest)


@pytest.mark.parametrize("lines", [TextLines(), JsonLines()])
def test_a_traceback_has_a_limit(lines: logging.Formatter) -> None:
    """One of a recursion that went too deep by turns, with an error that quotes much: both ends are told."""

    def one(left: int) -> None:
        if not left:
            raise RecursionError("x" * 10_000)
        other(left - 1)

    def other(left: int) -> None:
        one(left)

    try:
        one(300)
    except RecursionError:
        record = logging.LogRecord("sojourn", logging.ERROR, "", 0, "wrong", (), sys.exc_info())
    text = lines.format(record)
    assert len(text) < 10_000
    assert "lines are left out" in text
    assert "RecursionError: xxx" in text
    assert "test_a_traceback_has_a_limit" in text


def test_a_port_in_use_is_said_in_one_sentence(tmp_path: Path) -> None:
    """Of a client port that somebody has, and of a page that is not ours: neither is announced."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = tmp_path / "one.toml"
        command = [*SOJOURN, "serve", str(path), "--all", "--logs", str(tmp_path / "logs")]
        path.write_text(f'[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:{port}"\n')
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 2
        last = ended.stderr.splitlines()[-1]
        assert f"(B1: another process has 127.0.0.1:{port}): stop what is there first" in last
        assert not (tmp_path / "logs").exists(), "no broker was started, and no log begun anew"
        path.write_text(f'[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\npage = "127.0.0.1:{port}"\n')
        with running(command, stderr=subprocess.PIPE) as fleet:
            assert fleet.stderr is not None
            said = read_until(fleet.stderr, "Ctrl-C stops them all")
            fleet.send_signal(signal.SIGTERM)
            fleet.communicate(timeout=30)
    assert "its page is" not in said
    assert f"B1 runs without its page: Cannot serve the page on 127.0.0.1:{port}: another process" in said


def test_a_broker_tells_how_it_is_doing() -> None:
    """--status prints a line of JSON a second; a broker whose reader has gone stops by itself."""
    command = [*SOJOURN, "serve", "--port", "0", "--status"]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as broker:
        assert broker.stdout is not None
        line = json.loads(broker.stdout.readline())
        assert (line["clients"], line["store"]) == (0, "none")
        broker.stdout.close()
        assert broker.wait(20) == 0


def test_a_broker_serves_where_nobody_can_write_down_what_it_says(tmp_path: Path) -> None:
    """A full disk below standard error and output ends nothing."""
    addresses = tmp_path / "addresses"
    command = [*SOJOURN, "serve", "--port", "0", "--addresses", str(addresses), "--status"]
    with Path("/dev/full").open("wb") as full, running(command, stderr=full, stdout=full) as broker:
        book = FolderBook(addresses)
        until = time.monotonic() + 60
        while (found := book.find("B1")) is None:
            assert time.monotonic() < until
            assert broker.poll() is None
            time.sleep(0.05)
        with Raw(int(found.clients.rpartition(":")[2])) as client:
            assert client.connect("guest").reason_code == 0
            broker.send_signal(signal.SIGHUP)  # that says something, too
            for _ in range(100):  # many turns after it wanted to say where it listens
                assert client.publish("a", b"", 1) in (0, 0x10)
        broker.send_signal(signal.SIGTERM)
        broker.wait(30)


def test_reports_that_cannot_be_written_end_no_broker(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once; a reader that has gone ends the broker."""
    with Path("/dev/full").open("wb") as full:
        monkeypatch.setattr(sys, "stdout", full)
        lines = StatusLines()
        assert [lines(a_report()), lines(a_report())] == [True, True]
    assert caplog.text.count("cannot be written") == 1
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        assert not StatusLines()(a_report())


def test_a_log_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    """At a start that is refused; brokers that run then are stopped."""
    path = two_brokers(tmp_path)
    (tmp_path / "logs" / "B2.log").mkdir(parents=True)
    command = [*SOJOURN, "serve", str(path), "--all", "--logs", str(tmp_path / "logs")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert "B2.log cannot be opened: Is a directory; `--logs` names another folder." in said


def test_who_cannot_be_started_again_for_its_log_is_tried_again() -> None:
    """That is said once, and the others go on meanwhile."""
    fleet = FakeFleet(-9)
    is_full = True

    def restart(_name: str) -> None:
        if is_full:
            raise FleetError("The log B1.log cannot be opened.")
        fleet.restarted += 1

    fleet.restart = restart  # type: ignore[method-assign]  # the disk is full for a while
    said: list[str] = []
    keeper = Keeper(fleet, said.append)  # type: ignore[arg-type]  # as much of a fleet as is asked
    now = time.monotonic()
    for passed_s in (0, 10, 20, 30):
        keeper.look(now + passed_s)
    assert said == [
        "B1 was ended by signal 9",
        "B1 cannot be started again for now: The log B1.log cannot be opened.",
    ]
    is_full = False
    keeper.look(now + 40)
    assert fleet.restarted == 1
