"""Brokers that have forgotten: their links heal by themselves, and interests and events flow again."""

from __future__ import annotations

import random

import pytest

from sojourn.broker import facts
from tests.live.hall import Desk, Hall, Visitor, line


def subscribed(hall: Hall, broker: int, name: str, topic: str = "news", *, lasts_s: int = 50) -> Visitor:
    """A client that wants a topic."""
    reader = hall.visit(broker, name, lasts_s=lasts_s)
    hall.settle()
    reader.subscribe(topic)
    hall.settle()
    return reader


def visitor(hall: Hall, broker: int, name: str) -> Visitor:
    """A client that is there."""
    guest = hall.visit(broker, name)
    hall.settle()
    return guest


def restart_empty(hall: Hall, name: str) -> None:
    """Restart a broker whose store was deleted, or that never had one."""
    hall.unlink(name)
    hall.by_name[name].delete_store()
    hall.by_name[name].restart()
    hall.relink()
    hall.settle()


def interests(desk: Desk) -> dict[str, set[str]]:
    """What a broker believes that each of its neighbours wants and announces."""
    links, router = desk.network.links, desk.network.clients.broker.router
    found = {}
    for peer in links.channels:
        bit = links.neighbours.bit(links.numbers[peer])
        subs = {links.names.subscription_text(sub) for sub, from_ in router.subs.items() if from_ & bit}
        ads = {str(links.interests.ads[ad]) for ad, from_ in router.ads.items() if from_ & bit}
        found[peer] = subs | {f"announces {ad}" for ad in ads}
    return found


def told(desk: Desk, peer: str) -> set[str]:
    """What a broker believes that it has told a neighbour to want and to announce."""
    links, router = desk.network.links, desk.network.clients.broker.router
    bit = links.neighbours.bit(links.numbers[peer])
    subs = {links.names.subscription_text(sub) for sub, to, sent in router.out_subs() if to == bit and sent}
    ads = {str(links.interests.ads[ad]) for ad, to, sent in router.out_ads() if to == bit and sent}
    return subs | {f"announces {ad}" for ad in ads}


def assert_all_links_are_up(hall: Hall) -> None:
    """Every link carries, and nobody waits to be told anything again."""
    for desk in hall.desks:
        assert all(channel.open for channel in desk.network.links.channels.values())
        assert not any(channel.waiting for channel in desk.network.links.channels.values())
        assert not desk.network.reconciling.stale_ads, f"{desk.name} waits for the end of a story"
        assert not desk.network.reconciling.stale_subs


def test_a_broker_without_a_memory_learns_what_others_want() -> None:
    """Its clients' events reach subscribers elsewhere, who notice nothing."""
    hall = Hall(line(3))
    near, far = subscribed(hall, 0, "near"), subscribed(hall, 2, "far")
    restart_empty(hall, "B2")
    assert_all_links_are_up(hall)
    writer = visitor(hall, 1, "writer")
    writer.publish("news", b"again")
    hall.settle()
    assert near.got == far.got == [b"again"]


def test_what_a_forgetful_broker_no_longer_wants_is_withdrawn() -> None:
    """Its sessions are gone, so nobody sends it their events any more, and its own neighbours neither."""
    hall = Hall(line(3))
    subscribed(hall, 2, "gone", "gone")
    subscribed(hall, 2, "back", "back")
    restart_empty(hall, "B3")
    back = subscribed(hall, 2, "back", "back")
    assert_all_links_are_up(hall)
    for desk in hall.desks[:2]:
        wanted = {text for peer in interests(desk).values() for text in peer}
        assert not any("gone" in text for text in wanted)
        assert any("back" in text for text in wanted)
    writer = visitor(hall, 0, "writer")
    writer.publish("back", b"this")
    writer.publish("gone", b"not this")
    hall.settle()
    assert back.got == [b"this"]


def test_events_that_were_queued_for_a_broker_arrive_though_it_has_forgotten_everything() -> None:
    """They pass through it to subscribers behind it, once each and in order."""
    hall = Hall(line(3))
    reader = subscribed(hall, 2, "reader")
    writer = visitor(hall, 0, "writer")
    writer.publish("news", b"before")
    hall.settle()
    hall.unlink("B2")
    for number in range(5):
        writer.publish("news", b"meanwhile %d" % number)
    hall.by_name["B2"].delete_store()
    hall.by_name["B2"].restart()
    hall.relink()
    hall.settle()
    writer.publish("news", b"after")
    hall.settle()
    assert reader.got == [b"before", *(b"meanwhile %d" % number for number in range(5)), b"after"]
    assert_all_links_are_up(hall)


