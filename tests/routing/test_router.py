"""The handlers of paper 000's Figures 2 and 3, rule by rule."""

from __future__ import annotations

from collections import deque

import pytest

from sojourn.mobility.facts import (
    ClientArrived,
    ClientGone,
    ClientSubscribed,
    ClientUnsubscribed,
    Received,
)
from sojourn.routing.messages import Advertise, Subscribe
from sojourn.routing.neighbours import LOCAL, Neighbours, UnknownNeighbourError, targets
from tests.routing.network import Network, chain, joined

STAR = joined(4, [(0, 1), (0, 2), (0, 3)])


def test_targets_hear_from_somebody_else() -> None:
    """One source is not told what only it said; two sources tell each other."""
    assert targets(0, 0b1110) == 0
    assert targets(0b0010, 0b1110) == 0b1100
    assert targets(0b0110, 0b1110) == 0b1110
    assert targets(LOCAL, 0b1111) == 0b1110


def test_advertisement_floods_and_subscription_comes_back() -> None:
    """Figure 2: the advertisement goes everywhere, the subscription only back along its path."""
    net = Network(STAR)
    net.feed(2, ClientSubscribed(9, net.interests.sub(1)))
    assert net.hops == [], "nobody advertises, so the subscription stays"
    net.feed(1, ClientArrived(1, (net.interests.ad(1, 2),)))
    net.settle()
    assert sorted(net.sent_since(0, "Advertise")) == [(0, 2), (0, 3), (1, 0)]
    assert net.sent_since(0, "Subscribe") == [(2, 0), (0, 1)]


def test_subscription_goes_only_towards_what_intersects() -> None:
    """Figure 3: a subscription does not visit publishers of other things."""
    net = Network(STAR)
    net.feed(1, ClientArrived(1, (net.interests.ad(1),)))
    net.feed(2, ClientArrived(2, (net.interests.ad(2),)))
    net.settle()
    start = len(net.hops)
    net.feed(3, ClientSubscribed(9, net.interests.sub(2)))
    net.settle()
    assert net.sent_since(start, "Subscribe") == [(3, 0), (0, 2)]


def test_covered_advertisement_is_held_back_and_sent_when_the_cover_goes() -> None:
    """Figure 2 lines 6 to 9, and their undoing: the covered one goes out before the cover is withdrawn."""
    net = Network(chain(2))
    net.feed(0, ClientArrived(1, (net.interests.ad(1, 2),)))
    net.feed(0, ClientArrived(2, (net.interests.ad(1),)))
    net.settle()
    assert net.sent_since(0, "Advertise") == [(0, 1)]
    bit = net.brokers[0].router.neighbours.bit(1)
    assert net.brokers[0].router.out_ads() == [(0, bit, True), (1, bit, False)]
    net.feed(0, ClientGone(1))
    assert [kind for _, _, kind in net.hops] == ["Advertise", "Advertise", "Unadvertise"]


def test_a_cover_that_comes_later_withdraws_nothing() -> None:
    """What was sent stays sent; the wider one is sent as well."""
    net = Network(chain(2))
    net.feed(0, ClientArrived(1, (net.interests.ad(1),)))
    net.feed(0, ClientArrived(2, (net.interests.ad(1, 2),)))
    assert [kind for _, _, kind in net.hops] == ["Advertise", "Advertise"]


def test_covering_is_judged_by_what_the_same_neighbour_was_sent() -> None:
    """Figure 2 line 13 and Figure 3 line 6: a cover sent to another neighbour holds nothing back."""
    net = Network(STAR)
    net.feed(1, ClientArrived(1, (net.interests.ad(1),)))
    net.feed(2, ClientArrived(2, (net.interests.ad(2),)))
    net.settle()
    wide, narrow = net.interests.sub(1, 2), net.interests.sub(1)
    net.feed(1, ClientSubscribed(8, wide))
    net.settle()
    start = len(net.hops)
    net.feed(3, ClientSubscribed(9, narrow))
    net.settle()
    # The wide one was sent towards 2 and never towards 1, where it came from.
    assert net.sent_since(start, "Subscribe") == [(3, 0), (0, 1)]
    assert net.publish(1, 1) == [(1, 8, 1), (3, 9, 1)]


