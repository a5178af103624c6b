"""Copies at other processes: nothing is promised before they have it, and they stay short."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from sojourn.broker.effects import Turn
from sojourn.broker.proof import ProofError
from sojourn.cli.main import app
from sojourn.errors import SojournError
from sojourn.live.brokers import outbox as waiting_turns
from sojourn.live.brokers.outbox import Outbox
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import ConfigError, read_config
from sojourn.live.links.proofs import Proof
from sojourn.live.seats import folders, pump, revivals
from sojourn.live.seats.mesh import Mesh
from sojourn.live.store import keeper
from sojourn.live.store.errors import JournalError
from sojourn.live.store.folder import FolderError
from tests.live.building import url
from tests.live.copied_network import PATIENCE_S, begun, copied, end, kill, until


def test_nothing_is_acknowledged_before_the_copies_have_it(tmp_path: Path) -> None:
    """A publisher's acknowledgement waits while the only follower is away, and comes once another has all."""
    config = copied(tmp_path, gone_s=3.0)

    async def scenario() -> tuple[bool, bool]:
        servers = await begun(config)
        assert servers[0].chamber is not None
        council = servers[0].chamber.council
        (follower,) = council.seat("B1").followers
        async with Client(url(config, 0), client_id="source") as publisher:
            await publisher.publish("news/a", {"n": 1})
            number = [broker.name for broker in config.brokers].index(follower)
            kill(servers[number], wipes=False)
            waiting = asyncio.create_task(publisher.publish("news/a", {"n": 2}))
            await asyncio.sleep(0.5)
            was_early = waiting.done()
            async with asyncio.timeout(PATIENCE_S):
                await waiting
            is_replaced = follower not in council.seat("B1").followers
        await end([one for place, one in enumerate(servers) if place != number])
        return was_early, is_replaced

    was_early, is_replaced = asyncio.run(scenario())
    assert not was_early
    assert is_replaced


def test_who_does_not_prove_its_name_neither_follows_nor_hosts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A process without the secret is shut out at `seats`, and the council never hears of it."""
    config = copied(tmp_path, brokers=3)

    async def scenario() -> tuple[bytes, int]:
        servers = await begun(config)
        chamber = servers[0].chamber
        assert chamber is not None
        assert chamber.mesh._listener is not None
        address = chamber.mesh._listener._servers[0].sockets[0].getsockname()
        seats = dict(chamber.council.register.known)
        reader, writer = await asyncio.open_connection(*address[:2])
        writer.write(b"\0\0\0\x10I am B2, believe me")
        async with asyncio.timeout(PATIENCE_S):
            said = await reader.read()
        writer.close()
        assert chamber.council.register.known == seats
        refusals = chamber.mesh.refusals
        await end(servers)
        return said, refusals

    with caplog.at_level(logging.WARNING):
        said, refusals = asyncio.run(scenario())
    assert said == b""
    assert refusals == 1
    told = [one for one in caplog.records if "a stranger at" in one.getMessage()]
    assert [one.name for one in told] == ["sojourn.seats"], "it is not said of links"
    assert "B1 ends a connection for copies (`seats`) to a stranger" in told[0].getMessage()


class Wire:
    """A connection that notes whether it is read from."""

    def __init__(self) -> None:
        self.is_read = True

    def hold(self) -> None:
        """Read no further."""
        self.is_read = False

    pause = hold

    def release(self) -> None:
        """Read again."""
        self.is_read = True

    resume = release


def test_nobody_is_read_from_while_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns leave in order once their lines are held; over the limit clients and neighbours wait."""
    monkeypatch.setattr(waiting_turns, "TURNS_MAX", 4)
    left: list[int] = []
    worked: list[object] = []
    client, old, new = Wire(), Wire(), Wire()
    copying = SimpleNamespace(logged=lambda: None, held=0)
    copying.released = lambda: copying.held
    journal = SimpleNamespace(next=0)
    links = SimpleNamespace(connections={"B2": old})
    node: Any = SimpleNamespace(
        keeper=SimpleNamespace(journal=journal),
        links=links,
        connections={1: client},
        place=SimpleNamespace(name="B1"),
        carry_out=lambda turn: left.append(len(turn.peer_writes)),
        writing=SimpleNamespace(expect=lambda *_: None, settle=lambda _: None),
        worked=worked.append,
        loop=SimpleNamespace(time=lambda: 0.0),
    )
    box = Outbox(node, copying)
    for _ in range(6):
        journal.next += 1
        box.put(Turn(peer_writes=[("B2", b"frame")]))
    assert (left, box.turns, client.is_read, old.is_read) == ([], 6, False, False)
    links.connections["B2"] = new  # what was written for the old connection is not for this one
    copying.held = 5
    box.leave()
    assert left == [0] * 5
    assert len(worked) == 1, "what leaves late counts as work"
    assert (box.turns, box.fills, client.is_read) == (1, 1, True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("copies = 1", "every broker has a store"),
        ("copies = 3", "from 0 to 1"),
        ("gone_s = 0.1", "at least 1 seconds"),
    ],
)
def test_a_configuration_that_cannot_keep_copies_is_refused(text: str, why: str) -> None:
    """One sentence says what is missing."""
    brokers = "".join(f'[[brokers]]\nname = "{name}"\nlisten = "127.0.0.1:0"\n' for name in ("B1", "B2"))
    with pytest.raises(ConfigError, match=why):
        read_config(f"[mobility]\n{text}\n{brokers}")


