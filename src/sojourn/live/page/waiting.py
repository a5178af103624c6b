"""What is seen of a broker that is not played yet: that it waits, and for what.

With copies a broker waits for other processes before it begins; until then this is where its page, its
metrics and its health will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sojourn.broker.seats.waiting import Electorate
from sojourn.live.config import Address
from sojourn.live.page.page import Answer, SmallServer

AGAIN_S = 2
"""How often a browser looks again."""


class _Metrics(Collector):
    """The few numbers that there are already, under the names that they will have."""

    def __init__(self, voters: Callable[[], Electorate]) -> None:
        self._voters = voters
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        found = self._voters()
        yield GaugeMetricFamily("sojourn_serving", "Whether the broker serves clients yet.", 0)
        yield GaugeMetricFamily(
            "sojourn_copies_voters", "Processes in reach that remember their votes.", len(found.here)
        )
        yield GaugeMetricFamily(
            "sojourn_copies_voters_needed", "How many decide who plays a broker.", found.needed
        )


class WaitingServer(SmallServer):
    """Serves what a broker waits for."""

    def __init__(
        self,
        name: str,
        address: Address,
        why: Callable[[], str],
        voters: Callable[[], Electorate],
        password: str | None = None,
    ) -> None:
        self._name, self._why = name, why
        metrics = _Metrics(voters)
        routes: dict[str, Callable[[], Answer]] = {
            "/": self._page,
            "/healthz": self._health,
            "/readyz": self._health,
            "/metrics": lambda: Answer("200 OK", CONTENT_TYPE_LATEST, metrics.text()),
        }
        super().__init__(address, lambda: password, routes)

    def _health(self) -> Answer:
        body = {"status": "starting", "reasons": [self._why()], "broker": self._name}
        return Answer("503 Service Unavailable", "application/json", msgspec.json.encode(body))

    def _page(self) -> Answer:
        text = (
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="{AGAIN_S}">'
            f"<title>{escape(self._name)}</title><h1>{escape(self._name)}</h1><p>{escape(self._why())}</p>"
        )
        return Answer("200 OK", "text/html; charset=utf-8", text.encode())
