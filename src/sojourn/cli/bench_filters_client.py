"""The client programs of `sojourn bench filters`: who wants events of some places, and who tells of places.

One process plays all subscribers and another the publisher, told by a JSON object in their only argument.
Each says `ready`, then answers every line of its input with one JSON object. Times are of the machine's
monotonic clock, which all its processes share.

What clients want is drawn from a seed, so that whoever knows the seed knows what is to be delivered.
"""

from __future__ import annotations

import json
import random
import selectors
import sys
import time
from typing import NamedTuple

import mqtt5
import msgspec
from mqtt5 import PubAckPacket, PublishPacket, QoS, SubAckPacket, SubscribePacket, TopicFilter

from sojourn.cli.bench_live_client import Link

FIELD = 1_000
"""The field is so many steps wide and high."""
SIDE = 100
"""A filter wants a square of the field with sides of so many steps: a hundredth of it."""
AROUND = 20
"""By so many steps at the most the squares of one client lie off its own place, either way."""
LEVELS = ("north", "east", "soil", "air", "light", "sound")
TOPIC = "/".join(("field", *LEVELS))
EVENTS = 1_000
"""Different events; then they come again."""
PAYLOAD_BYTES = 256
NUMBER_BYTES = 8
WINDOW = 200
PATIENCE_S = 120.0
"""How long nothing may come that is still expected."""
CLIENTS_AT_ONCE = 24
"""So many tell what they want at once, and wait for their SUBACKs before the next ones do."""


class Square(NamedTuple):
    """A part of the field, with its borders."""

    left: int
    right: int
    low: int
    high: int

    def holds(self, x: int, y: int) -> bool:
        """Whether a place is in it."""
        return self.left <= x <= self.right and self.low <= y <= self.high

    def __str__(self) -> str:
        return f"x BETWEEN {self.left} AND {self.right} AND y BETWEEN {self.low} AND {self.high}"


class Task(msgspec.Struct, kw_only=True):
    """What a process does."""

    role: str
    ports: list[int]
    clients: int
    filters: int
    """A client's; one for each topic filter, of which there are 64 that match the topic."""
    by_filter: bool
    """Whether brokers are told what is wanted; if not, clients take everything and choose."""
    seed: int = 1


def squares(task: Task, client: int) -> list[Square]:
    """What a client wants: squares around its place."""
    draw = random.Random(f"{task.seed}-{client}")  # noqa: S311 - the same in every run
    margin = SIDE // 2 + AROUND
    x, y = draw.randrange(margin, FIELD - margin), draw.randrange(margin, FIELD - margin)
    found = []
    for _ in range(task.filters):
        left = x + draw.randint(-AROUND, AROUND) - SIDE // 2
        low = y + draw.randint(-AROUND, AROUND) - SIDE // 2
        found.append(Square(left, left + SIDE - 1, low, low + SIDE - 1))
    return found


def places(task: Task) -> list[tuple[int, int]]:
    """Where events happen, one after the other."""
    draw = random.Random(f"{task.seed}-events")  # noqa: S311 - the same in every run
    return [(draw.randrange(FIELD), draw.randrange(FIELD)) for _ in range(EVENTS)]


def topic_filter(number: int) -> str:
    """Return one of the 64 topic filters that match the topic: a session has each of them once."""
    levels = ("+" if number >> bit & 1 else level for bit, level in enumerate(LEVELS))
    return "/".join(("field", *levels))


