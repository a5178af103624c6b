"""The page and metrics of brokers that are copied: where copies of each session are, and what is at risk."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import Config
from sojourn.live.page.metrics import BrokerMetrics
from sojourn.live.page.page import readiness
from sojourn.live.page.risks import Kept, in_words, risk_of
from sojourn.live.page.views import Views
from tests.live.building import ANY_PORT, url
from tests.live.copied_network import begun, copied, kill, until


def test_words_say_what_is_at_risk() -> None:
    """Whole copies at home are no risk; fewer, another host, or silence are, and only the second goes on."""
    well = Kept("B1", ["B2"], 1, 1)
    assert risk_of("B1", 5, well, is_silent=False) is None
    assert in_words("B1", well) == "copies at B2"
    partly = Kept("B1", ["B2", "B3"], 1, 2, 7)
    found = risk_of("B1", 5, partly, is_silent=False)
    assert found is not None
    assert (found["sessions"], found["waits"]) == (5, True)
    assert in_words("B1", partly) == "1 of 2 copies whole (B2, B3)"
    played = risk_of("B1", 5, Kept("B2", ["B3"], 1, 1), is_silent=False)
    assert played is not None
    assert not played["waits"]
    assert "played by B2" in played["why"]
    silent = risk_of("B1", 5, well, is_silent=True)
    assert silent is not None
    assert silent["waits"]
    assert risk_of("B1", 5, None, is_silent=True) is None


def _with_pages(config: Config) -> Config:
    brokers = [msgspec.structs.replace(broker, page=ANY_PORT) for broker in config.brokers]
    return msgspec.structs.replace(config, brokers=brokers)


def _sum_of(server: Server, name: str) -> float:
    assert server.observer is not None
    text = BrokerMetrics(server.observer).text().decode()
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    )


def _board(server: Server) -> dict[str, Any]:
    assert server.observer is not None
    assert server.observer.board is not None
    return server.observer.board.state(server.observer.node.now())


async def _shows(folder: Path) -> None:
    config = _with_pages(copied(folder, 3, gone_s=12.0))
    servers = await begun(config)
    reader = Client(url(config, 2), client_id="reader", session_expiry_s=600)
    await reader.connect()
    await reader.close()
    first = servers[0]
    assert first.observer is not None
    views = Views(first.observer)
    await until(lambda: first.observer.board.kept("B3") is not None)  # type: ignore[union-attr]  # started
    found = await views.client({"id": "reader"})
    kept = found["sessions"][0]["kept"]
    assert (kept.host, kept.whole, kept.wanted) == ("B3", 1, 1)
    assert kept.followers == ["B2"], "the neighbour keeps the copy"
    listed = await views.clients({})
    assert [row["kept"] for row in listed["rows"]] == [kept]
    await until(lambda: _board(first)["at_risk"] == [])
    assert all(_sum_of(server, "sojourn_copies_sessions_at_risk") == 0 for server in servers)
    assert all(_sum_of(server, "sojourn_copies_unplayed") == 0 for server in servers)
    kill(servers[2], wipes=True)
    await until(lambda: all(_sum_of(server, "sojourn_copies_unplayed") == 1 for server in servers[:2]))
    await until(lambda: any(one["broker"] == "B3" and one["waits"] for one in _board(first)["at_risk"]))
    states = {one["name"]: one["state"] for one in _board(first)["brokers"]}
    assert states["B3"] == "silent", "as soon as it is known to be away, and not seconds later"
    await until(lambda: any(one["broker"] == "B3" and not one["waits"] for one in _board(first)["at_risk"]))
    assert _sum_of(servers[1], "sojourn_copies_guests") == 1
    await until(lambda: all(_sum_of(server, "sojourn_copies_unplayed") == 0 for server in servers[:2]))
    await until(lambda: _sum_of(servers[1], "sojourn_copies_whole") == 1)
    shipping = servers[1].chamber.council.shipping  # type: ignore[union-attr]  # started
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shipping, "is_whole", lambda name, _peer, _term: name != "B3")
        assert _sum_of(servers[1], "sojourn_copies_whole") == 0, "the guest counts, too"
        assert _sum_of(servers[1], "sojourn_copies_sessions_at_risk") >= 1
        assert servers[1].observer is not None
        assert any("B3: " in why for why in readiness(servers[1].observer).reasons)
    assert (await views.client({"id": "reader"}))["sessions"][0]["kept"].host == "B2"
    await asyncio.gather(*(server.stop() for server in servers[:2]))


def test_the_page_tells_where_copies_are_and_who_plays_whom(tmp_path: Path) -> None:
    """Each session is told with its copies; a broker whose process is gone is shown as played by another."""
    asyncio.run(_shows(tmp_path))
