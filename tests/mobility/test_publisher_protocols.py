"""Paper 000, section 4: what each protocol sends when a publisher moves."""

from __future__ import annotations

import pytest

from sojourn.mobility.facts import ClientArrived, ClientGone, ClientLeft, ClientSubscribed
from sojourn.mobility.policies import Policy, PolicyError
from sojourn.mobility.stays import TABLE, IllegalTurnError, State, Tree, Turn, Wait, follow
from tests.routing.network import Network, joined

# 0 is the root; 1 and 2 its children; 3, 4 below 1 and 5, 6 below 2.
TREE = joined(7, [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)])
PUBLISHER, SUBSCRIBER = 1, 9


def settled(protocol: str, proxies: tuple[int, ...] = ()) -> Network:
    """A tree with a publisher at 3 and a subscriber at 6."""
    net = Network(TREE, policy=Policy.named(protocol))
    net.feed(6, ClientSubscribed(SUBSCRIBER, net.interests.sub(1)))
    net.feed(3, ClientArrived(PUBLISHER, (net.interests.ad(1),), proxies=proxies))
    net.settle()
    net.hops.clear()
    return net


def kinds(net: Network) -> dict[str, int]:
    """How many hops of each kind there were."""
    found: dict[str, int] = {}
    for _, _, kind in net.hops:
        found[kind] = found.get(kind, 0) + 1
    return found


def arrive(net: Network, broker: int) -> None:
    """The publisher connects at a broker, and the network comes to rest."""
    net.feed(broker, ClientArrived(PUBLISHER, (net.interests.ad(1),), 2))
    net.settle()


def test_standard_tears_down_and_rebuilds_the_whole_tree() -> None:
    """Section 4.1: leaving removes every trace of the publisher, arriving floods it anew."""
    net = settled("standard")
    net.feed(3, ClientLeft(PUBLISHER, 2, 4))
    net.settle()
    assert kinds(net) == {"Unadvertise": 6, "Unsubscribe": 4}
    assert all(broker.router.ads == {} for broker in net.brokers)
    net.hops.clear()
    arrive(net, 4)
    assert kinds(net) == {"Advertise": 6, "Subscribe": 4}


def test_delayed_grafts_towards_the_old_root_only() -> None:
    """Section 4.4: the new advertisement goes from 4 over 1 to 3; all others were told the same before."""
    net = settled("delayed")
    net.feed(3, ClientLeft(PUBLISHER, 2, 4))
    assert net.hops == [], "nothing is torn down yet"
    arrive(net, 4)
    assert net.hops == [
        (4, 1, "Advertise"),
        (1, 3, "Advertise"),
        (1, 4, "Subscribe"),
    ]
    assert net.publish(4, 1) == [(6, SUBSCRIBER, 1)]
    net.hops.clear()
    net.expire(next(iter(net.timers)))
    net.settle()
    # The shared part stays: only the way from the old root to the new one is touched.
    assert net.hops == [
        (3, 1, "Unadvertise"),
        (1, 4, "Unadvertise"),
        (1, 3, "Unsubscribe"),
    ]
    assert net.publish(4, 1) == [(6, SUBSCRIBER, 1)]


def test_a_publisher_back_within_the_delay_costs_nothing() -> None:
    """The timer is cancelled; one that fires all the same is of no stay."""
    net = settled("delayed")
    net.feed(3, ClientLeft(PUBLISHER, 2))
    (key,) = net.timers
    arrive(net, 3)
    assert not net.timers
    net.timers[key] = 0.0
    net.expire(key)
    net.settle()
    assert net.hops == []
    assert net.publish(3, 1) == [(6, SUBSCRIBER, 1)]


def test_prefetching_builds_while_the_publisher_is_away() -> None:
    """Section 4.2: when it arrives, nothing is left to do."""
    net = settled("prefetching")
    net.feed(3, ClientLeft(PUBLISHER, 2, 4))
    net.settle()
    assert net.sent_since(0, "Prepare") == [(3, 1), (1, 4)]
    assert net.brokers[4].stays[PUBLISHER].state is State.EXPECTED
    net.hops.clear()
    arrive(net, 4)
    assert net.hops == []
    assert not net.timers
    assert net.publish(4, 1) == [(6, SUBSCRIBER, 1)]


def test_prefetch_delayed_grafts_while_the_publisher_is_away() -> None:
    """Section 4.5: delayed's few messages, at prefetching's time."""
    net = settled("prefetch-delayed")
    net.feed(3, ClientLeft(PUBLISHER, 2, 4))
    net.settle()
    assert kinds(net) == {"Prepare": 2, "Advertise": 2, "Subscribe": 1}


def test_a_wrong_prediction_is_cleaned_up() -> None:
    """The tree at the broker where nobody came goes when its patience ends."""
    net = settled("prefetch-delayed")
    net.feed(3, ClientLeft(PUBLISHER, 2, 5))
    net.settle()
    arrive(net, 4)
    for key in list(net.timers):
        net.expire(key)
    net.settle()
    assert not net.brokers[5].stays
    assert not net.brokers[3].stays
    assert net.publish(4, 1) == [(6, SUBSCRIBER, 1)]
    net.feed(4, ClientGone(PUBLISHER))
    net.settle()
    assert all(not broker.router.ads for broker in net.brokers)


def test_a_prefetch_that_comes_after_the_publisher_changes_nothing() -> None:
    """The publisher may be faster than the message that announces it."""
    net = settled("prefetching")
    net.feed(3, ClientLeft(PUBLISHER, 2, 4))
    net.feed(4, ClientArrived(PUBLISHER, (net.interests.ad(1),), 2))
    net.settle()
    assert net.brokers[4].stays[PUBLISHER].state is State.PRESENT
    assert not net.timers
    assert net.publish(4, 1) == [(6, SUBSCRIBER, 1)]


