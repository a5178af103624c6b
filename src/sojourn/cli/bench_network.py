"""`sojourn bench network`: events that cross brokers, beside Mosquittos that are joined by bridges.

The publisher is at one end of a line of brokers and the subscribers at the other, one, three or five links
away. Client program, windows and payload are those of `bench_live.py`, and so are the columns; processor time
is that of all brokers of the line together. With stores, brokers of ours write their journals as the
templates have it, and Mosquitto keeps what it holds for its bridges (`persistence`, `cleansession false`).

The bridges are as quick as they can be made: they carry one topic in one direction at the QoS of the case,
with the same windows as clients, no delay and no notifications. They know nothing of subscriptions, and carry
all events whoever wants them.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mqtt5 import DisconnectPacket, PublishPacket, SubscribePacket, TopicFilter

from sojourn.cli import bench_floods_broker, bench_live
from sojourn.cli.bench_live import BenchError, Running
from sojourn.cli.bench_live_client import TOPIC, Link
from sojourn.cli.benchmarks import Progress, Row
from sojourn.live.addresses import FolderBook
from sojourn.live.config import parse_address
from sojourn.live.links.secret import write_secret

ROUNDS = 3
"""Of the rows of one link, of which the median is taken; the others have one."""
SECONDS = 3.0
WAY_LOOK_S = 0.2
TRIES = 5
"""How often other ports are tried for a line of Mosquittos."""


class Case(NamedTuple):
    """One kind of traffic over a line of brokers."""

    links: int
    qos: int
    subscribers: int
    stores: bool = True
    chooses: bool = False

    @property
    def name(self) -> str:
        """What the case is called in tables."""
        wanted = f"{self.subscribers} want 20%" if self.chooses else f"1:{self.subscribers}"
        links = f"{self.links} link{'s' if self.links > 1 else ''}"
        return f"{links}, {'stores' if self.stores else 'no stores'}, qos{self.qos} {wanted}"

    @property
    def traffic(self) -> bench_live.Case:
        """The same without brokers."""
        return bench_live.Case(self.name, self.qos, self.subscribers, self.chooses)


CASES = (
    *(Case(1, qos, subscribers) for qos in (0, 1) for subscribers in (1, 10)),
    Case(1, 0, 10, chooses=True),
    Case(1, 1, 10, chooses=True),
    *(Case(1, qos, 1, stores=False) for qos in (0, 1)),
    Case(1, 0, 10, stores=False, chooses=True),
    *(
        Case(links, qos, subscribers, stores=stores, chooses=subscribers > 1)
        for links in (3, 5)
        for stores in (True, False)
        for subscribers in (1, 10)
        for qos in (0, 1)
        if stores or not (qos and subscribers > 1)
    ),
)


class Line(NamedTuple):
    """Brokers in a line, at work."""

    brokers: list[Running]

    @property
    def ends(self) -> tuple[int, int]:
        """The ports of the first and the last broker."""
        return self.brokers[0].port, self.brokers[-1].port

    def cpu_seconds(self) -> float:
        """Return how long its brokers have used a processor."""
        return sum(bench_live.cpu_seconds(broker.process) for broker in self.brokers)


@contextmanager
def sojourn_network(
    names: Sequence[str],
    links: Iterable[tuple[str, str]],
    *,
    stores: bool = True,
    scheme: str = "proactive",
    is_watched: bool = False,
) -> Iterator[list[Running]]:
    """Run brokers of ours on any ports; each says itself which it has, and how long its loop was held."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        book = FolderBook(folder)
        text = "".join(
            f'[[brokers]]\nname = "{name}"\nlisten = "127.0.0.1:0"\npeers = "127.0.0.1:0"\n'
            + (f'store = "{folder}/store-{name}"\n' if stores else "")
            for name in names
        )
        pairs = ", ".join(f'["{one}", "{other}"]' for one, other in links)
        config = Path(folder) / "network.toml"
        config.write_text(
            f'links = [{pairs}]\n[mobility]\nsubscribers = "{scheme}"\n'
            f'[network]\nsecret = "network.secret"\n{text}'
        )
        write_secret(Path(folder) / "network.secret")
        started = []
        for name in names:
            command = [sys.executable, "-m", "sojourn.cli.main", "serve", str(config), "--broker", name]
            if is_watched:
                watched = [sys.executable, "-P", bench_floods_broker.__file__, str(config), name]
                command = [*watched, f"{folder}/{name}.json"]
            started.append(stack.enter_context(bench_live.process([*command, "--addresses", folder])))
        brokers = []
        for name, process in zip(names, started, strict=True):
            if not bench_live.wait_for(process, lambda name=name: book.find(name) is not None):  # type: ignore[misc]  # mypy infers no default of a lambda
                raise BenchError(f"Our broker {name} does not listen:")
            found = book.find(name)
            assert found is not None
            port = parse_address(found.clients, "an address").port
            notes = Path(folder) / f"{name}.json" if is_watched else None
            brokers.append(Running(process, port, notes))
        yield brokers


