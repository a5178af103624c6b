"""Brokers that run already are found before others are started in their places."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from sojourn.cli.serve_all import check_free
from sojourn.live.brokers.fleet import FleetError
from sojourn.live.brokers.occupied import occupied
from sojourn.live.brokers.server import ListenError, Server
from sojourn.live.config import Address, BrokerConfig, Config, single_broker
from sojourn.live.store.folder import StoreFolder


def test_a_store_or_a_port_that_somebody_has_is_named(tmp_path: Path) -> None:
    """What is free, is not there yet, or is any port, is in nobody's way."""
    store = tmp_path / "B1"
    place = BrokerConfig(name="B1", listen="127.0.0.1:0", store=str(store))
    assert occupied(place) is None
    assert not store.exists(), "looking makes nothing"
    folder = StoreFolder.taken(store, "B1")
    assert occupied(place) == f"the store {store} is in use"
    folder.close()
    assert occupied(place) is None
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = f"127.0.0.1:{taken.getsockname()[1]}"
        found = occupied(BrokerConfig(name="B1", listen="127.0.0.1:0", peers=wanted))
        assert found == f"another process has {wanted}"


def test_a_broker_says_itself_that_its_port_is_taken() -> None:
    """Whoever comes in between, or starts one broker alone, hears it too."""

    async def scenario(port: int) -> None:
        with pytest.raises(ListenError, match=f"^B1 cannot listen on 127.0.0.1:{port}: another process has "):
            await Server(single_broker(Address("127.0.0.1", port)), "B1").start()

    with socket.create_server(("127.0.0.1", 0)) as taken:
        asyncio.run(scenario(taken.getsockname()[1]))


def test_only_if_all_are_in_the_way_nothing_is_started(tmp_path: Path) -> None:
    """One sentence for all of them; brokers that can serve do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        there = f"127.0.0.1:{taken.getsockname()[1]}"
        names = ("B1", "B2", "B3")
        busy = [BrokerConfig(name=name, listen=there) for name in names]
        free = BrokerConfig(name="B4", listen="127.0.0.1:0")
        check_free(tmp_path / "f.toml", Config(brokers=[*busy, free]))
        with pytest.raises(FleetError) as raised:
            check_free(tmp_path / "f.toml", Config(brokers=busy))
    assert str(raised.value) == (
        f"It seems that all brokers run already (B1: another process has {there}; B2: another process has "
        f"{there}; and 1 more): stop what is there first, or give {tmp_path / 'f.toml'} other stores and "
        "ports."
    )


def test_an_address_of_another_machine_is_told_as_that() -> None:
    """One for documentation, which nobody has; the sentence names the way out."""

    async def scenario() -> None:
        with pytest.raises(
            ListenError, match=r"^B1 cannot listen on 192\.0\.2\.1:18391: this machine has no such "
        ):
            await Server(single_broker(Address("192.0.2.1", 18391)), "B1").start()

    asyncio.run(scenario())