class Subscriber:
    """One client: what it wants, and what it got."""

    def __init__(self, task: Task, number: int) -> None:
        self.link = Link(task.ports[number % len(task.ports)], f"field-{number}")
        self.wanted = squares(task, number)
        lefts, rights, lows, highs = zip(*self.wanted, strict=True)
        self.box = Square(min(lefts), max(rights), min(lows), max(highs))
        """Around all that it wants: most of what it does not want is outside."""
        self.by_filter = task.by_filter
        self.last = -1
        self.buffer = b""

    @property
    def told(self) -> int:
        """How many SUBSCRIBEs it sends."""
        return len(self.wanted) if self.by_filter else 1

    def subscribe(self) -> None:
        """Tell the broker what is wanted, or take everything."""
        self.link.socket.sendall(b"".join(self._subscribe_packet(number) for number in range(self.told)))

    def wait(self) -> None:
        """Wait until every SUBSCRIBE was granted."""
        for _ in range(self.told):
            answer = self.link.wait()
            assert isinstance(answer, SubAckPacket)
            assert int(answer.reason_codes[0]) == 0, answer
        self.link.socket.setblocking(False)  # noqa: FBT003 - its only argument

    def _subscribe_packet(self, number: int) -> bytes:
        if not self.by_filter:
            return SubscribePacket(1, [TopicFilter(TOPIC, max_qos=QoS.AT_MOST_ONCE)]).write()
        wanted = TopicFilter(topic_filter(number), max_qos=QoS.AT_MOST_ONCE)
        properties = [("filter", str(self.wanted[number]))]
        return SubscribePacket(number + 1, [wanted], user_properties=properties).write()

    def take(self) -> tuple[int, int]:
        """Take what came; return how many events were useful, and how many came."""
        data = self.link.socket.recv(262_144)
        if not data:
            raise ConnectionError("a broker closed the connection of a subscriber")
        buffer = self.buffer + data if self.buffer else data
        at = useful = came = 0
        while len(buffer) - at > 2:
            length = _length(buffer, at)
            if length is None or at + length > len(buffer):
                break
            useful += self._is_useful(buffer[at : at + length])
            came += 1
            at += length
        self.buffer = buffer[at:]
        return useful, came

    def _is_useful(self, packet: bytes) -> bool:
        """Whether a client wants an event, and did not have it; it looks where the figures are."""
        if self.last < 0:
            read, _ = mqtt5.read(memoryview(packet))
            assert isinstance(read, PublishPacket), "nothing else is due"
            assert read.user_properties == _properties(*_place(packet)), "the figures are elsewhere"
        number = int.from_bytes(packet[-PAYLOAD_BYTES : NUMBER_BYTES - PAYLOAD_BYTES])
        if number <= self.last:
            return False
        x, y = _place(packet)
        if not self.by_filter and not (
            self.box.holds(x, y) and any(square.holds(x, y) for square in self.wanted)
        ):
            return False
        self.last = number
        return True


def _length(buffer: bytes, at: int) -> int | None:
    """The length of the packet that begins there; None if that is still to come."""
    length = 0
    for place in range(4):
        if at + 1 + place >= len(buffer):
            return None
        byte = buffer[at + 1 + place]
        length |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return 2 + place + length
    raise ConnectionError("a broker sent what is no packet")


def _place(packet: bytes) -> tuple[int, int]:
    """Where an event happened: its last figures before the payload."""
    head = packet[:-PAYLOAD_BYTES]
    return int(head[-12:-9]), int(head[-3:])


def _properties(x: int, y: int) -> list[tuple[str, str]]:
    return [("x", f"{x:03}"), ("y", f"{y:03}")]


def subscribe(task: Task) -> None:
    """Play all subscribers: told how many useful deliveries are due, say when the last of them came."""
    subscribers = [Subscriber(task, number) for number in range(task.clients)]
    selector = selectors.DefaultSelector()
    for first in range(0, len(subscribers), CLIENTS_AT_ONCE):
        group = subscribers[first : first + CLIENTS_AT_ONCE]
        for one in group:
            one.subscribe()
        for one in group:
            one.wait()
            selector.register(one.link.socket, selectors.EVENT_READ, one)
    _say("ready")
    for line in sys.stdin:
        left, useful, came = int(line), 0, 0
        until_s = time.monotonic() + PATIENCE_S
        while left > 0 and time.monotonic() < until_s:
            for key, _ in selector.select(1.0):
                new, all_new = key.data.take()
                useful += new
                came += all_new
                left -= new
                until_s = time.monotonic() + PATIENCE_S if new else until_s
        _say(json.dumps({"useful": useful, "came": came, "missing": left, "ended_s": time.monotonic()}))


def publish(task: Task) -> None:
    """Play the publisher: told the first number and how many, publish them, a window at a time."""
    link = Link(task.ports[0], "field-publisher")
    where = places(task)
    window = min(WINDOW, link.receive_max)
    _say("ready")
    for line in sys.stdin:
        first, count = map(int, line.split())
        began_s, sent, answered = time.monotonic(), 0, 0
        while answered < count:
            out = []
            while sent < count and sent - answered < window:
                number = first + sent
                packet = PublishPacket(
                    TOPIC,
                    number.to_bytes(NUMBER_BYTES) + bytes(PAYLOAD_BYTES - NUMBER_BYTES),
                    qos=QoS.AT_LEAST_ONCE,
                    packet_id=sent % 65_535 + 1,
                    user_properties=_properties(*where[number % EVENTS]),
                )
                out.append(packet.write())
                sent += 1
            link.socket.sendall(b"".join(out))
            link.buffer += link.socket.recv(65_536)
            answered += sum(isinstance(packet, PubAckPacket) for packet in link.packets())
        _say(json.dumps({"began_s": began_s}))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _task = msgspec.json.decode(sys.argv[1], type=Task)
    {"publish": publish, "subscribe": subscribe}[_task.role](_task)
