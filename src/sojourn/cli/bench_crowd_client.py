"""The client program of `sojourn bench crowd`: many sessions, of which some move, and events for all of them.

One process plays a part of the crowd, told by a JSON object in its only argument, and prints one JSON object
at the end. Each session has a subscription to a topic of its own. A session that moves closes its connection,
is away for a moment in which an event is published for it, and connects to another broker: the time from
CONNECT to that event is noted. Events for others are published all the time. In the end it is counted which
events did not come, and which came twice: at QoS 1 that is allowed where a connection broke before an
acknowledgement had gone.
"""

from __future__ import annotations

import heapq
import json
import random
import selectors
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import mqtt5
import msgspec
from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    PubAckPacket,
    PublishPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
)

BATCH = 100
"""Clients that connect at once, at the beginning."""
SESSION_S = 1_800
AWAY_S = 0.1
RETRY_S = 0.5
PATIENCE_S = 120.0


class Part(msgspec.Struct, kw_only=True):
    """What a process does."""

    name: str
    ports: list[int]
    source: str
    """The address that its clients come from."""
    sessions: int
    moves_per_s: float
    events_per_s: float
    seconds: float


class Member:
    """One session and its connection."""

    def __init__(self, number: int, place: int) -> None:
        self.number, self.place = number, place
        self.socket: socket.socket | None = None
        self.buffer = b""
        self.asked_s: float | None = None
        """When it asked for its session; None once its first event has come."""


