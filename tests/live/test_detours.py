"""Two brokers that both run and cannot reach each other are linked by way of a third."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from sojourn.broker.seats.messages import Detour, DetourAt, Message
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import Address, Config, parse_address
from sojourn.live.seats import detours
from sojourn.live.seats.detours import Detours, Surroundings
from tests.live.building import url
from tests.live.copied_network import PATIENCE_S, copied, end, is_well, until

EVENTS = 30


def cut(config: Config, name: str, port: int = 1) -> Config:
    """The configuration of a broker that finds nobody where a neighbour listens."""
    brokers = [
        replace(broker, peers=f"127.0.0.1:{port}") if broker.name == name else broker
        for broker in config.brokers
    ]
    return replace(config, brokers=brokers)


def test_a_link_that_is_cut_goes_by_way_of_another_process(tmp_path: Path) -> None:
    """Events come once and in order, also when that one stops to pass them on and another has to."""
    config = copied(tmp_path, brokers=4)

    async def scenario() -> tuple[list[object], set[tuple[str, str]]]:
        servers = [Server(cut(config, "B2"), "B1")]
        servers += [Server(config, broker.name) for broker in config.brokers[1:]]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(server.start() for server in servers))
        await until(lambda: all(map(is_well, servers)))
        chambers = [server.chamber for server in servers if server.chamber is not None]
        passed: set[tuple[str, str]] = set()
        got: list[object] = []
        async with (
            Client(url(config, 3), client_id="reader") as reader,
            Client(url(config, 0), client_id="source") as source,
        ):
            await reader.subscribe(topic="news/#")
            for number in range(EVENTS):
                await source.publish("news/a", {"n": number})
                if number == EVENTS // 2:
                    for chamber in chambers:
                        passed.update(chamber.detours.passed)
                        chamber.detours.stop()
            while len(got) < EVENTS:
                got.append((await reader.next(timeout_s=PATIENCE_S)).attributes["n"])
        await end(servers)
        return got, passed

    got, passed = asyncio.run(scenario())
    assert got == list(range(EVENTS))
    assert passed == {("B1", "B2")}


async def _pass(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Be the direct way to a broker."""
    assert server.listening is not None
    assert server.listening.peers is not None
    there = await asyncio.open_connection(*parse_address(server.listening.peers, "peers"))
    await detours._joined((reader, writer), there)


