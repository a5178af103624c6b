"""A store without room: what was refused meanwhile is not taken in later, and nothing is refused for ever."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mqtt5 import ConnectPacket, PublishPacket, QoS, Will

from sojourn.live.brokers.node import Node
from sojourn.live.config import BrokerConfig, Config
from sojourn.live.store.journal import JournalError
from sojourn.live.store.recording import OPENED, RECEIVED, Recording
from sojourn.live.store.safekeeping import Safekeeping
from sojourn.mqtt.core import Core
from sojourn.mqtt.handshake import Admission
from sojourn.mqtt.limits import Limits
from tests.live.hall import Memory


class Disk(Memory):
    """A journal whose disk may be full."""

    entries = bytes = 0

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False
        self.has_reserve = True

    def commit(self) -> None:
        """Fail without room."""
        if self.is_full and self.has_reserve:
            raise JournalError("There is no room.")

    def reserve(self) -> bool:
        """Set room aside, if there is any."""
        self.has_reserve = not self.is_full
        return self.has_reserve

    def spend_reserve(self) -> None:
        """Use it."""
        self.has_reserve = False


class Broker:
    """A core with such a journal, and one client."""

    def __init__(self, loop: Any) -> None:
        self.now = 1_000.0
        self.core = Core("B1", Limits())
        self.core.kept = []
        self.disk = Disk()
        self.recording = Recording(self.disk)  # type: ignore[arg-type]  # as far as it is needed
        self.safekeeping = Safekeeping(self.recording, self.core, None, loop)
        self.core.opened(1, "here", "fresh", self.now)
        self.recording.note(OPENED, self.now, 1, "here", "fresh")
        self.take(ConnectPacket("writer", clean_start=True, keep_alive=0))
        self.core.effects.knocks.clear()
        self.core.admit(1, Admission(), self.now)
        self.recording.admitted(1, Admission(), self.now)

    def take(self, packet: Any) -> None:
        """Take a packet of the client, in a loop turn of its own."""
        self.now += 1
        self.core.received(1, packet.write(), self.now)
        assert self.core.kept is not None
        self.recording.note(RECEIVED, self.now, 1, self.core.kept)
        self.core.kept.clear()
        self.safekeeping.commit(self.now)

    def is_refusing(self) -> bool:
        """Whether it promises nothing at present."""
        return self.core.state.refusing is not None

    def publish(self, number: int) -> None:
        """Publish at QoS 1."""
        self.take(PublishPacket("news", b"x", qos=QoS.AT_LEAST_ONCE, packet_id=number))

    def again(self) -> Core:
        """The core as its journal leaves it."""
        return self.recording.revive(Core("B1", Limits()), None)[0]


class Loop:
    """Calls nobody."""

    def call_later(self, _seconds: float, _what: Any) -> None:
        """Do not."""


def test_what_was_refused_is_not_taken_in_on_replay() -> None:
    """Though its packet is in the journal."""
    broker = Broker(Loop())
    broker.publish(1)
    broker.disk.is_full = True
    broker.publish(2)
    broker.publish(3)
    assert broker.is_refusing()
    assert broker.core.state.counters.received == 2
    assert broker.again().state.counters.received == 2


def test_with_room_again_nothing_is_refused_after_a_restart_either() -> None:
    """What was acknowledged after that is taken in on replay."""
    broker = Broker(Loop())
    broker.disk.is_full = True
    broker.publish(1)
    broker.safekeeping.look_for_room()
    assert broker.is_refusing()
    broker.disk.is_full = False
    broker.safekeeping.look_for_room()
    assert not broker.is_refusing()
    broker.publish(2)
    revived = broker.again()
    assert revived.state.refusing is None
    assert revived.state.counters.received == broker.core.state.counters.received == 2


class Wire:
    """A client's connection that hears everything, and goes when it is asked to."""

    def __init__(self, node: Node) -> None:
        self.number = node.opened(self, "here")  # type: ignore[arg-type]  # as far as a node needs it
        self._node = node

    def write(self, _data: bytes) -> None:
        """Hear."""

    def close(self) -> None:
        """Go."""
        self._node.lost(self.number)

    abort = close


def test_a_broker_that_was_stopped_knows_it_afterwards(tmp_path: Path) -> None:
    """Its clients were sent away and did not get lost: a delayed will does not come true by its restart."""
    config = Config(
        brokers=[BrokerConfig(name="B1", listen="127.0.0.1:0", store=str(tmp_path / "B1.db"))],
    )
    will = Will("last", payload=b"words", will_delay_interval=5)
    hello = ConnectPacket("client", clean_start=True, session_expiry_interval=100, will=will)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        node = Node(config, "B1", loop)
        node.received(Wire(node).number, hello.write())
        await node.stop()
        again = Node(config, "B1", loop)
        session = again.core.state.sessions["client"]
        assert session.expires_s == node.core.state.sessions["client"].expires_s
        assert session.will is not None
        assert session.will_s is None
        await again.stop()

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_topic_of_many_levels_and_other_limits_stop_no_restart(tmp_path: Path) -> None:
    """One retained event on a topic of 220 levels once made a store that no broker could read again."""
    broker = BrokerConfig(name="B1", listen="127.0.0.1:0", store=str(tmp_path / "B1"))
    topic = "/".join("x" for _ in range(220))
    event = PublishPacket(topic, b"deep", qos=QoS.AT_LEAST_ONCE, packet_id=1, retain=True)
    hello = ConnectPacket("client", clean_start=True, session_expiry_interval=100)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        node = Node(Config(brokers=[broker]), "B1", loop)
        number = Wire(node).number
        node.received(number, hello.write())
        node.received(number, event.write())
        await node.stop()
        for sessions_max in (10, 20):
            again = Node(Config(brokers=[broker], limits=Limits(sessions_max=sessions_max)), "B1", loop)
            kept = again.core.state.retained.get(topic)
            assert kept is not None
            assert kept.payload == b"deep"
            assert "client" in again.core.state.sessions
            await again.stop()

    asyncio.run(asyncio.wait_for(scenario(), 20))