class Crowd:
    """Some sessions, and who publishes for them."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.draw = random.Random(part.name)  # noqa: S311 - the same walk in every run
        self.selector = selectors.DefaultSelector()
        self.members = [Member(number, number % len(part.ports)) for number in range(part.sessions)]
        self.publisher = Member(-1, 0)
        self.due: list[tuple[float, int, Callable[[], None]]] = []
        """What is to be done and when."""
        self.order = self.packets = 0
        self.expected: dict[int, int] = {}
        """By event that has not come: whose it is."""
        self.took_s: list[float] = []
        self.moves = self.published = self.repeated = self.sessions_lost = self.refused = self.unanswered = 0

    # The beginning ---------------------------------------------------------------------------------------

    def settle_in(self) -> None:
        """Connect all sessions, and have each subscribe."""
        self._open(self.publisher, self._connect_packet("publisher", lasts_s=0))
        for first in range(0, len(self.members), BATCH):
            batch = self.members[first : first + BATCH]
            for one in batch:
                wanted = [TopicFilter(self._topic(one), max_qos=QoS.AT_LEAST_ONCE)]
                self._open(one, self._connect_packet(str(one.number)) + SubscribePacket(1, wanted).write())
            waiting = {one.number for one in batch}
            until_s = time.monotonic() + PATIENCE_S
            while waiting:
                if time.monotonic() > until_s:
                    raise TimeoutError(f"{len(waiting)} clients were not let in within {PATIENCE_S:.0f} s")
                for member, packet in self._take(0.1):
                    if isinstance(packet, SubAckPacket):
                        waiting.discard(member.number)
        self.sessions_lost = 0  # nobody had one

    def _connect_packet(self, name: str, *, lasts_s: int = SESSION_S) -> bytes:
        client = f"{self.part.name}-{name}"
        return ConnectPacket(client, clean_start=False, session_expiry_interval=lasts_s, keep_alive=0).write()

    def _topic(self, member: Member) -> str:
        return f"crowd/{self.part.name}/{member.number}"

    def _open(self, member: Member, data: bytes) -> None:
        address = ("127.0.0.1", self.part.ports[member.place])
        member.socket = socket.create_connection(address, PATIENCE_S, source_address=(self.part.source, 0))
        member.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        member.buffer = b""
        member.socket.sendall(data)
        self.selector.register(member.socket, selectors.EVENT_READ, member)

    def _close(self, member: Member) -> None:
        if member.socket is not None:
            self.selector.unregister(member.socket)
            member.socket.close()
            member.socket = None

    # The walk --------------------------------------------------------------------------------------------

    def walk(self) -> None:
        """Let sessions move and events be published for a while, then wait for what has not come."""
        part, began_s = self.part, time.monotonic()
        stop_s = began_s + part.seconds
        movers = self.draw.sample(range(part.sessions), part.sessions)
        moved = told = 0
        while (now := time.monotonic()) < stop_s:
            while moved < (now - began_s) * part.moves_per_s:
                self._leave(self.members[movers[moved % part.sessions]])
                moved += 1
            while told < (now - began_s) * part.events_per_s:
                self._publish(self.draw.choice(self.members))
                told += 1
            self._go_on(0.005)
        until_s = time.monotonic() + PATIENCE_S
        while (self.expected or self.due or self.unanswered) and time.monotonic() < until_s:
            self._go_on(0.05)

    def _go_on(self, wait_s: float) -> None:
        while self.due and self.due[0][0] <= time.monotonic():
            heapq.heappop(self.due)[2]()
        for member, packet in self._take(wait_s):
            if isinstance(packet, PublishPacket):
                self._event(member, packet)
            elif isinstance(packet, PubAckPacket):
                self.unanswered -= 1
            elif isinstance(packet, ConnAckPacket):
                self._answered(member, packet)

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.due, (time.monotonic() + seconds, self.order, work))

    def _leave(self, member: Member) -> None:
        """Break off, as a client does that walks out of reach, and come back elsewhere."""
        if member.socket is None or member.asked_s is not None:
            return
        self._close(member)
        self._publish(member)
        others = [place for place in range(len(self.part.ports)) if place != member.place]
        member.place = self.draw.choice(others)
        self._later(AWAY_S, lambda: self._arrive(member))

    def _arrive(self, member: Member) -> None:
        member.asked_s = time.monotonic()
        self._open(member, self._connect_packet(str(member.number)))

    def _answered(self, member: Member, packet: ConnAckPacket) -> None:
        if int(packet.reason_code):
            self.refused += 1
            self._close(member)
            self._later(RETRY_S, lambda: self._arrive(member))
            return
        self.moves += 1
        self.sessions_lost += not packet.session_present

    def _publish(self, member: Member) -> None:
        self.published += 1
        self.packets = self.packets % 65_535 + 1
        self.expected[self.published] = member.number
        packet = PublishPacket(
            self._topic(member),
            self.published.to_bytes(8) + bytes(248),
            qos=QoS.AT_LEAST_ONCE,
            packet_id=self.packets,
        )
        assert self.publisher.socket is not None
        self.publisher.socket.sendall(packet.write())
        self.unanswered += 1

    def _event(self, member: Member, packet: PublishPacket) -> None:
        number = int.from_bytes(packet.payload[:8])
        if self.expected.pop(number, None) is None:
            self.repeated += 1
        if member.asked_s is not None:
            self.took_s.append(time.monotonic() - member.asked_s)
            member.asked_s = None
        assert packet.packet_id is not None
        assert member.socket is not None
        with suppress(OSError):
            member.socket.sendall(PubAckPacket(packet.packet_id).write())

    def _take(self, wait_s: float) -> list[tuple[Member, mqtt5.Packet]]:
        """Take the packets that came, of whichever connection has some."""
        found = []
        for key, _ in self.selector.select(wait_s):
            member = key.data
            data = member.socket.recv(65_536)
            if not data:
                raise ConnectionError(f"a broker closed the connection of {member.number}")
            member.buffer += data
            while member.buffer:
                try:
                    packet, length = mqtt5.read(memoryview(member.buffer))
                except IndexError:
                    break
                member.buffer = member.buffer[length:]
                found.append((member, packet))
        return found


def main() -> None:
    """Play a part of the crowd."""
    crowd = Crowd(msgspec.json.decode(sys.argv[1], type=Part))
    crowd.settle_in()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    crowd.walk()
    counts = ("moves", "published", "repeated", "sessions_lost", "refused")
    found = {name: getattr(crowd, name) for name in counts}
    print(json.dumps(found | {"missing": len(crowd.expected), "took_s": crowd.took_s}))


if __name__ == "__main__":
    main()
