"""Four ways through the code: the files, the calls and the changes of file that each of them takes.

- *publish*: one event from a socket to a subscriber at another broker. Two linked brokers with stores run in
  this process; calls count from the moment the event is sent until the subscriber has it and the publisher
  its answer.
- *hand-off*: a client that was away comes to the other of these brokers, from its CONNECT to the event that
  was stored for it meanwhile.
- *simulated move*: a publisher of a simulated world, from leaving a broker until its tree is built at
  the next.
- *trace to verdict*: the rows of a small trace, from `sojourn audit` to its verdict, in the driver's process
  and in Spark's workers. Rows take this way together, so that functions are counted there and not calls.

Only functions of the package count. The shortest of a few walks counts where a timer of a broker may fall
into one.

    python scripts/walks.py [--calls] [publish] [hand-off] [simulated-move] [trace-to-verdict]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import mqtt5

import sojourn
from sojourn.live.brokers.server import Server
from sojourn.live.config import BrokerConfig, Config, NetworkConfig
from sojourn.live.links.secret import SECRET_NAME, write_secret
from sojourn.sim.publishers.world import World
from sojourn.sim.scenario import Scenario

WALKS = 5
SETTLE_S = 0.3
"""Between two walks: what the last one left to do is done by then; the shortest counts where it is not."""
PACKAGE = str(Path(sojourn.__file__).parent)


class Walk:
    """The calls of one walk, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def __call__(self, frame: FrameType, event: str, _what: Any) -> None:
        """Note a call of a function of ours."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            self.calls.append((code.co_filename.removeprefix(PACKAGE + "/"), code.co_qualname))

    @property
    def files(self) -> set[str]:
        """The files that it passes."""
        return {file for file, _ in self.calls}

    @property
    def changes(self) -> int:
        """How often the next call is in another file than the one before."""
        files = [file for file, _ in self.calls]
        return sum(one != other for one, other in pairwise(files))


class PlainClient:
    """A client that knows MQTT and nothing of us."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._data = b""

    @classmethod
    async def connect(cls, port: int, name: str) -> PlainClient:
        """Connect under a name, with a session that outlives the connection."""
        client = cls(*await asyncio.open_connection("127.0.0.1", port))
        await client.send(mqtt5.ConnectPacket(name, session_expiry_interval=600))
        await client.next(mqtt5.ConnAckPacket)
        return client

    async def send(self, packet: Any) -> None:
        """Send a packet."""
        self._writer.write(packet.write())
        await self._writer.drain()

    async def next(self, kind: type) -> Any:
        """Return the next packet of a kind."""
        while True:
            try:
                packet, length = mqtt5.read(memoryview(self._data))
            except IndexError:
                self._data += await self._reader.read(65_536)
                continue
            self._data = self._data[length:]
            if isinstance(packet, kind):
                return packet

    def close(self) -> None:
        """Let go of the connection."""
        self._writer.close()


@asynccontextmanager
async def two_brokers(folder: Path) -> AsyncIterator[list[int]]:
    """Two linked brokers with stores, B1 and B2; where their clients find them."""
    from socket import create_server  # noqa: PLC0415 - only to reserve a port for the length of a call

    with create_server(("127.0.0.1", 0)) as probe:
        peers = probe.getsockname()[1]
    brokers = [
        BrokerConfig(
            name=name,
            listen="127.0.0.1:0",
            peers=f"127.0.0.1:{peers if name == 'B2' else 0}",
            store=str(folder / name),
        )
        for name in ("B1", "B2")
    ]
    secret = folder / SECRET_NAME
    write_secret(secret)
    config = Config(brokers=brokers, links=[("B1", "B2")], network=NetworkConfig(secret=str(secret)))
    servers = [Server(config, name) for name in ("B2", "B1")]
    addresses = [await server.start() for server in servers]
    try:
        yield [address.port for address in reversed(addresses)]
    finally:
        for server in servers:
            await server.stop()


EVENT = mqtt5.PublishPacket("news/today", b"x" * 256, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=1)
NEWS = mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("news/#", max_qos=mqtt5.QoS.AT_LEAST_ONCE)])


def shortest(walks: list[Walk]) -> Walk:
    """The walk with the fewest calls."""
    return min(walks, key=lambda one: len(one.calls))


async def walk_publish(folder: Path) -> Walk:
    """Let one event pass over two brokers, and return the calls that it took."""
    async with two_brokers(folder) as (one, other):
        reader = await PlainClient.connect(other, "reader")
        writer = await PlainClient.connect(one, "writer")
        await reader.send(NEWS)
        await reader.next(mqtt5.SubAckPacket)
        walks = []
        for _ in range(WALKS):  # the first finds caches cold and the links just begun
            await asyncio.sleep(SETTLE_S)
            found = Walk()
            sys.setprofile(found)
            await writer.send(EVENT)
            await writer.next(mqtt5.PubAckPacket)
            got = await reader.next(mqtt5.PublishPacket)
            sys.setprofile(None)
            walks.append(found)
            await reader.send(mqtt5.PubAckPacket(got.packet_id))
        reader.close()
        writer.close()
    return shortest(walks)


