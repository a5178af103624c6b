"""One client of two brokers that stand in for one another, one of which is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from sojourn import ReplicaClient
from sojourn.edge.filters import DisplayerError
from sojourn.live.client.inbox import Received
from sojourn.live.client.link import ClientError, RefusedError
from sojourn.live.client.replicas import Dropped, Shown
from tests.live.raw_client import BrokerProcess


def _event(number: int, publisher: str = "p", *, retained: bool = False) -> Received:
    return Received("t", b"", {}, retained, publisher=publisher, number=number)


def test_each_filter_shows_what_it_promises() -> None:
    """Copies of two replicas, one behind the other, and one event that only the one behind has."""
    came = [1, 2, 1, 4, 2, 3, 4, 3]
    for name, shown, dropped in (
        ("none", came, Dropped()),
        ("duplicates", [1, 2, 4, 3], Dropped(copies=4)),
        ("ordered", [1, 2, 4], Dropped(copies=4, late=1)),
    ):
        judge = Shown(name)
        assert [number for number in came if judge.accept(_event(number))] == shown
        assert judge.dropped == dropped


def test_retained_events_are_shown_once_in_any_order() -> None:
    """They are the state of their topics, not part of a publisher's stream."""
    judge = Shown("ordered")
    assert [judge.accept(_event(n, retained=True)) for n in (3, 1, 2, 1)] == [True, True, True, False]
    assert judge.accept(_event(4))
    assert not judge.accept(_event(4, retained=True))


def test_an_event_without_number_is_shown_as_often_as_it_comes() -> None:
    """Nobody can tell its copies from further events."""
    judge = Shown("ordered")
    assert judge.accept(_event(0, ""))
    assert judge.accept(_event(0, ""))


def test_what_is_asked_wrongly_is_refused() -> None:
    """With a sentence that names the parameter."""
    with pytest.raises(DisplayerError, match="filter may be"):
        ReplicaClient(["127.0.0.1:1"], filter="newest")
    with pytest.raises(ClientError, match="urls is empty"):
        ReplicaClient([])
    with pytest.raises(ClientError, match="inbox"):
        ReplicaClient(["127.0.0.1:1"], inbox=0)


class Pair:
    """Two brokers whose ports stay the same over restarts, and are known before the first start."""

    def __init__(self) -> None:
        self.brokers: list[BrokerProcess | None] = [BrokerProcess(), BrokerProcess()]
        self.ports = [broker.port for broker in self.brokers if broker is not None]
        self.urls = [f"mqtt://127.0.0.1:{port}" for port in self.ports]
        self.stop()

    def start(self, at: int) -> None:
        """Start one of them, again perhaps."""
        self.brokers[at] = BrokerProcess("--port", str(self.ports[at]))

    def kill(self, at: int) -> None:
        """End one without grace."""
        broker = self.brokers[at]
        assert broker is not None
        broker.process.kill()
        broker.process.wait()
        assert broker.process.stderr is not None
        broker.process.stderr.close()
        self.brokers[at] = None

    def stop(self) -> None:
        """End what runs."""
        for at, broker in enumerate(self.brokers):
            if broker is not None:
                self.kill(at)


async def _until(done: Callable[[], bool], seconds: float = 15.0) -> None:
    async with asyncio.timeout(seconds):
        while not done():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.02)


def test_either_replica_may_be_down_and_comes_back_by_itself() -> None:
    """One is not there at first, then the other is killed: what is published is shown, once."""
    pair = Pair()

    async def scenario() -> None:
        pair.start(0)
        async with ReplicaClient(pair.urls) as displayer, ReplicaClient(pair.urls) as source:
            await displayer.subscribe("n >= 0", topic="news")
            assert displayer.connected == pair.urls[:1]
            await source.publish("news", {"n": 1})
            assert (await displayer.next(5)).attributes["n"] == 1
            pair.start(1)
            await _until(lambda: len(displayer.connected) == len(source.connected) == 2)
            await _until(lambda: bool(displayer.replicas[1].has))
            await source.publish("news", {"n": 2})
            assert (await displayer.next(5)).attributes["n"] == 2
            await _until(lambda: displayer.dropped == Dropped(copies=1))
            pair.kill(0)
            await source.publish("news", {"n": 3})
            await source.publish("news", {"n": -1})
            await source.publish("news", {"n": 4})
            assert [(await displayer.next(5)).attributes["n"] for _ in range(2)] == [3, 4]
            with pytest.raises(TimeoutError):
                await displayer.next(0.1)

    try:
        asyncio.run(asyncio.wait_for(scenario(), 60))
    finally:
        pair.stop()


