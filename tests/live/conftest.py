"""Fixtures of the live tests: a broker process shared by a module's tests."""

from collections.abc import Iterator

import pytest

from tests.live.raw_client import BrokerProcess, running_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A single broker with default settings."""
    with running_broker() as process:
        yield process


@pytest.fixture
def port(broker: BrokerProcess) -> int:
    """The port of the shared broker."""
    return broker.port
