"""Links between brokers over real sockets that are cut again and again."""

import asyncio
import random
import socket

import pytest

from sojourn.broker.channel import Channel, Position
from sojourn.live.links.peers import PeerAddress, PeerError, PeerLinks


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Side:
    """A broker that takes in every frame as it comes."""

    def __init__(self, name: str, peer: str, calls: dict[str, PeerAddress]) -> None:
        self.channel = Channel(name, peer, "1", window_bytes=4_000)
        self.taken: list[bytes] = []
        self.ups = 0
        self.links = PeerLinks(
            name, {peer: self.channel}, calls=calls, on_frame=self._frame, on_change=self._change
        )

    def _frame(self, _peer: str, position: Position, body: bytes) -> None:
        self.taken.append(body)
        self.channel.took(position)

    def _change(self, _peer: str, up: bool) -> None:
        self.ups += up

    def put(self, body: bytes) -> None:
        """Send one frame."""
        self.channel.put(body)


async def settle(*sides: Side) -> None:
    """Flush until everything is acknowledged, or give up."""
    for _ in range(2_000):
        for side in sides:
            side.links.flush()
        if not any(side.channel.waiting for side in sides):
            return
        await asyncio.sleep(0.005)
    raise AssertionError("frames are left over")


def test_frames_survive_connections_that_are_cut() -> None:
    """Both ways, with cuts at random moments from either side."""

    async def scenario() -> None:
        draw = random.Random(5)
        address = PeerAddress("127.0.0.1", free_port())
        one, two = Side("B1", "B2", {"B2": address}), Side("B2", "B1", {})
        await one.links.start(None)
        await two.links.start(address)
        for number in range(600):
            one.put(b"one %d" % number)
            two.put(b"two %d" % number)
            one.links.flush()
            two.links.flush()
            if draw.random() < 0.03:
                side = draw.choice([one, two])
                for connection in list(side.links._connections.values()):
                    connection.abort()
            await asyncio.sleep(0.001)
        await settle(one, two)
        assert two.taken == [b"one %d" % number for number in range(600)]
        assert one.taken == [b"two %d" % number for number in range(600)]
        assert one.ups > 3
        await one.links.stop()
        await two.links.stop()

    asyncio.run(scenario())


def test_strangers_are_sent_away_and_neighbours_served() -> None:
    """Silence, noise, a name that is no neighbour: none of them keeps a real neighbour out."""

    async def scenario() -> None:
        address = PeerAddress("127.0.0.1", free_port())
        one, two = Side("B1", "B2", {"B2": address}), Side("B2", "B1", {})
        await two.links.start(address)
        silent = [await asyncio.open_connection(*address) for _ in range(10)]
        noisy, noise = await asyncio.open_connection(*address)
        noise.write(b"GET / HTTP/1.1\r\n\r\n" * 10)
        assert await noisy.read() == b""
        wrong, name = await asyncio.open_connection(*address)
        name.write(Channel("B9", "B2", "1").greet())
        assert await wrong.read() == b""
        await one.links.start(None)
        one.put(b"hello")
        await settle(one, two)
        assert two.taken == [b"hello"]
        with pytest.raises(PeerError, match="cannot listen for other brokers"):
            await Side("B3", "B1", {}).links.start(address)
        for _, writer in [*silent, (noisy, noise), (wrong, name)]:
            writer.close()
        await one.links.stop()
        await two.links.stop()

    asyncio.run(scenario())
