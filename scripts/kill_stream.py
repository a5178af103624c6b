"""Kills a Spark query with SIGKILL while events flow through it, and looks for every event, each once.

    python scripts/kill_stream.py --seconds 600 --rate 2000 --kills 3

Publishers send at a steady rate to one broker of a line, with gaps in which nothing comes; Spark's sessions
are at another. One driver process of Spark's runs two queries over the data source `sojourn`: `table` writes
Parquet files, and `copy` publishes every row again through the sink. Driver and Java are killed together, in
the flow and in gaps by turns, and started again at once. In the end every acknowledged event is looked for:
in the table by Spark, among the copies by a subscriber.

Exit code 1: an event is missing or doubled, or a query ended by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from soak_network import Network

from sojourn import Client

LIMITS = {"inflight_max": 20_000, "queue_messages_max": 2_000_000, "queue_bytes_max": 1 << 29}
"""A batch is what a broker sends unacknowledged; and while Spark starts again, much waits."""
SLICE_S = 0.02
LOOK_S = 0.2
CATCH_UP_S = 600.0
"""How long Spark may take to start, and all events to be there after the last one."""
HEAP_GIB = 1.5
ENDED = "A query ended by itself"


# The driver process of Spark's -----------------------------------------------------------------------------


def query(folder: Path, url: str, trigger_s: float, cores: int) -> None:
    """Run both queries until somebody kills us, or says in a file that no more events come."""
    from sojourn.pipeline.events_source import EventsSource  # noqa: PLC0415 - the publisher needs no Spark
    from sojourn.pipeline.session import spark_session  # noqa: PLC0415 - the publisher needs no Spark

    spark = spark_session(f"local[{cores}]", memory_gib=HEAP_GIB)
    spark.dataSource.register(EventsSource)

    def events(client_id: str) -> Any:
        source = spark.readStream.format("sojourn").option("url", url).option("clientId", client_id)
        return source.option("topic", "events/#").load()

    def start(**trigger: Any) -> list[Any]:
        table = events("spark-table").writeStream.format("parquet").option("path", str(folder / "table"))
        rows = events("spark-copy").selectExpr("concat('copy/', topic) topic", "payload", "time")
        copy = rows.writeStream.format("sojourn").option("url", url)
        return [
            writer.option("checkpointLocation", str(folder / f"{name}-checkpoint")).trigger(**trigger).start()
            for name, writer in (("table", table), ("copy", copy))
        ]

    running = start(processingTime=f"{round(trigger_s * 1000)} milliseconds")
    while not (folder / "stop").exists():
        for each in running:
            if not each.isActive:
                sys.exit(f"{ENDED}: {each.exception()}")
        if all(each.lastProgress is not None for each in running):
            (folder / "started").touch()  # both have their sessions
        time.sleep(LOOK_S)
    for each in running:
        each.stop()
    for each in start(availableNow=True):
        each.awaitTermination()
    numbers = spark.read.parquet(str(folder / "table")).selectExpr(
        "cast(get_json_object(cast(payload as string), '$.n') as long) n"
    )
    found = {"rows": numbers.count(), "different": numbers.distinct().count()}
    (folder / "result.json").write_text(json.dumps(found))


# Everybody else --------------------------------------------------------------------------------------------


class Driver:
    """Spark's driver process, killed and started again."""

    def __init__(self, folder: Path, url: str, given: argparse.Namespace) -> None:
        self._command = [sys.executable, __file__, "--query", str(folder), "--url", url]
        self._command += ["--trigger", str(given.trigger), "--cores", str(given.cores)]
        self._log = (folder / "driver.log").open("a")
        self.kills = self.own_ends = 0
        self.last_words = folder / "driver.log"
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdout=self._log, stderr=self._log, start_new_session=True)

    def kill(self) -> None:
        """Kill it with Java and all, and start it again."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.kills += 1
        self._process = self._start()

    def ended(self) -> bool:
        """Whether it has done its work; if it ended otherwise, it is counted and started again."""
        code = self._process.poll()
        if code is None or code == 0:
            return code == 0
        self.own_ends += 1
        self._process = self._start()
        return False

    def stop(self) -> None:
        """End it, whatever it does."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


def kill_times(given: argparse.Namespace) -> Iterator[float]:
    """When to kill: evenly, and by turns in the flow and in the gap that comes next."""
    cycle = given.flow + given.gap
    for kill in range(1, given.kills + 1):
        at = given.seconds * kill / (given.kills + 1)
        into = at % cycle
        if kill % 2 == 0 and given.gap:
            at += given.flow + given.gap / 2 - into
        elif into > given.flow:
            at -= into - given.flow / 2
        yield at


