"""Two brokers for all tests here, and clients at them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.interop.pahos import NEW, WAYS, Network, Paho, names


@pytest.fixture(scope="package")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Two brokers."""
    running = Network(tmp_path_factory.mktemp("interop"))
    yield running
    running.stop()


@pytest.fixture
def source(network: Network) -> Iterator[Paho]:
    """A client of MQTT 5 at the other broker, by TCP."""
    client = Paho(NEW, "tcp")
    client.connect(network.place(1))
    yield client
    client.leave()


@pytest.fixture(params=WAYS, ids=[f"{version.name}-{way}" for version, way in WAYS])
def client(request: pytest.FixtureRequest, network: Network) -> Iterator[Paho]:
    """A client under test, connected."""
    made = Paho(*request.param)
    made.connect(network.place(0))
    yield made
    made.leave()


@pytest.fixture
def topic() -> str:
    """A topic of this test alone."""
    return f"interop/{next(names)}"
