"""`sojourn bench floods`: how long others wait, and how long a loop is held, while somebody floods a broker.

Each flood (`bench_floods_attacks.py`) gets a fresh network of brokers in a line, each a process of its own.
Two bystanders, processes too, publish to themselves at QoS 1 again and again: one at the broker that is
flooded, one at the far end. `waits_s` is the longest that the first of them waited for its own event, or for
its login where it has to log in, and `waits_far_s` the same for the other. `longest_turn_s` is how long the
loop of the flooded broker was held at once, at the most, and `longest_cpu_s` the most that it used of the
processor meanwhile, which other processes do not disturb (`bench_floods_broker.py`).

With `--against FOLDER` the brokers of another checkout of Sojourn are measured first, in the same way.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import mqtt5
from mqtt5 import ConnAckPacket, ConnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter

from sojourn.cli import bench_floods_broker
from sojourn.cli.bench_floods_all import FLOODS, Flood
from sojourn.cli.bench_floods_attacks import FLOOD_S, PASSWORD, USER
from sojourn.cli.bench_live import BenchError
from sojourn.cli.benchmarks import Progress, Row
from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.fleet import last_line
from sojourn.live.links.secret import SECRET_NAME, write_secret

START_S = 120.0
CALM_S = 1.0
"""How long bystanders are served before the flood begins, and how long they are watched after it."""
PAUSE_S = 0.02
PATIENCE_S = FLOOD_S + 5.0
"""How long a bystander waits for an answer before it says that there was none."""


def _free_ports(count: int) -> list[int]:
    """Ports that nobody uses at the moment: brokers of earlier releases cannot choose their own."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]


def _config(flood: Flood, ports: list[int], secret: Path | None) -> str:
    names = [f"B{number}" for number in range(1, flood.brokers + 1)]
    links = ", ".join(f'["{one}", "{other}"]' for one, other in itertools.pairwise(names))
    lines = [f"links = [{links}]"]
    for number, name in enumerate(names):
        listen, peers = ports[number], ports[flood.brokers + number]
        lines += ["[[brokers]]", f'name = "{name}"', f'listen = "127.0.0.1:{listen}"']
        lines += [f'peers = "127.0.0.1:{peers}"']
    if secret is not None:
        lines += ["[network]", f'secret = "{secret}"']
    if flood.has_users:
        lines += ["[[users]]", f'name = "{USER}"', f'password = "{hash_password(PASSWORD)}"']
    return "\n".join(lines)


@contextlib.contextmanager
def _network(flood: Flood, checkout: Path | None, folder: Path) -> Iterator[list[int]]:
    """Run a network of brokers; give the ports for clients. What each says is in its file of notes."""
    ports = _free_ports(2 * flood.brokers)
    file = folder / "floods.toml"
    secret = None if checkout is not None else folder / SECRET_NAME  # others may not know of it
    if secret is not None:
        write_secret(secret)
    file.write_text(_config(flood, ports, secret))
    environment = dict(os.environ)
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout.absolute() / "src")
    script = bench_floods_broker.__file__
    processes = []
    with contextlib.ExitStack() as stack:
        for number in range(1, flood.brokers + 1):
            notes = folder / f"B{number}.json"
            notes.unlink(missing_ok=True)
            command = [sys.executable, "-P", script, str(file), f"B{number}", str(notes)]
            said = stack.enter_context((folder / f"B{number}.log").open("w"))
            process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)  # noqa: S603 - our own program
            stack.callback(_stop, process)
            processes.append(process)
        until = time.monotonic() + START_S
        while not all(_listens(port) for port in ports[: flood.brokers]):
            if time.monotonic() > until or any(process.poll() is not None for process in processes):
                logged = " ".join(last_line(log.read_text()) for log in sorted(folder.glob("*.log")))
                raise BenchError(f"The brokers of the benchmark do not listen: {logged}")
            time.sleep(0.1)
        yield ports[: flood.brokers]


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:  # it hears nobody, which is what is measured
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class _Bystander:
    """Somebody who does no harm."""

    def __init__(self, port: int, name: str, flood: Flood) -> None:
        self.port, self.name, self.flood = port, name, flood
        self.longest_s = 0.0
        self.refused = 0
        self.rounds = 0
        self._socket: socket.socket | None = None
        self._came = b""

    def round(self) -> None:
        """Publish and wait for one's own event; before that log in, if that is to be done again."""
        began_s = time.monotonic()
        try:
            if self._socket is None or self.flood.has_users:
                self._log_in()
            assert self._socket is not None
            event = PublishPacket(
                f"own/{self.name}", bytes(self.flood.payload), qos=QoS.AT_LEAST_ONCE, packet_id=7
            )
            self._socket.sendall(event.write())
            while not isinstance(packet := self._read(), PublishPacket):
                pass
            assert packet.packet_id, "it is of QoS 1"
            self._socket.sendall(mqtt5.PubAckPacket(packet.packet_id).write())
        except OSError:
            self.refused += 1
            self._drop()
        self.rounds += 1
        self.longest_s = max(self.longest_s, time.monotonic() - began_s)

    def _log_in(self) -> None:
        self._drop()
        self._socket = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        user = {"username": USER, "password": PASSWORD.encode()} if self.flood.has_users else {}
        self._socket.sendall(ConnectPacket(self.name, keep_alive=0, **user).write())  # type: ignore[arg-type]  # options of a packet, by name
        welcome = self._read()
        if not isinstance(welcome, ConnAckPacket) or int(welcome.reason_code):
            raise ConnectionError
        wanted = [TopicFilter(f"own/{self.name}", max_qos=QoS.AT_LEAST_ONCE)]
        self._socket.sendall(SubscribePacket(1, wanted).write())
        while not isinstance(self._read(), mqtt5.SubAckPacket):
            pass

    def _read(self) -> mqtt5.Packet:
        assert self._socket is not None
        while True:
            if self._came:
                try:
                    packet, length = mqtt5.read(memoryview(self._came))
                except IndexError:
                    pass
                else:
                    self._came = self._came[length:]
                    return packet
            data = self._socket.recv(262_144)
            if not data:
                raise ConnectionError
            self._came += data

    def _drop(self) -> None:
        self._came = b""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _stand_by(port: int, name: str, flood: Flood, pipe: Connection) -> None:
    """Be a bystander until told to stop; begin to count when told so."""
    bystander = _Bystander(port, name, flood)
    while True:
        bystander.round()
        if pipe.poll(PAUSE_S):
            if pipe.recv() == "stop":
                break
            bystander.longest_s, bystander.refused, bystander.rounds = 0.0, 0, 0
            pipe.send(None)
    pipe.send((bystander.longest_s, bystander.refused, bystander.rounds))


