"""A broker process for tests, and a client that sends raw packets and says what came back."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import mqtt5
from mqtt5 import ConnAckPacket, ConnectPacket, DisconnectPacket, PublishPacket, QoS, TopicFilter

Packet = TypeVar("Packet")
PATIENCE_S = 5.0
SILENCE_S = 0.15


class BrokerProcess:
    """`sojourn serve` as a process of its own."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "sojourn.cli.main", "serve", *(arguments or ("--port", "0"))]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = 0
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.search(r"mqtt://[^ ]*:(\d+)", line)
            if found:
                self.port = int(found[1])
                break
        assert self.port, "the broker did not start"

    def stop(self) -> int:
        """Stop it as a service manager would; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(100)
        finally:
            self.process.kill()
            assert self.process.stderr is not None
            self.process.stderr.close()
        return code


@contextlib.contextmanager
def running_broker(*arguments: str) -> Iterator[BrokerProcess]:
    """A broker that is stopped in the end."""
    broker = BrokerProcess(*arguments)
    try:
        yield broker
    finally:
        broker.stop()


def single_config(path: Path, **limits: int) -> str:
    """Write the configuration of one broker with these limits; return the file's name."""
    lines = ["[[brokers]]", 'name = "B1"', 'listen = "127.0.0.1:0"', "[limits]"]
    lines += [f"{name} = {value}" for name, value in limits.items()]
    file = path / "single.toml"
    file.write_text("\n".join(lines))
    return str(file)


class Raw:
    """A connection to a broker on which packets are sent and received one by one."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.buffer = b""
        self.aside: deque[mqtt5.Packet] = deque()
        """What came while an answer was waited for."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()

    def drop(self) -> None:
        """Close the socket without a word."""
        self.socket.close()

    def send(self, packet: Any) -> None:
        """Send a packet, or bytes as they are."""
        self.socket.sendall(packet if isinstance(packet, bytes) else packet.write())

    def receive(self, patience_s: float = PATIENCE_S) -> mqtt5.Packet | None:
        """Return the next packet; None when the connection was closed; raise TimeoutError when none comes."""
        if self.aside:
            return self.aside.popleft()
        return self._read(patience_s)

    def _read(self, patience_s: float = PATIENCE_S) -> mqtt5.Packet | None:
        until = time.monotonic() + patience_s
        while True:
            if self.buffer:
                try:
                    packet, length = mqtt5.read(memoryview(self.buffer))
                except IndexError:
                    pass
                else:
                    self.buffer = self.buffer[length:]
                    return packet
            self.socket.settimeout(max(0.001, until - time.monotonic()))
            try:
                data = self.socket.recv(65_536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.buffer += data

    def expect(self, kind: type[Packet]) -> Packet:
        """Return the next packet, which is of this kind."""
        packet = self.receive()
        assert isinstance(packet, kind), f"{kind.__name__} was expected, {packet} came"
        return packet

    def answer(self, kind: type[Packet]) -> Packet:
        """Return the next packet of this kind; what comes before it is put aside."""
        while not isinstance(came := self._read(), kind):
            assert came is not None, f"{kind.__name__} was expected, the end came"
            self.aside.append(came)
        return came

    def expect_nothing(self, seconds: float = SILENCE_S) -> None:
        """Nothing comes for a while."""
        try:
            packet = self.receive(seconds)
        except TimeoutError:
            return
        raise AssertionError(f"nothing was expected, {packet} came")

    def expect_end(self, reason: int | None = None) -> DisconnectPacket | None:
        """The connection is closed, after a DISCONNECT with this reason if one is given."""
        packet = self.receive()
        if reason is not None:
            assert isinstance(packet, DisconnectPacket), f"a DISCONNECT was expected, {packet} came"
            assert int(packet.reason_code) == reason, packet
            assert self.receive() is None
            return packet
        assert packet is None, f"the end was expected, {packet} came"
        return None

    def connect(self, client_id: str = "", **options: Any) -> ConnAckPacket:
        """Connect, with a clean start unless said otherwise; return the answer."""
        options.setdefault("clean_start", True)
        self.send(ConnectPacket(client_id, **options))
        return self.expect(ConnAckPacket)

    def subscribe(self, *filters: TopicFilter | str, **options: Any) -> list[int]:
        """Subscribe and return the codes; a text stands for a topic filter of QoS 2."""
        wanted = [
            TopicFilter(one, retain_as_published=False) if isinstance(one, str) else one for one in filters
        ]
        self.send(mqtt5.SubscribePacket(999, wanted, **options))
        answer = self.expect(mqtt5.SubAckPacket)
        assert answer.packet_id == 999
        return [int(code) for code in answer.reason_codes]

    def publish(self, topic: str, payload: bytes = b"", qos: int = 0, **options: Any) -> int:
        """Publish, complete the exchange, and return the reason code of the first answer."""
        number = options.pop("packet_id", 77)
        self.send(PublishPacket(topic, payload, qos=QoS(qos), packet_id=number if qos else None, **options))
        if qos == 0:
            return 0
        if qos == 1:
            return int(self.answer(mqtt5.PubAckPacket).reason_code)
        code = int(self.answer(mqtt5.PubRecPacket).reason_code)
        if code < 0x80:
            self.send(mqtt5.PubRelPacket(number))
            self.answer(mqtt5.PubCompPacket)
        return code

    def message(self) -> PublishPacket:
        """Return the next message, answered as its QoS demands."""
        packet = self.expect(PublishPacket)
        if packet.qos == QoS.AT_LEAST_ONCE:
            assert packet.packet_id
            self.send(mqtt5.PubAckPacket(packet.packet_id))
        elif packet.qos == QoS.EXACTLY_ONCE:
            assert packet.packet_id
            self.send(mqtt5.PubRecPacket(packet.packet_id))
            self.answer(mqtt5.PubRelPacket)
            self.send(mqtt5.PubCompPacket(packet.packet_id))
        return packet
