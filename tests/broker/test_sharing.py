"""Shared subscriptions in networks: each event of a group reaches one of its members, wherever they are."""

from __future__ import annotations

import mqtt5
import msgspec
import pytest

from sojourn.broker import sharing
from sojourn.broker.effects import NOT_MISSED
from sojourn.broker.facts import ClientAdmitted, ClientSent
from sojourn.broker.live_broker import LiveBroker
from sojourn.edge.quench import QuenchFilter, QuenchUpdate
from sojourn.interest import Event
from sojourn.live.config import Config
from sojourn.mqtt import conventions
from sojourn.mqtt.content import interest_of, parse_filter
from sojourn.mqtt.effects import Knock
from sojourn.mqtt.members import Group, Member, address_of, here_at, member_of, told_by
from sojourn.mqtt.session import Session, Subscription
from sojourn.sim.live_check.comparing import differences
from tests.broker.crew import (
    JOBS,
    member,
    picks,
    publish,
    silent_member,
    together,
)
from tests.broker.test_live_broker import ALONE, THREE, guest, move_into
from tests.live.hall import Hall, line

# Addresses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["", "topic = 'a/b' AND n > 1 OR name = '$share/x/y'"])
@pytest.mark.parametrize("client_id", ["c", "a/b+#", "Ähre 7.2e.", "$share/g/f"])
def test_an_address_says_who_the_member_is(client_id: str, condition: str) -> None:
    """Also with names that have wildcards, levels or dots; and no other interest looks like one."""
    wanted = parse_filter(condition) if condition else None
    one = Subscription(
        Session(client_id, 0.0), "$share/g.1/a/+/#", qos=1, share="g.1", pattern="a/+/#", condition=wanted
    )
    one.since_s = 12.5
    address = address_of(one)
    assert member_of(address) == Member(Group("g.1", "a/+/#"), client_id, 12_500_000, wanted)
    told = told_by(interest_of(address, None))
    assert told is not None
    assert (told.address, told.broker) == (address, None)
    here = told_by(interest_of(here_at(address, 3), None))
    assert here is not None
    assert (here.address, here.broker) == (address, 3)
    assert told_by(interest_of("a/+/#", wanted)) is None


@pytest.mark.parametrize("topic", ["$share/a/b/c/d/e", "$share/a/b/c/1/.zz.", "$share/a/b/c/1/x/y", "#", "a"])
def test_what_no_broker_says_is_no_member(topic: str) -> None:
    """A neighbour that says such a thing is not believed, and harms nobody."""
    told = told_by(interest_of(topic, None))
    assert told is None


# Events ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_each_event_reaches_one_member_wherever_it_is(scheme: str) -> None:
    """In turns, in the order of each publisher; a plain subscription gets everything beside that."""
    hall = Hall(line(3, scheme))
    members = [member(hall, at, f"m{number}") for number, at in enumerate((0, 1, 2, 2))]
    plain = hall.visit(1, "plain")
    plain.subscribe("jobs/#")
    sent = [publish(hall, at, 12, first=100 * at) for at in range(3)]
    everything = [payload for payloads in sent for payload in payloads]
    assert together(members) == together([plain]) == everything
    for each in [one.got for one in members if one.got]:
        assert len(each) == 9
        for payloads in sent:
            assert [one for one in each if one in payloads] == [one for one in payloads if one in each]
    assert picks(hall) == 0


def test_groups_share_nothing_with_one_another() -> None:
    """Another name or another topic filter is another group; one client may be in several."""
    hall = Hall(line(2))
    one, other = member(hall, 0, "one"), member(hall, 1, "other", group="$share/crew/+/a")
    one.subscribe("$share/staff/jobs/#")
    sent = publish(hall, 1, 5)
    assert sorted(one.got) == sorted(sent * 2)
    assert other.got == sent


def test_what_waits_for_a_member_moves_with_it() -> None:
    """It was unacknowledged, or came while the member was away: it comes at the next broker, once."""
    hall = Hall(line(3))
    away = silent_member(hall, 0, "away")
    sent = publish(hall, 2, 3)
    assert [bytes(one.payload) for one in away.events] == sent
    away.acknowledge()
    away.lose()
    sent += publish(hall, 1, 3, first=10)
    back = hall.visit(2, "away", lasts_s=500)
    hall.settle()
    assert sorted(back.got) == sorted(sent[1:])
    assert picks(hall) == 0


def test_what_a_member_leaves_unacknowledged_another_gets_marked() -> None:
    """And nothing that it had acknowledged, although it said so in the same breath as that it ends."""
    hall = Hall(line(3))
    quits = silent_member(hall, 0, "quits")
    sent = publish(hall, 2, 4)
    rest = silent_member(hall, 2, "rest")
    first = quits.events[0]
    assert first.packet_id is not None
    farewell = mqtt5.DisconnectPacket(session_expiry_interval=0)
    both = mqtt5.PubAckPacket(first.packet_id).write() + farewell.write()
    quits.desk.tell(ClientSent(quits.number, both))
    hall.settle()
    assert [bytes(one.payload) for one in rest.events] == sent[1:]
    assert all((conventions.AGAIN, "1") in one.user_properties for one in rest.events)
    sent_later = publish(hall, 1, 2, first=20)
    assert [bytes(one.payload) for one in rest.events[3:]] == sent_later
    assert not any((conventions.AGAIN, "1") in one.user_properties for one in rest.events[3:])
    for _ in range(5):
        rest.acknowledge()
    hall.settle()
    assert picks(hall) == 0