@pytest.mark.parametrize("mode", ["content", "flooding"])
@pytest.mark.parametrize("forgets", range(1, 12))
def test_a_broker_that_lost_its_last_lines_is_told_them_again(forgets: int, mode: str) -> None:
    """Whatever they were about: a subscription of its own, one of others, an event."""
    hall = Hall(line(3, mode=mode))
    reader, writer = subscribed(hall, 0, "reader"), visitor(hall, 2, "writer")
    subscribed(hall, 1, "passing", "other").lose()
    writer.publish("news", b"before")
    hall.settle()
    hall.restart("B2", forgets=forgets)
    hall.settle()
    assert_all_links_are_up(hall)
    writer.publish("news", b"after")
    hall.settle()
    assert reader.got == [b"before", b"after"]


def test_retained_values_reach_a_broker_that_has_forgotten_them() -> None:
    """Who subscribes there gets the last value, as at any other broker."""
    hall = Hall(line(2))
    writer = visitor(hall, 0, "writer")
    writer.publish("news", b"kept", retain=True)
    hall.settle()
    restart_empty(hall, "B2")
    reader = subscribed(hall, 1, "reader")
    assert reader.got == [b"kept"]


def test_a_hello_that_only_one_side_heard_leaves_nobody_waiting() -> None:
    """The first connection after a loss breaks before the broker that forgot has heard its neighbour."""
    for heard_by in ("B1", "B2"):
        hall = Hall(line(2))
        subscribed(hall, 1, "reader", "old")
        reader = subscribed(hall, 0, "writer")
        hall.unlink("B2")
        hall.by_name["B2"].delete_store()
        hall.by_name["B2"].restart()
        for desk in hall.desks:
            (peer,) = desk.network.links.channels
            desk.tell(facts.PeerConnected(peer))
        speaker = "B2" if heard_by == "B1" else "B1"
        assert hall.carry(speaker, heard_by)
        hall.unlink("B2")
        for desk in hall.desks:
            desk.peer_closes.clear()
        hall.relink()
        hall.settle()
        assert_all_links_are_up(hall)
        assert not any("old" in text for text in interests(hall.desks[0])["B2"]), "nobody wants that"
        visitor(hall, 1, "source").publish("news", b"heard")
        hall.settle()
        assert reader.got == [b"heard"]


def test_what_was_acknowledged_before_a_link_began_anew_is_not_sent_again_after_a_restart() -> None:
    """A broker that is told again that its neighbour had forgotten everything has as many frames."""
    hall = Hall(line(2))
    reader = subscribed(hall, 1, "reader")
    writer = visitor(hall, 0, "writer")
    for number in range(5):
        writer.publish("news", b"%d" % number)
        hall.settle()
    assert len(reader.got) == 5
    restart_empty(hall, "B2")
    hall.settle()
    near = hall.desks[0]
    sent = near.network.links.channels["B2"].last
    again = near.revived("another life")
    assert again.network is not None
    assert again.network.links.channels["B2"].births[-1][1] == sent


def test_a_restart_with_all_of_the_store_begins_nothing_anew() -> None:
    """Links go on where they were, so that nothing is told twice."""
    hall = Hall(line(3))
    subscribed(hall, 0, "reader")
    for name in ("B2", "B1", "B2", "B3"):
        hall.restart(name)
        hall.settle()
    assert_all_links_are_up(hall)
    assert not any(desk.network.reconciling.resets for desk in hall.desks)


def trouble(hall: Hall, desk: Desk, draw: random.Random) -> None:
    """A broker is cut off, and perhaps restarted without some or all of its store."""
    hall.unlink(desk.name)
    match draw.choices(["delete", "forget", "restart", "cut"], [1, 2, 1, 1])[0]:
        case "delete":
            desk.delete_store()
            desk.restart()
        case "forget":
            desk.restart(forgets=min(len(desk.store.written) - 1, draw.randrange(1, 15)))
        case "restart":
            desk.restart()


@pytest.mark.parametrize("seed", range(25))
def test_whatever_brokers_forget_their_neighbours_know_what_they_want(seed: int) -> None:
    """Deleted stores, lost lines, restarts and cuts between any two frames; in the end all tables agree."""
    draw = random.Random(seed)
    hall = Hall(line(draw.randrange(2, 5)))
    guests = {
        desk.name: subscribed(hall, number, f"reader {number}", f"t/{number}", lasts_s=0)
        for number, desk in enumerate(hall.desks)
    }
    for step in range(60):
        desk = draw.choice(hall.desks)
        if draw.random() < 0.3:
            trouble(hall, desk, draw)
        elif not guests[desk.name].is_over:
            topic = f"t/{draw.randrange(9)}"
            draw.choice([guests[desk.name].ask, guests[desk.name].unsubscribe])(topic)
            guests[desk.name].publish("nobody wants this", b"%d" % step)
        if draw.random() < 0.5:
            hall.relink()
        for _ in range(draw.randrange(6)):
            hall.step(draw)
        for one in hall.desks:
            if guests[one.name].is_over:
                guests[one.name] = hall.visit(hall.desks.index(one), f"reader of {one.name}")
    hall.relink()
    hall.settle()
    assert_all_links_are_up(hall)
    for desk in hall.desks:
        assert interests(desk) == {peer: told(hall.by_name[peer], desk.name) for peer in interests(desk)}