async def walk_hand_off(folder: Path) -> Walk:
    """Let a client come to another broker, where it is given what was stored, and return the calls."""
    async with two_brokers(folder) as ports:
        writer = await PlainClient.connect(ports[0], "writer")
        reader = await PlainClient.connect(ports[0], "reader")
        await reader.send(NEWS)
        await reader.next(mqtt5.SubAckPacket)
        walks = []
        for number in range(1, WALKS + 1):
            reader.close()
            await asyncio.sleep(SETTLE_S)
            await writer.send(EVENT)
            await writer.next(mqtt5.PubAckPacket)
            await asyncio.sleep(SETTLE_S)
            found = Walk()
            sys.setprofile(found)
            reader = await PlainClient.connect(ports[number % 2], "reader")
            got = await reader.next(mqtt5.PublishPacket)
            sys.setprofile(None)
            walks.append(found)
            await reader.send(mqtt5.PubAckPacket(got.packet_id))
            await asyncio.sleep(SETTLE_S)
        reader.close()
        writer.close()
    return shortest(walks)


def walk_simulated_move() -> Walk:
    """Let a publisher of a simulated world move once, and return the calls until its tree is built anew."""
    found = Walk()

    def observe(_now: float, what: tuple[Any, ...]) -> None:
        if what[0] == "left" and not found.calls:
            sys.setprofile(found)
        elif what[0] == "built":
            sys.setprofile(None)

    scenario = Scenario(publishers=1, subscribers=1, warmup_s=0.0, duration_s=600.0, seed=1)
    World(scenario, observer=observe).run()
    sys.setprofile(None)
    return found


SPY = """
import os, sys
def _spy(found=set(), package=os.environ["WALK_PACKAGE"], file=os.environ["WALK_FILE"]):
    def note(frame, event, _what):
        code = frame.f_code
        if event == "call" and code not in found:
            found.add(code)
            if code.co_filename.startswith(package) and code.co_name[0] != "<":
                with open(file, "a") as out:
                    out.write(code.co_filename[len(package) + 1:] + " " + code.co_qualname + chr(10))
    return note
sys.setprofile(_spy())
"""
"""What every Python process of a walk over Spark begins with (`sitecustomize.py`)."""


def walk_trace_to_verdict(folder: Path) -> Walk:
    """Audit a small trace, and return the functions that its rows, and the command, take."""
    trace, notes, spy = folder / "trace", folder / "notes", folder / "spy"
    sojourn_command = [sys.executable, "-m", "sojourn.cli.main"]
    small = ["--duration-s", "20", "--warmup-s", "5"]
    subprocess.run([*sojourn_command, "simulate", "roaming", *small, "--trace", str(trace)], check=True)
    spy.mkdir()
    (spy / "sitecustomize.py").write_text(SPY, "utf-8")
    notes.touch()
    path = os.pathsep.join([str(spy), *filter(None, [os.environ.get("PYTHONPATH")])])
    spied = {**os.environ, "PYTHONPATH": path, "WALK_PACKAGE": PACKAGE, "WALK_FILE": str(notes)}
    subprocess.run([*sojourn_command, "audit", str(trace)], check=True, env=spied)
    found = Walk()
    known = dict.fromkeys(notes.read_text("utf-8").splitlines())
    found.calls = [(file, name) for file, _, name in (line.partition(" ") for line in known)]
    return found


def walks(folder: Path) -> dict[str, Callable[[], Walk]]:
    """Every walk, by its name."""
    return {
        "publish": lambda: asyncio.run(walk_publish(folder / "publish")),
        "hand-off": lambda: asyncio.run(walk_hand_off(folder / "hand-off")),
        "simulated-move": walk_simulated_move,
        "trace-to-verdict": lambda: walk_trace_to_verdict(folder / "trace-to-verdict"),
    }


def main() -> None:
    """Print the walks."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--calls", action="store_true", help="Print every call.")
    options.add_argument("which", nargs="*", help="Only these.")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, take in walks(folder).items():
            if chosen.which and title not in chosen.which:
                continue
            (folder / title).mkdir()
            (folder / "trace-to-verdict").mkdir(exist_ok=True)
            found = take()
            if chosen.calls:
                for file, function in found.calls:
                    print(f"{file:40} {function}")
            changes = "" if title == "trace-to-verdict" else f", {found.changes} changes of file"
            what = "functions" if title == "trace-to-verdict" else "calls"
            print(f"{title}: {len(found.files)} files, {len(found.calls)} {what}{changes}")


if __name__ == "__main__":
    main()