def test_what_a_member_leaves_that_begins_anew_elsewhere_goes_to_another_at_once() -> None:
    """The broker that gave its session away is told that nobody will ask for what is stored."""
    hall = Hall(line(3))
    silent_member(hall, 0, "anew")
    sent = publish(hall, 1, 3)
    rest = member(hall, 1, "rest")
    hall.visit(2, "anew", lasts_s=500, clean_start=True)
    hall.settle()
    assert rest.got == sent
    assert picks(hall) == 0
    assert all(
        desk.network.clients.broker.subscribers.main.keys() <= desk.network.clients.roamers.keys()
        for desk in hall.desks
    )


def test_who_leaves_a_group_is_sent_nothing_more_of_it() -> None:
    """What waited for the client's window goes to others; what it was sent is its to acknowledge."""
    hall = Hall(line(2))
    leaves = silent_member(hall, 0, "leaves", receive_max=1)
    sent = publish(hall, 1, 3)
    rest = member(hall, 1, "rest")
    leaves.unsubscribe(JOBS)
    hall.settle()
    leaves.acknowledge()
    hall.settle()
    assert leaves.got == sent[:1]
    assert not leaves.events
    assert sorted(rest.got) == sorted(sent)
    assert picks(hall) == 0


def test_who_asks_again_for_the_same_stays_the_same_member() -> None:
    """What is on its way to it is not picked again."""
    hall = Hall(line(2))
    one = silent_member(hall, 0, "one")
    publish(hall, 1, 2)
    member(hall, 1, "other")
    one.subscribe(JOBS)
    hall.settle()
    assert len(one.events) == 2
    assert picks(hall) == 2
    assert not hall.by_name["B2"].visitors[max(hall.by_name["B2"].visitors)].got


def test_who_changes_its_filter_keeps_what_it_was_sent_and_leaves_what_waits() -> None:
    """It is a member all the time: nobody else is given what it is about to acknowledge."""
    hall = Hall(line(2))
    one = silent_member(hall, 0, "one", receive_max=1)
    sent = publish(hall, 1, 3)
    other = member(hall, 1, "other")
    one.subscribe(JOBS, "n > 5")
    hall.settle()
    assert sorted(other.got) == sent[1:]
    one.acknowledge()
    hall.settle()
    assert one.got == sent[:1]
    assert not one.events
    assert picks(hall) == 0


def test_a_broker_that_is_told_its_journal_again_knows_what_a_member_kept_that_changed_its_filter() -> None:
    """Also if a snapshot was taken before that, with the member connected."""
    hall = Hall(line(2))
    one, desk = silent_member(hall, 0, "one", receive_max=1), hall.desks[0]
    publish(hall, 1, 3)
    desk.keep()
    one.subscribe(JOBS, "n > 5")
    hall.settle()
    stored = desk.broker.snapshot()
    told = LiveBroker.revived(desk.settings, "next", desk.now, desk.store.state, desk.store.written)
    kept = LiveBroker.revived(desk.settings, "next", desk.now, stored, [])
    assert not differences(told, kept)


def test_an_event_of_a_group_without_members_is_for_nobody() -> None:
    """And what its last member left is let go, and counted."""
    hall = Hall(line(2))
    last = silent_member(hall, 0, "last")
    publish(hall, 1, 2)
    last.unsubscribe(JOBS)
    hall.settle()
    assert picks(hall) == 0
    assert hall.desks[1].network.clients.drops[sharing.NOBODY_LEFT] == 2
    assert not hall.desks[1].network.clients.shares.groups


# What else there is ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scheme", "mode"), [("durable", "content"), ("proactive", "flooding")])
def test_groups_are_off_where_members_are_not_known(scheme: str, mode: str) -> None:
    """With durable subscriptions, and where events are flooded: the CONNACK says so, and the SUBACK."""
    hall = Hall(line(2, scheme, mode))
    visitor = hall.visit(0, "one")
    hall.settle()
    assert not visitor.inbox.popleft().shared_subscription_available
    visitor.ask(JOBS)
    hall.settle()
    assert [int(code) for code in visitor.inbox.pop().reason_codes] == [0x9E]


def test_nobody_reads_or_forges_an_address() -> None:
    """What begins with $share is the name of a group, also behind another one; wildcards do not match it."""
    hall = Hall(line(2))
    one = member(hall, 0, "one")
    subscription = hall.desks[0].core.state.sessions["one"].subscriptions[JOBS]
    address = address_of(subscription)
    spy = hall.visit(1, "spy")
    hall.settle()
    for pattern in (address, f"$share/x/{address}", "#", "+/crew/#"):
        spy.ask(pattern)
        hall.settle()
    codes = [int(one.reason_codes[0]) for one in spy.inbox if isinstance(one, mqtt5.SubAckPacket)]
    assert codes == [1, 0x8F, 1, 1]  # the first is a group of its own, for a topic that nobody publishes to
    spy.unsubscribe("#")
    spy.publish(address, b"forged")
    sent = publish(hall, 1, 3)
    assert one.got == sent
    assert spy.got == []


