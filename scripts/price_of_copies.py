"""What copies cost: acknowledgements, throughput and bytes between processes, beside a network without any.

    python scripts/price_of_copies.py [--events 2000] [--rounds 3]

Three brokers in a line run with their stores, once with `copies = 0` and once with `copies = 1`, in turn. A
client publishes at QoS 1 at one end, first one event after the other (the time to each acknowledgement), then
all at once (events a second); a subscriber at the other end gets them. The metrics say what brokers sent each
other over links, and processes to keep copies. Compare figures of one run only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import tempfile
import time
import urllib.request
from pathlib import Path

from rich.console import Console
from rich.table import Table
from soak_network import Network

from sojourn.live.client.client import Client

PATIENCE_S = 300.0
PAYLOAD = {"text": "x" * 256}


async def measure(network: Network, events: int) -> tuple[list[float], float]:
    """Return the seconds to each acknowledgement, and the events a second."""
    first, last = network.places()[0], network.places()[-1]
    source = Client(f"mqtt://{first.host}:{first.port}", client_id="source")
    reader = Client(f"mqtt://{last.host}:{last.port}", client_id="reader")
    async with asyncio.timeout(PATIENCE_S), source, reader:
        await reader.subscribe(topic="price/#")
        waits_s = []
        for _ in range(events):
            began_s = time.perf_counter()
            await source.publish("price/one", PAYLOAD)
            waits_s.append(time.perf_counter() - began_s)
            await reader.next(timeout_s=PATIENCE_S)
        began_s = time.perf_counter()

        async def read() -> None:
            for _ in range(events):
                await reader.next(timeout_s=PATIENCE_S)

        await asyncio.gather(read(), *(source.publish("price/all", PAYLOAD) for _ in range(events)))
        return waits_s, events / (time.perf_counter() - began_s)


def sent_bytes(network: Network) -> tuple[float, float]:
    """What all brokers have sent over links, and what all processes have sent to keep copies."""
    links = copies = 0.0
    for name in network.names:
        with urllib.request.urlopen(
            f"http://{network.listening(name).metrics}/metrics", timeout=10
        ) as answer:
            text = answer.read().decode()
        links += _value(text, "sojourn_link_bytes_total")
        copies += _value(text, "sojourn_copied_bytes_total")
    return links, copies


def _value(text: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def main() -> None:
    """Measure both in turn, and print them side by side."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    table = Table(
        "copies",
        "ack p50 ms",
        "ack p99 ms",
        "events/s",
        "link bytes an event",
        "copied bytes an event",
        box=None,
    )
    for _ in range(options.rounds):
        for copies in (0, 1):
            with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
                network = Network(Path(folder), "line", any_ports=True, copies=copies)
                stack.callback(network.stop)
                network.wait_until_ready()
                before = sent_bytes(network)
                waits_s, rate = asyncio.run(measure(network, options.events))
                after = sent_bytes(network)
            waits_s.sort()
            p50, p99 = (waits_s[int(len(waits_s) * share)] * 1e3 for share in (0.5, 0.99))
            sent = [(now - then) / (2 * options.events) for now, then in zip(after, before, strict=True)]
            table.add_row(
                f"{copies}", f"{p50:.2f}", f"{p99:.2f}", f"{rate:,.0f}", *(f"{one:,.0f}" for one in sent)
            )
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