def test_uncovered_subscription_goes_out_before_the_cover_is_withdrawn() -> None:
    """No event can fall into a gap between the two, since the link is FIFO."""
    net = Network(chain(3))
    net.feed(2, ClientArrived(1, (net.interests.ad(1, 2),)))
    net.feed(0, ClientSubscribed(8, net.interests.sub(1, 2)))
    net.feed(0, ClientSubscribed(9, net.interests.sub(1)))
    net.settle()
    start = len(net.hops)
    net.feed(0, ClientUnsubscribed(8, net.interests.sub(1, 2)))
    net.settle()
    assert [kind for _, _, kind in net.hops[start:]] == [
        "Subscribe",
        "Unsubscribe",
        "Subscribe",
        "Unsubscribe",
    ]
    assert net.publish(2, 1) == [(0, 9, 1)]
    assert net.publish(2, 2) == []


def test_widest_uncovered_goes_first_and_holds_the_rest() -> None:
    """Of what a cover had covered, only the widest are sent."""
    net = Network(chain(2))
    net.feed(1, ClientArrived(1, (net.interests.ad(1, 2, 3),)))
    net.settle()
    for client, numbers in ((6, (1, 2, 3)), (7, (1,)), (8, (1, 2)), (9, (2,))):
        net.feed(0, ClientSubscribed(client, net.interests.sub(*numbers)))
    net.settle()
    start = len(net.hops)
    net.feed(0, ClientUnsubscribed(6, net.interests.sub(1, 2, 3)))
    assert [kind for _, _, kind in net.hops[start:]] == ["Subscribe", "Unsubscribe"]


def test_identical_interest_from_elsewhere_takes_the_place_without_a_message() -> None:
    """One of two sources leaves: those who were told by both hear nothing."""
    net = Network(STAR)
    net.feed(1, ClientArrived(1, (net.interests.ad(1),)))
    net.feed(2, ClientArrived(2, (net.interests.ad(1),)))
    net.feed(3, ClientSubscribed(9, net.interests.sub(1)))
    net.settle()
    start = len(net.hops)
    net.feed(1, ClientGone(1))
    net.settle()
    assert not [hop for hop in net.hops[start:] if 3 in hop]
    assert net.publish(2, 1) == [(3, 9, 1)]


def test_several_clients_at_one_broker_count_as_one_source() -> None:
    """The second local subscriber to the same thing costs no message, nor does the first one's leaving."""
    net = Network(chain(2))
    net.feed(1, ClientArrived(1, (net.interests.ad(1),)))
    net.feed(0, ClientSubscribed(8, net.interests.sub(1)))
    net.settle()
    start = len(net.hops)
    net.feed(0, ClientSubscribed(9, net.interests.sub(1)))
    net.feed(0, ClientUnsubscribed(8, net.interests.sub(1)))
    assert net.hops[start:] == []
    assert net.publish(1, 1) == [(0, 9, 1)]


def test_client_with_two_matching_subscriptions_gets_an_event_once() -> None:
    """Overlapping subscriptions of one client do not double an event."""
    net = Network(chain(2))
    net.feed(1, ClientArrived(1, (net.interests.ad(1, 2),)))
    net.feed(0, ClientSubscribed(9, net.interests.sub(1)))
    net.feed(0, ClientSubscribed(9, net.interests.sub(1, 2)))
    net.settle()
    assert net.publish(1, 1) == [(0, 9, 1)]


def test_subscription_stays_while_another_advertisement_wants_it() -> None:
    """Of two publishers in one direction one goes: the subscription they share is not withdrawn."""
    net = Network(chain(2))
    net.feed(1, ClientArrived(1, (net.interests.ad(1, 2),)))
    net.feed(1, ClientArrived(2, (net.interests.ad(2, 3),)))
    net.feed(0, ClientSubscribed(9, net.interests.sub(2)))
    net.settle()
    assert net.sent_since(0, "Subscribe") == [(0, 1)], "wanted twice, sent once"
    net.feed(1, ClientGone(1))
    net.settle()
    assert net.sent_since(0, "Unsubscribe") == []
    assert net.publish(1, 2) == [(0, 9, 2)]
    net.feed(1, ClientGone(2))
    net.settle()
    assert net.sent_since(0, "Unsubscribe") == [(0, 1)]


