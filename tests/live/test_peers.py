"""Links between brokers over real sockets that are cut again and again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable

import pytest

from sojourn.broker import facts
from sojourn.broker.channel import Channel
from sojourn.broker.proof import NONCE_BYTES, Proving
from sojourn.live.links.peers import UNANSWERED, UNANSWERED_SAID, PeerAddress, PeerError, PeerLinks
from sojourn.live.links.proofs import Proof

PROOF = Proof("the network", b"a secret of at least thirty-two bytes")


class Side:
    """A broker that takes in every frame as it comes."""

    def __init__(self, name: str, peer: str, calls: dict[str, PeerAddress]) -> None:
        self.channel = Channel(name, peer, "1", window_bytes=4_000)
        self.peer = peer
        self.taken: list[bytes] = []
        self.ups = 0
        self.links = PeerLinks(name, (peer,), self.tell, PROOF, calls=calls)

    def tell(self, fact: facts.Fact) -> None:
        """Do what a broker does when its links change or bring something."""
        channel = self.channel
        if isinstance(fact, facts.PeerConnected):
            channel.opened()
            self.links.write(fact.peer, channel.greet())
        elif isinstance(fact, facts.PeerLost):
            channel.closed()
        else:
            assert isinstance(fact, facts.PeerSent)
            self._read(fact.data)
        self.flush()

    def _has_heard(self) -> bool:
        return self.channel.peer_hello is not None

    def _read(self, data: bytes) -> None:
        channel = self.channel
        if not self._has_heard():
            assert not list(channel.arrived(data))
            if not self._has_heard():
                return
            hello = channel.peer_hello
            assert hello is not None
            assert not channel.has_forgotten
            channel.greeted(hello.life, hello.stream)
            channel.agreed()
            self.ups += 1
            data = b""
        for position, body in channel.arrived(data):
            self.taken.append(body)
            channel.took(position)

    def flush(self) -> None:
        """Write what may be written."""
        self.links.write(self.peer, self.channel.outgoing())

    def put(self, body: bytes) -> None:
        """Send one frame."""
        self.channel.put(body)
        self.flush()


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - nobody tells when frames are acknowledged
            await asyncio.sleep(0.005)


async def settled(*sides: Side) -> None:
    """Wait until everything is acknowledged."""
    await until(lambda: not any(side.channel.waiting for side in sides))


async def called() -> tuple[Side, PeerAddress]:
    """A broker that is called, and where it listens."""
    side = Side("B2", "B1", {})
    address = await side.links.start(PeerAddress("127.0.0.1", 0))
    assert address is not None
    return side, address


async def two_sides() -> tuple[Side, Side, PeerAddress]:
    """One broker that calls another one, and where that one listens."""
    two, address = await called()
    one = Side("B1", "B2", {"B2": address})
    await one.links.start(None)
    return one, two, address


def test_frames_survive_connections_that_are_cut() -> None:
    """Both ways, with cuts at random moments from either side."""

    async def scenario() -> None:
        draw = random.Random(5)
        one, two, _ = await two_sides()
        for number in range(600):
            one.put(b"one %d" % number)
            two.put(b"two %d" % number)
            if draw.random() < 0.03:
                side = draw.choice([one, two])
                for connection in list(side.links.connections.values()):
                    connection.abort()
            await asyncio.sleep(0.001)
        await settled(one, two)
        assert two.taken == [b"one %d" % number for number in range(600)]
        assert one.taken == [b"two %d" % number for number in range(600)]
        assert one.ups > 3
        await one.links.stop()
        await two.links.stop()

    asyncio.run(scenario())


def test_a_connection_that_a_broker_closes_is_made_again() -> None:
    """From either end; what was written before that arrives."""

    async def scenario() -> None:
        one, two, _ = await two_sides()
        for closing in (one, two, one):
            before = one.ups, two.ups
            await until(lambda: one.channel.open and two.channel.open)
            closing.put(b"last words")
            closing.links.close(closing.peer, "as a test")
            await until(lambda before=before: one.ups > before[0] and two.ups > before[1])  # type: ignore[misc]  # mypy infers no default of a lambda
        await settled(one, two)
        assert two.taken == [b"last words"] * 2
        assert one.taken == [b"last words"]
        await one.links.stop()
        await two.links.stop()

    asyncio.run(scenario())


def test_a_new_connection_takes_the_place_of_an_old_one() -> None:
    """The old one may be half dead, and its end is not taken for the end of the new one."""

    async def scenario() -> None:
        one, two, address = await two_sides()
        await until(lambda: two.channel.open)
        (old,) = two.links.connections.values()
        again = Side("B1", "B2", {"B2": address})
        again.channel = one.channel
        await again.links.start(None)
        await until(old.ended.done)
        await until(lambda: two.channel.open)
        assert [*two.links.connections.values()] != [old]
        for side in (one, again, two):
            await side.links.stop()

    asyncio.run(scenario())


def test_strangers_are_sent_away_and_neighbours_served() -> None:
    """Silence, noise, a name that is no neighbour: none of them keeps a real neighbour out."""

    async def scenario() -> None:
        two, address = await called()
        silent = [await asyncio.open_connection(*address) for _ in range(10)]
        noisy, noise = await asyncio.open_connection(*address)
        noise.write(b"GET / HTTP/1.1\r\n\r\n" * 10)
        assert await noisy.read() == b""
        wrong, name = await asyncio.open_connection(*address)
        name.write(Channel("B9", "B2", "1").greet())
        assert await wrong.read() == b""
        one = Side("B1", "B2", {"B2": address})
        await one.links.start(None)
        one.put(b"hello")
        await settled(one, two)
        assert two.taken == [b"hello"]
        with pytest.raises(PeerError, match="cannot listen for other brokers"):
            await Side("B3", "B1", {}).links.start(address)
        for _, writer in [*silent, (noisy, noise), (wrong, name)]:
            writer.close()
        await one.links.stop()
        await two.links.stop()

    asyncio.run(scenario())


def test_strangers_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Fifty refusals with another long name each make one short line for each kind; all are counted."""

    async def scenario() -> int:
        two, address = await called()
        assert PROOF.secret is not None
        for number in range(50):
            names = [f"{number}" + "\x01" * 1_000, "B2"]
            network, to = names if number % 2 else (PROOF.network, names[0])
            calling = Proving.of_caller(PROOF.secret, network, "B1", to, bytes(NONCE_BYTES))
            reader, writer = await asyncio.open_connection(*address)
            writer.write(calling.outgoing)
            assert await reader.read() == b""
            writer.close()
        await two.links.stop()
        return two.links.refusals

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(scenario()) == 50
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert all("a stranger at 127.0.0.1" in line for line in lines)
    assert max(map(len, lines)) < 300


