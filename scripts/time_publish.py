"""Processor time of a publish: through one broker, and from one broker to subscribers at another.

Brokers run with their stores in a process of their own, two linked ones or one alone; plain clients send
bursts of events and wait until every subscriber has each of them. What is reported is the processor time that
the brokers' process used, per event published, the least of several rounds: other work on the machine makes
a round longer, never shorter. Compare figures of one run only. Given the source folders of other trees, all
trees are measured in turn, round by round.

    python scripts/time_publish.py [--rounds 5] [--events 4000] [FOLDER/src …]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import mqtt5

BURST = 100
"""Events that are sent at once, before the publisher waits for all of their subscribers."""
PAYLOAD = b"x" * 256
TOPICS = 20
SETTLE_S = 1.0
"""In older trees a subscription is not known everywhere when it is answered."""
ROUND_S = 120.0
"""A round that takes longer has lost an event."""


class Case(NamedTuple):
    """What is measured."""

    is_routed: bool
    qos: int
    subscribers: int

    @property
    def name(self) -> str:
        """Its row in the table."""
        where = "routed" if self.is_routed else "single"
        return f"{where} QoS {self.qos} 1:{self.subscribers}"


CASES = [
    Case(is_routed, qos, subscribers)
    for is_routed in (True, False)
    for qos in (0, 1)
    for subscribers in (1, 10)
]


# The brokers' process -------------------------------------------------------------------------------------


async def serve(folder: Path, *, is_routed: bool) -> None:
    """Run the brokers until the input ends; say their ports first, and the processor time at every line."""
    from sojourn.live.config import BrokerConfig, Config  # noqa: PLC0415 - the tree to measure is in the path

    try:
        from sojourn.live.brokers.server import Server  # noqa: PLC0415 - the tree to measure is in the path
    except ImportError:  # a tree from before `live` had rooms
        from sojourn.live.server import Server  # type: ignore[import-not-found,no-redef]  # noqa: PLC0415
    from socket import create_server  # noqa: PLC0415 - only to reserve a port for the length of a call

    with create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    names = ("B1", "B2") if is_routed else ("B1",)
    brokers = [
        BrokerConfig(
            name=name,
            listen="127.0.0.1:0",
            peers=f"127.0.0.1:{port}" if name == "B2" else None,
            store=str(folder / name),
        )
        for name in names
    ]
    more: dict[str, Any] = {}
    with contextlib.suppress(ImportError):  # older trees know no secret
        from sojourn.live.config import NetworkConfig  # noqa: PLC0415 - the tree to measure is in the path
        from sojourn.live.links.secret import SECRET_NAME, write_secret  # noqa: PLC0415 - the tree to measure is in the path

        write_secret(folder / SECRET_NAME)
        more["network"] = NetworkConfig(secret=str(folder / SECRET_NAME))
    config = Config(brokers=brokers, links=[("B1", "B2")] if is_routed else [], **more)
    servers = [Server(config, name) for name in reversed(names)]
    addresses = [await server.start() for server in servers]
    print(addresses[-1].port, addresses[0].port, flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(time.process_time(), flush=True)
    for server in servers:
        await server.stop()


class Brokers:
    """The brokers of one tree, seen from outside."""

    def __init__(self, source: str, folder: str, *, is_routed: bool) -> None:
        kind = "routed" if is_routed else "single"
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", kind, "--store", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": source},
        )
        self.publish_port, self.subscribe_port = map(int, self._line().split())

    def _line(self) -> str:
        assert self._process.stdout is not None, "it was opened with a pipe"
        return self._process.stdout.readline()

    def spent_s(self) -> float:
        """Processor time that was used so far."""
        assert self._process.stdin is not None, "it was opened with a pipe"
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._line())

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None, "it was opened with a pipe"
        self._process.stdin.close()
        self._process.wait()


# The clients ----------------------------------------------------------------------------------------------


class Plain:
    """A client that knows MQTT and nothing of us."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._data = b""

    @classmethod
    async def connect(cls, port: int, name: str) -> Plain:
        """Connect with a session that outlives the connection."""
        client = cls(*await asyncio.open_connection("127.0.0.1", port))
        client.send(mqtt5.ConnectPacket(name, session_expiry_interval=600, receive_max=BURST).write())
        await client.take(0x20, 1)
        return client

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._writer.write(data)

    async def take(self, kind: int, count: int) -> None:
        """Read so many packets of a kind, and acknowledge those that ask for it."""
        answers = bytearray()
        while count:
            at, data, end = 0, self._data, len(self._data)
            while count and end - at >= 2:
                length, body = data[at + 1], at + 2
                if length >= 0x80:
                    if end - at < 3:
                        break
                    length, body = length & 0x7F | data[at + 2] << 7, at + 3
                if body + length > end:
                    break
                first = data[at]
                if first & 0xF0 == kind:
                    count -= 1
                if first & 0xF6 == 0x32:
                    id_at = body + 2 + (data[body] << 8 | data[body + 1])
                    answers += b"\x40\x02" + data[id_at : id_at + 2]
                at = body + length
            self._data = data[at:]
            if count:
                more = await self._reader.read(1 << 18)
                if not more:
                    raise ConnectionError("A broker ended a connection.")
                self._data += more
        if answers:
            self._writer.write(bytes(answers))

    def close(self) -> None:
        """Let go of the connection."""
        self._writer.close()


