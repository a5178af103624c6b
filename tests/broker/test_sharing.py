"""Shared subscriptions in networks: each event of a group reaches one of its members, wherever they are."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import mqtt5
import msgspec
import pytest
from mqtt5 import ConnectPacket, PublishPacket

from sojourn.broker import membership, sharing
from sojourn.broker.effects import NOT_MISSED
from sojourn.broker.facts import ClientAdmitted, ClientSent
from sojourn.edge.quench import QuenchFilter, QuenchUpdate
from sojourn.interest import Event
from sojourn.live.config import Config
from sojourn.mqtt import conventions
from sojourn.mqtt.content import interest_of, parse_filter
from sojourn.mqtt.effects import Knock
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.members import Group, Member, address_of, here_at, member_of, told_by
from sojourn.mqtt.session import Session, Subscription
from tests.broker.test_live_broker import ALONE, THREE, guest, move_into
from tests.live.hall import Hall, Visitor, line

JOBS = "$share/crew/jobs/#"


class Silent(Visitor):
    """A client that acknowledges only what it is told to."""

    def __init__(self, hall: Hall, broker: int, name: str, *, lasts_s: int = 500, **options: Any) -> None:
        hall.now += 0.01
        super().__init__(hall.desks[broker], [])
        self.events: list[PublishPacket] = []
        self.send(ConnectPacket(name, session_expiry_interval=lasts_s, clean_start=False, **options))
        hall.settle()

    def take(self, data: bytes, *, is_over: bool) -> None:
        """Read what the broker wrote, and keep it."""
        self.is_over = is_over
        while data:
            packet, length = mqtt5.read(memoryview(data))
            data = data[length:]
            if isinstance(packet, PublishPacket):
                self.events.append(packet)
            else:
                self.inbox.append(packet)

    def acknowledge(self) -> None:
        """Acknowledge the oldest event that it has not."""
        event = self.events.pop(0)
        self.got.append(bytes(event.payload))
        assert event.packet_id is not None
        self.send(mqtt5.PubAckPacket(event.packet_id))


def member(hall: Hall, broker: int, name: str, *, group: str = JOBS, condition: str = "") -> Visitor:
    """A client whose session lasts, and that is a member of a group."""
    visitor = hall.visit(broker, name, lasts_s=500)
    hall.settle()
    visitor.subscribe(group, condition)
    return visitor


def silent_member(hall: Hall, broker: int, name: str, **options: Any) -> Silent:
    """A client that is a member of a group, and acknowledges nothing by itself."""
    visitor = Silent(hall, broker, name, **options)
    visitor.subscribe(JOBS)
    return visitor


def publish(
    hall: Hall, broker: int, count: int, *, first: int = 0, writer: Visitor | None = None
) -> list[bytes]:
    """Let a client at a broker publish events; return their payloads."""
    payloads = [b"%d" % number for number in range(first, first + count)]
    writer = writer or hall.visit(broker, f"writer {broker}")
    hall.settle()
    for payload in payloads:
        writer.publish("jobs/a", payload)
    hall.settle()
    assert sum(isinstance(one, mqtt5.PubAckPacket) for one in writer.inbox) == count
    writer.inbox.clear()
    return payloads


def together(visitors: Iterable[Visitor]) -> list[bytes]:
    """All that some clients were sent, in order."""
    return sorted((payload for one in visitors for payload in one.got), key=int)


def stranger(hall: Hall) -> Visitor:
    """A client without a name, for whose session nobody is asked."""
    return hall.visit(0, "", clean_start=True)


def picks(hall: Hall) -> int:
    """How many events brokers have chosen a member for, and have not heard how that went."""
    return sum(len(desk.network.clients.shares.picks) for desk in hall.desks)


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


# Who is chosen ---------------------------------------------------------------------------------------------


def test_members_that_are_connected_come_first() -> None:
    """Who is away gets what comes while nobody else is here."""
    hall = Hall(line(3))
    away, here = member(hall, 0, "away"), member(hall, 2, "here")
    away.lose()
    hall.settle()
    sent = publish(hall, 1, 4)
    assert here.got == sent
    here.lose()
    hall.settle()
    later = publish(hall, 1, 4, first=10)
    got = [hall.visit(1, name, lasts_s=500) for name in ("away", "here")]
    hall.settle()
    assert together(got) == later


def test_members_at_brokers_out_of_reach_wait() -> None:
    """Who is in reach gets what is published meanwhile; nothing that went before is lost."""
    hall = Hall(line(3))
    far, near = member(hall, 2, "far"), member(hall, 0, "near")
    writer = hall.visit(0, "writer")
    hall.settle()
    hall.unlink("B3")
    hall.settle()
    sent = publish(hall, 0, 6, writer=writer)
    assert near.got == sent
    hall.relink()
    hall.settle()
    publish(hall, 0, 2, first=10, writer=writer)
    assert len(far.got) == 1
    assert len(near.got) == 7


def test_members_with_filters_get_what_fits_them() -> None:
    """An event goes to one of those it fits; conditions may speak of its topic."""
    hall = Hall(line(2))
    few = member(hall, 0, "few", condition="n > 5")
    some = member(hall, 1, "some", condition="topic LIKE 'jobs/+' AND n > 2")
    writer = hall.visit(1, "writer")
    for number in range(10):
        writer.publish("jobs/a", b"%d" % number, {"n": number})
    hall.settle()
    assert sorted(few.got + some.got) == [b"%d" % number for number in range(3, 10)]
    assert {*few.got} <= {b"6", b"7", b"8", b"9"}
    assert few.got


def test_who_may_not_see_an_event_declines_it() -> None:
    """Its policy is known where the member is; another one is asked, and it is counted if none may."""
    hall = Hall(line(2))
    member(hall, 0, "stranger")
    medic = hall.visit(
        1, "medic", lasts_s=500, user_properties=[(f"{conventions.ATTRIBUTE_PREFIX}role", "medic")]
    )
    hall.settle()
    medic.subscribe(JOBS)
    writer = hall.visit(1, "writer")
    for number in range(4):
        writer.publish("jobs/a", b"%d" % number, {conventions.POLICY: "role = 'medic'"})
        writer.publish("jobs/a", b"none", {conventions.POLICY: "role = 'pilot'"})
    hall.settle()
    assert picks(hall) == 0
    assert hall.desks[1].network.clients.drops[sharing.ALL_DECLINED] >= 4


def test_who_has_no_room_declines() -> None:
    """What a member's queue does not take goes to another one."""
    config = msgspec.structs.replace(line(2), limits=Limits(queue_messages_max=2))
    hall = Hall(config)
    full, other = silent_member(hall, 0, "full"), member(hall, 1, "other")
    sent = publish(hall, 1, 12)
    assert len(full.events) == 2
    assert sorted([bytes(one.payload) for one in full.events] + other.got) == sorted(sent)


