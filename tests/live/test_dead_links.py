"""Links whose other end has vanished, or will not have them."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from sojourn.broker import facts
from sojourn.broker.channel import Channel
from sojourn.live.links import peers
from sojourn.live.links.peers import PeerAddress, PeerLinks
from tests.live.test_peers import PROOF


class Side:
    """A broker that notes what its links tell."""

    def __init__(self, name: str, peer: str, calls: dict[str, PeerAddress]) -> None:
        self.told: list[facts.Fact] = []
        self.peer = peer
        self.links = PeerLinks(name, (peer,), self.told.append, PROOF, calls=calls)
        self.greeting = Channel(name, peer, "1").greet()

    def count(self, kind: type) -> int:
        """How often something was told."""
        return sum(isinstance(fact, kind) for fact in self.told)

    async def until(self, kind: type, count: int) -> None:
        """Wait until something was told so often."""
        async with asyncio.timeout(20):
            while self.count(kind) < count:  # noqa: ASYNC110 - what it waits for has no event
                await asyncio.sleep(0.01)


def test_a_link_on_which_nothing_comes_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A machine that vanished says no goodbye: its silence is noticed, and it is called again."""
    monkeypatch.setattr(peers, "LOOK_S", 0.02)
    monkeypatch.setattr(peers, "SILENCE_S", 0.2)

    async def scenario() -> None:
        called = Side("B2", "B1", {})
        address = await called.links.start(PeerAddress("127.0.0.1", 0))
        assert address is not None
        caller = Side("B1", "B2", {"B2": address})
        await caller.links.start(None)
        await caller.until(facts.PeerConnected, 1)
        caller.links.write("B2", caller.greeting)
        await called.until(facts.PeerConnected, 1)
        called.links.write("B1", called.greeting)
        for _ in range(20):  # as long as something comes it lasts, however long that is
            caller.links.write("B2", b"x")
            called.links.write("B1", b"x")
            await asyncio.sleep(0.02)
        assert caller.count(facts.PeerLost) == called.count(facts.PeerLost) == 0
        await caller.until(facts.PeerLost, 1)
        await caller.until(facts.PeerConnected, 2)
        await caller.links.stop()
        await called.links.stop()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert any("nothing came on it for" in record.getMessage() for record in caplog.records)


def test_a_neighbour_that_hangs_up_is_called_ever_less_and_mentioned_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A link that never comes to stand costs a call a second in the end, and no flood of lines."""

    async def scenario() -> int:
        calls = 0

        def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal calls
            calls += 1
            writer.transport.abort()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        caller = Side("B1", "B2", {"B2": PeerAddress("127.0.0.1", server.sockets[0].getsockname()[1])})
        await caller.links.start(None)
        await asyncio.sleep(2.0)
        await caller.links.stop()
        server.close()
        return calls

    with caplog.at_level(logging.DEBUG, "sojourn"):
        calls = asyncio.run(scenario())
    assert 2 <= calls <= 7, "pauses of 0.05, 0.1, 0.2, 0.4, 0.8 and 1 s"
    assert len(caplog.records) <= 2


def test_a_neighbour_that_comes_ends_the_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is called and was down is called at once when somebody else is back."""
    monkeypatch.setattr(peers, "FIRST_PAUSE_S", 60.0)
    monkeypatch.setattr(peers, "LONGEST_PAUSE_S", 60.0)

    async def scenario() -> None:
        down = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        address = PeerAddress("127.0.0.1", down.sockets[0].getsockname()[1])
        down.close()
        await down.wait_closed()
        tried: list[float] = []

        def find(_peer: str, configured: PeerAddress) -> PeerAddress:
            tried.append(asyncio.get_running_loop().time())
            return configured

        told: list[facts.Fact] = []
        links = PeerLinks("B2", ("B1", "B3"), told.append, PROOF, calls={"B3": address}, find=find)
        listens = await links.start(PeerAddress("127.0.0.1", 0))
        assert listens is not None
        await asyncio.sleep(0.05)
        assert len(tried) == 1
        first = Side("B1", "B2", {"B2": listens})
        await first.links.start(None)
        await first.until(facts.PeerConnected, 1)
        first.links.write("B2", first.greeting)
        async with asyncio.timeout(20):
            while len(tried) < 2:  # noqa: ASYNC110 - what it waits for has no event
                await asyncio.sleep(0.01)
        await first.links.stop()
        await links.stop()

    asyncio.run(scenario())


def test_a_neighbour_that_is_there_again_is_soon_called_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its first connection may end at once, as it has forgotten everything; then pauses grow again."""
    calls = iter([False, False, False, True, True, True, False, True])
    pauses: list[float] = []

    async def call(_self: object, _peer: str, _address: object) -> bool:
        try:
            return next(calls)
        except StopIteration:
            raise asyncio.CancelledError from None

    real = asyncio.timeout

    def timeout(pause_s: float) -> asyncio.Timeout:
        pauses.append(pause_s)
        return real(0)

    async def scenario() -> None:
        place = PeerAddress("127.0.0.1", 1)
        links = PeerLinks("B1", ("B2",), lambda _fact: None, PROOF, calls={"B2": place})
        with contextlib.suppress(asyncio.CancelledError):
            await links._keep_calling("B2", place)

    monkeypatch.setattr(PeerLinks, "_call", call)
    monkeypatch.setattr(asyncio, "timeout", timeout)
    asyncio.run(scenario())
    assert pauses == [0.05, 0.1, 0.2, 0.05, 0.1, 0.2, 0.4, 0.05]
