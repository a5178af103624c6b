"""A crew that shares jobs: members of a shared subscription at brokers in a hall."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mqtt5
from mqtt5 import ConnectPacket, PublishPacket

from tests.live.hall import Hall, Visitor

JOBS = "$share/crew/jobs/#"


class Silent(Visitor):
    """A client that acknowledges only what it is told to."""

    def __init__(self, hall: Hall, broker: int, name: str, *, lasts_s: int = 500, **options: Any) -> None:
        hall.now += 0.01
        super().__init__(hall.desks[broker], [])
        self.events: list[PublishPacket] = []
        options.setdefault("clean_start", False)
        self.send(ConnectPacket(name, session_expiry_interval=lasts_s, **options))
        hall.settle()

    def take(self, data: bytes, *, is_over: bool) -> None:
        """Read what the broker wrote, and keep it."""
        self.is_over = is_over
        while data:
            packet, length = mqtt5.read(memoryview(data))
            data = data[length:]
            if isinstance(packet, PublishPacket):
                self.events.append(packet)
            else:
                self.inbox.append(packet)

    def acknowledge(self) -> None:
        """Acknowledge the oldest event that it has not."""
        event = self.events.pop(0)
        self.got.append(bytes(event.payload))
        assert event.packet_id is not None
        self.send(mqtt5.PubAckPacket(event.packet_id))


def member(hall: Hall, broker: int, name: str, *, group: str = JOBS, condition: str = "") -> Visitor:
    """A client whose session lasts, and that is a member of a group."""
    visitor = hall.visit(broker, name, lasts_s=500)
    hall.settle()
    visitor.subscribe(group, condition)
    return visitor


def silent_member(hall: Hall, broker: int, name: str, **options: Any) -> Silent:
    """A client that is a member of a group, and acknowledges nothing by itself."""
    visitor = Silent(hall, broker, name, **options)
    visitor.subscribe(JOBS)
    return visitor


def publish(
    hall: Hall, broker: int, count: int, *, first: int = 0, writer: Visitor | None = None
) -> list[bytes]:
    """Let a client at a broker publish events; return their payloads."""
    payloads = [b"%d" % number for number in range(first, first + count)]
    writer = writer or hall.visit(broker, f"writer {broker}")
    hall.settle()
    for payload in payloads:
        writer.publish("jobs/a", payload)
    hall.settle()
    assert sum(isinstance(one, mqtt5.PubAckPacket) for one in writer.inbox) == count
    writer.inbox.clear()
    return payloads


def together(visitors: Iterable[Visitor]) -> list[bytes]:
    """All that some clients were sent, in order."""
    return sorted((payload for one in visitors for payload in one.got), key=int)


def stranger(hall: Hall) -> Visitor:
    """A client without a name, for whose session nobody is asked."""
    return hall.visit(0, "", clean_start=True)


def picks(hall: Hall) -> int:
    """How many events brokers have chosen a member for, and have not heard how that went."""
    return sum(len(desk.network.clients.shares.picks) for desk in hall.desks)


def decliners(hall: Hall, count: int) -> list[Silent]:
    """Members at the first broker that take no event of more than a few bytes."""
    return [silent_member(hall, 0, f"decliner {number}", max_packet_size=100) for number in range(count)]