@pytest.mark.parametrize(
    "name",
    ["votes", "votes.new", "B1.copies", "B1.incoming", "B1.before", "B1.damaged", "B1.found-1", "B1.seats"],
)
def test_no_broker_has_the_name_of_a_file_that_copies_need(tmp_path: Path, name: str) -> None:
    """Neither one of a file nor one that is to join; without copies there are no such files."""

    def text(names: tuple[str, ...], copies: int) -> str:
        brokers = "".join(
            f'[[brokers]]\nname = "{one}"\nlisten = "127.0.0.1:0"\npeers = "127.0.0.1:0"\n'
            f'seats = "127.0.0.1:0"\nstore = "stores/{one}"\n'
            for one in names
        )
        return f'links = [["B1", "{names[1]}"]]\n[mobility]\ncopies = {copies}\n[network]\n{brokers}'

    with pytest.raises(ConfigError, match=f"no broker is called '{name}'.* give it a name other than"):
        read_config(text(("B1", name), 1))
    read_config(text(("B1", name), 0))
    read_config(text(("B1", "votes2"), 1))
    file = tmp_path / "network.toml"
    file.write_text(text(("B1", "B2"), 1))
    done = CliRunner().invoke(app, ["join", str(file), name, "--link", "B2"])
    assert done.exit_code != 0
    assert f"no broker is called '{name}'" in f"{done.output} {done.exception}"
    assert file.read_text() == text(("B1", "B2"), 1)


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1", b"\x10\x0e\x00\x04MQTT"], ids=["HTTP", "MQTT"])
def test_a_stranger_at_seats_is_told_that_it_is_there(said: bytes) -> None:
    """And not at `peers`, which is another port."""
    proving = Mesh("B1", ("B2",), lambda _fact: None, Proof("N", b"s" * 32), calls={}).proving(None)
    assert proving is not None
    with pytest.raises(ProofError, match=r"this port is for processes that keep copies \(`seats`\)"):
        proving.arrived(said)


@pytest.mark.parametrize(
    ("one", "other"), [("seats of B1", "seats of B3"), ("peers of B2", "seats of B3")], ids=("two", "peers")
)
def test_two_do_not_listen_for_others_at_one_address(one: str, other: str) -> None:
    """One sentence names both, and the address."""
    place = "127.0.0.1:6881" if "B1" in one else "127.0.0.1:7882"
    brokers = "".join(
        f'[[brokers]]\nname = "B{k}"\nlisten = "127.0.0.1:188{k}"\npeers = "127.0.0.1:788{k}"\n'
        f'store = "B{k}"\nseats = "{place if k == 3 else f"127.0.0.1:688{k}"}"\n'
        for k in (1, 2, 3)
    )
    with pytest.raises(ConfigError, match=f"{one} and {other} are both {place}"):
        read_config(f"[mobility]\ncopies = 1\n{brokers}")
    read_config(f"[mobility]\ncopies = 1\n{brokers.replace(place, '127.0.0.1:0')}")