@contextlib.contextmanager
def _bystanders(ports: list[int], flood: Flood) -> Iterator[list[Connection]]:
    context = multiprocessing.get_context("spawn")
    processes, pipes = [], []
    try:
        for name, port in (("near", ports[0]), ("far", ports[-1])):
            ours, theirs = context.Pipe()
            process = context.Process(target=_stand_by, args=(port, name, flood, theirs), daemon=True)
            process.start()
            processes.append(process)
            pipes.append(ours)
        yield pipes
    finally:
        for process in processes:
            process.terminate()


def _measured(name: str, flood: Flood, checkout: Path | None) -> Row:
    with (
        tempfile.TemporaryDirectory() as place,
        _network(flood, checkout, Path(place)) as ports,
        _bystanders(ports, flood) as pipes,
    ):
        folder = Path(place)
        time.sleep(CALM_S)
        for pipe in pipes:
            pipe.send("begin")
        for pipe in pipes:
            if not pipe.poll(START_S):
                raise BenchError("The bystanders of the benchmark were not served before any flood began.")
            pipe.recv()
        (folder / "B1.reset").touch()
        until = time.monotonic() + START_S
        while (folder / "B1.reset").exists() and time.monotonic() < until:
            time.sleep(0.05)
        came_of_it = flood.run(ports)
        time.sleep(CALM_S)
        for pipe in pipes:
            pipe.send("stop")
        found = [pipe.recv() if pipe.poll(PATIENCE_S) else (PATIENCE_S, 1, 0) for pipe in pipes]
        notes = json.loads((folder / "B1.json").read_text())
        silent_s = time.time() - (folder / "B1.json").stat().st_mtime
    (near_s, near_refused, _), (far_s, far_refused, _) = found
    return {
        "flood": name,
        "brokers": "before" if checkout is not None else "now",
        "waits_s": round(near_s, 3),
        "waits_far_s": round(far_s, 3),
        "turned_away": near_refused + far_refused,
        # A loop that is held does not even write that it is.
        "longest_turn_s": round(max(notes["longest_s"], silent_s if silent_s > CALM_S else 0.0), 3),
        "longest_cpu_s": round(notes["longest_cpu_s"], 3),
        "came_of_it": came_of_it,
    }


def run(progress: Progress, against: Path | None = None, only: str = "") -> list[Row]:
    """Flood brokers in every way, those of another checkout first if one is given."""
    rows = []
    chosen = {name: flood for name, flood in FLOODS.items() if only in name}
    if not chosen:
        raise BenchError(f"There is no flood with {only!r} in its name; there are: {'; '.join(FLOODS)}.")
    for name, flood in chosen.items():
        for checkout in (against, None) if against is not None else (None,):
            progress(f"{name}, {'before' if checkout is not None else 'now'}")
            rows.append(_measured(name, flood, checkout))
    return rows