def test_a_member_needs_the_right_to_its_topic_filter() -> None:
    """As for any other subscription; and sees only what it may."""

    def admitted(knock: Knock) -> ClientAdmitted:
        if knock.packet.client_id != "guest":
            return ClientAdmitted(knock.number)
        return ClientAdmitted(knock.number, subscribe=["jobs/#"], subscribe_if="n < 3")

    hall = Hall(line(2), admitted)
    guest_here = member(hall, 0, "guest")
    guest_here.ask("$share/crew/secret/#")
    hall.settle()
    assert int(guest_here.inbox.pop().reason_codes[0]) == 0x87
    writer = hall.visit(1, "writer")
    for number in range(5):
        writer.publish("jobs/a", b"%d" % number, {"n": number})
    hall.settle()
    assert guest_here.got == [b"0", b"1", b"2"]


def test_quenched_publishers_are_told_what_groups_want() -> None:
    """The topic filter and the filter of a member, and nothing of where it is."""
    hall = Hall(line(2))
    source = hall.visit(0, "source", user_properties=[(conventions.QUENCH, "1")])
    known = QuenchFilter()
    hall.settle()

    def wants(topic: str, number: int) -> bool:
        while source.got:
            said = msgspec.json.decode(source.got.pop(0))
            known.apply(QuenchUpdate(**said))
        return known.wants(Event({"topic": topic, "n": number}))

    assert not wants("jobs/a", 3)
    one = member(hall, 1, "one", condition="n > 2")
    hall.desks[0].carry_out()
    assert wants("jobs/a", 3)
    assert not wants("jobs/a", 1)
    assert not wants("other", 3)
    one.unsubscribe(JOBS)
    hall.settle()


def test_a_single_brokers_groups_go_on_in_a_network() -> None:
    """Its members are those of the network then, and what waited for one of them comes once."""
    hall = Hall(ALONE)
    one = guest(hall, "one")
    one.subscribe(JOBS)
    one.lose()
    guest(hall, "writer").publish("jobs/a", b"missed")
    move_into(hall, THREE)
    far = hall.visit(0, "far", lasts_s=500)
    hall.settle()
    far.subscribe(JOBS)
    again = hall.visit(2, "one", lasts_s=500)
    hall.settle()
    assert again.got == [b"missed"]
    sent = publish(hall, 0, 6)
    assert sorted(again.got[1:] + far.got) == sorted(sent)
    assert len(far.got) == 3
    assert picks(hall) == 0


def test_picks_go_on_in_another_network() -> None:
    """What members have not acknowledged when brokers get other settings comes once, or goes to another."""
    hall = Hall(THREE)
    slow = silent_member(hall, 0, "slow")
    sent = publish(hall, 1, 3)
    assert len(slow.events) == 3
    other = Config(
        brokers=THREE.brokers,
        links=[("B1", "B2"), ("B1", "B3")],
        mobility=THREE.mobility,
    )
    move_into(hall, other)
    assert picks(hall) == 3
    back = hall.visit(1, "slow", lasts_s=500)
    hall.settle()
    assert sorted(back.got) == sorted(sent)
    assert picks(hall) == 0


def test_picks_are_counted_and_a_restart_does_not_forget_them() -> None:
    """Those made, those made again when a member ended, and events for which nobody was left."""
    hall = Hall(line(2))
    slow = silent_member(hall, 0, "slow")
    publish(hall, 1, 3)
    other = member(hall, 0, "other")
    slow.unsubscribe(JOBS)
    hall.settle()
    assert len(other.got) == 3
    other.unsubscribe(JOBS)
    hall.settle()
    last = silent_member(hall, 0, "last")
    publish(hall, 1, 2, first=3)
    last.unsubscribe(JOBS)
    hall.settle()
    hall.restart("B2")
    shares = hall.desks[1].network.clients.shares
    assert (shares.made, shares.again, shares.dropped, shares.forgotten) == (5, 3, 2, 0)
    assert hall.desks[1].network.clients.drops[sharing.NOBODY_LEFT] == 2


def test_a_broker_that_leaves_its_network_counts_the_picks_that_it_leaves_behind() -> None:
    """Those for members elsewhere; what waits for its own members is theirs, and old losses stay known."""
    hall = Hall(THREE)
    here = silent_member(hall, 1, "here")
    there = silent_member(hall, 0, "there")
    publish(hall, 1, 4)
    assert (len(here.events), len(there.events)) == (2, 2)
    hall.desks[1].network.clients.drops["queue full"] += 1
    hall.desks[1].network.clients.drops.update(NOT_MISSED)
    hall.desks[1].keep()
    move_into(hall, ALONE)
    lost = hall.desks[0].broker.core.state.counters.dropped
    assert lost == {sharing.NETWORK_LEFT: 2, "queue full": 1}
    assert len(guest(hall, "here").got) == 2