def test_events_wait_in_their_order_while_no_replica_is_there() -> None:
    """What had no answer when the last replica went is sent first, to whichever comes first."""
    pair = Pair()

    async def scenario() -> None:
        pair.start(0)
        async with (
            ReplicaClient(pair.urls, filter="ordered") as displayer,
            ReplicaClient(pair.urls) as source,
        ):
            await displayer.subscribe(topic="news")
            pair.kill(0)
            sending = [asyncio.create_task(source.publish("news", {"n": n})) for n in range(50)]
            await asyncio.sleep(0.05)
            sending += [asyncio.create_task(source.publish("news", {"n": n})) for n in range(50, 100)]
            displayer_ready = asyncio.create_task(_until(lambda: bool(displayer.replicas[1].has)))
            pair.start(1)
            await asyncio.gather(*sending)
            await displayer_ready
            await source.publish("news", {"n": 100})
            shown: list[int] = []
            while not shown or shown[-1] < 100:
                shown.append((await displayer.next(5)).attributes["n"])
            # The displayer may have come after the source; what it saw has no gap and is in order.
            assert shown == list(range(shown[0], 101))
            assert displayer.dropped.late == 0

    try:
        asyncio.run(asyncio.wait_for(scenario(), 60))
    finally:
        pair.stop()


def test_a_subscription_says_what_to_keep_at_every_replica() -> None:
    """Of what came while the displayer was away, each replica kept the newest of each road."""
    pair = Pair()

    async def scenario() -> None:
        pair.start(0)
        pair.start(1)
        displayer = ReplicaClient(pair.urls, client_id="displayer")
        await displayer.connect()
        await _until(lambda: len(displayer.connected) == 2)
        with pytest.raises(TypeError, match="keeps"):
            await displayer.subscribe(topic="cars", keeps="last:road")  # type: ignore[call-arg]  # refused when it runs
        await displayer.subscribe(topic="cars", keep="last:road")
        await displayer.close()
        async with ReplicaClient(pair.urls) as source:
            await _until(lambda: len(source.connected) == 2)
            for number in range(10):
                await source.publish("cars", {"n": number, "road": number % 2})
        back = ReplicaClient(pair.urls, client_id="displayer")
        await back.connect()
        await _until(lambda: back.dropped.copies == 2)
        assert [(await back.next(5)).attributes["n"] for _ in range(2)] == [8, 9]
        with pytest.raises(TimeoutError):
            await back.next(0.1)
        await back.close()

    try:
        asyncio.run(asyncio.wait_for(scenario(), 60))
    finally:
        pair.stop()


def test_a_client_without_any_replica_says_so() -> None:
    """At once when all refuse it, after a while when none answers."""
    pair = Pair()

    async def scenario() -> None:
        nobody = ReplicaClient(pair.urls)
        with pytest.raises(ClientError, match="None of"):
            await nobody.connect(timeout_s=0.3)
        pair.start(0)
        alone = ReplicaClient(pair.urls[:1], client_id="x" * 2_000)
        with pytest.raises(RefusedError):
            await alone.connect()
        async with ReplicaClient(pair.urls) as client:
            with pytest.raises(ClientError, match="topic filter"):
                await client.subscribe(topic="a#")
            with pytest.raises(RefusedError):
                await client.publish("$SYS/x", b"")
            await client.publish("t", b"")

    try:
        asyncio.run(asyncio.wait_for(scenario(), 60))
    finally:
        pair.stop()
