"""A live trace is written by a thread: no broker waits for its disk, and what is said of it stays true."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from threading import Event, get_ident

import msgspec
import pytest

from sojourn.live import scribe, tracing
from sojourn.live.brokers import recording
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import Config, TraceConfig
from sojourn.live.seldom import Seldom
from sojourn.live.tracing import Tracer
from sojourn.trace import segments
from sojourn.trace.lives import Gap, Life, life_path, read_life
from sojourn.trace.manifests import manifest_path
from tests.live.building import building, url
from tests.live.copied_network import (
    EVENTS,
    begun,
    come_back,
    copied,
    end,
    kill,
    leave_events,
    read_events,
    until,
)
from tests.live.test_roaming import started, stop
from tests.live.test_tracing import opened, rows

PATIENCE_S = 20.0


class Disk:
    """A disk that stands still until it is told to go on; whoever waits for it in vain is noted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.goes_on = Event(), Event()
        self.gave_up = False
        self.threads: set[int] = set()
        real = segments.write_segment

        def slow(*given: object) -> None:
            self.threads.add(get_ident())
            self.asked.set()
            if not self.gave_up and not self.goes_on.wait(PATIENCE_S):
                self.gave_up = True
            real(*given)  # type: ignore[arg-type]  # as they came

        monkeypatch.setattr(segments, "write_segment", slow)


def life_of(folder: Path, broker: str = "B1") -> Life | None:
    """What a broker says of itself in the run `run`."""
    return read_life(life_path(manifest_path(folder, "run", broker)))


def clients(folder: Path) -> list[object]:
    """Who came, as far as can be read."""
    return [row["client"] for row in rows(folder, "clients")]


