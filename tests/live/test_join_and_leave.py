"""Real brokers join and leave while a client that knows nothing of it stays connected, and misses nothing."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from typer.testing import CliRunner

from sojourn.cli.main import app
from sojourn.errors import SojournError
from sojourn.live.brokers.control import ask
from sojourn.live.brokers.fleet import Fleet
from sojourn.live.config import BrokerConfig, load_config
from sojourn.live.page.ledger import Written
from sojourn.live.rewriting import with_broker

PATIENCE_S = 240.0


def until(holds: Callable[[], object]) -> None:
    """Wait for something to become true."""
    limit = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < limit, "it does not come true"
        time.sleep(0.05)


def network(path: Path, extra: str = "") -> None:
    """Write three brokers in a line, on any ports."""
    path.with_name("secret").write_text("s" * 64)
    path.with_name("secret").chmod(0o600)
    free = 'listen = "127.0.0.1:0"\npeers = "127.0.0.1:0"\n'
    tables = "".join(
        f'\n[[brokers]]\nname = "{name}"\n{free}store = "stores/{name}"\n' for name in ("B1", "B2", "B3")
    )
    path.write_text(f'links = [["B1", "B2"], ["B2", "B3"]]\n\n[network]\nsecret = "secret"\n{extra}{tables}')


@contextmanager
def serving(path: Path, names: list[str]) -> Iterator[Fleet]:
    """Broker processes at work."""
    fleet = Fleet(path, names, path.parent / "logs", addresses=path.parent / "addresses")
    try:
        fleet.wait_until_ready()
        yield fleet
    finally:
        fleet.stop()


def sojourn(*words: str) -> str:
    """What a command prints; it must not fail."""
    done = CliRunner().invoke(app, list(words))
    if isinstance(done.exception, SojournError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


class Reader:
    """A paho client that subscribes to news at QoS 1, and keeps what it gets."""

    def __init__(self, name: str) -> None:
        self.got: list[int] = []
        self.ends = 0
        """How often its connection ended by itself."""
        self.present: list[bool] = []
        """For each connection: whether its session was there."""
        self.is_subscribed = threading.Event()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=paho.MQTTv5)
        self._client.on_message = lambda _c, _d, message: self.got.append(int(message.payload))
        self._client.on_disconnect = self._ended
        self._client.on_connect = self._connected
        self._client.on_subscribe = lambda *_: self.is_subscribed.set()
        self._leaves = False

    def _ended(self, *_: object) -> None:
        self.ends += not self._leaves

    def _connected(
        self, _c: object, _d: object, flags: paho.ConnectFlags, reason: object, _p: object
    ) -> None:
        if str(reason) == "Success":
            self.present.append(bool(flags.session_present))

    def connect(self, url: str) -> None:
        """Connect, and wait until that is done, perhaps at a later try."""
        self._leaves, count = False, len(self.present)
        port = int(url.rpartition(":")[2])
        lasting = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho types it not
        lasting.SessionExpiryInterval = 600
        self._client.connect("127.0.0.1", port, clean_start=False, properties=lasting)
        self._client.loop_start()
        until(lambda: len(self.present) > count)

    def subscribe(self) -> None:
        """Subscribe, and wait until that is confirmed."""
        self._client.subscribe("news/#", 1)
        assert self.is_subscribed.wait(PATIENCE_S)

    def leave(self) -> None:
        """Disconnect; the session stays."""
        self._leaves = True
        self._client.disconnect()
        self._client.loop_stop()


class Writer:
    """Publishes numbers at QoS 1 all the time, each when the one before was acknowledged."""

    def __init__(self, url: str) -> None:
        self.sent = 0
        """Numbers below were acknowledged."""
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id="writer", protocol=paho.MQTTv5)
        self._client.connect("127.0.0.1", int(url.rpartition(":")[2]))
        self._client.loop_start()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while not self._stopped.wait(0.005):
            self._client.publish("news/a", str(self.sent), qos=1).wait_for_publish(PATIENCE_S)
            self.sent += 1

    def stop(self) -> None:
        """Publish no more; all that was sent is acknowledged."""
        self._stopped.set()
        self._thread.join(PATIENCE_S)
        self._client.disconnect()
        self._client.loop_stop()


def without_repeats(got: list[int]) -> list[int]:
    """What a client got that went before it had acknowledged its last events: those come again at QoS 1."""
    return list(dict.fromkeys(got))


def roll(path: Path, broker: str) -> tuple[list[str], list[str]]:
    """Who has joined and left, as a broker knows it."""
    found = ask(str(load_config(path).network.control), broker, {"command": "roll"}).found
    return found["joined"], found["left"]


def test_a_broker_joins_and_leaves_and_a_plain_client_notices_nothing(tmp_path: Path) -> None:
    """Events come once and in order all the time; what a session at the leaving broker had goes along."""
    path = tmp_path / "line.toml"
    network(path)
    with serving(path, ["B1", "B2", "B3"]) as fleet:
        stays, rider = Reader("stays"), Reader("rider")
        stays.connect(fleet.url("B1"))
        stays.subscribe()
        rider.connect(fleet.url("B3"))
        rider.subscribe()
        writer = Writer(fleet.url("B3"))
        assert "B4 may join here" in sojourn("join", str(path), "B4", "--link", "B2")
        assert roll(path, "B2") == ([], []), "it has not come yet"
        with serving(path, ["B4"]) as fourth:
            until(lambda: all(roll(path, name) == (["B4"], []) for name in ("B1", "B2", "B3", "B4")))
            rider.leave()
            rider.connect(fourth.url("B4"))
            before = writer.sent
            until(lambda: rider.got and rider.got[-1] > before + 20)
            rider.leave()
            until(lambda: writer.sent > before + 60)
            assert "B4 has left the network" in sojourn("leave", str(path), "B4")
            until(lambda: fourth.processes["B4"].poll() is not None)
            assert fourth.processes["B4"].returncode == 0
        until(lambda: all(roll(path, name) == (["B4"], ["B4"]) for name in ("B1", "B2", "B3")))
        before = writer.sent
        until(lambda: writer.sent > before + 20)
        rider.connect(fleet.url("B1"))
        writer.stop()
        until(lambda: len(stays.got) >= writer.sent)
        assert stays.got == list(range(writer.sent))
        until(lambda: rider.got[-1] == writer.sent - 1)
        assert without_repeats(rider.got) == list(range(writer.sent))
        assert rider.present == [False, True, True]
        assert stays.ends == 0
        stays.leave()
        rider.leave()
    config = load_config(path)
    assert [one.name for one in config.brokers] == ["B1", "B2", "B3"]
    for broker in config.brokers:
        written = Path(f"{broker.store}.known").read_bytes()
        last = msgspec.json.decode(written, type=Written).known["B4"]
        assert (last.is_last, last.sessions) == (True, 0), "nobody takes it for a lost store"


def test_killed_brokers_and_commands_run_again_come_to_the_same_end(tmp_path: Path) -> None:
    """Who joins and leaves does so although it and its neighbour are killed on the way; nothing is lost."""
    path = tmp_path / "line.toml"
    network(path)
    with serving(path, ["B1", "B2", "B3"]) as fleet:
        stays, rider = Reader("stays"), Reader("rider")
        stays.connect(fleet.url("B1"))
        stays.subscribe()
        writer = Writer(fleet.url("B1"))
        for _ in range(2):
            sojourn("join", str(path), "B4", "--link", "B3")
        with serving(path, ["B4"]) as fourth:
            until(lambda: roll(path, "B1") == (["B4"], []))
            rider.connect(fourth.url("B4"))
            rider.subscribe()
            first = writer.sent
            until(lambda: len(rider.got) > 20)
            for killed, name in ((fleet, "B3"), (fourth, "B4")):
                killed.processes[name].kill()
                killed.processes[name].wait()
                killed.restart(name)
                until(lambda killed=killed, name=name: killed.listening(name) is not None)  # type: ignore[misc]  # mypy infers no default of a lambda
            with pytest.raises(SojournError, match="reach each other by it"):
                sojourn("leave", str(path), "B3")
            rider.leave()
            with pytest.raises(SojournError, match="still has"):
                sojourn("leave", str(path), "B4", "--wait", "0")
            fourth.processes["B4"].kill()
            fourth.processes["B4"].wait()
            fourth.restart("B4")
            until(lambda: fourth.listening("B4") is not None)
            sojourn("leave", str(path), "B4")
            until(lambda: fourth.processes["B4"].poll() is not None)
        until(lambda: roll(path, "B1") == (["B4"], ["B4"]))
        rider.connect(fleet.url("B2"))
        assert rider.present[-1], "its session went along"
        writer.stop()
        until(lambda: len(stays.got) >= writer.sent)
        assert stays.got == list(range(writer.sent))
        assert stays.ends == 0
        until(lambda: rider.got[-1] == writer.sent - 1)
        assert without_repeats(rider.got) == list(range(rider.got[0], writer.sent))
        assert rider.got[0] <= first
        assert "nothing to do" in sojourn("leave", str(path), "B4")
        stays.leave()
        rider.leave()


def test_brokers_that_never_came_are_taken_back_and_nobody_waits_for_them(tmp_path: Path) -> None:
    """Whether the next one has joined already or not; new clients come in there as if they had never been."""
    path = tmp_path / "line.toml"
    network(path)
    with serving(path, ["B1", "B2", "B3"]):
        sojourn("join", str(path), "B4", "--link", "B3")
        with pytest.raises(SojournError, match="linked to B3 and not to B2"):
            sojourn("join", str(path), "B4", "--link", "B2")
        assert "B4 never came" in sojourn("leave", str(path), "B4", "--dead")
        assert roll(path, "B3") == ([], []), "the network never heard of it"
        sojourn("join", str(path), "B5", "--link", "B3")
        with serving(path, ["B5"]) as fifth:
            until(lambda: all(roll(path, name) == (["B4", "B5"], ["B4"]) for name in ("B1", "B3", "B5")))
            first = Reader("first")
            first.connect(fifth.url("B5"))
            assert first.present == [False]
            first.leave()
            sojourn("join", str(path), "B6", "--link", "B3")
            sojourn("join", str(path), "B7", "--link", "B3")
            with serving(path, ["B7"]) as seventh:
                until(lambda: roll(path, "B1") == (["B4", "B5", "B6", "B7"], ["B4"]))
                sojourn("leave", str(path), "B6", "--dead")
                until(lambda: roll(path, "B7")[1] == ["B4", "B6"])
                second = Reader("second")
                second.connect(seventh.url("B7"))
                assert second.present == [False]
                second.leave()
    assert [one.name for one in load_config(path).brokers] == ["B1", "B2", "B3", "B5", "B7"]


def chained(path: Path, first: str, *others: str) -> None:
    """Write brokers into a file that join one by the other, as on a machine where none of them runs."""
    for name, other in zip(others, (first, *others), strict=False):
        written = {"name": name, "listen": "127.0.0.1:0", "peers": "127.0.0.1:0", "store": f"stores/{name}"}
        broker = msgspec.convert(written, BrokerConfig)
        path.write_text(with_broker(path.read_text(), broker, [other], written))


def names(path: Path) -> list[str]:
    """The brokers that a file has."""
    return [one.name for one in load_config(path).brokers]


def test_a_broker_by_which_others_would_join_does_not_leave_before_they_are_taken_back(
    tmp_path: Path,
) -> None:
    """It is refused before the network is told, and the way out that is named leads there."""
    path = tmp_path / "line.toml"
    network(path)
    with serving(path, ["B1", "B2", "B3"]):
        sojourn("join", str(path), "B4", "--link", "B3")
        with serving(path, ["B4"]) as fourth:
            until(lambda: roll(path, "B1") == (["B4"], []))
            sojourn("join", str(path), "B5", "--link", "B4")
            for words in (("B4",), ("B4", "--dead")):
                with pytest.raises(SojournError, match=r"by it would join B5 of .*leave .* B5 --dead`"):
                    sojourn("leave", str(path), *words)
            assert roll(path, "B3") == (["B4"], []), "nobody was told of a farewell"
            assert "B5 never came" in sojourn("leave", str(path), "B5", "--dead")
            sojourn("leave", str(path), "B4")
            until(lambda: fourth.processes["B4"].poll() is not None)
    assert names(path) == ["B1", "B2", "B3"]


def test_brokers_of_a_chain_that_never_came_are_taken_back_from_its_end(tmp_path: Path) -> None:
    """Also where the first of them has left meanwhile, or is gone with its disk: nobody is left for ever."""
    path = tmp_path / "line.toml"
    network(path)
    with serving(path, ["B1", "B2", "B3"]):
        chained(path, "B3", "B4", "B5")
        for words in (("B4", "--dead"), ("B4",)):
            with pytest.raises(SojournError, match="by it would join B5"):
                sojourn("leave", str(path), *words)
        for name in ("B5", "B4"):
            assert f"{name} never came" in sojourn("leave", str(path), name, "--dead")
        sojourn("join", str(path), "B6", "--link", "B3")
        with serving(path, ["B6"]) as sixth:
            until(lambda: all(roll(path, one)[0] == ["B4", "B5", "B6"] for one in ("B1", "B2", "B3")))
            chained(path, "B6", "B7", "B8")
            ask(str(load_config(path).network.control), "B6", {"command": "leave"})
            ask(str(load_config(path).network.control), "B6", {"command": "farewell"})
            ask(str(load_config(path).network.control), "B6", {"command": "stop"})
            until(lambda: sixth.processes["B6"].poll() is not None)
        until(lambda: all("B6" in roll(path, one)[1] for one in ("B1", "B2", "B3")))
        with pytest.raises(SojournError, match=r"B6 has left .* join B7, B8 of .*B8 --dead`, then B7"):
            sojourn("leave", str(path), "B6")
        for words in (("B8", "--dead"), ("B7", "--dead"), ("B6",)):
            sojourn("leave", str(path), *words)
        sojourn("join", str(path), "B9", "--link", "B3")
        with serving(path, ["B9"]) as ninth:
            until(lambda: all("B9" in roll(path, one)[0] for one in ("B1", "B2", "B3")))
            chained(path, "B9", "B10")
            ninth.processes["B9"].kill()
            ninth.processes["B9"].wait()
            until(lambda: "B9" in told_out_of_reach(path, "B1"))
            for name in ("B10", "B9"):
                sojourn("leave", str(path), name, "--dead")
        until(lambda: "B9" in roll(path, "B1")[1])
    assert names(path) == ["B1", "B2", "B3"]


def told_out_of_reach(path: Path, broker: str) -> list[str]:
    """Whom a broker does not reach, as it says."""
    found = ask(str(load_config(path).network.control), broker, {"command": "roll"}).found
    return list(found["out_of_reach"])


def test_nobody_joins_by_a_broker_that_was_not_even_started(tmp_path: Path) -> None:
    """Brokers join one after the other; where none runs, nothing can be said of that."""
    path = tmp_path / "line.toml"
    network(path)
    with serving(path, ["B1", "B2", "B3"]):
        sojourn("join", str(path), "B4", "--link", "B3")
        before = path.read_text()
        with pytest.raises(SojournError, match="B4 has not joined yet"):
            sojourn("join", str(path), "B5", "--link", "B4")
        assert path.read_text() == before
    sojourn("join", str(path), "B5", "--link", "B4")
    assert names(path) == ["B1", "B2", "B3", "B4", "B5"]


def test_what_cannot_be_done_says_why(tmp_path: Path) -> None:
    """Copies, names that were there, brokers in the middle and strangers are refused in one sentence each."""
    path = tmp_path / "line.toml"
    network(path)
    path.write_text(path.read_text().replace("127.0.0.1:0", "127.0.0.1:18299", 1))
    before = path.read_text()
    for words, sentence in (
        (("join", str(path), "B2", "--link", "B1"), "was there from the start"),
        (("join", str(path), "B4", "--link", "B9"), "has no broker 'B9'"),
        (("join", str(path), "B4", "--link", "B1", "--listen", "here"), "must be HOST:PORT"),
        (("join", str(path), "B4", "--link", "B1", "--store", "stores/B1"), "B1 and B4 have one store"),
        (("join", str(path), "a/b", "--link", "B1"), "is the name of files too"),
        (("join", str(path), "B4", "--link", "B1", "--page", "127.0.0.1:18299"), "and page of B4 are both"),
        (("leave", str(path), "B9"), "has no broker 'B9'"),
        (("leave", str(path), "B3"), "does not run on this machine"),
        (("leave", str(path), "B3", "--dead"), "No other broker than B3 runs"),
    ):
        with pytest.raises(SojournError, match=sentence):
            sojourn(*words)
        assert path.read_text() == before
    seats = "".join(
        line if "store" not in line else line + 'seats = "127.0.0.1:0"\n' for line in before.splitlines(True)
    )
    path.write_text(f"{seats}\n[mobility]\ncopies = 2\n")
    with pytest.raises(SojournError, match="there are at least 3 brokers"):
        sojourn("leave", str(path), "B3")


def test_a_broker_that_joins_can_be_measured_if_all_others_can(tmp_path: Path) -> None:
    """What has to be looked at on every broker is there on the new one too."""
    path = tmp_path / "line.toml"
    network(path)
    sojourn("join", str(path), "B4", "--link", "B3")
    assert load_config(path).broker("B4").metrics is None
    network(path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(one + 'metrics = "127.0.0.1:0"\n' * ("store" in one) for one in lines))
    sojourn("join", str(path), "B4", "--link", "B3")
    assert load_config(path).broker("B4").metrics == "127.0.0.1:0"


def test_a_broker_is_not_added_again_otherwise_than_it_stands_there(tmp_path: Path) -> None:
    """Whatever is given and differs is refused, and nothing is written; the same again is the same."""
    path = tmp_path / "line.toml"
    network(path)
    again = ("join", str(path), "B4", "--link", "B3", "--listen", "127.0.0.1:18311", "--store", "stores/four")
    sojourn(*again)
    before = path.read_text()
    for words, sentence in (
        (("--listen", "127.0.0.1:18312"), "with listen 127.0.0.1:18311 and not 127.0.0.1:18312"),
        (("--peers", "127.0.0.1:18313"), "with peers 127.0.0.1:0 and not 127.0.0.1:18313"),
        (("--store", "stores/B4"), "four and not stores/B4"),
        (("--page", "127.0.0.1:18314"), "without page, not with 127.0.0.1:18314"),
    ):
        with pytest.raises(SojournError, match=sentence):
            sojourn("join", str(path), "B4", "--link", "B3", *words)
    for same in (again, again[:5]):
        assert "Start the broker" in sojourn(*same)
    assert path.read_text() == before


def test_commands_that_are_printed_can_be_pasted(tmp_path: Path) -> None:
    """Names and paths with spaces stand in quotes in them, and in the sentence as they are."""
    path = tmp_path / "my line.toml"
    network(path)
    said = sojourn("join", str(path), "B 4", "--link", "B3")
    start = said.split("Start the broker: ")[1]
    assert shlex.split(start) == ["sojourn", "serve", str(path), "--broker", "B 4"]
    with pytest.raises(SojournError, match="has B 4 already") as refused:
        sojourn("join", str(path), "B 4", "--link", "B2")
    back = str(refused.value).split("`")[1]
    assert shlex.split(back) == ["sojourn", "leave", str(path), "B 4", "--dead"]


@pytest.mark.parametrize(
    ("name", "why"),
    [("B\n5", "cannot be printed, such as the end of a line"), ("a/b", "has no /"), (".b", "no dot first")],
)
def test_a_name_that_will_not_do_is_refused_for_its_own_reason(tmp_path: Path, name: str, why: str) -> None:
    """One that has no slash is not told of slashes."""
    path = tmp_path / "line.toml"
    network(path)
    with pytest.raises(SojournError, match=why) as refused:
        sojourn("join", str(path), name, "--link", "B3")
    assert (" / " in str(refused.value)) == ("\n" not in name)