@pytest.mark.parametrize("turns", range(6))
def test_links_stop_although_a_caller_was_woken_just_now(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker told to stop in the moment in which a neighbour's coming ends a pause makes no more calls."""

    async def run() -> None:
        links = PeerLinks("B1", ("B2",), lambda _fact: None, PROOF, calls={"B2": PeerAddress("127.0.0.1", 9)})
        calls = 0

        async def call(_peer: str, _configured: PeerAddress) -> bool:
            nonlocal calls
            calls += 1
            await asyncio.sleep(0)
            return True

        monkeypatch.setattr(links, "_call", call)
        monkeypatch.setattr("sojourn.live.links.peers.FIRST_PAUSE_S", 3_600.0)
        await links.start(None)
        for _ in range(10):
            await asyncio.sleep(0)
        links._wakes["B2"].set()
        for _ in range(turns):
            await asyncio.sleep(0)
        stopping = asyncio.ensure_future(links.stop())
        await asyncio.sleep(0)
        before = calls
        await asyncio.wait([stopping], timeout=20)
        assert all(caller.cancelled() for caller in links._callers.values())
        assert calls == before
        await stopping

    asyncio.run(run())


def test_links_stop_although_a_call_does_not_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A call that ignores that it is to end holds a broker's stop for a while only, and that is said."""

    async def run() -> None:
        links = PeerLinks("B1", ("B2",), lambda _fact: None, PROOF, calls={"B2": PeerAddress("127.0.0.1", 9)})
        release = asyncio.Event()

        async def call(_peer: str, _configured: PeerAddress) -> bool:
            while not release.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await release.wait()
            raise asyncio.CancelledError

        monkeypatch.setattr(links, "_call", call)
        monkeypatch.setattr("sojourn.live.links.peers.STOP_S", 0.05)
        await links.start(None)
        await asyncio.sleep(0)
        async with asyncio.timeout(20):
            await links.stop()
        release.set()
        await asyncio.wait(links._callers.values(), timeout=20)
        assert "1 of its calls to neighbours do not end" in caplog.text

    asyncio.run(run())


def test_a_connection_that_refuses_to_be_written_to_is_given_up() -> None:
    """It may have broken in a long turn; what else that turn has to write is written all the same."""
    links = PeerLinks("B1", ("B2", "B3"), lambda _fact: None, PROOF, calls={})
    written: list[bytes] = []

    class Stand:
        def __init__(self, write: Callable[[bytes], None]) -> None:
            self.write = write
            self.is_aborted = False

        def abort(self) -> None:
            self.is_aborted = True

    def closed(_data: bytes) -> None:
        raise RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed")

    broken, sound = Stand(closed), Stand(written.append)
    links.connections = {"B2": broken, "B3": sound}  # type: ignore[dict-item]  # all that writing needs
    for peer in ("B2", "B3", "B2"):
        links.write(peer, b"x")
    assert written == [b"x"]
    assert broken.is_aborted
    assert not sound.is_aborted


def test_a_wrong_port_for_a_neighbour_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody is there and hangs up, such as a broker's port for clients: the log says what that may be."""

    async def scenario() -> None:
        calls = 0

        def taken(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal calls
            calls += 1
            writer.transport.abort()

        server = await asyncio.start_server(taken, "127.0.0.1", 0)
        address = PeerAddress("127.0.0.1", server.sockets[0].getsockname()[1])
        links = PeerLinks("B1", ("B2",), lambda _fact: None, PROOF, calls={"B2": address})
        await links.start(None)
        await until(lambda: calls > UNANSWERED_SAID + 2)
        await links.stop()
        server.close()

    with caplog.at_level(logging.WARNING, "sojourn.peers"):
        asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == [
        f"B1 ends a connection to B2: {UNANSWERED.format(key='peers')}"
    ]
