"""The trace of a live run tells what clients did and got, in tables that any audit reads."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from sojourn.live import scribe, tracing
from sojourn.live.client.client import Client
from sojourn.live.config import Config, TraceConfig
from sojourn.live.seldom import Seldom
from sojourn.live.tracing import TraceError, Tracer, agree_on_start
from sojourn.trace import segments
from sojourn.trace.lives import Gap, Life, life_path, read_life
from sojourn.trace.manifests import manifest_path
from tests.live.building import building, url
from tests.live.raw_client import Raw, running_broker, single_config
from tests.live.test_roaming import started, stop


def rows(folder: Path, table: str) -> list[dict[str, object]]:
    """All rows of a table, in the order in which they were written by each broker."""
    found: list[dict[str, object]] = []
    for path in sorted((folder / table).rglob("*.parquet")):
        found += pq.read_table(path).to_pylist()
    return found


def opened(folder: Path, broker: str, now: float) -> Tracer:
    """A tracer of a broker in the run `run`."""
    return Tracer.open(TraceConfig(folder=str(folder), run="run"), broker, now)


def test_who_joins_a_run_never_takes_another_start(tmp_path: Path) -> None:
    """All agree on the first; nobody ever sees a file that is not whole, also if all come at once."""
    about = tmp_path / "run.json"
    with ThreadPoolExecutor(16) as pool:
        for _ in range(20):
            found = list(pool.map(lambda second: agree_on_start(about, 1e9 + second), range(16)))
            assert len(set(found)) == 1
            assert found[0] >= 1e9
            assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
            about.unlink()


@pytest.mark.parametrize("text", ["", "{", "{}", '{"started_s": null}'])
def test_a_start_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    """Rather than taken for 1970, which made audits count nonsense."""
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(TraceError, match="does not say when the run began"):
        opened(tmp_path, "B1", 1e9)


def test_a_trace_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It holds what clients sent and wanted: nobody else reads a file of it, whatever the umask."""
    before = os.umask(0)
    try:
        tracer = opened(tmp_path / "trace", "B1", 1e9)
        tracer.came("phone", {"role": "medic"}, 1e9)
        tracer.seal(1e9)
        tracer.close(1e9 + 1, ends_run=True)
        tracer.settled()
    finally:
        os.umask(before)
    files = [path for path in (tmp_path / "trace").rglob("*") if path.is_file()]
    assert files
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "trace").stat().st_mode) == 0o700


def test_a_broker_that_is_killed_and_one_that_closes_are_told_apart(tmp_path: Path) -> None:
    """From its last seal until the next of its name began; in seconds of the run."""
    life = life_path(manifest_path(tmp_path, "run", "B2"))
    opened(tmp_path, "B1", 1e9)
    opened(tmp_path, "B2", 1e9 + 2).seal(1e9 + 4)
    closing = opened(tmp_path, "B2", 1e9 + 9)
    closing.close(1e9 + 11, ends_run=True)
    closing.settled()
    assert read_life(life) == Life(11.0, False, (Gap(4.0, 9.0),))
    opened(tmp_path, "B2", 1e9 + 20)
    assert read_life(life) == Life(20.0, True, (Gap(4.0, 9.0),))


