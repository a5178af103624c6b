"""A store without room: what was refused meanwhile is not taken in later, and nothing is refused for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mqtt5 import ConnectPacket, PublishPacket, QoS, Will

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.live.brokers.doors import Guest
from sojourn.live.brokers.node import Node
from sojourn.live.brokers.server import Server
from sojourn.live.config import BrokerConfig, Config
from sojourn.live.page.page import health
from sojourn.live.store.errors import JournalError
from sojourn.live.store.journal import Journal
from sojourn.live.store.keeper import ROOM_CHECK_S, Keeper, NoRoomError
from sojourn.mqtt.limits import Limits

SINGLE = Config(brokers=[BrokerConfig(name="B1", listen="127.0.0.1:0")])


class Disk:
    """A journal whose disk may be full."""

    def __init__(self) -> None:
        self.entries = self.bytes = 0
        self.is_full = False
        self.has_reserve = True
        self.pending: list[bytes] = []
        self.written: list[bytes] = []
        self.snapshot: bytes | None = None
        self.is_gone = False

    def append(self, entry: bytes) -> None:
        """Take a line."""
        self.pending.append(entry)

    def commit(self, entries: Sequence[bytes] = ()) -> None:
        """Write the lines; without room there is only the reserve."""
        self.pending += entries
        if self.is_full and self.has_reserve:
            raise JournalError("There is no room.")
        self.written += self.pending
        self.pending = []

    def keep(self, snapshot: bytes) -> None:
        """Let a snapshot take the place of all lines."""
        if self.is_full:
            raise JournalError("There is no room.")
        self.snapshot, self.written = snapshot, []

    def reserve(self) -> bool:
        """Set room aside, if there is any."""
        self.has_reserve = not self.is_full
        return self.has_reserve

    def spend_reserve(self) -> None:
        """Use it."""
        self.has_reserve = False


class Kept:
    """A broker with such a journal, and one client."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.settings = SINGLE.settings("B1")
        self.broker = LiveBroker.revived(self.settings, "life", self.now, None, [])
        self.disk = Disk()
        self.keeper = Keeper(self.disk)  # type: ignore[arg-type]  # as far as it is needed
        self.tell(facts.ClientOpened(1, "here", "fresh"))
        self.take(ConnectPacket("writer", clean_start=True, keep_alive=0))
        self.broker.knocks.clear()
        self.tell(facts.ClientAdmitted(1))

    def tell(self, fact: facts.Fact | None) -> None:
        """Tell the broker something, in turns of their own, as its driver does."""
        while fact is not None:
            self.broker.handle(fact, self.now)
            turn = self.broker.turn(self.now)
            fact = self.keeper.commit(self.broker, turn.entries)

    def take(self, packet: Any) -> None:
        """Take a packet of the client."""
        self.now += 1
        self.tell(facts.ClientSent(1, packet.write()))

    def publish(self, number: int) -> None:
        """Publish at QoS 1."""
        self.take(PublishPacket("news", b"x", qos=QoS.AT_LEAST_ONCE, packet_id=number))

    def look_for_room(self) -> None:
        """Let so much time pass that the disk is looked at again."""
        self.now += ROOM_CHECK_S
        self.tell(self.keeper.look_for_room(self.now))

    def is_refusing(self) -> bool:
        """Whether the broker promises nothing at present."""
        return self.broker.core.state.refusing is not None

    def again(self) -> LiveBroker:
        """The broker as its journal leaves it."""
        return LiveBroker.revived(self.settings, "life 2", self.now, self.disk.snapshot, self.disk.written)


def received(broker: LiveBroker) -> int:
    """How many events a broker has accepted."""
    return broker.core.state.counters.received


def test_what_was_refused_is_not_taken_in_on_replay() -> None:
    """Though its packet is in the journal."""
    kept = Kept()
    kept.publish(1)
    kept.disk.is_full = True
    kept.publish(2)
    kept.publish(3)
    assert kept.is_refusing()
    assert received(kept.broker) == 2
    assert received(kept.again()) == 2


def test_a_full_disk_is_looked_at_now_and_then() -> None:
    """Not at every turn, and as long as there is no room everything is refused."""
    kept = Kept()
    kept.disk.is_full = True
    kept.publish(1)
    assert kept.keeper.look_again_s == kept.now + ROOM_CHECK_S
    kept.disk.is_full = False
    assert kept.keeper.look_for_room(kept.now + ROOM_CHECK_S / 2) is None
    kept.disk.is_full = True
    kept.look_for_room()
    assert kept.is_refusing()
    assert kept.keeper.look_again_s == kept.now + ROOM_CHECK_S


