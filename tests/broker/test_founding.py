"""A network is known by whom it was founded, however its links are written down."""

from __future__ import annotations

from msgspec.structs import replace

from sojourn.broker.settings import Settings
from sojourn.broker.transplanting import is_another_network

NAMES = ("B1", "B2", "B3")


def test_links_in_another_order_are_the_same_network() -> None:
    """A broker that joined has them written anew; nobody who restarts is taken for one that has moved."""
    one = Settings(name="B1", brokers=NAMES, links=(("B1", "B2"), ("B2", "B3")))
    other = replace(one, links=(("B3", "B2"), ("B2", "B1")))
    assert not is_another_network(one, other)
    assert one.network == other.network
    assert is_another_network(one, replace(one, links=(("B1", "B2"), ("B1", "B3"))))
