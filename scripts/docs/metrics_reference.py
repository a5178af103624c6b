"""The reference of the metrics, from two brokers that are asked for theirs."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path

from prometheus_client.core import Metric
from words import table

from sojourn.live.brokers.server import Server
from sojourn.live.config import BrokerConfig, Config, NetworkConfig
from sojourn.live.links.secret import write_secret
from sojourn.live.page.metrics import BrokerMetrics

ANY = "127.0.0.1:0"
HEAD = """# Metrics

Every broker serves these for Prometheus at `http://ADDRESS/metrics`, where `ADDRESS` is its `metrics` or
`page` in the configuration; the templates have one at every broker. `/healthz` says whether the broker
serves, `/readyz` whether its links stand too. Beside these there are `process_…` metrics of the process.
Counters of events live as long as the store, those of hand-offs as long as the process. This page is made
from what a broker answers that has a neighbour and a store.
"""
SUFFIXES = {"counter": "_total", "info": "_info"}


def page() -> str:
    """The page."""
    rows = [
        (f"`{served_name(one)}`", one.type, ", ".join(f"`{name}`" for name in labels(one)), one.documentation)
        for one in metrics()
    ]
    return f"{HEAD}\n{table(('name', 'kind', 'labels', 'what it is'), rows)}"


def served_name(metric: Metric) -> str:
    """The name under which Prometheus finds a metric; of a histogram, without the endings of its parts."""
    return metric.name + SUFFIXES.get(metric.type, "")


def labels(metric: Metric) -> list[str]:
    """The labels of a metric, whether there are values at present or not."""
    named = getattr(metric, "_labelnames", ())
    return sorted({*named, *(key for one in metric.samples for key in one.labels)} - {"le"})


def metrics() -> list[Metric]:
    """All metrics of a broker that has a neighbour and a store."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_asked(Path(folder)))


async def _asked(folder: Path) -> list[Metric]:
    write_secret(folder / "secret")
    config = Config(
        brokers=[
            BrokerConfig(name=name, listen=ANY, peers=ANY, store=str(folder / name)) for name in ("B1", "B2")
        ],
        links=[("B1", "B2")],
        network=NetworkConfig(addresses=str(folder / "addresses"), secret=str(folder / "secret")),
    )
    async with contextlib.AsyncExitStack() as ends:
        servers = [Server(config, broker.name) for broker in config.brokers]
        for server in servers:
            await server.start()
            ends.push_async_callback(server.stop)
        observer = servers[0].observer
        assert observer is not None
        return list(BrokerMetrics(observer).collect())