def test_with_room_again_nothing_is_refused_after_a_restart_either() -> None:
    """What was acknowledged after that is taken in on replay."""
    kept = Kept()
    kept.disk.is_full = True
    kept.publish(1)
    kept.look_for_room()
    assert kept.is_refusing()
    kept.disk.is_full = False
    kept.look_for_room()
    assert not kept.is_refusing()
    assert kept.keeper.look_again_s is None
    kept.publish(2)
    assert received(kept.broker) == 2
    revived = kept.again()
    assert revived.core.state.refusing is None
    assert received(revived) == 2


class Wire:
    """A client's connection that hears everything, and goes when it is asked to."""

    is_busy = False

    def __init__(self, node: Node) -> None:
        guest = Guest("listen")
        self.number = node.opened(self, "here", guest)  # type: ignore[arg-type]  # as far as a node needs it
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
        node.tell(facts.ClientSent(Wire(node).number, hello.write()))
        node.dismiss()
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
        node.tell(facts.ClientSent(number, hello.write()))
        node.tell(facts.ClientSent(number, event.write()))
        node.dismiss()
        await node.stop()
        for sessions_max in (10, 20):
            again = Node(Config(brokers=[broker], limits=Limits(sessions_max=sessions_max)), "B1", loop)
            kept = again.core.state.retained.get(topic)
            assert kept is not None
            assert kept.payload == b"deep"
            assert "client" in again.core.state.sessions
            await again.stop()

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_snapshot_is_taken_between_two_turns(tmp_path: Path) -> None:
    """What was taken in but is in no journal yet when there is room again is not taken in twice later."""
    config = Config(brokers=[BrokerConfig(name="B1", listen="127.0.0.1:0", store=str(tmp_path / "B1"))])
    hello = ConnectPacket("client", clean_start=True, session_expiry_interval=100)
    event = PublishPacket("news", b"once", qos=QoS.AT_LEAST_ONCE, packet_id=1)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        node = Node(config, "B1", loop)
        assert node.keeper is not None
        number = Wire(node).number
        node.tell(facts.ClientSent(number, hello.write()))
        node.keeper.look_again_s = node.now()
        node.tell(facts.ClientSent(number, event.write()))
        node._look()
        node.flush()
        node.keeper.journal.close()
        again = Node(config, "B1", loop)
        assert received(again.broker) == received(node.broker) == 1
        await again.stop()

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_store_that_cannot_be_used_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """With the way out: another release's, another broker's, and one that is damaged within."""
    old, foreign, odd = tmp_path / "old.db", tmp_path / "foreign", tmp_path / "odd"
    old.write_bytes(b"SQLite format 3\0" + bytes(100))
    Journal.open(foreign, broker="B2").close()
    journal = Journal.open(odd, broker="B1")
    journal.keep(b"no snapshot")
    journal.close()
    for path, says in (
        (old, "is a database of an older release"),
        (foreign, "is that of broker 'B2' and not of 'B1'"),
        (odd, "holds what this release cannot read (a snapshot does not read"),
        (odd, f"`sojourn store check {odd}` says more."),  # it was let go, and is not in use
    ):
        with pytest.raises(JournalError) as caught:
            Keeper.open(str(path), SINGLE.settings("B1"), "life", 1.0)
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_broker_that_cannot_make_anything_safe_is_to_end() -> None:
    """When even the room that was set aside is full; what it noted in that turn is not in its store."""
    kept = Kept()
    kept.publish(1)
    kept.disk.commit = _no_room  # type: ignore[method-assign]  # from now on
    with pytest.raises(NoRoomError, match="what it promised is safe"):
        kept.publish(2)
    assert received(kept.again()) == 1


def _no_room(entries: Sequence[bytes] = ()) -> None:
    raise JournalError("There is no room.")


def test_a_broker_that_fails_while_it_is_started_ends_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its first turn comes while other things are waited for; until the end it says that it is not well."""

    def commit(*_args: object) -> None:
        raise NoRoomError("There is no room. The broker ends.")

    async def start() -> tuple[bool, list[str]]:
        here = BrokerConfig(name="B1", listen="127.0.0.1:0", page="127.0.0.1:0", store=str(tmp_path))
        server = Server(Config(brokers=[here]), "B1")
        failed = asyncio.Event()
        server.on_failure = failed.set
        await server.start()
        assert server.observer is not None
        found = failed.is_set(), health(server.observer).reasons
        await server.stop()
        return found

    monkeypatch.setattr(Keeper, "commit", commit)
    assert asyncio.run(start()) == (True, ["There is no room. The broker ends."])
