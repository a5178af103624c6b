"""A broker that listens for WebSockets, and a WebSocket as RFC 6455 writes it, frame by frame."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from sojourn.live.addresses import FolderBook, Listening
from tests.live.raw_client import PATIENCE_S, BrokerProcess, running_broker

CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPTED = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
"""The answer to the key, as section 1.3 of the standard gives it."""
MASK = b"\x12\x34\x56\x78"


@contextlib.contextmanager
def web_broker(
    folder: Path, security: str = "", limits: str = "", tls: str = ""
) -> Iterator[tuple[BrokerProcess, Listening]]:
    """A broker with every way in, and where it listens."""
    lines = [f'[network]\naddresses = "{folder / "addresses"}"', "[security]", security, "[limits]", limits]
    lines += [tls, '[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\nlisten_ws = "127.0.0.1:0"']
    lines += ['listen_wss = "127.0.0.1:0"'] if tls else []
    file = folder / "web.toml"
    file.write_text("\n".join(lines))
    with running_broker(str(file)) as broker:
        said = FolderBook(folder / "addresses").find("B1")
        assert said is not None
        yield broker, said


def port_in(address: str | None) -> int:
    """The port of HOST:PORT."""
    assert address is not None
    return int(address.rpartition(":")[2])


class Web:
    """A WebSocket to a broker."""

    def __init__(
        self, port: int, headers: str = "Sec-WebSocket-Protocol: mqtt\r\n", tls: ssl.SSLContext | None = None
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.buffer = b""
        self.socket.sendall(
            (
                f"GET /mqtt HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n"
            ).encode()
        )
        head = self._until(b"\r\n\r\n").decode().lower().split("\r\n")
        self.status = int(head[0].split()[1])
        self.headers = dict(line.split(": ", 1) for line in head[1:] if line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def _more(self) -> bool:
        try:
            data = self.socket.recv(65_536)
        except ConnectionResetError:
            return False
        self.buffer += data
        return bool(data)

    def _until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            assert self._more(), f"the end came after {self.buffer!r}"
        found, self.buffer = self.buffer.split(mark, 1)
        return found

    def rest(self) -> bytes:
        """All that comes until the connection ends."""
        while self._more():
            pass
        return self.buffer

    def send(self, data: bytes, kind: int = BINARY, *, last: bool = True) -> None:
        """Send one frame, masked as clients do."""
        self.socket.sendall(frame(data, kind, last=last))

    def receive(self) -> tuple[int, bytes] | None:
        """The next frame's kind and content; None at the end."""
        until = time.monotonic() + PATIENCE_S
        while True:
            assert time.monotonic() < until, "no frame came"
            if len(self.buffer) >= 2:
                length, at = self.buffer[1], 2
                assert length < 128, "a server does not mask"
                if length == 126:
                    length, at = int.from_bytes(self.buffer[2:4], "big"), 4
                elif length == 127:
                    length, at = int.from_bytes(self.buffer[2:10], "big"), 10
                if len(self.buffer) >= at + length and at <= len(self.buffer):
                    kind, data = self.buffer[0] & 0x0F, self.buffer[at : at + length]
                    self.buffer = self.buffer[at + length :]
                    return kind, data
            if not self._more():
                return None

    def bytes(self, count: int) -> bytes:
        """So many of MQTT's bytes, whatever frames they come in."""
        got = b""
        while len(got) < count:
            came = self.receive()
            assert came is not None, f"the end came after {got!r}"
            assert came[0] in (BINARY, CONTINUED), came
            got += came[1]
        return got


def frame(data: bytes, kind: int = BINARY, *, last: bool = True) -> bytes:
    """One frame, masked as clients do."""
    if len(data) < 126:
        length = bytes((0x80 | len(data),))
    elif len(data) < 65_536:
        length = b"\xfe" + len(data).to_bytes(2, "big")
    else:
        length = b"\xff" + len(data).to_bytes(8, "big")
    masked = bytes(byte ^ MASK[at % 4] for at, byte in enumerate(data))
    return bytes((last << 7 | kind,)) + length + MASK + masked
