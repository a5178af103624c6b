"""Real brokers that keep copies, as the template has them: one joins, a disk is lost, one leaves again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sojourn.cli.main import app
from sojourn.errors import SojournError
from sojourn.live.brokers.control import ControlError, ask
from sojourn.live.brokers.fleet import Fleet
from sojourn.live.config import load_config
from sojourn.live.templates import template
from tests.live.test_join_and_leave import Reader, Writer, roll, serving, sojourn, until, without_repeats


def line(path: Path) -> None:
    """Write the template of three brokers as it comes, but on any ports."""
    path.with_name("line.secret").write_text("s" * 64)
    path.with_name("line.secret").chmod(0o600)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:0", template("line"))
    path.write_text(re.sub(r'secret = "[^"]*"', 'secret = "line.secret"', text))
    assert load_config(path).mobility.copies == 1


def told(path: Path, broker: str) -> dict[str, Any]:
    """What a broker's process knows of who votes; nothing while it does not answer."""
    try:
        found: dict[str, Any] = ask(str(load_config(path).network.control), broker, {"command": "roll"}).found
    except ControlError:
        return {}
    return found


def are_voters(path: Path, names: list[str]) -> bool:
    """Whether these are on the roll, as all of them know, each is at home, and all copies are whole."""
    known = [told(path, name) for name in names]
    return all(one and one["voters"] == names and not one["plays"] and not one["at_risk"] for one in known)


def lose(path: Path, fleet: Fleet, name: str) -> None:
    """Kill a process and delete all that is on its disk."""
    fleet.processes[name].kill()
    fleet.processes[name].wait()
    for folder in (path.parent / "stores").glob(f"{name}*"):
        shutil.rmtree(folder) if folder.is_dir() else folder.unlink()


def test_a_broker_joins_those_with_copies_and_leaves_after_a_disk_was_lost(tmp_path: Path) -> None:
    """A plain client misses nothing meanwhile, and gets nothing twice."""
    path = tmp_path / "line.toml"
    line(path)
    with serving(path, ["B1", "B2", "B3"]) as fleet:
        until(lambda: are_voters(path, ["B1", "B2", "B3"]))
        stays, rider = Reader("stays"), Reader("rider")
        stays.connect(fleet.url("B1"))
        stays.subscribe()
        rider.connect(fleet.url("B3"))
        rider.subscribe()
        writer = Writer(fleet.url("B1"))
        assert "B4 may join here" in sojourn("join", str(path), "B4", "--link", "B3")
        with serving(path, ["B4"]) as fourth:
            until(lambda: are_voters(path, ["B1", "B2", "B3", "B4"]))
            until(lambda: all(roll(path, name) == (["B4"], []) for name in ("B1", "B2", "B3", "B4")))
            rider.leave()
            rider.connect(fourth.url("B4"))
            before = writer.sent
            until(lambda: rider.got and rider.got[-1] > before + 20)
            rider.leave()
            lose(path, fleet, "B2")
            until(lambda: any("B2" in told(path, name).get("plays", ()) for name in ("B1", "B3", "B4")))
            fleet.restart("B2")
            until(lambda: are_voters(path, ["B1", "B2", "B3", "B4"]))
            assert "B4 has left the network" in sojourn("leave", str(path), "B4")
            until(lambda: fourth.processes["B4"].poll() is not None)
            assert fourth.processes["B4"].returncode == 0
        until(lambda: are_voters(path, ["B1", "B2", "B3"]))
        before = writer.sent
        until(lambda: writer.sent > before + 20)
        rider.connect(fleet.url("B2"))
        writer.stop()
        until(lambda: len(stays.got) >= writer.sent)
        assert stays.got == list(range(writer.sent))
        until(lambda: rider.got[-1] == writer.sent - 1)
        assert without_repeats(rider.got) == list(range(writer.sent))
        assert rider.present == [False, True, True]
        assert stays.ends == 0
        stays.leave()
        rider.leave()
    assert [one.name for one in load_config(path).brokers] == ["B1", "B2", "B3"]


def test_a_broker_that_lost_its_disk_lets_in_whom_its_file_invites(tmp_path: Path) -> None:
    """It lost it between the command and the start of the one that joins."""
    path = tmp_path / "line.toml"
    line(path)
    with serving(path, ["B1", "B2", "B3"]) as fleet:
        until(lambda: are_voters(path, ["B1", "B2", "B3"]))
        assert "B4 may join here" in sojourn("join", str(path), "B4", "--link", "B3")
        lose(path, fleet, "B3")
        fleet.restart("B3")
        until(lambda: are_voters(path, ["B1", "B2", "B3"]))
        with serving(path, ["B4"]):
            until(lambda: are_voters(path, ["B1", "B2", "B3", "B4"]))


def test_a_broker_that_is_gone_for_good_leaves_from_where_it_is_played(tmp_path: Path) -> None:
    """Its process is dead and its disk deleted; the session that was there goes on elsewhere, whole."""
    path = tmp_path / "line.toml"
    line(path)
    with serving(path, ["B1", "B2", "B3"]) as fleet:
        until(lambda: are_voters(path, ["B1", "B2", "B3"]))
        sojourn("join", str(path), "B4", "--link", "B3")
        with serving(path, ["B4"]) as fourth:
            until(lambda: are_voters(path, ["B1", "B2", "B3", "B4"]))
            until(lambda: roll(path, "B1") == (["B4"], []))
            rider = Reader("rider")
            rider.connect(fourth.url("B4"))
            rider.subscribe()
            writer = Writer(fleet.url("B1"))
            until(lambda: len(rider.got) > 20)
            rider.leave()
            lose(path, fourth, "B4")
            with pytest.raises(SojournError, match="does not run on this machine"):
                sojourn("leave", str(path), "B4")
            until(lambda: any("B4" in told(path, name).get("plays", ()) for name in ("B1", "B2", "B3")))
            assert "B4 has left the network" in sojourn("leave", str(path), "B4", "--dead")
        until(lambda: are_voters(path, ["B1", "B2", "B3"]))
        rider.connect(fleet.url("B2"))
        assert rider.present == [False, True]
        writer.stop()
        until(lambda: rider.got[-1] == writer.sent - 1)
        assert without_repeats(rider.got) == list(range(rider.got[0], writer.sent))
        rider.leave()
    assert [one.name for one in load_config(path).brokers] == ["B1", "B2", "B3"]


@pytest.mark.parametrize("copies", [0, 1])
def test_who_leaves_two_behind_is_told_what_copies_mean_then(tmp_path: Path, copies: int) -> None:
    """Each waits while the other is away; without copies nobody waits, and of four three are left."""
    path = tmp_path / "line.toml"
    line(path)
    path.write_text(path.read_text().replace("\ncopies = 1\n", f"\ncopies = {copies}\n"))
    warning = "sojourn: B1 and B2 are left then, and with copies = 1 in [mobility] each waits while"
    done = CliRunner().invoke(app, ["leave", str(path), "B3"])
    assert (warning in done.stderr) == bool(copies)
    sojourn("join", str(path), "B4", "--link", "B3")
    assert "are left then" not in CliRunner().invoke(app, ["leave", str(path), "B4"]).stderr