def decliners(hall: Hall, count: int) -> list[Silent]:
    """Members at the first broker that take no event of more than a few bytes."""
    return [silent_member(hall, 0, f"decliner {number}", max_packet_size=100) for number in range(count)]


def test_a_crowd_that_declines_costs_its_broker_little() -> None:
    """However many they are: some are asked, one after the other, and the event is given up."""
    hall = Hall(line(2))
    decliners(hall, 300)
    writer = hall.visit(0, "writer")
    hall.settle()
    writer.publish("jobs/a", bytes(200))
    hall.settle()
    assert isinstance(writer.inbox.pop(), mqtt5.PubAckPacket)
    shares, drops = hall.desks[0].network.clients.shares, hall.desks[0].network.clients.drops
    assert (drops[sharing.DECLINED_OFTEN], len(shares.unwilling), picks(hall)) == (1, sharing.ASKED_MAX, 0)
    again = hall.desks[0].replayed().network
    assert again is not None
    assert again.clients.shares.unwilling == shares.unwilling
    assert again.clients.drops[sharing.DECLINED_OFTEN] == 1


def test_who_takes_what_others_decline_is_asked_before_them() -> None:
    """Once they have declined; and they are asked again when they have taken something."""
    hall = Hall(line(2))
    small, taker = decliners(hall, 40), member(hall, 1, "taker")
    shares = hall.desks[0].network.clients.shares
    writer = hall.visit(0, "writer")
    for _ in range(100):
        writer.publish("jobs/a", bytes(200))
    hall.settle()
    lost = hall.desks[0].network.clients.drops[sharing.DECLINED_OFTEN]
    assert lost <= 3, "each costs the good will of some"
    assert len(taker.got) == 100 - lost
    assert len(shares.unwilling) == 40
    taker.lose()
    hall.visit(1, "taker", clean_start=True)
    hall.settle()
    writer.publish("jobs/a", b"7")
    hall.settle()
    chosen = next(one for one in small if one.events)
    chosen.acknowledge()
    hall.settle()
    assert len(shares.unwilling) == 39


