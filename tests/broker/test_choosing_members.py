"""Which member of a shared subscription is chosen, also where members decline and brokers die."""

from __future__ import annotations

import random

import mqtt5
import msgspec
import pytest
from mqtt5 import PublishPacket

from sojourn.broker import membership, sharing
from sojourn.mqtt import conventions
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.members import address_of
from sojourn.mqtt.session import Subscription
from tests.broker.crew import (
    JOBS,
    decliners,
    member,
    picks,
    publish,
    silent_member,
    stranger,
    together,
)
from tests.live.hall import Hall, Visitor, line

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


def test_groups_of_other_brokers_count_too() -> None:
    """Whoever publishes picks a member of each group of the network, wherever that is."""
    hall = Hall(msgspec.structs.replace(line(2), limits=Limits(groups_max_all=2)))
    near, far = member(hall, 0, "near", group="$share/a/t"), member(hall, 1, "far", group="$share/b/t")
    for one in (near, far):
        one.ask("$share/c/t")
        hall.settle()
        assert int(one.inbox.pop().reason_codes[0]) == 0x97
    far.subscribe("$share/a/t")
    far.unsubscribe("$share/b/t")
    hall.settle()
    near.subscribe("$share/c/t")


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
