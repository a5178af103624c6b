"""The client program of `sojourn bench roam`: sessions that move from broker to broker, one after the other.

One process plays one walker, told by a JSON object in its only argument, and prints one JSON object at the
end. It owns some sessions, each with a subscription to a topic of its own. Of one after the other it closes
the connection, publishes an event for it at some broker, waits for the acknowledgement, and connects it
elsewhere: the time from CONNECT to that event is what its user waits for. The event is then acknowledged.
"""

from __future__ import annotations

import itertools
import json
import random
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import mqtt5
import msgspec
from mqtt5 import ConnAckPacket, ConnectPacket, PubAckPacket, PublishPacket, QoS, SubscribePacket, TopicFilter

PATIENCE_S = 60.0
SESSION_S = 600


class Walk(msgspec.Struct, kw_only=True):
    """What a walker does."""

    name: str
    ports: list[int]
    """Of the brokers."""
    near: list[list[int]]
    """For each broker: which others are next to it."""
    sessions: int
    pause_s: float = 0.0
    """How long it rests after a move, so that brokers are done with it."""
    away: int = 0
    """For how many moves of others a session is away; with 0 it comes back at once."""
    far_share: float = 0.3
    """How many of the moves lead to a broker that is not next to the last one."""


class Line:
    """One connection, to be waited for."""

    def __init__(self, port: int, client_id: str, *, lasts_s: int = SESSION_S) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self.began_s = time.perf_counter()
        self.send(ConnectPacket(client_id, clean_start=False, session_expiry_interval=lasts_s, keep_alive=0))
        answer = self.wait(ConnAckPacket)
        assert isinstance(answer, ConnAckPacket)
        if int(answer.reason_code):
            raise RuntimeError(f"{client_id} was refused: {answer.reason_str or answer.reason_code}")
        self.has_session = answer.session_present

    def send(self, packet: mqtt5.Packet) -> None:
        """Send a packet."""
        self.socket.sendall(packet.write())

    def wait(self, kind: type) -> mqtt5.Packet:
        """Return the next packet of a kind."""
        while True:
            while self._buffer:
                try:
                    packet, length = mqtt5.read(memoryview(self._buffer))
                except IndexError:
                    break
                self._buffer = self._buffer[length:]
                if isinstance(packet, kind):
                    return packet
            data = self.socket.recv(65_536)
            if not data:
                raise RuntimeError("a broker closed a connection")
            self._buffer += data

    def close(self) -> None:
        """Break off, as a client does that walks out of reach."""
        self.socket.close()


class Move(NamedTuple):
    """One move of a session."""

    is_far: bool
    took_s: float
    away_s: float
    had_session: bool


class Walker:
    """Some sessions, and who publishes for them."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.draw = random.Random(walk.name)  # noqa: S311 - the same walk in every run
        self.publisher = Line(walk.ports[0], f"{walk.name}-publisher", lasts_s=0)
        self.places: list[int] = []
        self.lines: list[Line] = []
        self.left_s: dict[int, float] = {}
        """By session that is away: since when."""
        self.packets = 0
        for number in range(walk.sessions):
            place = self.draw.randrange(len(walk.ports))
            line = Line(walk.ports[place], self._client(number))
            line.send(SubscribePacket(1, [TopicFilter(self._topic(number), max_qos=QoS.AT_LEAST_ONCE)]))
            line.wait(mqtt5.SubAckPacket)
            self.places.append(place)
            self.lines.append(line)

    def _client(self, number: int) -> str:
        return f"{self.walk.name}-{number}"

    def _topic(self, number: int) -> str:
        return f"roam/{self._client(number)}"

    def leave(self, number: int) -> None:
        """Break a session's connection off, and have an event published for it."""
        self.lines[number].close()
        self.left_s[number] = time.perf_counter()
        self.packets = self.packets % 65_535 + 1
        event = PublishPacket(self._topic(number), b"x" * 256, qos=QoS.AT_LEAST_ONCE, packet_id=self.packets)
        self.publisher.send(event)
        self.publisher.wait(PubAckPacket)

    def arrive(self, number: int) -> Move:
        """Connect a session elsewhere, and wait for its event."""
        walk, place = self.walk, self.places[number]
        others = [one for one in range(len(walk.ports)) if one != place]
        near = [one for one in others if one in walk.near[place]]
        far = [one for one in others if one not in walk.near[place]]
        is_far = bool(far) and (not near or self.draw.random() < walk.far_share)
        goal = self.draw.choice(far if is_far else near) if others else place
        line = Line(walk.ports[goal], self._client(number))
        came = line.wait(PublishPacket)
        took_s = time.perf_counter() - line.began_s
        assert isinstance(came, PublishPacket)
        assert came.packet_id is not None
        line.send(PubAckPacket(came.packet_id))
        self.places[number], self.lines[number] = goal, line
        return Move(is_far, took_s, line.began_s - self.left_s.pop(number), line.has_session)

    def moves(self, until_s: float) -> Iterator[Move]:
        """Move one session after the other."""
        walk, away = self.walk, deque[int]()
        for number in itertools.cycle(range(walk.sessions)):
            if time.monotonic() >= until_s:
                return
            if walk.away and len(away) == walk.away:
                yield self.arrive(away.popleft())
            self.leave(number)
            if walk.away:
                away.append(number)
            else:
                yield self.arrive(number)
            time.sleep(walk.pause_s)


def main() -> None:
    """Walk for a while, and say how it was."""
    walk = msgspec.json.decode(sys.argv[1], type=Walk)
    walker = Walker(walk)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    moves = list(walker.moves(float(sys.stdin.readline())))
    found: dict[str, object] = {
        kind: [one.took_s for one in moves if one.is_far == is_far]
        for kind, is_far in (("near", False), ("far", True))
    }
    found["away_s"] = [one.away_s for one in moves]
    found["sessions_lost"] = sum(not one.had_session for one in moves)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
