"""`sojourn store`: every kind of damage is found, told and mended, and what is in a store can be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mqtt5 import ConnectPacket
from tests.live.hall import Hall, line
from typer.testing import CliRunner

from sojourn.broker import facts
from sojourn.broker.records import SEGMENT_HEAD_BYTES, segment_head, write_batch
from sojourn.broker.settings import Settings
from sojourn.cli.main import main
from sojourn.cli.store import app
from sojourn.live.config import BrokerConfig, Config
from sojourn.live.store.errors import JournalError
from sojourn.live.store.journal import Journal
from sojourn.live.store.keeper import Keeper

Damage = Callable[[Path], object]


SECRET = b"open sesame"


def snapshot() -> bytes:
    """The snapshot of a broker with two clients, of which one is away."""
    hall = Hall(Config(brokers=[BrokerConfig(name="B1", listen="127.0.0.1:0")]))
    reader = hall.visit(0, "reader", lasts_s=500, username="somebody", password=SECRET)
    reader.subscribe("news/#", "n > 1")
    writer = hall.visit(0, "writer")
    reader.lose()
    writer.publish("news/a", b"for you", {"n": 2})
    writer.publish("kept", b"\xff\xfe", retain=True)
    return hall.desks[0].broker.snapshot()


def entry(fact: facts.Remembered) -> bytes:
    """A line of a journal."""
    return facts.write_entry((5.0, 7, fact))


STARTED = entry(facts.Started("life", Settings(name="B1", brokers=("B1",))))
TURNS = (
    (STARTED, entry(facts.ClientOpened(1, "here", "fresh"))),
    (entry(facts.PacketsTaken(1, [(3, b"\xff\xfe")])),),
    (entry(facts.StoreFilled("full")), entry(facts.StoreMended())),
)
"""The entries of three batches."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a snapshot before its first batch, and three batches."""
    path = tmp_path / "B1"
    journal = Journal.open(path, broker="B1")
    journal.keep(snapshot())
    for entries in TURNS:
        for one in entries:
            journal.append(one)
        journal.commit()
    journal.close()
    return path


def sojourn(*arguments: object) -> tuple[int, str]:
    """Run a command as a user does, in this process."""
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def checked(path: Path) -> dict[str, Any]:
    """What a check says."""
    _, output = sojourn("check", path, "--json")
    return dict(json.loads(output))