def test_who_kept_copies_is_not_played_without_them(tmp_path: Path) -> None:
    """Another process may be playing it: two of one broker would both make promises."""
    config = copied(tmp_path, brokers=3)

    async def scenario() -> None:
        servers = await begun(config)
        await end(servers)
        alone = replace(config, mobility=replace(config.mobility, copies=0))
        with pytest.raises(FolderError, match="start it with the copies that it had, or stop all"):
            await Server(alone, "B1").start()
        shutil.rmtree(tmp_path / "B1.copies")
        server = Server(alone, "B1")
        await server.start()
        await server.stop()

    asyncio.run(scenario())


def test_a_disk_that_is_full_at_the_start_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Votes that cannot be noted keep a broker from starting, and the sentence says why."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(folders, "write_file", full)
    with pytest.raises(FolderError, match=r"B1 cannot note its votes .*: No space left on device"):
        asyncio.run(Server(copied(tmp_path), "B1").start())


def test_a_process_without_room_makes_way_for_one_that_has_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its disk is full, so it keeps no more lines: another follows, and what waited is acknowledged."""
    config = copied(tmp_path, brokers=3)

    async def scenario() -> tuple[str, ...]:
        servers = await begun(config)
        chamber, follower = servers[0].chamber, servers[1].chamber
        assert chamber is not None
        assert follower is not None
        assert chamber.council.seat("B1").followers == ("B2",)

        def full(*_: object) -> None:
            raise JournalError("The store cannot be written: No space left on device.")

        monkeypatch.setattr(follower.folders, "append", full)
        async with Client(url(config, 0), client_id="source") as publisher:
            async with asyncio.timeout(PATIENCE_S):
                await publisher.publish("news/a", {"n": 1})
        found = chamber.council.seat("B1").followers
        await end(servers)
        return found

    assert asyncio.run(scenario()) == ("B3",)


def test_who_cannot_note_its_votes_any_more_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody hears of a vote that is not noted; and the sentence says what to do."""
    config = copied(tmp_path, brokers=3)

    async def scenario() -> SojournError | None:
        servers = await begun(config)
        chamber, node = servers[2].chamber, servers[2].node
        assert chamber is not None
        assert node is not None

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(chamber.folders, "save_register", full)
        kill(servers[1], wipes=False)  # so that there is something to vote about
        await until(lambda: node.failure is not None)
        await until(lambda: not chamber.mesh.connections)
        failure = node.failure
        await end([servers[0]])
        return failure

    assert "cannot note its votes about copies any more: No space left" in str(asyncio.run(scenario()))


def test_others_have_their_turn_while_a_broker_is_revived(monkeypatch: pytest.MonkeyPatch) -> None:
    """After every line, if lines take that long; and nothing goes on that is no longer wanted."""
    monkeypatch.setattr(revivals, "SLICE_S", 0.0)
    stops, is_closed = 0, False

    def work() -> Generator[None, None, str]:
        nonlocal stops, is_closed
        try:
            for _ in range(20):
                stops += 1
                yield
        finally:
            is_closed = True
        return "all"

    async def scenario() -> tuple[str, list[int]]:
        seen: list[int] = []
        done = asyncio.create_task(revivals.in_slices(work()))
        while not done.done():
            await asyncio.sleep(0)
            seen.append(stops)
        cancelled = asyncio.create_task(revivals.in_slices(work()))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait({cancelled})
        return done.result(), seen

    result, seen = asyncio.run(scenario())
    assert result == "all"
    assert len(set(seen)) >= 19
    assert is_closed
    assert stops < 40


def test_copies_begin_anew_with_a_snapshot_when_they_have_grown_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So whoever revives a broker reads no more than the broker itself would."""
    monkeypatch.setattr(keeper, "COPIED_ENTRIES", 20)
    monkeypatch.setattr(keeper, "COPIED_S", 0.0)
    monkeypatch.setattr(pump, "COMPACT_BYTES", 100)
    config = copied(tmp_path)

    async def scenario() -> None:
        servers = await begun(config)
        chamber = servers[0].chamber
        assert chamber is not None
        (follower,) = chamber.council.seat("B1").followers
        keeps = next(server.chamber for server in servers if server.name == follower)
        assert keeps is not None
        async with Client(url(config, 0), client_id="source") as publisher:
            async with asyncio.timeout(PATIENCE_S):
                while keeps.folders.first("B1") == 1:
                    await publisher.publish("news/a", {"text": "x" * 200})
                await publisher.publish("news/a", {"text": "acknowledged after it"})
        await end(servers)

    asyncio.run(scenario())
