"""The client program of `sojourn bench live`: publishers and subscribers for any MQTT 5 broker.

One process plays one role, told by a JSON object in its only argument, and prints one JSON object at the end.
Packets are decoded one by one with the codec, as a client that does something with them would; times are of
the machine's monotonic clock, which all its processes share.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from collections.abc import Iterator

import mqtt5
import msgspec
from mqtt5 import ConnAckPacket, ConnectPacket, PubAckPacket, PublishPacket, QoS, SubAckPacket, TopicFilter

TOPIC = "bench/events"
ATTRIBUTE = "level"
LEVELS = 100
BLOCK = 16
"""Messages handed to the socket at once at QoS 0."""
WINDOW = 200
"""QoS 1 publishes under way."""
TICK_S = 0.001
STAMP_BYTES = 8
IDLE_BATCH = 200


class Task(msgspec.Struct, kw_only=True):
    """What a client process does."""

    role: str
    port: int
    qos: int = 0
    payload_bytes: int = 256
    warm_up_s: float = 0.0
    """How long messages flow before they are counted."""
    seconds: float = 0.0
    """How long they are counted."""
    start_s: float = 0.0
    """When counting begins; it is told when all are ready."""
    stop_s: float = 0.0
    subscribers: int = 1
    wanted: list[tuple[int, int]] | None = None
    """By subscriber, the levels it wants, from and to."""
    by_filter: bool = False
    """Whether the broker is asked to choose; if not, the subscriber does."""
    pace_per_s: float = 0.0
    """Messages a second; 0 for as many as go through."""
    stamped: bool = False
    """Whether messages carry the time they were sent at."""
    count: int = 0


def wait_for_start(task: Task) -> None:
    """Say that all is ready, and read when to begin."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    task.start_s = float(sys.stdin.readline()) + task.warm_up_s
    task.stop_s = task.start_s + task.seconds