def flipped(path: Path, at: int) -> None:
    """Change one byte of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x20
    path.write_bytes(data)


def starts(path: Path) -> tuple[bool, int]:
    """Whether a broker that takes the store finds a snapshot, and how many entries."""
    journal = Journal.open(path, broker="B1")
    try:
        state, entries = journal.replay()
        return state is not None, len(list(entries))
    finally:
        journal.close()


def test_a_whole_store_is_told(store: Path) -> None:
    """How large it is, and what is in it; a check changes nothing."""
    before = {one.name: one.read_bytes() for one in store.iterdir()}
    code, output = sojourn("check", store)
    assert code == 0
    assert "2 sessions, 1 subscriptions, 2 events" in output
    assert "3 batches with 5 entries, from batch 1 on" in output
    assert "a broker takes this store as it is" in output
    found = checked(store)
    assert (found["usable"], found["broker"], found["problems"]) == (True, "B1", [])
    assert {one.name: one.read_bytes() for one in store.iterdir()} == before
    assert sojourn("repair", store) == (0, "There is nothing to repair.\n")


BATCH_2 = SEGMENT_HEAD_BYTES + len(write_batch(1, list(TURNS[0])))


def _torn(store: Path) -> None:
    (store / "journal.1").write_bytes((store / "journal.1").read_bytes()[:-1])


def _jump(store: Path) -> None:
    whole = (store / "journal.1").read_bytes()
    (store / "journal.1").write_bytes(whole[:BATCH_2] + write_batch(9, [STARTED]))


DAMAGES: dict[str, tuple[Damage, str, bool, int, int]] = {
    "torn tail": (_torn, "a write that was cut short", True, 3, 0),
    "body": (lambda store: flipped(store / "journal.1", BATCH_2 + 25), "checksum of batch 2", False, 2, 2),
    "length": (lambda store: flipped(store / "journal.1", BATCH_2 + 6), "head of a batch", False, 2, 2),
    "jump": (_jump, "batch 9 follows where 2 was expected", False, 2, 1),
    "segment head": (lambda store: flipped(store / "journal.1", 9), "head of the segment", False, 0, 5),
    "no journal": (lambda store: (store / "journal.1").unlink(), "the journal is missing", False, 0, 0),
    "snapshot": (lambda store: flipped(store / "snapshot.1", 60), "checksum is wrong", False, 5, 0),
    "about": (lambda store: (store / "about").write_text("?"), "does not say what it is", False, 5, 0),
}
"""What is done to a store, what is said of it, whether it is usable, entries left and given up."""


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_mended(store: Path, name: str) -> None:
    """A check says what is wrong; after a repair a broker takes what is left, and a copy is there."""
    damage, says, is_usable, left, given_up = DAMAGES[name]
    damage(store)
    damaged = {one.name: one.read_bytes() for one in store.iterdir() if one.name != "lock"}
    found = checked(store)
    assert [says in problem["what"] for problem in found["problems"]] == [True]
    assert found["usable"] is is_usable
    code, output = sojourn("check", store)
    assert code == (0 if is_usable else 1)
    assert says in output
    if not is_usable:
        with pytest.raises(JournalError, match="sojourn store"):
            starts(store)
    _, output = sojourn("repair", store, "--json")
    done = json.loads(output)
    assert done["copy"] == f"{store}.broken-1"
    assert {one.name: one.read_bytes() for one in Path(done["copy"]).iterdir()} == damaged
    assert done["given_up_entries"] == given_up
    assert checked(store)["usable"]
    assert starts(store) == (name != "snapshot", left)


def test_a_second_repair_keeps_a_second_copy(store: Path) -> None:
    """No copy takes the place of another."""
    for number in (1, 2):
        flipped(store / "journal.1", SEGMENT_HEAD_BYTES + 1)
        code, output = sojourn("repair", store)
        assert code == 0
        assert f"{store}.broken-{number}" in output
        batches = write_batch(1, [STARTED]) + write_batch(2, [STARTED])
        (store / "journal.1").write_bytes(segment_head(1) + batches)


def test_what_cannot_be_mended_is_left_alone(store: Path) -> None:
    """A bad snapshot whose journal does not begin at the beginning, and what a later release wrote."""
    journal = Journal.open(store, broker="B1")
    journal.keep(snapshot())
    journal.close()
    for one in store.glob("old-*"):
        one.unlink()
    flipped(store / "snapshot.4", 60)
    with pytest.raises(JournalError, match="cannot be repaired: its snapshot is damaged or missing"):
        sojourn("repair", store)
    (store / "snapshot.4").unlink()
    assert "the journal does not begin with batch 1" in checked(store)["problems"][0]["what"]
    about = store / "about"
    about.write_text(about.read_text().replace('"version": 1', '"version": 3'))
    (store / "journal.4").rename(store / "journal.1")
    (store / "journal.1").write_bytes(segment_head(1))
    with pytest.raises(JournalError, match="written by a later release"):
        sojourn("repair", store)
    assert not list(store.parent.glob("*.broken-*"))


def test_a_store_that_nothing_names_is_named_by_hand(store: Path) -> None:
    """With neither a snapshot nor a first line only the user knows whose it is."""
    (store / "about").unlink()
    (store / "snapshot.1").unlink()
    (store / "journal.1").write_bytes(segment_head(1))
    with pytest.raises(JournalError, match="--broker NAME"):
        sojourn("repair", store)
    assert sojourn("repair", store, "--broker", "B1")[0] == 0
    assert starts(store) == (False, 0)


def test_what_is_no_store_is_said_to_be_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence and exit code 2, through the front door; also where a broker is at work."""
    (tmp_path / "old.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    (tmp_path / "empty").mkdir()
    journal = Journal.open(tmp_path / "busy", broker="B1")
    for name, says in (
        ("old.db", "a database of an older release"),
        ("empty", "holds no store"),
        ("nowhere", "There is no store"),
        ("busy", "is in use"),
    ):
        for command in ("check", "repair", "export"):
            monkeypatch.setattr("sys.argv", ["sojourn", "store", command, str(tmp_path / name)])
            with pytest.raises(SystemExit) as caught:
                main()
            assert caught.value.code == 2
            assert says in capsys.readouterr().err
    journal.close()


def test_an_export_tells_everything(store: Path) -> None:
    """Sessions, subscriptions, events that wait, retained ones, and entries, a line each."""
    code, output = sojourn("export", store)
    assert code == 0
    lines = [json.loads(one) for one in output.splitlines()]
    kinds = [one["line"] for one in lines]
    assert kinds == ["broker", "session", "subscription", "event", "session", "event"] + ["entry"] * 5
    assert lines[0]["settings"]["name"] == "B1"
    assert (lines[1]["client"], lines[4]["client"]) == ("reader", "writer")
    assert (lines[2]["topic"], lines[2]["filter"]) == ("news/#", "n > 1")
    assert (lines[3]["state"], lines[3]["client"], lines[3]["payload"]) == ("waiting", "reader", "for you")
    assert (lines[5]["state"], lines[5]["payload"]) == ("retained", {"base64": "//4="})
    opened = {"line": "entry", "batch": 1, "fact": "ClientOpened", "now": 5.0, "sequence": 7}
    assert lines[7] == opened | {"connection": 1, "peer": "here", "fresh_id": "fresh"}
    assert (lines[6]["fact"], lines[6]["settings"]["brokers"]) == ("Started", ["B1"])
    assert lines[8]["packets"] == [[3, {"base64": "//4="}]]


def test_an_export_of_a_broker_in_a_network_tells_what_is_stored(tmp_path: Path) -> None:
    """Events for clients that are away, by the names of the clients."""
    hall = Hall(line(2))
    reader = hall.visit(0, "reader", lasts_s=300)
    hall.settle()
    reader.subscribe("news")
    hall.settle()
    reader.lose()
    hall.visit(0, "writer").publish("news", b"missed")
    hall.settle()
    journal = Journal.open(tmp_path / "B1", broker="B1")
    journal.keep(hall.desks[0].broker.snapshot())
    journal.close()
    lines = [json.loads(one) for one in sojourn("export", tmp_path / "B1")[1].splitlines()]
    stored = [one for one in lines if one["line"] == "event"]
    assert [(one["state"], one["client"], one["payload"]) for one in stored] == [
        ("stored", "reader", "missed")
    ]


def test_an_export_stops_at_damage(store: Path) -> None:
    """What came before it is written out."""
    flipped(store / "journal.1", BATCH_2 + 25)
    result = CliRunner().invoke(app, ["export", str(store)])
    assert isinstance(result.exception, JournalError)
    assert sum('"entry"' in one for one in result.output.splitlines()) == 2


def test_no_password_is_in_an_export(tmp_path: Path) -> None:
    """Nor in the files: neither in what was noted when the client came, nor in a snapshot."""
    config = Config(brokers=[BrokerConfig(name="B1", listen="127.0.0.1:0")])
    settings = config.settings("B1")
    for keeps in (False, True):
        path = tmp_path / f"B1-{keeps}"
        keeper, broker = Keeper.open(str(path), settings, "life", 5.0)
        broker.handle(facts.ClientOpened(1, "here", "fresh"), 5.0)
        hello = ConnectPacket("client", username="somebody", password=SECRET, session_expiry_interval=9)
        broker.handle(facts.ClientSent(1, hello.write()), 5.0)
        assert [knock.packet.password for knock in broker.knocks] == [SECRET]
        broker.knocks.clear()
        broker.handle(facts.ClientAdmitted(1, "somebody"), 5.0)
        keeper.commit(broker, broker.turn(5.0).entries)
        if keeps:
            keeper.close(broker)
        else:
            keeper.journal.close()
        output = sojourn("export", path)[1]
        assert "somebody" in output
        assert SECRET.decode() not in output
        assert not any(SECRET in one.read_bytes() for one in path.iterdir())
        _, again = Keeper.open(str(path), settings, "another life", 6.0)
        assert again.core.state.sessions["client"].username == "somebody"


def test_what_a_later_release_noted_is_not_given_up(store: Path) -> None:
    """It is whole, so nothing is cut off: the release that wrote it reads it."""
    journal = Journal.open(store, broker="B1")
    journal.append(b"\x93\xcb\x40\x14\x00\x00\x00\x00\x00\x00\x07\x92\x63\x01")
    journal.commit()
    journal.close()
    before = (store / "journal.1").read_bytes()
    (problem,) = checked(store)["problems"]
    assert "entry 1 of batch 4 is none that this release knows" in problem["what"]
    with pytest.raises(JournalError, match="written by a later release"):
        sojourn("repair", store)
    assert (store / "journal.1").read_bytes() == before
    with pytest.raises(JournalError, match="holds what this release cannot read"):
        Keeper.open(str(store), Settings(name="B1", brokers=("B1",)), "life", 9.0)
    assert json.loads(sojourn("export", store)[1].splitlines()[-1])["fact"] is None


def test_a_snapshot_that_nothing_can_replace_is_not_dropped(store: Path) -> None:
    """Though the journal begins with batch 1: it does not tell how its broker started."""
    (store / "journal.1").write_bytes(segment_head(1) + write_batch(1, [TURNS[0][1]]))
    flipped(store / "snapshot.1", 60)
    with pytest.raises(JournalError, match="does not begin with the start of its broker"):
        sojourn("repair", store)
    (store / "snapshot.1").unlink()
    assert not checked(store)["usable"]


def test_a_bad_snapshot_is_mended_by_the_one_before_it(store: Path) -> None:
    """A check says that nothing is lost; a repair does what the next start would do."""
    journal = Journal.open(store, broker="B1")
    journal.keep(snapshot())
    journal.append(STARTED)
    journal.commit()
    journal.close()
    flipped(store / "snapshot.4", 60)
    found = checked(store)
    assert found["usable"]
    assert "comes back from the snapshot before it, batch 1" in found["problems"][0]["what"]
    code, output = sojourn("repair", store)
    assert code == 0
    assert "went back to the snapshot before, batch 1" in output
    assert checked(store)["problems"] == []
    assert starts(store) == (True, 6)


@pytest.mark.parametrize("damage", ["flipped", "deleted"])
def test_what_a_broker_comes_back_from_is_counted_and_written_out(store: Path, damage: str) -> None:
    """With a bad last snapshot that is the one before it and both journals: as many as the next start has."""
    journal = Journal.open(store, broker="B1")
    journal.keep(snapshot())
    journal.append(entry(facts.StoreMended()))
    journal.commit()
    journal.close()
    bad = store / "snapshot.4"
    flipped(bad, len(bad.read_bytes()) // 2) if damage == "flipped" else bad.unlink()
    code, output = sojourn("check", store)
    assert code == 0
    assert "2 sessions, 1 subscriptions, 2 events, in the one before the last" in output
    assert "4 batches with 6 entries, from batch 1 on" in output
    found = checked(store)
    assert [found[name] for name in ("sessions", "events", "entries")] == [2, 2, 6]
    code, output = sojourn("export", store)
    assert code == 0
    lines = [json.loads(line) for line in output.splitlines()]
    kinds = [one["line"] for one in lines]
    assert [kinds.count(kind) for kind in ("broker", "session", "event")] == [1, 2, 2]
    assert [one["batch"] for one in lines if one["line"] == "entry"] == [1, 1, 2, 3, 3, 4]
    assert starts(store) == (True, 6)