@contextmanager
def sojourn_line(case: Case) -> Iterator[Line]:
    """Run a line of our brokers."""
    names = [f"B{number + 1}" for number in range(case.links + 1)]
    with sojourn_network(names, itertools.pairwise(names), stores=case.stores) as brokers:
        yield Line(brokers)


@contextmanager
def mosquitto_line(case: Case) -> Iterator[Line]:
    """Run Mosquittos, each with a bridge to the next."""
    program = bench_live.find_mosquitto()
    if program is None:
        raise BenchError("There is no Mosquitto to measure beside; scripts/mosquitto installs it.")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for _ in range(TRIES):
            ports = [bench_live.likely_port() for _ in range(case.links + 1)]
            started = []
            for number, port in enumerate(ports):
                config = Path(folder) / f"{port}.conf"
                config.write_text(_mosquitto_config(case, folder, ports, number))
                started.append(stack.enter_context(bench_live.process([program, "-c", str(config)])))
            if all(
                bench_live.wait_for(process, partial(bench_live.listens, port))
                for process, port in zip(started, ports, strict=True)
            ):
                yield Line([Running(*one) for one in zip(started, ports, strict=True)])
                return
        raise BenchError(f"{program} does not listen on any of {TRIES} sets of ports:")


def _mosquitto_config(case: Case, folder: str, ports: list[int], number: int) -> str:
    lines = [
        f"listener {ports[number]} 127.0.0.1",
        "allow_anonymous true",
        "log_type error",
        "max_inflight_messages 1000",
        "max_queued_messages 100000",
        "set_tcp_nodelay true",
        f"persistence {str(case.stores).lower()}",
    ]
    if case.stores:
        lines += [f"persistence_location {folder}/", f"persistence_file {ports[number]}.db"]
    if number + 1 < len(ports):
        lines += [
            f"connection to-{ports[number + 1]}",
            f"address 127.0.0.1:{ports[number + 1]}",
            f"topic {TOPIC} out {case.qos}",
            "bridge_protocol_version mqttv50",
            "cleansession false" if case.stores else "cleansession true",
            "notifications false",
            "try_private false",
            "restart_timeout 1",
        ]
    return "\n".join(lines) + "\n"


def wait_for_way(publish_port: int, subscribe_port: int) -> None:
    """Wait until an event of one broker reaches another."""
    taker = Link(subscribe_port, "bench-waits")
    taker.socket.sendall(SubscribePacket(1, [TopicFilter(TOPIC)]).write())
    giver = Link(publish_port, "bench-tries")
    taker.socket.settimeout(WAY_LOOK_S)
    until = time.monotonic() + bench_live.START_S
    while time.monotonic() < until:
        giver.socket.sendall(PublishPacket(TOPIC, b"is there a way?").write())
        with suppress(TimeoutError):
            if isinstance(taker.wait(), PublishPacket):
                break
    else:
        raise BenchError(
            f"No event came from one end of the line to the other in {bench_live.START_S:.0f} s."
        )
    for link in (taker, giver):
        link.socket.sendall(DisconnectPacket().write())
        link.socket.close()


LINES: dict[str, Callable[[Case], Any]] = {"mosquitto": mosquitto_line, "sojourn": sojourn_line}


def run(
    progress: Progress = lambda _: None,
    *,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    only: str = "",
) -> list[Row]:
    """Measure every case with both kinds of brokers; a row each, with ratios of ours to the bridges'."""
    cases = [case for case in CASES if only in case.name]
    return [_measure(case, rounds if case.links == 1 else 1, seconds, progress) for case in cases]


def _measure(case: Case, rounds: int, seconds: float, progress: Progress) -> Row:
    rates: dict[str, list[float]] = {name: [] for name in LINES}
    costs: dict[str, list[float]] = {name: [] for name in LINES}
    for number in range(rounds):
        for name, line in LINES.items():
            progress(f"{case.name}, round {number + 1} of {rounds}, {name}")
            with line(case) as brokers:
                publish, subscribe = brokers.ends
                wait_for_way(publish, subscribe)
                before = brokers.cpu_seconds()
                found = bench_live.traffic(subscribe, case.traffic, name, seconds, publish_port=publish)
                spent_s = brokers.cpu_seconds() - before
            rates[name].append(found["useful"] / seconds)
            costs[name].append(1e6 * spent_s / max(1, found["useful_in_all"]))
    row: Row = {"case": case.name}
    row |= {f"{name}_per_s": statistics.median(rates[name]) for name in LINES}
    row["ratio"] = row["sojourn_per_s"] / max(1.0, row["mosquitto_per_s"])
    row |= {f"{name}_cpu_us_each": statistics.median(costs[name]) for name in LINES}
    return row
