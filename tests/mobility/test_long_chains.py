"""A subscriber that goes on quickly leaves stays behind that wait for one another."""

from __future__ import annotations

import pytest

from sojourn.mobility import facts
from sojourn.mobility.schemes import Scheme
from tests.mobility.roaming import S, Watched
from tests.routing.network import chain


@pytest.mark.parametrize("hops", [3, 200])
def test_a_long_chain_of_stays_outlives_doubts(hops: int) -> None:
    """A broker forgot something, and all who wait ask again: each request is known, however old it is."""
    net = Watched(chain(3), Scheme.named("reactive"))

    def without_the_first() -> None:
        while waiting := [link for link in net.waiting() if 0 not in link]:
            net.step(waiting[0])

    net.arrive(0, 1)
    net.lose(0, 1)
    net.say()
    for hop in range(hops):  # to and fro between 1 and 2, while 0 answers nobody
        here, there = 1 + hop % 2, 2 - hop % 2
        net.arrive(here, 2 + hop, there if hop else 0, settles=False)
        without_the_first()
        net.say(source="q", broker=2, settles=False)
        without_the_first()
        net.feed(here, facts.SubscriberLost(S, 2 + hop))
        without_the_first()
    for broker in (1, 2):
        net.feed(broker, facts.CopiesDoubted())
    without_the_first()
    net.arrive(1, 2 + hops, 1 + (hops - 1) % 2)
    assert [number for source, number in net.got if source == "p"] == [0]
    assert [number for source, number in net.got if source == "q"] == [*range(hops)]
    assert not net.drops