class Link:
    """One connection."""

    def __init__(self, port: int, client_id: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.socket.sendall(
            ConnectPacket(client_id, clean_start=True, receive_max=1_000, keep_alive=0).write()
        )
        answer = self.wait()
        assert isinstance(answer, ConnAckPacket)
        assert int(answer.reason_code) == 0, answer
        self.receive_max = answer.receive_max

    def wait(self) -> mqtt5.Packet:
        """Return the next packet."""
        while True:
            for packet in self.packets():
                return packet
            self.buffer += self.socket.recv(65_536)

    def packets(self) -> Iterator[mqtt5.Packet]:
        """Take complete packets out of the buffer."""
        while self.buffer:
            try:
                packet, length = mqtt5.read(memoryview(self.buffer))
            except IndexError:
                return
            self.buffer = self.buffer[length:]
            yield packet


def _messages(task: Task) -> list[tuple[bytes, bytes]]:
    """The messages of a cycle, one for each level, each cut where its time goes."""
    cut = []
    for level in range(LEVELS):
        packet = PublishPacket(
            TOPIC,
            b"\0" * task.payload_bytes,
            qos=QoS(task.qos),
            packet_id=1 if task.qos else None,
            user_properties=[(ATTRIBUTE, str(level))] if task.wanted is not None else None,
        ).write()
        at = len(packet) - task.payload_bytes
        cut.append((packet[:at], packet[at + STAMP_BYTES :]))
    # Neighbouring levels go to the same subscribers: mix them.
    return [cut[(number * 37) % LEVELS] for number in range(LEVELS)]


def publish(task: Task) -> dict[str, float]:
    """Publish until the time is over."""
    link = Link(task.port, "bench-publisher")
    messages = _messages(task)
    wait_for_start(task)
    time.sleep(max(0.0, task.start_s - task.warm_up_s - time.monotonic()))
    if task.pace_per_s:
        sent = _publish_paced(task, link, messages)
    elif task.qos:
        sent = _publish_windowed(task, link, [head + b"\0" * STAMP_BYTES + tail for head, tail in messages])
    else:
        packets = [head + b"\0" * STAMP_BYTES + tail for head, tail in messages]
        blocks = [
            b"".join(packets[(at + i) % LEVELS] for i in range(BLOCK)) for at in range(0, LEVELS * 4, BLOCK)
        ]
        sent = 0
        while time.monotonic() < task.stop_s:
            link.socket.sendall(blocks[sent // BLOCK % len(blocks)])
            sent += BLOCK
    link.socket.sendall(mqtt5.DisconnectPacket().write())
    return {"sent": sent}


def _publish_windowed(task: Task, link: Link, packets: list[bytes]) -> int:
    """Keep a window of QoS 1 publishes under way."""
    window = min(WINDOW, link.receive_max)
    sent = answered = 0
    id_at = 4 + len(TOPIC) + (1 if len(packets[0]) > 129 else 0)
    cut = [(packet[:id_at], packet[id_at + 2 :]) for packet in packets]
    while time.monotonic() < task.stop_s:
        out = []
        while sent - answered < window:
            head, tail = cut[sent % LEVELS]
            out.append(head + (sent % 65_535 + 1).to_bytes(2) + tail)
            sent += 1
        if out:
            link.socket.sendall(b"".join(out))
        link.buffer += link.socket.recv(65_536)
        answered += sum(isinstance(packet, PubAckPacket) for packet in link.packets())
    return sent


def _publish_paced(task: Task, link: Link, messages: list[tuple[bytes, bytes]]) -> int:
    """Publish so many messages a second, each with the time it is sent at."""
    begin = time.monotonic()
    sent = 0
    link.socket.settimeout(30)
    while (now := time.monotonic()) < task.stop_s:
        due = int((now - begin) * task.pace_per_s)
        out = []
        while sent < due:
            head, tail = messages[sent % LEVELS]
            out.append(head + time.monotonic_ns().to_bytes(STAMP_BYTES) + tail)
            sent += 1
            if len(out) == BLOCK:
                link.socket.sendall(b"".join(out))
                out = []
        if out:
            link.socket.sendall(b"".join(out))
        time.sleep(TICK_S)
    return sent


def subscribe(task: Task) -> dict[str, object]:
    """Subscribe, take what comes, and count what is useful."""
    links = []
    for number in range(task.subscribers):
        link = Link(task.port, f"bench-subscriber-{number}")
        properties = None
        if task.by_filter and task.wanted is not None:
            low, high = task.wanted[number]
            properties = [("filter", f"{ATTRIBUTE} BETWEEN {low} AND {high}")]
        wanted = TopicFilter(TOPIC, max_qos=QoS(task.qos), retain_as_published=False)
        link.socket.sendall(mqtt5.SubscribePacket(1, [wanted], user_properties=properties).write())
        answer = link.wait()
        assert isinstance(answer, SubAckPacket)
        assert int(answer.reason_codes[0]) == task.qos, answer
        links.append(link)
    wait_for_start(task)
    taker = Taker(task, links)
    taker.run()
    waits = sorted(taker.waits)
    result: dict[str, object] = {"useful": taker.counted, "useful_in_all": taker.useful}
    if waits:
        result |= {f"p{share}_us": waits[len(waits) * share // 100] / 1e3 for share in (50, 99)}
    return result


class Taker:
    """Takes messages on all its connections until the time is over."""

    def __init__(self, task: Task, links: list[Link]) -> None:
        self.task = task
        self.links = links
        self.useful = 0
        self.counted = 0
        """Useful ones since counting began."""
        self.waits: list[int] = []

    def run(self) -> None:
        """Take what comes, of whichever connection has something."""
        selector = selectors.DefaultSelector()
        for number, link in enumerate(self.links):
            selector.register(link.socket, selectors.EVENT_READ, number)
        while (now := time.monotonic()) < self.task.stop_s:
            for key, _ in selector.select(max(0.0, min(0.1, self.task.stop_s - now))):
                found = self._take(self.links[key.data], key.data)
                self.useful += found
                if time.monotonic() >= self.task.start_s:
                    self.counted += found
                else:
                    self.waits.clear()

    def _take(self, link: Link, number: int) -> int:
        """Take all complete packets of a connection; return how many messages were useful."""
        task = self.task
        data = link.socket.recv(262_144)
        if not data:
            raise ConnectionError("the broker closed the connection of a subscriber")
        buffer = memoryview(link.buffer + data)
        wanted = task.wanted[number] if task.wanted is not None else None
        at = useful = 0
        acks = []
        came = time.monotonic_ns() if task.stamped else 0
        while True:
            try:
                packet, length = mqtt5.read(buffer[at:])
            except IndexError:
                break
            at += length
            if not isinstance(packet, PublishPacket):
                continue
            said = packet.user_properties  # none in an event that looked for a way before, and comes late
            if wanted is None or (said and wanted[0] <= int(said[0][1]) <= wanted[1]):
                useful += 1
            if packet.packet_id is not None:
                acks.append(b"\x40\x02" + packet.packet_id.to_bytes(2))
            if came:
                self.waits.append(came - int.from_bytes(packet.payload[:STAMP_BYTES]))
        link.buffer = bytes(buffer[at:])
        if acks:
            link.socket.sendall(b"".join(acks))
        return useful


def idle(task: Task) -> dict[str, object]:
    """Open many connections with a subscription each, and keep them open until the input ends."""
    waiting: list[socket.socket] = []
    connections: list[socket.socket] = []
    for number in range(task.count):
        link = socket.create_connection(("127.0.0.1", task.port), 30)
        link.sendall(
            ConnectPacket(f"idle-{number}", clean_start=True, keep_alive=0).write()
            + mqtt5.SubscribePacket(1, [TopicFilter(f"idle/{number}")]).write()
        )
        connections.append(link)
        waiting.append(link)
        if len(waiting) == IDLE_BATCH or number == task.count - 1:
            for one in waiting:
                data = b""
                while b"\x90" not in data:  # the SUBACK, which comes last
                    more = one.recv(4_096)
                    assert more, "the broker closed an idle connection"
                    data += more
            waiting.clear()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    return {"connections": len(connections)}


def main() -> None:
    """Play the role that the argument says."""
    task = msgspec.json.decode(sys.argv[1], type=Task)
    result = {"publish": publish, "subscribe": subscribe, "idle": idle}[task.role](task)
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
