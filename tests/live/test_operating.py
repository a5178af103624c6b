"""What `sojourn kick`, `ban`, `unban`, `bans` and `reload` say is true, and whom they mean is clear."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from sojourn.cli.main import app
from sojourn.cli.operate import WhomError
from sojourn.errors import SojournError
from sojourn.live.brokers import control, operating
from sojourn.live.brokers.control import Answer, Control, ControlError, ask
from sojourn.live.links.secret import write_secret
from tests.live.raw_client import Raw, running_broker
from tests.live.test_reloading import until

CHOICES = "there are client:ID, user:NAME, address:IP"
THE_OTHERS = "the others are told as soon as they can be reached"
A_CLIENT = "a client of that identifier is client:"
NO_ADDRESS = "is neither an address nor a network such as 10.0.0.0/8"


def said(*arguments: str) -> str:
    """What a command prints that has to succeed."""
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.output


def refusal(*arguments: str) -> SojournError:
    """Why a command is refused."""
    done = CliRunner().invoke(app, [*arguments])
    assert isinstance(done.exception, SojournError), done.output
    return done.exception


@pytest.fixture
def alone(tmp_path: Path) -> str:
    """The configuration of one broker."""
    path = tmp_path / "one.toml"
    path.write_text('[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n')
    return str(path)


@pytest.mark.parametrize("command", ["kick", "ban", "unban"])
@pytest.mark.parametrize(
    ("whom", "sentence"),
    [
        ("user:", f"names nobody: {CHOICES}."),
        ("", f"names nobody: {CHOICES}."),
        ("usr:ann", f"names nobody (perhaps 'user:ann' was meant): {CHOICES}; {A_CLIENT}usr:ann."),
        ("nonsense:x", f"names nobody: {CHOICES}; {A_CLIENT}nonsense:x."),
        ("10.0.0.300", f"{NO_ADDRESS}; {A_CLIENT}10.0.0.300."),
        ("10.0.0/8", f"{NO_ADDRESS}; {A_CLIENT}10.0.0/8."),
        ("address:10.0", f"{NO_ADDRESS}."),
    ],
)
def test_a_slip_of_the_hand_is_no_client(command: str, whom: str, sentence: str, alone: str) -> None:
    """It is refused before any broker is asked, with what there is."""
    refused = refusal(command, whom, alone)
    assert isinstance(refused, WhomError)
    assert str(refused) == f"{whom.removeprefix('address:')!r} {sentence}"


def test_a_broker_without_neighbours_knows_whom_there_is_not(alone: str) -> None:
    """Who is not connected cannot be kicked, and who is not banned cannot be let in again."""
    with running_broker(alone) as broker, Raw(broker.port) as phone:
        phone.connect("phone")
        assert "client:nobody is not connected" in str(refusal("kick", "nobody", alone))
        assert "client:phone is not banned" in str(refusal("unban", "phone", alone))
        found = json.loads(said("kick", "phone", alone, "--json"))
        who = {"broker": "B1", "scope": "client", "whom": "phone", "others_told": False}
        assert found == {**who, "did": "kick", "ended_here": 1}
        assert said("ban", "client:a:b", alone).startswith("ban client:a:b: 0 connections ended")
        assert said("ban", "::1", alone).startswith("ban address:::1: 0 connections ended at B1")
        assert json.loads(said("bans", alone, "--json")) == {
            "broker": "B1",
            "bans": [{"scope": "client", "whom": "a:b"}, {"scope": "address", "whom": "::1"}],
        }
        assert said("unban", "client:a:b", alone) == "unban client:a:b: B1 lets it in again\n"
        assert json.loads(said("unban", "::1", alone, "--json"))["was_banned"] is True
        (read,) = json.loads(said("reload", alone, "--json"))
        assert read["broker"] == "B1"
        assert "read its configuration anew" in read["said"]


def test_a_broker_of_a_network_says_which_others_are_told_later(tmp_path: Path) -> None:
    """It does not know who is at them: nought connections ended here are not nought."""
    assert write_secret(tmp_path / "network.secret")
    text = 'links = [["B1", "B2"]]\nnetwork = {secret = "network.secret"}\n'
    for name in ("B1", "B2"):
        text += f'[[brokers]]\nname = "{name}"\nlisten = "127.0.0.1:0"\npeers = "127.0.0.1:0"\n'
    path = tmp_path / "two.toml"
    path.write_text(text)
    with running_broker(str(path), "--broker", "B1"):
        told = "B2 is out of reach now, and told when it is back\n"
        assert said("kick", "far", str(path)) == f"kick client:far: 0 connections ended at B1; {told}"
        assert said("unban", "far", str(path)) == f"unban client:far: B1 knew of no such ban; {told}"
        found = json.loads(said("unban", "far", str(path), "--json"))
        assert (found["others_told"], found["was_banned"]) == (False, False)
        assert found["out_of_reach"] == ["B2"]


@pytest.mark.parametrize(
    ("count", "missing", "sentence"),
    [
        (3, [], "the other brokers are told as soon as they can be reached"),
        (
            3,
            ["B2"],
            f"B2 is out of reach now, and told when it is back; {THE_OTHERS}",
        ),
        (3, ["B2", "B3"], "B2, B3 are out of reach now, and told when they are back"),
        (
            12,
            [f"B{number:02}" for number in range(1, 11)],
            ", ".join(f"B{number:02}" for number in range(1, 9))
            + f" and 2 more are out of reach now, and told when they are back; {THE_OTHERS}",
        ),
    ],
)
def test_an_order_names_who_hears_of_it_later(count: int, missing: list[str], sentence: str) -> None:
    """A few by name, and whether anybody else is there."""
    node: Any = SimpleNamespace(broker=SimpleNamespace(settings=SimpleNamespace(brokers=("B",) * count)))
    assert operating._who_is_told(node, missing) == sentence


def test_an_address_is_the_same_however_it_is_written(alone: str) -> None:
    """A ban is ended by another way to write it, and listed in one way."""
    pairs = [
        ("10.1.2.3/32", "10.1.2.3"),
        ("2001:DB8::1", "2001:db8:0::1"),
        ("::ffff:10.1.2.4", "10.1.2.4"),
        ("10.2.0.1/16", "10.2.0.0/16"),
    ]
    with running_broker(alone):
        for one, other in pairs:
            said("ban", f"address:{one}", alone)
            assert said("bans", alone) == f"address:{other.replace('db8:0', 'db8')}\n"
            assert "lets it in again" in said("unban", f"address:{other}", alone)
        with pytest.raises(ControlError, match="no client can be called that"):
            ask(Path(alone).parent / "control", "B1", {"command": "ban", "whom": "\ud800"})


def test_operators_find_their_way_back(alone: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder that was taken away is made anew, by SIGHUP or by itself."""
    folder = tmp_path / "control"
    with running_broker(alone) as broker:
        shutil.rmtree(folder)
        broker.process.send_signal(signal.SIGHUP)
        until((folder / "B1.socket").exists)
        until(lambda: said("bans", alone) == "")
    monkeypatch.setattr(control, "LOOK_S", 0.01)

    async def scenario() -> None:
        found = Control(folder, "B1", {})
        await found.start()
        shutil.rmtree(folder)
        await asyncio.to_thread(until, found.path.exists)
        await found.stop()
        assert not found.path.exists()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_broker_that_is_told_to_reload_while_it_starts_does_so_later(alone: str) -> None:
    """SIGHUP from the first moment on, as a fleet lets it wait, and from the command on by itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "sojourn.cli.main", "serve", alone], stderr=subprocess.PIPE, text=True
        )
        process.send_signal(signal.SIGHUP)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert process.stderr is not None
    said_first = [process.stderr.readline(), process.stderr.readline()]
    assert any("read its configuration anew" in line for line in said_first), said_first
    assert any("listens on" in line for line in said_first), said_first
    process.terminate()
    assert process.wait(60) == 0
    process.stderr.close()
    lines = ("import sys, signal", "sys.argv[1:] = ['serve']", "import sojourn.cli", "signal.raise_signal(1)")
    there = "\n".join((*lines, "print('there')"))
    done = subprocess.run([sys.executable, "-c", there], capture_output=True, text=True, check=True)
    assert done.stdout == "there\n"


def test_answers_may_be_longer_than_what_is_asked(tmp_path: Path) -> None:
    """As many bans as a broker remembers are printed; what is asked stays short."""
    many = [{"scope": "client", "whom": f"phone-{number}"} for number in range(10_000)]

    async def on_bans(_asked: Mapping[str, Any]) -> Answer:
        return Answer("", {"bans": many})

    async def talk() -> Answer:
        found = Control(tmp_path, "B1", {"bans": on_bans})
        await found.start()
        try:
            with pytest.raises(ControlError):
                await asyncio.to_thread(ask, tmp_path, "B1", {"command": "x" * 100_000})
            return await asyncio.to_thread(ask, tmp_path, "B1", {"command": "bans"})
        finally:
            await found.stop()

    assert asyncio.run(talk()).found == {"broker": "B1", "bans": many}
