"""The way of one event from a socket to a subscriber at another broker: files, calls, changes of file.

Two linked brokers with stores run in this process; a plain client subscribes at the second and another
publishes one event of QoS 1 at the first. Every call of a function of the package is counted from the moment
the event is sent until the subscriber has it and the publisher its answer. The shortest of a few such walks
counts: now and then a timer of a broker falls into one.

    python scripts/walk_publish.py [--calls]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import mqtt5

import sojourn
from sojourn.live.brokers.server import Server
from sojourn.live.config import BrokerConfig, Config, NetworkConfig
from sojourn.live.links.secret import SECRET_NAME, write_secret

WALKS = 5
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


async def walk(folder: Path) -> Walk:
    """Let one event pass over two brokers, and return the calls that it took."""
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
    reader = await PlainClient.connect(addresses[0].port, "reader")
    writer = await PlainClient.connect(addresses[1].port, "writer")
    event = mqtt5.PublishPacket("news/today", b"x" * 256, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=1)
    await reader.send(
        mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("news/#", max_qos=mqtt5.QoS.AT_LEAST_ONCE)])
    )
    await reader.next(mqtt5.SubAckPacket)
    walks = []
    for _ in range(WALKS):  # the first finds caches cold and the links just begun
        await asyncio.sleep(0.3)
        found = Walk()
        sys.setprofile(found)
        await writer.send(event)
        await writer.next(mqtt5.PubAckPacket)
        got = await reader.next(mqtt5.PublishPacket)
        sys.setprofile(None)
        walks.append(found)
        await reader.send(mqtt5.PubAckPacket(got.packet_id))
    for client in (reader, writer):
        client.close()
    for server in servers:
        await server.stop()
    return min(walks, key=lambda one: len(one.calls))


def main() -> None:
    """Print the walk."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--calls", action="store_true", help="Print every call.")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(walk(Path(folder)))
    if chosen.calls:
        for file, name in found.calls:
            print(f"{file:40} {name}")
    print(f"{len(found.files)} files, {len(found.calls)} calls, {found.changes} changes of file")


if __name__ == "__main__":
    main()