def test_expecting_the_publisher_where_it_left_keeps_the_tree() -> None:
    """A prediction may name the old broker itself."""
    net = settled("prefetching")
    net.feed(3, ClientLeft(PUBLISHER, 2, 3))
    net.settle()
    assert net.hops == []
    assert net.brokers[3].stays[PUBLISHER].state is State.EXPECTED


def test_proxies_keep_their_trees() -> None:
    """Section 4.3: moving among proxies is free, moving past them grafts onto them."""
    net = settled("proxy", proxies=(3, 4))
    net.feed(3, ClientLeft(PUBLISHER, 2, 4))
    arrive(net, 4)
    assert net.hops == []
    net.feed(4, ClientLeft(PUBLISHER, 4, 5))
    arrive(net, 5)
    assert net.sent_since(0, "Advertise") == [(5, 2), (2, 0), (0, 1)]
    assert net.publish(5, 1) == [(6, SUBSCRIBER, 1)]


def test_an_enrolment_that_comes_after_the_publisher_does_not_take_its_word_back() -> None:
    """It says goodbye, comes back elsewhere with something else, and is only then enrolled with the first."""
    net = Network(joined(3, [(0, 1), (1, 2)]), policy=Policy.named("proxy"))
    before, after = net.interests.ad(1), net.interests.ad(2)
    net.feed(1, ClientSubscribed(SUBSCRIBER, net.interests.sub(2)))
    net.feed(0, ClientArrived(PUBLISHER, (before,), proxies=(0, 1, 2)))
    net.feed(0, ClientGone(PUBLISHER, home=0))
    net.feed(2, ClientArrived(PUBLISHER, (after,), proxies=(2, 0, 1)))
    net.settle()
    assert net.brokers[2].stays[PUBLISHER].advertisements == (after,)
    assert net.publish(2, 2) == [(1, SUBSCRIBER, 2)]
    net.feed(2, ClientGone(PUBLISHER, home=2))
    net.settle()
    assert not any(broker.stays or broker.enrolled for broker in net.brokers)


def test_released_proxies_leave_nothing() -> None:
    """A goodbye far from home reaches the broker that enrolled the proxies, and it releases them."""
    net = settled("proxy", proxies=(3, 4))
    net.feed(3, ClientLeft(PUBLISHER, 2, 5))
    arrive(net, 5)
    net.feed(5, ClientGone(PUBLISHER, 4, home=3))
    net.settle()
    for broker in net.brokers:
        assert not broker.stays
        assert not broker.enrolled
        assert not broker.router.ads


def test_other_advertisements_replace_those_held() -> None:
    """A publisher may come back with other things to say: the new are built, the old go."""
    net = settled("delayed")
    net.feed(3, ClientArrived(PUBLISHER, (net.interests.ad(2),)))
    net.settle()
    assert [list(broker.router.ads) for broker in net.brokers] == [[net.interests.ad(2)]] * 7


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("turn", Turn)
def test_every_turn_in_every_state_is_in_the_table_or_refused(state: State, turn: Turn) -> None:
    """A legal pair leads to a state whose timer and tree fit it; an illegal one raises."""
    if (state, turn) not in TABLE:
        with pytest.raises(IllegalTurnError, match=state.name):
            follow(state, turn)
        return
    following = follow(state, turn)
    waits = {State.LINGERING, State.EXPECTED}
    if following.state in waits and state is not following.state:
        assert following.wait in (Wait.DELAY, Wait.PATIENCE)
    if state in waits and following.state not in waits and turn is not Turn.EXPIRED:
        assert following.wait is Wait.STOP
    if following.state is State.ABSENT and state is not State.ABSENT:
        assert following.tree is Tree.TEAR_DOWN
    if state is State.ABSENT and following.state is not State.ABSENT:
        assert following.tree is Tree.BUILD


def test_an_illegal_fact_changes_nothing() -> None:
    """A client cannot leave where it is not; the broker is as before."""
    net = settled("standard")
    with pytest.raises(IllegalTurnError, match="ABSENT cannot have LEFT"):
        net.brokers[5].handle(ClientLeft(PUBLISHER), 0.0)
    assert not net.brokers[5].stays
    assert not net.brokers[5].effects.sends


def test_names_compose() -> None:
    """Every protocol is a choice of three parts."""
    assert Policy.named("standard") == Policy()
    assert Policy.named("prefetch-delayed") == Policy.named("prefetching+delayed")
    assert Policy.named("proxy+delayed", delay_s=7, proxies=3) == Policy(delay_s=7, proxies=3)


@pytest.mark.parametrize("name", ["", "fast", "standard+delayed", "proxy+", "Proxy"])
def test_unknown_protocols_are_refused(name: str) -> None:
    """The sentence names the parameter and what it may be."""
    with pytest.raises(PolicyError, match="protocol may be standard, prefetching"):
        Policy.named(name)


def test_bad_policies_are_refused() -> None:
    """Each value gets its own sentence."""
    with pytest.raises(PolicyError, match="unadvertise_delay_s must be 0 or more"):
        Policy(delay_s=-1)
    with pytest.raises(PolicyError, match="proxies must be 0 or more"):
        Policy(proxies=-1)
    with pytest.raises(PolicyError, match="patience_s must be 0 or more"):
        Policy(patience_s=float("inf"))
