"""Clients that we did not write move between two brokers with a session that they keep."""

from __future__ import annotations

import asyncio
import queue
import shutil
import subprocess

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from sojourn.live.client.client import Client
from sojourn.live.config import Config
from tests.live.building import address, building
from tests.live.test_roaming import started, stop

MOSQUITTO_SUB = shutil.which("mosquitto_sub")


def port_of(config: Config, number: int) -> int:
    """The port of the broker with that number, from 0."""
    return int(address(config, number).rpartition(":")[2])


class PahoReader:
    """A paho client that keeps its session for a minute."""

    def __init__(self, qos: int) -> None:
        self.got: queue.Queue[bytes] = queue.Queue()
        self._qos = qos
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id="paho", protocol=paho.MQTTv5)
        self._client.on_message = lambda _client, _data, message: self.got.put(bytes(message.payload))
        self._ready: queue.Queue[bool] = queue.Queue()
        self._client.on_connect = lambda _c, _d, flags, _r, _p: self._ready.put(bool(flags.session_present))
        self._client.on_subscribe = lambda *_: self._ready.put(True)

    def connect(self, port: int) -> bool:
        """Connect; say whether the broker had the session."""
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho types it not
        properties.SessionExpiryInterval = 60
        self._client.connect("127.0.0.1", port, clean_start=False, properties=properties)
        self._client.loop_start()
        return self._ready.get(timeout=10)

    def subscribe(self) -> None:
        """Subscribe by content."""
        properties = Properties(PacketTypes.SUBSCRIBE)  # type: ignore[no-untyped-call]  # paho types it not
        properties.UserProperty = ("filter", "n >= 0 AND kind = 'news'")
        self._client.subscribe("paper/#", self._qos, properties=properties)
        self._ready.get(timeout=10)

    def leave(self) -> None:
        """Disconnect and keep the session."""
        self._client.disconnect()
        self._client.loop_stop()


@pytest.mark.parametrize("qos", [1, 2])
def test_paho_moves_with_its_session_and_names_no_broker(qos: int) -> None:
    """Events of before, between and after the move arrive once and in order, whatever the QoS."""

    async def scenario() -> None:
        config = building()
        servers = await started(config)
        loop = asyncio.get_running_loop()
        reader = PahoReader(qos)
        assert not await loop.run_in_executor(None, reader.connect, port_of(config, 0))
        await loop.run_in_executor(None, reader.subscribe)
        await asyncio.sleep(0.2)
        got: list[bytes] = []
        async with Client(f"mqtt://127.0.0.1:{port_of(config, 3)}") as source:

            async def publish(numbers: range) -> None:
                for n in numbers:
                    await source.publish("paper/a", {"n": n, "kind": "news"}, qos=qos)
                    await source.publish("paper/a", {"n": n, "kind": "sport"}, qos=qos)

            await publish(range(5))
            got += [await loop.run_in_executor(None, reader.got.get, True, 10) for _ in range(5)]
            for number, there in enumerate((1, 4, 0), start=1):
                await asyncio.sleep(0.2)  # it answers in a thread of its own; unanswered ones may come again
                await loop.run_in_executor(None, reader.leave)
                await publish(range(10 * number, 10 * number + 5))
                assert await loop.run_in_executor(None, reader.connect, port_of(config, there))
                await publish(range(10 * number + 5, 10 * number + 10))
                got += [await loop.run_in_executor(None, reader.got.get, True, 10) for _ in range(10)]
        wanted = [*range(5), *range(10, 40)]
        assert got == [b'{"n":%d,"kind":"news"}' % n for n in wanted]
        assert reader.got.empty()
        await loop.run_in_executor(None, reader.leave)
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_mosquitto_sub_moves_with_its_session() -> None:
    """What was published while it was away is printed at the other broker."""
    if MOSQUITTO_SUB is None:
        pytest.skip("Mosquitto's clients are not installed here; scripts/setup does it")

    def listen(port: int, how_long: tuple[str, ...]) -> list[str]:
        # Not -C, which leaves at its last event: the kernel may then still hold answers of the client,
        # and throws them away if it also holds something unread. Those events rightly come again.
        command = [
            str(MOSQUITTO_SUB), "-V", "5", "-p", str(port), "-i", "mosquitto", "-c", "-x", "60", "-q", "1",
            "-t", "paper/+", *how_long,
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()

    async def scenario() -> None:
        config = building()
        servers = await started(config)
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, listen, port_of(config, 0), ("-E",)) == []
        async with Client(f"mqtt://127.0.0.1:{port_of(config, 3)}") as source:
            for there in (1, 5):
                for n in range(3):
                    await source.publish("paper/a", f"{there}.{n}")
                printed = await loop.run_in_executor(None, listen, port_of(config, there), ("-W", "2"))
                assert printed == [f"{there}.{n}" for n in range(3)]
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 60))