def test_subscription_and_unadvertisement_may_cross() -> None:
    """A subscription on its way to a publisher that has just gone leaves nothing behind."""
    net = Network(chain(3))
    net.feed(2, ClientArrived(1, (net.interests.ad(1),)))
    net.settle()
    net.feed(0, ClientSubscribed(9, net.interests.sub(1)))
    net.feed(2, ClientGone(1))
    net.step((0, 1))
    net.step((2, 1))
    net.settle()
    assert net.brokers[1].router.ads == {}
    assert net.brokers[2].router.is_empty()
    net.feed(0, ClientUnsubscribed(9, net.interests.sub(1)))
    net.settle()
    assert all(broker.router.is_empty() for broker in net.brokers)


def test_two_identical_advertisements_may_cross_on_a_link() -> None:
    """Both ends hear it from each other; when one goes, the other's stands."""
    net = Network(chain(2))
    ad = net.interests.ad(1)
    net.feed(0, ClientArrived(1, (ad,)))
    net.feed(1, ClientArrived(2, (ad,)))
    net.settle()
    assert [broker.router.ads[ad] for broker in net.brokers] == [0b11, 0b11]
    net.feed(0, ClientGone(1))
    net.settle()
    assert [broker.router.ads[ad] for broker in net.brokers] == [0b10, 0b01]


def test_withdrawal_ends_on_a_cycle() -> None:
    """Brokers of a ring do not go on vouching to each other for a publisher that has gone."""
    ring = joined(6, [(at, (at + 1) % 6) for at in range(6)])
    net = Network(ring)
    net.feed(0, ClientArrived(1, (net.interests.ad(1),)))
    net.feed(3, ClientArrived(2, (net.interests.ad(1),)))
    net.feed(5, ClientSubscribed(9, net.interests.sub(1)))
    net.settle()
    assert net.publish(3, 1) == [(5, 9, 1)]
    net.feed(0, ClientGone(1))
    net.feed(3, ClientGone(2))
    net.feed(5, ClientUnsubscribed(9, net.interests.sub(1)))
    net.settle()
    assert all(broker.router.is_empty() for broker in net.brokers)


def test_a_lost_neighbour_takes_what_it_had_said_with_it() -> None:
    """When a link leaves the overlay, either side forgets the other, and a new link starts afresh."""
    net = Network(chain(4))
    net.feed(3, ClientArrived(1, (net.interests.ad(1, 2),)))
    net.feed(3, ClientArrived(2, (net.interests.ad(1),)))
    net.feed(0, ClientSubscribed(9, net.interests.sub(1)))
    net.settle()
    for one, other in ((1, 2), (2, 1)):
        net.brokers[one].router.neighbour_lost(other)
        net.forward(one)
        net.links.pop((one, other))
    net.settle()
    assert net.brokers[0].router.ads == {}
    assert net.brokers[3].router.subs == {}
    net.links[0, 3], net.links[3, 0] = deque(), deque()
    for one, other in ((0, 3), (3, 0)):
        net.brokers[one].router.neighbour_gained(other)
        net.forward(one)
    net.settle()
    assert net.publish(3, 1) == [(0, 9, 1)]


def test_neighbours_are_known_by_name() -> None:
    """A message of a stranger is refused, and so is a neighbour named twice."""
    near = Neighbours((4, 7))
    assert near.named(near.everyone) == (4, 7)
    with pytest.raises(UnknownNeighbourError, match="Broker 5 is not a neighbour"):
        near.bit(5)
    with pytest.raises(UnknownNeighbourError, match="named once"):
        Neighbours((4, 4))
    with pytest.raises(UnknownNeighbourError, match="neighbour already"):
        near.add(7)
    near.remove(4)
    assert near.add(9) == 2


def test_both_doors_of_a_broker_lead_to_the_same_effects() -> None:
    """Handling a received message and the short way by its kind send the same."""
    doors = []
    for short in (False, True):
        net = Network(STAR)
        net.feed(2, ClientSubscribed(9, net.interests.sub(1)))
        broker = net.brokers[2]
        message = Advertise(net.interests.ad(1), 4)
        if short:
            broker.receivers[message.kind](message, broker.router.neighbours.bit(0))
        else:
            broker.handle(Received(message, 0), 0.0)
        doors.append(list(broker.effects.sends))
    assert doors[0] == doors[1] == [(2, Subscribe(0, 4))]
