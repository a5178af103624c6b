"""Errors that nobody expected are counted, and told of seldom."""

from __future__ import annotations

import asyncio
import logging

import pytest

from sojourn.live.brokers.node import Node
from sojourn.live.brokers.server import Server, _serve
from sojourn.live.mishaps import LINES_MAX, TEXT_MAX, Mishaps
from sojourn.live.page.metrics import BrokerMetrics
from sojourn.live.page.status import Report
from tests.live.building import building


def raised(error: Exception) -> Exception:
    """An error with the traceback of having been raised."""
    try:
        raise error
    except type(error):
        return error


def test_errors_of_a_kind_are_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """However often they come, whatever they quote; errors of another class are told too, up to a limit."""
    mishaps = Mishaps()
    for number in range(100):
        error = raised(RecursionError(f"{number} " + "x" * 10_000))
        mishaps.heard(None, {"message": "data_received() failed.", "exception": error})
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info
    assert "data_received() failed. RecursionError: 0 x" in record.getMessage()
    assert len(record.getMessage()) < 2 * TEXT_MAX
    mishaps.heard(None, {"message": "No error came with this."})
    for kind in (ValueError, KeyError, TypeError, IndexError, OSError):
        mishaps.heard(None, {"exception": raised(kind("x"))})
    assert len(caplog.records) == LINES_MAX
    assert mishaps.counts["RecursionError"] == 100
    assert (mishaps.counts["none"], mishaps.counts["OSError"]) == (1, 1)


def test_an_error_in_a_served_broker_is_counted_in_its_metrics(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on, and says so where people look."""
    servers: list[Server] = []
    begin = Server.start

    async def start(server: Server) -> object:
        servers.append(server)
        address = await begin(server)
        monkeypatch.setattr(Node, "opened", None)  # the next client is a mishap
        host, port = address
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return address

    monkeypatch.setattr(Server, "start", start)
    monkeypatch.setattr("sojourn.live.page.observer.EVERY_S", 0.02)
    metrics: list[bytes] = []

    def on_report(_report: Report) -> bool:
        observer = servers[0].observer
        assert observer is not None
        metrics.append(BrokerMetrics(observer).text())
        return b"sojourn_unexpected_errors_total{" not in metrics[-1]

    async def run() -> None:
        await asyncio.wait_for(_serve(Server(building(), "B1"), lambda _where: None, on_report), 60)

    asyncio.run(run())
    assert b'sojourn_unexpected_errors_total{kind="TypeError"} 1.0' in metrics[-1]
    assert "An unexpected error" in caplog.text