async def measure(brokers: Brokers, case: Case, events: int) -> float:
    """Return the processor time of the brokers, in microseconds per event."""
    publisher = await Plain.connect(brokers.publish_port, "publisher")
    subscribers = [
        await Plain.connect(brokers.subscribe_port, f"subscriber-{number}")
        for number in range(case.subscribers)
    ]
    for one in subscribers:
        wanted: list[Any] = [mqtt5.TopicFilter("news/#", max_qos=mqtt5.QoS.AT_LEAST_ONCE)]
        one.send(mqtt5.SubscribePacket(1, wanted).write())
        await one.take(0x90, 1)
    await asyncio.sleep(SETTLE_S)
    burst = b"".join(
        mqtt5.PublishPacket(
            f"news/{number % TOPICS}",
            PAYLOAD,
            qos=mqtt5.QoS(case.qos),
            packet_id=number + 1 if case.qos else None,
        ).write()
        for number in range(BURST)
    )

    async def send(bursts: int) -> None:
        for _ in range(bursts):
            publisher.send(burst)
            await asyncio.gather(*(one.take(0x30, BURST) for one in subscribers))
            if case.qos:
                await publisher.take(0x40, BURST)

    await send(10)  # caches are filled, and links begun
    before_s = brokers.spent_s()
    await send(events // BURST)
    spent_s = brokers.spent_s() - before_s
    for client in (publisher, *subscribers):
        client.close()
    return spent_s / (events // BURST * BURST) * 1e6


def measure_once(source: str, case: Case, events: int) -> float:
    """Measure a tree once, with fresh brokers and stores."""
    with tempfile.TemporaryDirectory() as folder:
        brokers = Brokers(source, folder, is_routed=case.is_routed)
        try:
            return asyncio.run(asyncio.wait_for(measure(brokers, case, events), ROUND_S))
        finally:
            brokers.stop()


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5, help="Rounds, of which the best counts.")
    options.add_argument("--events", type=int, default=4_000, help="Events a round.")
    options.add_argument("--only", default="", help="Rows whose name has this in it.")
    options.add_argument("--serve", choices=("routed", "single"), help=argparse.SUPPRESS)
    options.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    options.add_argument("trees", nargs="*", help="Source folders; this tree is measured after them.")
    chosen = options.parse_args()
    if chosen.serve:
        import uvloop  # noqa: PLC0415 - the clients need none

        uvloop.run(serve(chosen.store, is_routed=chosen.serve == "routed"))
        return
    trees = [*chosen.trees, str(Path(__file__).parent.parent / "src")]
    print(f"{'us of processor per event':26}" + "".join(f"{tree[-30:]:>32}" for tree in trees))
    for case in CASES:
        if chosen.only not in case.name:
            continue
        best = dict.fromkeys(trees, float("inf"))
        for _ in range(chosen.rounds):
            for tree in trees:
                best[tree] = min(best[tree], measure_once(tree, case, chosen.events))
        print(f"{case.name:26}" + "".join(f"{best[tree]:32.1f}" for tree in trees), flush=True)


if __name__ == "__main__":
    main()