def test_a_client_with_many_memberships_tells_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it costs to become a member does not grow with the memberships that are there."""
    hall = Hall(line(2))
    client = hall.visit(0, "client", lasts_s=500)
    hall.settle()
    asked = 0
    right = address_of

    def counting(one: Subscription) -> str:
        nonlocal asked
        asked += 1
        return right(one)

    monkeypatch.setattr(membership, "address_of", counting)
    for number in range(100):
        client.subscribe(f"$share/g{number}/jobs/#")
    hall.settle()
    assert len(hall.desks[1].network.clients.shares.groups) == 100
    assert asked < 100 * 5


def test_picks_are_remembered_within_a_limit() -> None:
    """The oldest are forgotten: they are delivered all the same, and not picked again."""
    hall = Hall(line(2))
    hall.desks[1].core.state.limits = Limits(queue_bytes_max_all=2_000)
    silent_member(hall, 0, "slow")
    publish(hall, 1, 300)
    shares = hall.desks[1].network.clients.shares
    assert 0 < len(shares.picks) < 300
    assert shares.bytes <= 2_000
    assert shares.bytes == sum(one.message.size for one in shares.picks.values())


def test_events_of_quality_0_reach_one_member_too() -> None:
    """Nobody remembers them."""
    hall = Hall(line(3))
    members = [member(hall, at, f"m{at}") for at in range(3)]
    writer = hall.visit(0, "writer")
    for number in range(20):
        writer.send(PublishPacket("jobs/a", b"%d" % number))
    hall.settle()
    assert together(members) == [b"%d" % number for number in range(20)]
    assert picks(hall) == 0


# Faults ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_members_that_move_among_brokers_that_die_share_everything(seed: int) -> None:
    """Links carry in any order, break and mend; brokers die and come back from their stores.

    Nothing is lost and nothing comes to two members, for none of them ends.
    """
    draw = random.Random(seed)
    hall = Hall(line(draw.choice((2, 3, 4)), draw.choice(("proactive", "reactive"))))
    count = len(hall.desks)
    got: dict[str, list[bytes]] = {f"m{number}": [] for number in range(3)}
    here: dict[str, Visitor] = {}
    for name, into in got.items():
        here[name] = hall.visit(draw.randrange(count), name, lasts_s=10_000, got=into)
        hall.settle()
        here[name].subscribe(JOBS)
    writers = [hall.visit(at, "", clean_start=True) for at in range(count)]
    hall.settle()
    sent, acknowledged = 0, []
    for _ in range(400):
        what = draw.choices(
            ("publish", "carry", "move", "lose", "kill", "break", "mend", "keep"), (50, 60, 8, 4, 2, 2, 3, 1)
        )[0]
        hall.now += draw.choice((0.0, 0.001, 0.1))
        if what == "publish":
            writer = draw.choice(writers)
            writer.inbox.clear()
            sent += 1
            writer.publish("jobs/a", b"%d" % sent)
            if any(isinstance(one, mqtt5.PubAckPacket) for one in writer.inbox):
                acknowledged.append(b"%d" % sent)
        elif what == "carry":
            hall.step(draw)
        elif what == "move":
            name = draw.choice([*got])
            here[name] = hall.visit(draw.randrange(count), name, lasts_s=10_000, got=got[name])
        elif what == "lose":
            draw.choice([*here.values()]).lose()
        elif what == "kill":
            at = draw.randrange(count)
            hall.restart(hall.desks[at].name)
            writers[at] = hall.visit(at, "", clean_start=True)
        elif what == "break":
            hall.unlink(draw.choice(hall.desks).name)
        elif what == "mend":
            hall.relink()
        else:
            draw.choice(hall.desks).keep()
    hall.relink()
    hall.settle()
    hall.wait(5.0)
    for name, into in got.items():
        here[name] = hall.visit(draw.randrange(count), name, lasts_s=10_000, got=into)
        hall.settle()
        hall.wait(2.0)
    assert together(here.values()) == sorted(acknowledged, key=int)
    assert picks(hall) == 0


def test_a_broker_that_comes_back_picks_for_groups_in_the_same_order() -> None:
    """Whichever had its first member first: what brokers number follows from that order."""
    hall = Hall(line(2))
    first = member(hall, 1, "first", group="$share/a/jobs/#")
    for name, group in (("one", "z"), ("other", "a")):
        member(hall, 1, name, group=f"$share/{group}/jobs/#")
    first.unsubscribe("$share/a/jobs/#")
    hall.settle()
    hall.desks[0].keep()
    hall.unlink("B2")
    publish(hall, 0, 1, writer=stranger(hall))
    live = [*hall.desks[0].network.clients.shares.picks]
    told = hall.desks[0].revived("another life")
    assert told.network is not None
    assert [*told.network.clients.shares.picks] == live
    assert len(live) == 2


def test_events_of_a_broker_that_knows_no_group_yet_are_kept_for_it() -> None:
    """It lost its store, and is published at before its neighbours have told it who is there."""
    hall = Hall(line(2))
    one = member(hall, 1, "one")
    hall.unlink("B1")
    hall.by_name["B1"].delete_store()
    hall.by_name["B1"].restart()
    hall.now += 1.0
    sent = publish(hall, 0, 3, writer=stranger(hall))
    assert len(hall.desks[0].network.clients.shares.kept) == 3
    hall.relink()
    hall.settle()
    assert one.got == sent
    assert not hall.desks[0].network.clients.shares.kept
    assert picks(hall) == 0


def test_what_is_kept_for_groups_nobody_knows_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbour that never comes fills no memory."""
    monkeypatch.setattr(sharing, "KEPT_BYTES_MAX", 200)
    hall = Hall(line(2))
    hall.unlink("B1")
    hall.by_name["B1"].delete_store()
    hall.by_name["B1"].restart()
    publish(hall, 0, 50, writer=stranger(hall))
    clients = hall.desks[0].network.clients
    assert clients.shares.kept_bytes <= 200
    assert clients.drops[sharing.UNTOLD_GROUPS] == 50 - len(clients.shares.kept)


def test_a_member_whose_broker_lost_its_store_leaves_what_it_had_not_acknowledged() -> None:
    """Once that broker has told its neighbours that it has no such member any more."""
    hall = Hall(line(2))
    silent_member(hall, 1, "gone")
    sent = publish(hall, 0, 3)
    rest = member(hall, 0, "rest")
    hall.unlink("B2")
    hall.by_name["B2"].delete_store()
    hall.by_name["B2"].restart()
    hall.relink()
    hall.settle()
    assert sorted(rest.got) == sorted(sent)
    assert picks(hall) == 0


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
