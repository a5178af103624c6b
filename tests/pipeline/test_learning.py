"""The loop closed: what live clients do teaches Spark, which teaches brokers where their copies wait."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from sojourn.cli.main import app
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import Config, PredictionConfig, TraceConfig
from sojourn.live.learning import LearningError, paths_for, read_graph
from sojourn.mobility.learnt_graph import LearntGraph
from sojourn.mobility.prediction import hour_of
from sojourn.pipeline.learning import LearningOptions, learn, start_learning, take_in
from sojourn.pipeline.models import learnt_graph
from sojourn.pipeline.models import moves as all_moves
from sojourn.pipeline.schemas import TRACE
from sojourn.pipeline.tables import open_trace
from sojourn.trace import SegmentWriter
from tests.live.building import building, url
from tests.live.test_roaming import started, stop

Stay = tuple[str, str, str, float, float]
pytestmark = pytest.mark.timeout(900)  # a minute alone, minutes on a machine that others use too

OPTIONS = LearningOptions(delay_s=30.0, trigger_s=0.1)


def walks(seed: int, clients: int = 12, steps: int = 25) -> list[Stay]:
    """Stays of clients that walk, sometimes twice at the same broker."""
    draw = random.Random(seed)
    found = []
    for client in range(clients):
        now = draw.uniform(0, 50)
        for _ in range(steps):
            end = now + draw.uniform(1, 60)
            found.append(("r", f"c{client}", f"B{draw.randrange(4)}", round(now, 3), round(end, 3)))
            now = end + draw.uniform(0.01, 20)
    return found


def test_a_stream_learns_what_a_batch_does(spark: SparkSession, tmp_path: Path) -> None:
    """However late brokers tell of stays, within the delay; a batch may be tried twice."""
    draw = random.Random(1)
    stays = walks(1)
    told = sorted(stays, key=lambda stay: stay[4] + draw.uniform(0, 25))
    # A client of another run whose clock is far ahead: every run has its own time.
    told.append(("other", "c0", "B1", 1e6, 1e6 + 5))
    last_s = max(stay[4] for stay in stays)
    told.append(("r", "late", "B0", last_s, last_s + 100.0))  # settles everything before
    size = 110
    for number, begin in enumerate(range(0, len(told), size)):
        batch = spark.createDataFrame(told[begin : begin + size], TRACE["sojourns"])
        for _ in range(1 + (number == 1)):
            take_in(batch, number, tmp_path, OPTIONS)
    moves = spark.read.parquet(str(tmp_path / "moves")).drop("batch")
    expected = all_moves(spark.createDataFrame(stays, TRACE["sojourns"]))
    as_rows = [sorted(map(str, frame.select(expected.columns).collect())) for frame in (moves, expected)]
    assert as_rows[0] == as_rows[1]
    assert len(list((tmp_path / "stays").iterdir())) == 2, "what no batch looks at again is gone"
    kept = spark.read.parquet(str(max((tmp_path / "stays").iterdir(), key=lambda path: int(path.name[6:]))))
    assert kept.where("client = 'c1'").count() <= 2


def test_clients_that_never_come_back_are_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    """So what is kept does not grow for ever."""
    options = LearningOptions(delay_s=1.0, forget_s=100.0)
    rows = [("r", f"gone{n}", "B1", 0.0, 5.0) for n in range(50)] + [("r", "here", "B1", 0.0, 500.0)]
    take_in(spark.createDataFrame(rows, TRACE["sojourns"]), 0, tmp_path, options)
    kept = spark.read.parquet(str(tmp_path / "stays" / "batch=0"))
    assert [row.client for row in kept.collect()] == ["here"]


def test_the_stream_follows_segments(spark: SparkSession, tmp_path: Path) -> None:
    """What brokers seal is learnt; a second query goes on where the first one stopped."""
    stays = walks(3)
    stays.append(("r", "late", "B0", 1e5, 1e5 + 1))
    trace, out = tmp_path / "trace", tmp_path / "out"
    (tmp_path / "trace").mkdir()
    (trace / "r.json").write_text(json.dumps({"started_s": 7 * 3600.0}))
    taught: list[LearntGraph] = []
    for part in range(2):
        writer = SegmentWriter(trace, "r", name=f"B{part}")
        for stay in sorted(stays, key=lambda stay: stay[4])[part::2] if part else stays[:5]:
            writer.add("sojourns", *stay[1:])
        for stay in (stay for stay in stays[5:] if part):
            writer.add("sojourns", *stay[1:])
        writer.seal()
        query = start_learning(spark, trace, out, taught.append, OPTIONS)
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    rows = spark.createDataFrame(stays, TRACE["sojourns"])
    assert taught[-1] == learnt_graph(rows, {"r": 7 * 3600.0})
    assert {edge.hour for edge in taught[-1].by_hour} == {7}


async def commute(config: Config, rounds: int) -> None:
    """A phone walks B1, B2, B3 and back the other way round, and hears of everything."""
    phone = Client(url(config, 0), client_id="phone")
    await phone.connect()
    await phone.subscribe(topic="news")
    async with Client(url(config, 4), client_id="source") as source:
        for number, broker in enumerate(itertools.islice(itertools.cycle((1, 2, 5, 0)), 4 * rounds)):
            await phone.move_to(url(config, broker))
            await source.publish("news", {"n": number})
            assert (await phone.next(30)).attributes["n"] == number
    await phone.close()


def configured(tmp_path: Path) -> tuple[Path, Config]:
    """The building, with a trace and a file for what is learnt; its file for commands."""
    config = replace(
        building(),
        trace=TraceConfig(folder=str(tmp_path / "trace"), run="day"),
        prediction=PredictionConfig(file=str(tmp_path / "learnt.json"), evidence_min=2, share=0.6),
    )
    names = "".join(f'[[brokers]]\nname = "{b.name}"\nlisten = "127.0.0.1:0"\n' for b in config.brokers)
    file = tmp_path / "net.toml"
    file.write_text(f'{names}[prediction]\nfile = "learnt.json"\nevidence_min = 2\nshare = 0.6\n')
    return file, config


def test_live_brokers_go_by_what_they_taught(spark: SparkSession, tmp_path: Path) -> None:
    """Trace, plan, learn and reload: then a copy waits at the one broker that is next, and nowhere else."""
    file, config = configured(tmp_path)

    async def first_day() -> None:
        servers = await started(config)
        await commute(config, 4)
        await stop(servers)

    asyncio.run(asyncio.wait_for(first_day(), 240))
    trace = str(tmp_path / "trace")
    graph_file = tmp_path / "graph.json"
    planned = CliRunner().invoke(
        app,
        ["plan", trace, "-k", "100", "--graph", str(graph_file), "--master", str(spark.sparkContext.master)],
    )
    assert planned.exit_code == 0, planned.output + repr(planned.exception)
    assert "brokers for 100 subscribers" in planned.output
    done = CliRunner().invoke(
        app, ["learn", trace, "--into", str(file), "--master", str(spark.sparkContext.master)]
    )
    assert done.exit_code == 0, done.output + repr(done.exception)
    assert "moves of clients over 4 edges" in done.output.replace("\n", " ")
    told = CliRunner().invoke(
        app, ["learn", trace, "--into", str(file), "--master", str(spark.sparkContext.master), "--json"]
    )
    about = json.loads(told.stdout)
    assert (about["edges"], about["told"]) == (4, [])
    assert 1 <= about["copies_mean"] <= about["neighbours_mean"]
    graph = read_graph(tmp_path / "learnt.json")
    assert graph is not None
    assert graph == learn(spark, open_trace(trace))
    assert graph.next_broker("B2") == "B3"
    started_s = json.loads((tmp_path / "trace" / "day.json").read_text())["started_s"]
    assert {edge.hour for edge in graph.by_hour} <= {hour_of(started_s), hour_of(started_s + 120)}
    assert paths_for(config, "B2")[0].to == ("B3",)

    asyncio.run(asyncio.wait_for(second_day(tmp_path, config), 240))


def how_much(server: Server) -> int:
    """How many paths a broker goes by."""
    assert server.node is not None
    return len(server.node.broker.settings.learnt)


async def second_day(tmp_path: Path, config: Config) -> None:
    """Brokers read what was learnt while they run, and refuse what cannot be read."""
    (tmp_path / "learnt.json").rename(tmp_path / "later.json")
    servers = await started(config)
    assert how_much(servers[1]) == 0
    (tmp_path / "later.json").rename(tmp_path / "learnt.json")
    for server in servers:
        server.reread = lambda: config
        assert ("learnt anew" in await server.reload()) == (server.name not in ("B4", "B5")), (
            "nobody was there"
        )
        assert "learnt anew" not in await server.reload()
    phone = Client(url(config, 0), client_id="walker")
    await phone.connect()
    await phone.subscribe(topic="news")
    await phone.move_to(url(config, 1))
    await phone.close()  # a copy is made for who is away

    def holders() -> set[str]:
        found = set()
        for server in servers:
            assert server.node is not None
            assert server.node.network is not None
            counts = server.node.network.clients.broker.subscribers.counts()
            if counts["passive"] or counts["active"]:
                found.add(server.name)
        return found

    async with asyncio.timeout(30):
        while holders() != {"B3"}:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
    (tmp_path / "learnt.json").write_text('{"format": "sojourn-neighbour-graph", "edges": 7}')
    with pytest.raises(LearningError, match=r"learnt\.json the neighbour graph does not read"):
        await servers[1].reload()
    assert how_much(servers[1]) > 0
    await stop(servers)
    servers = await started(config)  # they say what is wrong with the file, and go on without
    assert [how_much(server) for server in servers] == [0] * 6
    await stop(servers)


def test_learning_names_what_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    """No target, a trace without moves, and a trace of other brokers are one sentence each."""
    file, _ = configured(tmp_path)
    writer = SegmentWriter(tmp_path / "trace", "r", name="A1")
    writer.add("sojourns", "c", "A1", 0.0, 1.0)
    writer.seal()
    run = ["learn", str(tmp_path / "trace"), "--master", str(spark.sparkContext.master)]
    for more, sentence in (
        ([], "--into names the brokers' configuration"),
        (["--into", str(file)], "holds no move between two brokers"),
    ):
        refused = CliRunner().invoke(app, [*run, *more])
        assert sentence in str(refused.exception), refused.output
    writer.add("sojourns", "c", "A2", 2.0, 3.0)
    writer.seal()
    refused = CliRunner().invoke(app, [*run, "--into", str(file)])
    assert "speaks of A1, A2 and the network has B1, B2" in str(refused.exception)
    assert not (tmp_path / "learnt.json").exists()
