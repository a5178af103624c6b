"""A broker that is made again from a snapshot and what it noted since has sent its neighbours the same."""

from __future__ import annotations

from tests.live.hall import Desk, Hall, line


def _sent(desk: Desk) -> dict[str, int]:
    return {peer: channel.last for peer, channel in desk.network.links.channels.items()}


def test_who_is_out_of_reach_is_known_to_a_broker_that_comes_back_from_a_snapshot() -> None:
    """It asks nobody again whom it would not have asked; otherwise its frames would have other numbers."""
    hall = Hall(line(3))
    reader = hall.visit(0, "reader", lasts_s=600)
    hall.settle()
    reader.lose()
    hall.settle()
    hall.visit(1, "reader", lasts_s=600)  # the question to the first broker is not carried
    hall.carry("B2", "B3")
    hall.carry("B3", "B2")
    hall.now += 6.0
    hall.unlink("B1")
    middle = hall.desks[1]
    middle.keep()
    hall.visit(2, "reader", lasts_s=600)
    hall.settle()
    assert middle.store.written, "it was asked after the snapshot"
    before = _sent(middle)
    again = middle.revived("another life")
    assert again.network is not None
    assert {peer: channel.births[-1][1] for peer, channel in again.network.links.channels.items()} == before
