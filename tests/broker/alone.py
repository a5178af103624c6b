"""A broker without neighbours, told by hand what happens."""

from __future__ import annotations

from typing import Any

import mqtt5
from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    PublishPacket,
    QoS,
    SubscribePacket,
    TopicFilter,
)

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import AtOnce, Settings
from sojourn.mqtt.limits import Limits

PING = b"\xc0\x00"
PINGRESP = b"\xd0\x00"


class Alone:
    """A broker without neighbours, its clients, and what each was written."""

    def __init__(
        self, limits: Limits | None = None, *, traces: bool = False, at_once: AtOnce | None = None
    ) -> None:
        settings = Settings(
            name="B1",
            brokers=("B1",),
            limits=limits or Limits(),
            traces=traces,
            at_once=at_once or AtOnce(),
        )
        self.now = 1_000.0
        self.entries: list[bytes] = []
        self.settings = settings
        self.broker = LiveBroker.revived(settings, "life", self.now, None, [])
        self.came: dict[int, bytes] = {}
        self.closed: set[int] = set()
        self.held: set[int] = set()
        self.opened = 0

    def tell(self, fact: facts.Fact) -> None:
        """Tell the broker something, and let in who knocks."""
        self.broker.handle(fact, self.now)
        self.admit()

    def admit(self) -> None:
        """Let in who knocks."""
        while self.broker.knocks:
            self.broker.handle(facts.ClientAdmitted(self.broker.knocks.pop(0).number), self.now)

    def turn(self) -> None:
        """End a turn."""
        self.admit()
        turn = self.broker.turn(self.now)
        self.entries += turn.entries
        for number, data in turn.writes:
            self.came[number] = self.came.get(number, b"") + data
        self.closed |= {*turn.closes}
        self.held |= {*turn.holds}
        self.held -= {*turn.releases}

    def settle(self) -> int:
        """End turns until nothing waits; return how many that took."""
        for count in range(1, 10_000):
            self.turn()
            if not self.broker.has_work:
                return count
        raise AssertionError("there is no end of work")

    def client(self, name: str, address: str = "here", **options: Any) -> int:
        """Let a client in; return its connection."""
        self.opened += 1
        number = self.opened
        self.tell(facts.ClientOpened(number, address, f"fresh-{number}"))
        self.send(number, ConnectPacket(name, **options))
        self.settle()
        assert isinstance(self.packets(number)[0], ConnAckPacket)
        return number

    def send(self, number: int, *packets: Any) -> None:
        """Let a client send packets, or bytes, at once."""
        data = b"".join(one if isinstance(one, bytes) else one.write() for one in packets)
        self.tell(facts.ClientSent(number, data))

    def packets(self, number: int) -> list[mqtt5.Packet]:
        """Take what a client was written."""
        data, found = self.came.pop(number, b""), []
        while data:
            packet, length = mqtt5.read(memoryview(data))
            found.append(packet)
            data = data[length:]
        return found

    def again(self) -> LiveBroker:
        """The broker that its journal leads to."""
        return LiveBroker.revived(self.settings, "next", self.now, None, self.entries)


def events(count: int, topic: str = "t") -> bytes:
    """Events of QoS 0, one after the other."""
    return PublishPacket(topic, b"x").write() * count


def patterns(count: int) -> SubscribePacket:
    """A SUBSCRIBE with many patterns."""
    wanted = [
        TopicFilter(f"d/{number % 10}/{number}/+", max_qos=QoS.AT_LEAST_ONCE) for number in range(count)
    ]
    return SubscribePacket(7, wanted)