def test_a_live_run_leaves_the_tables_of_the_pipeline(tmp_path: Path) -> None:
    """One reader moves once; publications, deliveries, stays, the hand-off and the interest are there."""
    config: Config = msgspec.structs.replace(building(), trace=TraceConfig(folder=str(tmp_path), run="test"))

    async def scenario() -> None:
        servers = await started(config)
        reader = Client(url(config, 0), client_id="reader", attributes={"role": "medic"})
        await reader.connect()
        await reader.subscribe("n >= 0", topic="news")
        await asyncio.sleep(0.1)
        async with Client(url(config, 3), client_id="source") as source:
            for n in range(10):
                await source.publish("news", {"n": n})
            for _ in range(5):
                await reader.next(5)
            await reader.move_to(url(config, 1))
            for _ in range(5):
                await reader.next(5)
        await asyncio.sleep(0.1)
        await reader.unsubscribe(topic="news")
        await reader.close()
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 30))
    published, delivered = rows(tmp_path, "publications"), rows(tmp_path, "deliveries")
    assert [row["source"] for row in published] == [published[0]["source"]] * 10
    assert str(published[0]["source"]).startswith("source@B4~")
    keys = [(row["source"], row["sequence"]) for row in published]
    assert sorted((row["source"], row["sequence"]) for row in delivered) == sorted(keys)
    assert {row["client"] for row in delivered} == {"reader"}
    assert {row["broker"] for row in delivered} == {"B1", "B2"}
    stays = [
        (row["broker"], row["client"]) for row in rows(tmp_path, "sojourns") if row["client"] == "reader"
    ]
    assert stays == [("B1", "reader"), ("B2", "reader")]
    (move,) = [row for row in rows(tmp_path, "handoffs") if row["client"] == "reader"]
    assert (move["from_broker"], move["to_broker"]) == ("B1", "B2")
    assert move["ready_s"] >= move["arrived_s"] >= move["left_s"]  # type: ignore[operator]  # columns of numbers
    asked, began, ended = rows(tmp_path, "interests")
    assert asked["filter"] == began["filter"] == ended["filter"]
    assert asked["from_s"] == asked["asked_s"] == began["asked_s"] == ended["asked_s"]
    assert asked["to_s"] is began["to_s"] is None
    assert began["from_s"] > asked["from_s"], "when brokers know"  # type: ignore[operator]  # columns of numbers
    assert ended["to_s"] > began["from_s"]  # type: ignore[operator]  # columns of numbers
    (run,) = rows(tmp_path, "runs")
    assert run["world"] == "live"
    load = rows(tmp_path, "broker_load")
    assert {row["broker"] for row in load} == {broker.name for broker in config.brokers}
    assert all(row["handled"] > 0 and row["busy_s"] > 0 for row in load)  # type: ignore[operator]  # columns of numbers
    assert all(row["queue_max"] >= row["queue_mean"] >= 0 for row in load)  # type: ignore[operator]  # columns of numbers
    attributes = {row["client"]: row["attributes_json"] for row in rows(tmp_path, "clients")}
    assert '"role": "medic"' in str(attributes["reader"])


def test_a_trace_says_nothing_of_shared_subscriptions(tmp_path: Path) -> None:
    """An audit expects every subscriber to get what it wants; who shares does not, and is left out."""
    file = tmp_path / "traced.toml"
    trace = f'\n[trace]\nfolder = "{tmp_path}/trace"\nrun = "test"\n'
    file.write_text(Path(single_config(tmp_path)).read_text() + trace)
    with running_broker(str(file)) as broker, Raw(broker.port) as client:
        assert client.connect("sharer").shared_subscription_available
        assert client.subscribe("$share/group/news", "sport") == [2, 2]
        for topic in ("news", "sport"):
            client.publish(topic, b"x", 1)
            assert client.message().topic == topic
    folder = tmp_path / "trace"
    assert {row["topic"] for row in rows(folder, "publications")} == {"news", "sport"}
    assert [row["filter"] for row in rows(folder, "interests")][:1] == ["topic = 'sport'"]
    assert len(rows(folder, "deliveries")) == 1


def test_a_broker_goes_on_where_its_trace_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so in a sentence; nothing is raised in a turn, nor is the next seal left out."""
    real = segments.write_segment

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(segments, "write_segment", full)
    monkeypatch.setattr(scribe, "ROWS_MAX", 3)
    monkeypatch.setattr(tracing, "_seldom", Seldom(tracing._log))
    tracer = opened(tmp_path, "B1", 1e9)
    with caplog.at_level(logging.WARNING):
        for number in range(7):
            tracer.came(f"phone {number}", {}, 1e9 + number)
            tracer.settled()
        tracer.seal(1e9 + 8)
        tracer.settled()
    (said,) = [one.getMessage() for one in caplog.records]
    assert "The trace of B1 cannot be written: No space left on device." in said
    monkeypatch.setattr(segments, "write_segment", real)
    tracer.seal(1e9 + 9)
    tracer.close(1e9 + 10, ends_run=True)
    tracer.settled()
    assert [row["client"] for row in rows(tmp_path, "clients")] == ["phone 6"]
    life = read_life(life_path(manifest_path(tmp_path, "run", "B1")))
    assert life == Life(10.0, False, (Gap(0.0, 9.0),))
