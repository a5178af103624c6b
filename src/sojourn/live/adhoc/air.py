"""What devices say on their segment: floods as datagrams to all, the rest as frames of a stream to one.

Both carry who says it (number and port) and, where devices share a secret, a code that only those can make
who know it; what has none, or cannot be read, is counted and dropped. Anything may be lost on the way: the
core says again what matters. Limits: a frame has at most `FRAME_BYTES_MAX`; for each neighbour at most
`FRAMES_MAX` wait, and a device hears at most `STREAMS_MAX` at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
import struct
from collections import Counter, deque
from collections.abc import Callable
from hashlib import blake2b

from sojourn.adhoc.election.codec import CodecError, decode_message, encode_message
from sojourn.adhoc.election.messages import Flood, Message, Routed
from sojourn.errors import SojournError
from sojourn.live.adhoc.segment import Segment, join
from sojourn.live.config import Address

CODE_BYTES = 16
HEAD = struct.Struct(">QH")
LENGTH = struct.Struct(">I")
FRAME_BYTES_MAX = 64 << 20
FRAMES_MAX = 256
STREAMS_MAX = 256
NEIGHBOURS_MAX = 10_000
CONNECT_S = 3.0
SILENT_S = 120.0

Hear = Callable[[Message], None]


class AirError(SojournError):
    """A device cannot listen."""


class Air:
    """The ears and the voice of one device."""

    def __init__(self, number: int, segment: Segment, secret: bytes, hear: Hear) -> None:
        self._number = number
        self._segment = segment
        self._secret = secret[:64]
        self._hear = hear
        self.counts: Counter[str] = Counter()
        """What was said, heard and dropped."""
        self.address = Address("", 0)
        self._places: dict[int, tuple[str, int]] = {}
        """By number of a device: where it listens."""
        self._voice: asyncio.DatagramTransport | None = None
        self._ears: list[asyncio.BaseTransport] = []
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.StreamWriter] = set()
        self._waiting: dict[int, deque[bytes]] = {}
        """By device that frames are being sent to: those that wait."""
        self._sending: set[asyncio.Task[None]] = set()

    async def open(self, listen: Address) -> None:
        """Listen; datagrams and streams have the same port."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await asyncio.start_server(self._on_stream, listen.host, listen.port)
            self.address = Address(listen.host, self._server.sockets[0].getsockname()[1])
            self._voice, _ = await loop.create_datagram_endpoint(
                lambda: _Ear(self._on_datagram), local_addr=(self.address.host, self.address.port)
            )
        except OSError as error:
            raise AirError(f"The device cannot listen on {listen}: {error.strerror}.") from None
        self._ears.append(self._voice)
        if self._segment.group is not None:
            voice: socket.socket = self._voice.get_extra_info("socket")
            voice.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(listen.host))
            ear = join(self._segment.group, listen.host)
            heard, _ = await loop.create_datagram_endpoint(lambda: _Ear(self._on_datagram), sock=ear)
            self._ears.append(heard)

    def close(self) -> None:
        """Say and hear nothing more."""
        for task in self._sending:
            task.cancel()
        for ear in self._ears:
            ear.close()
        for stream in list(self._streams):
            stream.close()
        if self._server is not None:
            self._server.close()

    def say(self, message: Message) -> None:
        """Say something to all, or to the one that a message is for."""
        data = self._sealed(encode_message(message))
        if isinstance(message, Routed):
            self._send(message.to, data)
        elif self._voice is not None and not self._voice.is_closing():
            self.counts["floods said"] += 1
            for target in self._segment.targets():
                if target != (self.address.host, self.address.port):
                    self._voice.sendto(data, target)

    # Out ----------------------------------------------------------------------------------------------

    def _sealed(self, body: bytes) -> bytes:
        said = HEAD.pack(self._number, self.address.port) + body
        return blake2b(said, key=self._secret, digest_size=CODE_BYTES).digest() + said

    def _send(self, device: int, data: bytes) -> None:
        waiting = self._waiting.get(device)
        if waiting is not None:
            if len(waiting) < FRAMES_MAX:
                waiting.append(data)
            else:
                self.counts["frames dropped"] += 1
            return
        if device not in self._places:
            return
        self._waiting[device] = deque([data])
        task = asyncio.get_running_loop().create_task(self._send_all(device))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send_all(self, device: int) -> None:
        """Send what waits for a device over one stream, then let it go."""
        waiting = self._waiting[device]
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(CONNECT_S):
                # From the address that it listens at: that is where the other one will answer.
                own = self.address.host, 0
                _, writer = await asyncio.open_connection(*self._places[device], local_addr=own)
            while waiting:
                data = waiting.popleft()
                writer.write(LENGTH.pack(len(data)) + data)
                self.counts["frames said"] += 1
                async with asyncio.timeout(SILENT_S):
                    await writer.drain()
        except (OSError, TimeoutError):
            self.counts["frames dropped"] += len(waiting)
        finally:
            del self._waiting[device]
            if writer is not None:
                writer.close()

    # In -----------------------------------------------------------------------------------------------

    def _on_datagram(self, data: bytes, host: str) -> None:
        self._take(data, host, floods=True)

    async def _on_stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._streams) >= STREAMS_MAX:
            writer.close()
            return
        self._streams.add(writer)
        host = str((writer.get_extra_info("peername") or ("",))[0])
        try:
            while True:
                async with asyncio.timeout(SILENT_S):
                    (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
                    if size > FRAME_BYTES_MAX:
                        self.counts["dropped"] += 1
                        break
                    data = await reader.readexactly(size)
                self._take(data, host, floods=False)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            self._streams.discard(writer)
            writer.close()

    def _take(self, data: bytes, host: str, *, floods: bool) -> None:
        code, said = data[:CODE_BYTES], data[CODE_BYTES:]
        known = blake2b(said, key=self._secret, digest_size=CODE_BYTES).digest()
        if len(said) < HEAD.size or not hmac.compare_digest(code, known):
            self.counts["dropped"] += 1
            return
        number, port = HEAD.unpack_from(said)
        if number == self._number:
            return
        if not self._segment.hears(host, port):
            self.counts["not on the segment"] += 1
            return
        try:
            message = decode_message(said[HEAD.size :])
        except CodecError:
            self.counts["dropped"] += 1
            return
        if isinstance(message, Flood) is not floods or message.sender != number:
            self.counts["dropped"] += 1
            return
        if number in self._places or len(self._places) < NEIGHBOURS_MAX:
            self._places[number] = host, port
        self.counts["heard"] += 1
        if isinstance(message, Flood) or message.to == self._number:
            self._hear(message)


class _Ear(asyncio.DatagramProtocol):
    def __init__(self, take: Callable[[bytes, str], None]) -> None:
        self._take = take

    def datagram_received(self, data: bytes, addr: tuple[str | None, int]) -> None:
        with contextlib.suppress(IndexError):
            self._take(data, str(addr[0]))

    def error_received(self, exc: Exception) -> None:
        """Nobody is there at an address: what was said to it is lost."""