async def publish(client: Client, given: argparse.Namespace, driver: Driver) -> int:
    """Publish for so long, kill meanwhile; return how many events were acknowledged."""
    kills = list(kill_times(given))
    began = time.monotonic()
    under_way: set[asyncio.Task[None]] = set()
    sent, flowed, last = 0, 0.0, 0.0
    while (now := time.monotonic() - began) < given.seconds:
        if now % (given.flow + given.gap) < given.flow:
            flowed += now - last
        last = now
        while sent < flowed * given.rate:
            event = client.publish(f"events/{sent % 10}", {"n": sent})
            under_way.add(asyncio.create_task(event))
            sent += 1
        if kills and now >= kills[0]:
            kills.pop(0)
            await asyncio.to_thread(driver.kill)
        driver.ended()
        done = {task for task in under_way if task.done()}
        under_way -= done
        for task in done:
            task.result()
        await asyncio.sleep(SLICE_S)
    await asyncio.gather(*under_way)
    return sent


async def come_true(condition: Callable[[], bool]) -> None:
    """Wait for something, but not for ever."""
    until = time.monotonic() + CATCH_UP_S
    while True:
        if condition() or time.monotonic() > until:
            return
        await asyncio.sleep(LOOK_S)


async def listen(reader: Client, copies: Counter[int]) -> None:
    """Count what comes through the sink."""
    async for event in reader:
        copies[event.attributes["n"]] += 1


async def flow(folder: Path, network: Network, given: argparse.Namespace) -> dict[str, Any]:
    """Let events flow from end to end, and say what became of them."""
    first, *_, last = [f"mqtt://{place.host}:{place.port}" for place in network.places()]
    copies: Counter[int] = Counter()
    driver = Driver(folder, last, given)
    try:
        async with Client(first) as publisher, Client(first) as reader:
            await reader.subscribe(topic="copy/#")
            counting = asyncio.create_task(listen(reader, copies))
            await come_true(lambda: driver.ended() or (folder / "started").exists())
            before = driver.own_ends  # a first start that a busy machine lets fail is no part of the run
            began = time.monotonic()
            sent = await publish(publisher, given, driver)
            took_s = time.monotonic() - began
            (folder / "stop").touch()
            await come_true(driver.ended)
            await come_true(lambda: len(copies) >= sent)
            caught_up_s = time.monotonic() - began - took_s
            counting.cancel()
            repeated = reader.repeated
    finally:
        driver.stop()
    result = folder / "result.json"
    table = json.loads(result.read_text()) if result.exists() else {"rows": 0, "different": 0}
    return {
        "events": sent,
        "seconds": round(took_s, 1),
        "kills": driver.kills,
        "queries that ended by themselves": driver.own_ends - before,
        "rows in the table": table["rows"],
        "missing there": sent - table["different"],
        "doubled there": table["rows"] - table["different"],
        "copies by the sink": sum(copies.values()),
        "missing copies": sent - len(copies),
        "doubled copies": sum(copies.values()) - len(copies) + repeated,
        "all there after (s)": round(caught_up_s, 1),
    }


def main() -> None:
    """Start brokers, let events flow, kill, count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="how long events flow, gaps included")
    parser.add_argument("--rate", type=float, default=2_000.0, help="events a second while they flow")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--flow", type=float, default=45.0, help="seconds of flow before each gap")
    parser.add_argument("--gap", type=float, default=15.0, help="seconds in which nothing comes")
    parser.add_argument("--trigger", type=float, default=1.0, help="seconds between batches")
    parser.add_argument("--cores", type=int, default=2, help="of Spark")
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    parser.add_argument("--query", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.query is not None:
        query(given.query, given.url, given.trigger, given.cores)
        return
    with tempfile.TemporaryDirectory(prefix="sojourn-stream-") as name:
        folder = Path(name)
        network = Network(folder, "line", any_ports=True, limits=LIMITS)
        try:
            network.wait_until_ready()
            found = asyncio.run(flow(folder, network, given))
            said = (folder / "driver.log").read_text()
        finally:
            network.stop()
    wrong = {key: found[key] for key in found if key.split()[0] in ("missing", "doubled", "queries")}
    if given.json:
        print(json.dumps(found))
    else:
        table = Table(show_header=False)
        for key, value in found.items():
            table.add_row(key, f"{value:,}")
        Console().print(table)
    if any(wrong.values()):
        ended = said.rfind(ENDED)  # what Spark says of it begins with why, and is long
        sys.exit(said[-4_000:] if ended < 0 else said[ended : ended + 4_000])


if __name__ == "__main__":
    main()