def test_a_link_goes_directly_again_when_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The detour ends by itself; events come once and in order, before and after."""
    monkeypatch.setattr(detours, "DIRECT_S", 0.5)
    config = copied(tmp_path, brokers=3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def scenario() -> tuple[list[object], int]:
        servers = [Server(cut(config, "B2", port), "B1")]
        servers += [Server(config, broker.name) for broker in config.brokers[1:]]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(server.start() for server in servers))
        await until(lambda: all(map(is_well, servers)))
        chambers = [server.chamber for server in servers if server.chamber is not None]
        passed = sum(len(chamber.detours.passed) for chamber in chambers)
        got: list[object] = []
        async with (
            Client(url(config, 2), client_id="reader") as reader,
            Client(url(config, 0), client_id="source") as source,
        ):
            await reader.subscribe(topic="news/#")
            await source.publish("news/a", {"n": 0})
            way = await asyncio.start_server(partial(_pass, servers[1]), "127.0.0.1", port)
            await until(lambda: not any(chamber.detours.passed for chamber in chambers))
            await until(lambda: all(map(is_well, servers)))
            await source.publish("news/a", {"n": 1})
            got += [(await reader.next(timeout_s=PATIENCE_S)).attributes["n"] for _ in range(2)]
            assert not any(chamber.detours.passed for chamber in chambers), "it is not on a detour again"
        await end(servers)
        way.close()
        return got, passed

    got, passed = asyncio.run(scenario())
    assert got == [0, 1]
    assert passed == 1


def test_a_neighbour_is_called_directly_first_and_others_are_asked_in_turn() -> None:
    """An offer is used once, and only while whoever made it waits."""

    async def scenario() -> tuple[list[Address | None], list[tuple[str, Message]]]:
        told: list[tuple[str, Message]] = []
        around = Surroundings(
            "127.0.0.1",
            0.0,
            lambda _: None,
            lambda _: ["B3", "B4"],
            lambda *_: True,
            lambda *said: told.append(said),
        )
        found = Detours(around, asyncio.get_running_loop())
        direct, offered = Address("127.0.0.1", 7), Address("127.0.0.1", 8)
        calls = [found.way("B1", "B2", direct)]
        found.heard("B3", DetourAt("B1", "B2", str(offered)))
        found.heard("B3", DetourAt("B1", "B9", "nowhere"))
        calls += [found.way("B1", "B2", direct) for _ in range(2)]
        found._troubles["B1", "B2"].asked_s = 0.0
        calls.append(found.way("B1", "B2", direct))
        return calls, told

    calls, told = asyncio.run(scenario())
    assert [one and one.port for one in calls] == [7, 8, 7, 7]
    assert told == [("B3", Detour("B1", "B2")), ("B4", Detour("B1", "B2"))]


class Passing:
    """A process that passes on calls to a broker that answers with what it is sent."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Message]] = []
        self.calls = 0

    async def start(self) -> Detours:
        """Let the broker listen, and return what passes on."""
        self.server = await asyncio.start_server(self._echo, "127.0.0.1", 0)
        there = Address("127.0.0.1", self.server.sockets[0].getsockname()[1])
        around = Surroundings(
            "127.0.0.1",
            0.0,
            lambda name: there if name != "lost" else None,
            lambda _: [],
            lambda process, broker: broker.startswith(process),
            lambda *said: self.told.append(said),
        )
        self.detours = Detours(around, asyncio.get_running_loop())
        return self.detours

    async def _echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read(100)
        self.calls += bool(data)
        writer.write(data)
        writer.close()

    async def offers(self, count: int) -> list[DetourAt]:
        """Wait for so many offers."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.told) < count:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        return [said for _, said in self.told if isinstance(said, DetourAt)]

    async def is_idle(self) -> None:
        """Wait until nothing is passed on."""
        async with asyncio.timeout(PATIENCE_S):
            while self.detours.passed:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """End."""
        self.detours.stop()
        await self.is_idle()
        self.server.close()


def test_who_is_asked_too_often_passes_on_so_many_and_no_more() -> None:
    """Whoever asks again takes the place of its own call; one that cannot be reached is not offered."""

    async def scenario() -> tuple[int, int]:
        passing = Passing()
        found = await passing.start()
        for number in range(detours.PASSED_MAX + 5):
            found.heard(f"P{number}", Detour(f"P{number}", "Q"))
        found.heard("P0", Detour("P0", "Q"))
        most = len(found.passed)
        offers = await passing.offers(detours.PASSED_MAX)
        found.stop()
        await passing.is_idle()
        found.heard("B1", Detour("B1", "lost"))
        await passing.stop()
        return most, len(offers)

    most, offers = asyncio.run(scenario())
    assert most == offers == detours.PASSED_MAX


def test_one_process_has_its_share_and_asks_for_brokers_that_it_plays() -> None:
    """Others have a place, however often one asks; for a broker that another plays nobody may ask."""

    async def scenario() -> tuple[int, set[str]]:
        passing = Passing()
        found = await passing.start()
        for number in range(detours.PASSED_MAX):
            found.heard("B1", Detour("B1", f"Q{number}"))
        mine = len(found.passed)
        found.heard("B1", Detour("B2", "Q"))
        found.heard("B3", Detour("B3", "Q"))
        callers = {caller for caller, _ in found.passed}
        await passing.stop()
        return mine, callers

    mine, callers = asyncio.run(scenario())
    assert mine == detours.PASSED_EACH_MAX
    assert callers == {"B1", "B3"}


def test_a_stranger_does_not_take_the_place_of_the_caller() -> None:
    """Who comes first and does not know the word is cut off; who knows it is passed on, once."""

    async def scenario() -> tuple[list[bytes], int]:
        passing = Passing()
        found = await passing.start()
        found.heard("B1", Detour("B1", "Q"))
        (offer,) = await passing.offers(1)
        address = parse_address(offer.address, "the offer")
        got = []
        silent = [await asyncio.open_connection(*address) for _ in range(detours.STRANGERS_MAX + 1)]
        for word in (bytes(len(offer.word)), b"hello" * 20, offer.word, offer.word):
            try:
                reader, writer = await asyncio.open_connection(*address)
                writer.write(word + b"frames")
                async with asyncio.timeout(PATIENCE_S):
                    got.append(await reader.read(100))
                writer.close()
            except OSError:
                got.append(b"cut off")
        for _, writer in silent:
            writer.close()
        await passing.stop()
        return got, passing.calls

    got, calls = asyncio.run(scenario())
    assert [one == b"frames" for one in got] == [False, False, True, False]
    assert calls == 1
