"""The floods of `sojourn bench floods`: what one client, or one machine, can throw at a broker.

A flood is given the ports of all brokers of a network and makes its connections to the first of them, unless
it says otherwise. It ends when it was answered, or after `FLOOD_S`, and says in a word what came of it.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Iterator

import mqtt5
from mqtt5 import (
    ConnAckPacket,
    ConnectPacket,
    PublishPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
)

from sojourn.mqtt.conventions import FILTER

FLOOD_S = 30.0
"""How long a flood may take; brokers that have not answered by then are given up."""
QUIET_S = 2.0
"""How long somebody who won a client identifier has to stay, to have won it."""
PATTERNS, DEVICES, FILTERS, PASSWORDS, UNFINISHED = 1_000, 500, 150, 1_500, 140
EVENTS, SUBSCRIBERS, PUBLISHERS, CLAIMANTS = 2_000, 200, 8, 100
ENDLESS_S = 5.0
PASSWORDS_AT_ONCE = 100
PACKET_BYTES = 2 * 1_048_576 - 64
"""Just less than what a packet may have."""
USER, PASSWORD = "somebody", "the right one"


class Peer:
    """A connection of an attacker, which never waits."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.settimeout(0)
        self.to_send = b""
        self.came = b""
        self.is_over = False

    def step(self) -> list[mqtt5.Packet]:
        """Send what the socket takes; return the packets that have come whole."""
        try:
            if self.to_send:
                self.to_send = self.to_send[self.socket.send(self.to_send) :]
        except BlockingIOError:
            pass
        except OSError:
            self.is_over = True
        try:
            data = self.socket.recv(262_144)
            self.is_over = self.is_over or not data
            self.came += data
        except BlockingIOError:
            pass
        except OSError:
            self.is_over = True
        return list(self._packets())

    def _packets(self) -> Iterator[mqtt5.Packet]:
        while self.came:
            try:
                packet, length = mqtt5.read(memoryview(self.came))
            except IndexError:
                return
            self.came = self.came[length:]
            yield packet