def test_brokers_serve_while_their_disk_stands_still(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events flow, and clients come and go, between two seals; in the end every row is there."""
    monkeypatch.setattr(recording, "SEAL_S", 0.05)
    disk = Disk(monkeypatch)
    config: Config = msgspec.structs.replace(building(), trace=TraceConfig(folder=str(tmp_path), run="run"))

    async def scenario() -> None:
        servers = await started(config)
        async with Client(url(config, 0), client_id="reader") as reader:
            await reader.subscribe("n >= 0", topic="news")
            assert await asyncio.to_thread(disk.asked.wait, PATIENCE_S)
            async with Client(url(config, 3), client_id="source") as source:
                for n in range(20):
                    await source.publish("news", {"n": n})
                    assert (await reader.next(PATIENCE_S)).attributes["n"] == n
        assert not disk.gave_up, "nobody on the loop waited for the disk"
        assert not rows(tmp_path, "publications")
        stopping = asyncio.create_task(stop(servers))
        await asyncio.sleep(0.1)  # the loop goes on while the last rows wait
        assert not stopping.done()
        disk.goes_on.set()
        await stopping

    asyncio.run(asyncio.wait_for(scenario(), 5 * PATIENCE_S))
    assert len(rows(tmp_path, "publications")) == len(rows(tmp_path, "deliveries")) == 20
    assert len(rows(tmp_path, "runs")) == 1
    for broker in config.brokers:
        life = life_of(tmp_path, broker.name)
        assert life is not None
        assert (life.is_open, life.gaps) == (False, ())


def test_the_sign_of_life_never_runs_ahead_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says until when all is sealed once it is; a seal that found the thread behind is said later."""
    tracer = opened(tmp_path, "B1", 1e9)
    disk = Disk(monkeypatch)
    for second in range(1, 5):
        tracer.came(f"phone {second}", {}, 1e9 + second)
        tracer.seal(1e9 + second)
    assert disk.asked.wait(PATIENCE_S)
    assert life_of(tmp_path) == Life(0.0)
    assert not clients(tmp_path)
    disk.goes_on.set()
    tracer.settled()
    assert life_of(tmp_path) == Life(2.0), "two batches were on their way"
    assert clients(tmp_path) == ["phone 1", "phone 2"]
    tracer.seal(1e9 + 5)
    tracer.settled()
    assert life_of(tmp_path) == Life(5.0)
    assert clients(tmp_path) == [f"phone {second}" for second in range(1, 5)]
    assert disk.threads.isdisjoint({get_ident()})


def test_what_waits_for_the_disk_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Beyond it rows of that table are let go, which is said in a sentence and in the trace."""
    monkeypatch.setattr(scribe, "ROWS_MAX", 3)
    monkeypatch.setattr(tracing, "_seldom", Seldom(tracing._log))
    tracer = opened(tmp_path, "B1", 1e9)
    disk = Disk(monkeypatch)
    with caplog.at_level(logging.WARNING):
        for number in range(11):  # two batches of three, three that are let go, two that wait
            tracer.came(f"phone {number}", {}, 1e9 + number)
        tracer.lost("B2", 7, "store_lost", 1e9 + 11)
        tracer.seal(1e9 + 12)
        disk.goes_on.set()
        tracer.settled()
        tracer.seal(1e9 + 13)
        tracer.settled()
    (said,) = [one.getMessage() for one in caplog.records]
    assert "The trace of B1 cannot be written: the disk takes rows more slowly than they come." in said
    assert clients(tmp_path) == [f"phone {number}" for number in (0, 1, 2, 3, 4, 5, 9, 10)]
    assert len(rows(tmp_path, "drops")) == 1
    assert life_of(tmp_path) == Life(13.0, True, (Gap(0.0, 13.0),))


def test_who_writes_next_at_a_place_waits_for_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that is played here again counts on where its last life ended, which may still be written."""
    tracer = opened(tmp_path, "B1", 1e9)
    disk = Disk(monkeypatch)
    tracer.came("phone", {}, 1e9 + 1)
    tracer.close(1e9 + 2, ends_run=False)
    assert disk.asked.wait(PATIENCE_S)
    del tracer

    async def again() -> Tracer:
        wanted = TraceConfig(folder=str(tmp_path), run="run")
        opening = asyncio.create_task(Tracer.opened(wanted, "B1", 1e9 + 3))
        await asyncio.sleep(0.1)  # the loop goes on meanwhile
        assert not opening.done()
        disk.goes_on.set()
        return await opening

    following = asyncio.run(again())
    following.came("watch", {}, 1e9 + 4)
    following.close(1e9 + 5, ends_run=False)
    following.settled()
    assert clients(tmp_path) == ["phone", "watch"]
    assert life_of(tmp_path) == Life(5.0, False)


def test_what_comes_after_the_end_is_nobodys(tmp_path: Path) -> None:
    """A broker that was given up says some last things, and closes again when its process ends."""
    tracer = opened(tmp_path, "B1", 1e9)
    tracer.close(1e9 + 1, ends_run=False)
    tracer.came("phone", {}, 1e9 + 2)
    tracer.seal(1e9 + 3)
    tracer.close(1e9 + 4, ends_run=True)
    tracer.settled()
    asyncio.run(tracer.closed())
    assert not clients(tmp_path)
    assert life_of(tmp_path) == Life(1.0, False)


def test_a_mistake_is_logged_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread goes on with the next batch."""
    monkeypatch.setattr(tracing, "_seldom", Seldom(tracing._log))
    real = segments.write_segment

    def mistaken(*_given: object) -> None:
        raise ZeroDivisionError

    tracer = opened(tmp_path, "B1", 1e9)
    monkeypatch.setattr(segments, "write_segment", mistaken)
    tracer.came("phone", {}, 1e9 + 1)
    tracer.seal(1e9 + 2)
    tracer.settled()
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    monkeypatch.setattr(segments, "write_segment", real)
    tracer.close(1e9 + 3, ends_run=False)
    tracer.settled()
    assert clients(tmp_path) == ["phone"]


def test_who_plays_a_broker_goes_on_with_its_trace(tmp_path: Path) -> None:
    """Here and in its home again: each writes after the one before, and every event has its row."""
    trace = TraceConfig(folder=str(tmp_path / "trace"), run="run")
    config: Config = msgspec.structs.replace(copied(tmp_path, brokers=3), trace=trace)

    async def scenario() -> None:
        servers = await begun(config)
        try:
            await leave_events(config, 0, 2)
            kill(servers[0], wipes=False)
            await until(lambda: any(is_guest(server) for server in servers[1:]))
            await come_back(servers, 0)
            assert len(await read_events(config, 1)) == EVENTS + 1
        finally:
            await end(servers)

    asyncio.run(scenario())
    for name in ("B1", "B2", "B3"):
        life = life_of(tmp_path / "trace", name)
        assert life is not None
        assert (life.is_open, life.gaps) == (False, ())
    assert len(rows(tmp_path / "trace", "publications")) == EVENTS + 1
    assert len(rows(tmp_path / "trace", "deliveries")) == EVENTS + 1


def is_guest(server: Server) -> bool:
    """Whether a process plays B1 and is not its home."""
    return server.chamber is not None and "B1" in server.chamber.guests
