"""A small MQTT 3.1.1 client on a socket, as a microcontroller would be: blocking, and no packet too many."""

from __future__ import annotations

import socket
import time
from types import TracebackType
from typing import Any, Self

from tests.live.raw_client import PATIENCE_S
from tests.mqtt import old_words as old


class OldRaw:
    """A connection to a broker that speaks MQTT 3.1.1."""

    def __init__(self, port: int, bytes_at_once: int = 0) -> None:
        """Connect; `bytes_at_once` cuts what is sent into pieces of so many bytes."""
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._at_once = bytes_at_once
        self.inbox = old.Inbox()
        self.got: list[old.Read] = []
        """The messages that came, answered as their QoS demands."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes."""
        for at in range(0, len(data), self._at_once or len(data)):
            self.socket.sendall(data[at : at + (self._at_once or len(data))])

    def _read(self, patience_s: float = PATIENCE_S) -> bool:
        """Take what comes next, and answer messages; False at the end."""
        self.socket.settimeout(patience_s)
        try:
            data = self.socket.recv(self._at_once or 65_536)
        except ConnectionResetError:
            return False
        for packet in self.inbox.feed(data):
            if packet.kind == old.PUBLISH:
                self.got.append(packet)
                if packet.qos:
                    self.send(old.answer(old.PUBACK if packet.qos == 1 else old.PUBREC, packet.number))
            elif packet.kind == old.PUBREL:
                self.send(old.answer(old.PUBCOMP, packet.number))
        return bool(data)

    def answer(self, kind: int) -> old.Read:
        """The next packet of a kind."""
        until = time.monotonic() + PATIENCE_S
        while not (found := self.inbox.take(kind)):
            assert time.monotonic() < until, f"no packet of kind {kind} came"
            assert self._read(), f"a packet of kind {kind} was expected, the end came"
        assert len(found) == 1
        return found[0]

    def messages(self, count: int) -> list[bytes]:
        """The payloads of so many messages."""
        until = time.monotonic() + PATIENCE_S
        while len(self.got) < count:
            assert time.monotonic() < until, f"{len(self.got)} of {count} messages came"
            assert self._read(), "messages were expected, the end came"
        taken, self.got = self.got[:count], self.got[count:]
        return [one.payload for one in taken]

    def expect_end(self) -> None:
        """The broker closes the connection, and says nothing that 3.1.1 does not know."""
        while self._read():
            pass

    def connect(self, client_id: str = "", **options: Any) -> tuple[int, ...]:
        """Connect; return session present and the code."""
        self.send(old.connect(client_id, **options))
        return self.answer(old.CONNACK).codes

    def subscribe(self, *wanted: tuple[str, int]) -> tuple[int, ...]:
        """Subscribe; return the codes."""
        self.send(old.subscribe(*wanted, number=3))
        return self.answer(old.SUBACK).codes

    def send_publish(self, topic: str, payload: bytes = b"", qos: int = 0, number: int = 9) -> None:
        """Publish, and wait for nothing."""
        self.send(old.publish(topic, payload, qos, number=number))

    def publish(self, topic: str, payload: bytes = b"", qos: int = 0, number: int = 9) -> None:
        """Publish, and complete the exchange."""
        self.send_publish(topic, payload, qos, number)
        if qos == 1:
            assert self.answer(old.PUBACK).number == number
        elif qos == 2:
            assert self.answer(old.PUBREC).number == number
            self.send(old.answer(old.PUBREL, number))
            assert self.answer(old.PUBCOMP).number == number

    def ping(self) -> None:
        """Say that one is there, and hear that the broker is."""
        self.send(old.PINGREQ)
        self.answer(old.PINGRESP)