class Crowd:
    """Many connections, looked at when something can be done with one."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.peers: list[Peer] = []
        self.until = time.monotonic() + FLOOD_S

    def join(self, port: int, first: bytes) -> Peer:
        """Connect one more and have it send something."""
        peer = Peer(port)
        peer.to_send = first
        self.peers.append(peer)
        self._selector.register(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)
        return peer

    def leave(self, peer: Peer) -> None:
        """Close one."""
        self._selector.unregister(peer.socket)
        self.peers.remove(peer)
        peer.socket.close()

    def turn(self) -> Iterator[tuple[Peer, mqtt5.Packet]]:
        """Return what came, after a little while if nothing did."""
        for key, _ in self._selector.select(0.05):
            peer: Peer = key.data
            wants = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.to_send else 0)
            for packet in peer.step():
                yield peer, packet
            if peer.is_over:
                self.leave(peer)
            elif key.events != wants:
                self._selector.modify(peer.socket, wants, peer)

    def swallow(self) -> int:
        """Do the same without looking at what came; return its size."""
        size = 0
        for key, _ in self._selector.select(0.05):
            peer: Peer = key.data
            with contextlib.suppress(OSError):
                if peer.to_send:
                    peer.to_send = peer.to_send[peer.socket.send(peer.to_send) :]
            with contextlib.suppress(OSError):
                size += len(peer.socket.recv(262_144))
        return size

    def say(self, peer: Peer, data: bytes) -> None:
        """Have one send something more."""
        peer.to_send += data
        self._selector.modify(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)

    def wait(self, count: int, kind: type) -> int:
        """Wait for so many packets of a kind; return how many came in time."""
        found = 0
        while found < count and self.peers and time.monotonic() < self.until:
            found += sum(isinstance(packet, kind) for _, packet in self.turn())
        return found

    def close(self) -> None:
        """Close all."""
        for peer in self.peers[:]:
            self.leave(peer)
        self._selector.close()


def hello(client_id: str, **options: object) -> bytes:
    """Return a CONNECT."""
    return ConnectPacket(client_id, keep_alive=0, **options).write()  # type: ignore[arg-type]  # options of a packet, by name


def subscribe(number: int, patterns: list[str], condition: str = "", qos: QoS = QoS.AT_MOST_ONCE) -> bytes:
    """Return a SUBSCRIBE."""
    said = [(FILTER, condition)] if condition else []
    wanted = [TopicFilter(pattern, max_qos=qos) for pattern in patterns]
    return SubscribePacket(number, wanted, user_properties=said).write()


@contextlib.contextmanager
def crowd_of() -> Iterator[Crowd]:
    """Give a crowd without anybody in it yet, and close all who joined it."""
    crowd = Crowd()
    try:
        yield crowd
    finally:
        crowd.close()


def patterns(ports: list[int]) -> str:
    """One SUBSCRIBE with as many patterns as a client may have."""
    with crowd_of() as crowd:
        wanted = [f"d/{number % 10}/{number}/+" for number in range(PATTERNS)]
        crowd.join(ports[0], hello("patterns") + subscribe(1, wanted))
        return f"{crowd.wait(1, SubAckPacket)} SUBACK"


def devices(ports: list[int]) -> str:
    """Devices that each subscribe to all that is their own."""
    with crowd_of() as crowd:
        for number in range(DEVICES):
            crowd.join(ports[0], hello(f"device-{number}") + subscribe(1, [f"device/{number}/#"]))
        return f"{crowd.wait(DEVICES, SubAckPacket)} SUBACKs"


def filters(ports: list[int]) -> str:
    """Many content filters, sent at once."""
    with crowd_of() as crowd:
        packets = [
            subscribe(at, [f"t/{at}/#"], f"value > {at} AND value < {at + 1000}")
            for at in range(1, FILTERS + 1)
        ]
        crowd.join(ports[0], hello("filters") + b"".join(packets))
        return f"{crowd.wait(FILTERS, SubAckPacket)} SUBACKs"


def passwords(ports: list[int]) -> str:
    """Wrong passwords, a hundred connections at a time."""
    refused, begun = 0, 0
    with crowd_of() as crowd:
        while refused < PASSWORDS and time.monotonic() < crowd.until:
            while begun < PASSWORDS and len(crowd.peers) < PASSWORDS_AT_ONCE:
                begun += 1
                crowd.join(ports[0], hello(f"p{begun}", username=USER, password=f"wrong {begun}".encode()))
            if not crowd.peers:
                break
            refused += sum(isinstance(packet, ConnAckPacket) for _, packet in crowd.turn())
        return f"{refused} refused"


def unfinished(ports: list[int]) -> str:
    """Packets of the largest size that lack their last bytes, for a while."""
    with crowd_of() as crowd:
        whole = PublishPacket("big", bytes(PACKET_BYTES)).write()
        for number in range(UNFINISHED):
            crowd.join(ports[0], hello(f"u{number}") + whole[:-2])
        while any(peer.to_send for peer in crowd.peers) and time.monotonic() < crowd.until:
            list(crowd.turn())
        until = time.monotonic() + ENDLESS_S
        while time.monotonic() < until:
            list(crowd.turn())
        return f"{len(crowd.peers)} still there"


def fan_out(ports: list[int]) -> str:
    """Events at once that each go to many subscribers."""
    with crowd_of() as crowd:
        for number in range(SUBSCRIBERS):
            crowd.join(ports[0], hello(f"s{number}") + subscribe(1, ["news/#"]))
        crowd.wait(SUBSCRIBERS, SubAckPacket)
        event = PublishPacket("news/now", bytes(64)).write()
        crowd.join(ports[0], hello("newsroom") + event * EVENTS)
        wanted = EVENTS * SUBSCRIBERS
        got = 0
        while got < wanted * len(event) and time.monotonic() < crowd.until:
            got += crowd.swallow()
        return f"{got // len(event):,} of {wanted:,} arrived"


def endless(ports: list[int]) -> str:
    """Publishers that send as fast as they are read."""
    event = PublishPacket("endless", bytes(32)).write() * 1_000
    sent = 0
    with crowd_of() as crowd:
        for number in range(PUBLISHERS):
            crowd.join(ports[0], hello(f"endless-{number}"))
        crowd.wait(PUBLISHERS, ConnAckPacket)
        until = time.monotonic() + ENDLESS_S
        while time.monotonic() < until:
            for peer in crowd.peers:
                if not peer.to_send:
                    sent += 1_000
                    crowd.say(peer, event)
            list(crowd.turn())
        return f"{sent:,} sent"


def one_identifier(ports: list[int]) -> str:
    """Connections with one client identifier at all brokers: somebody is to win it, and keep it."""
    with crowd_of() as crowd:
        begin = time.monotonic()
        claim = hello("the one", clean_start=False, session_expiry_interval=60)
        for number in range(CLAIMANTS):
            crowd.join(ports[number % len(ports)], claim)
        welcomed: dict[Peer, float] = {}
        while crowd.peers and time.monotonic() < crowd.until:
            for peer, packet in crowd.turn():
                if isinstance(packet, ConnAckPacket) and int(packet.reason_code) == 0:
                    welcomed[peer] = time.monotonic()
            there = [peer for peer in crowd.peers if peer in welcomed]
            if len(crowd.peers) == len(there) == 1 and time.monotonic() - welcomed[there[0]] > QUIET_S:
                return f"won after {welcomed[there[0]] - begin:.1f} s"
        return f"nobody won; {len(welcomed)} were welcomed"
