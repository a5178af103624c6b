"""Neighbours that come back without a memory, or with another configuration, and what they are sent."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from mqtt5 import ConnAckReasonCode

from sojourn.broker import facts
from sojourn.broker.doubting import MEETING_S
from sojourn.live.config import read_config
from sojourn.live.page.board import Board
from tests.live.hall import Hall, Visitor, line
from tests.live.test_reconciling import assert_all_links_are_up, restart_empty, subscribed, visitor


def test_a_session_that_was_handed_over_long_ago_does_not_come_back_from_the_dead() -> None:
    """Its new broker has lost its store; the old one was restarted, and sends none of its frames again."""
    hall = Hall(line(2))
    roamer = subscribed(hall, 0, "roamer")
    writer = visitor(hall, 0, "writer")
    writer.publish("news", b"before")
    roamer.leave()
    moved = hall.visit(1, "roamer", lasts_s=50)
    hall.settle()
    writer.publish("news", b"after")
    hall.settle()
    assert moved.got == [b"after"]
    assert not hall.desks[0].network.links.channels["B2"].waiting
    hall.unlink("B1")
    hall.desks[0].restart()
    assert not hall.desks[0].network.links.channels["B2"].waiting, "acknowledged frames are remembered so"
    restart_empty(hall, "B2")
    assert_all_links_are_up(hall)
    assert "roamer" not in hall.desks[1].core.state.sessions
    again = hall.visit(1, "roamer", lasts_s=50)
    hall.settle()
    assert not again.inbox[0].session_present
    assert again.got == []


def test_acknowledgements_are_remembered_through_a_snapshot_and_more_frames() -> None:
    """What comes after a snapshot is told again in the journal; frames acknowledged by then are not there."""
    hall = Hall(line(2))
    subscribed(hall, 1, "reader")
    writer = visitor(hall, 0, "writer")
    for number in range(3):
        writer.publish("news", b"%d" % number)
    hall.settle()
    hall.desks[0].keep()
    for number in range(3):
        writer.publish("news", b"%d" % number)
    hall.settle()
    hall.unlink("B2")
    writer.publish("news", b"waits")
    hall.desks[0].restart()
    assert hall.desks[0].network.links.channels["B2"].waiting == 1


def test_a_neighbour_that_lost_its_store_is_known_by_the_name_of_its_memory() -> None:
    """One that was merely restarted is not; the count survives a restart, and somebody is told."""
    hall = Hall(line(3))
    hall.restart("B2")
    hall.settle()
    assert not hall.desks[0].network.reconciling.forgot
    restart_empty(hall, "B2")
    for place in (0, 2):
        assert hall.desks[place].network.reconciling.forgot == {"B2": 1}
        assert ("forgot", ("B2", hall.now)) in hall.desks[place].notes
    hall.restart("B1")
    hall.settle()
    assert hall.desks[0].network.reconciling.forgot == {"B2": 1}
    assert not hall.desks[1].network.reconciling.forgot, "whoever forgot knows of nobody else that did"


def test_neighbours_say_how_much_a_broker_has_forgotten_that_lost_the_end_of_its_store() -> None:
    """That is what it had acknowledged and what it had sent; a mere restart makes nobody forget."""
    hall = Hall(line(3))
    subscribed(hall, 2, "reader")
    subscribed(hall, 1, "local").leave()
    writer = visitor(hall, 0, "writer")
    hall.settle()
    hall.restart("B2")
    hall.settle()
    there = hall.desks[1]
    before = len(there.store.written)
    for number in range(4):
        writer.publish("news", b"%d" % number)
        hall.settle()
    hall.unlink("B2")
    there.restart(forgets=len(there.store.written) - before)
    hall.relink()
    hall.settle()
    told = {
        name: [note.what[:2] for note in hall.by_name[name].notes if note.kind == "forgot_events"]
        for name in ("B1", "B2", "B3")
    }
    assert told["B2"] == [], "whoever forgot does not know it"
    for name in ("B1", "B3"):
        assert told[name] == [("B2", 4)]
    assert_all_links_are_up(hall)


@pytest.mark.parametrize("published", [0, 3])
def test_frames_without_events_that_a_neighbour_forgot_are_no_events(published: int) -> None:
    """A client moves over a broker that then forgets; what it took along counts, and no other frame does."""
    hall = Hall(line(3))
    subscribed(hall, 0, "reader").lose()
    hall.settle()
    writer = visitor(hall, 0, "writer")
    hall.settle()
    middle = hall.desks[1]
    before = len(middle.store.written)
    for number in range(published):
        writer.publish("news", b"%d" % number)
    for place in (2, 0, 2):
        reader = hall.visit(place, "reader", lasts_s=100)
        hall.settle()
        reader.lose()
        hall.settle()
    assert len(middle.store.written) > before + 10
    hall.restart("B2", forgets=len(middle.store.written) - before)
    hall.settle()
    told = [note.what[1] for desk in hall.desks for note in desk.notes if note.kind == "forgot_events"]
    assert told == [published] * 2 if published else not told
    assert_all_links_are_up(hall)


@pytest.mark.parametrize("lasts_s", [0, 100])
def test_what_a_forgetful_neighbour_passes_on_again_is_delivered_once(lasts_s: int) -> None:
    """It had passed an event on and forgot that, and its other neighbour had heard no acknowledgement."""
    hall = Hall(line(3))
    reader = hall.visit(2, "reader", lasts_s=lasts_s)
    reader.subscribe("news")
    writer = visitor(hall, 0, "writer")
    hall.settle()
    middle = hall.by_name["B2"]
    before = len(middle.store.written)
    writer.publish("news", b"event")
    hall.carry("B1", "B2")
    hall.carry("B2", "B3")
    assert reader.got == [b"event"]
    hall.unlink("B2")
    middle.restart(forgets=len(middle.store.written) - before)
    hall.relink()
    hall.settle()
    assert reader.got == [b"event"]
    assert hall.desks[2].network.clients.drops["repeated by a neighbour"] == 1


def test_a_store_that_is_gone_is_not_told_as_forgotten_frames_too() -> None:
    """Its memory has another name: that is a loss of its own."""
    hall = Hall(line(3))
    subscribed(hall, 2, "reader")
    visitor(hall, 0, "writer").publish("news", b"one")
    hall.settle()
    restart_empty(hall, "B2")
    kinds = [note.kind for desk in hall.desks for note in desk.notes]
    assert "forgot" in kinds
    assert "forgot_events" not in kinds


def test_brokers_of_other_networks_do_not_link() -> None:
    """Another broker or link in the file is another network, and both sides say so with the way out."""
    hall = Hall(line(3))
    two = hall.by_name["B2"]
    more = (*two.settings.links, ("B3", "B4"))
    two.settings = msgspec.structs.replace(two.settings, brokers=("B1", "B2", "B3", "B4"), links=more)
    hall.unlink("B2")
    two.restart()
    for end, far in itertools.permutations(("B1", "B2")):
        hall.by_name[end].tell(facts.PeerConnected(far))
    data = bytes(two.peer_writes.pop("B1"))
    one = hall.by_name["B1"].broker
    one.handle(facts.PeerSent("B2", data), hall.now)
    ((peer, why),) = one.turn(hall.now).peer_closes
    assert peer == "B2"
    assert "B2 reads another configuration" in why
    assert "start both with the same file" in why
    assert not hall.by_name["B1"].network.links.channels["B2"].open


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_brokers_and_links_in_the_file_means_nothing(seed: int) -> None:
    """Files with the same brokers in another order make the same network, down to every number."""
    names = [f"B{number}" for number in range(1, 6)]
    links = [("B1", "B2"), ("B2", "B3"), ("B1", "B3"), ("B3", "B4"), ("B4", "B5")]

    def written(names: list[str], links: list[tuple[str, str]]) -> str:
        said = ", ".join(f'["{one}", "{other}"]' for one, other in links)
        tables = [f'[[brokers]]\nname = "{name}"\nlisten = "127.0.0.1:0"\n' for name in names]
        return f"links = [{said}]\n" + "".join(tables)

    mixed = names[seed:] + names[:seed]
    turned = [(other, one) if place % 2 else (one, other) for place, (one, other) in enumerate(links)][::-1]
    one, other = read_config(written(names, links)), read_config(written(mixed, turned))
    for name in names:
        assert one.settings(name) == other.settings(name)
        assert one.settings(name).network == other.settings(name).network
    used = [{frozenset(link) for link in Board(config, "B1")._used} for config in (one, other)]
    assert used[0] == used[1]


def test_a_session_that_was_given_away_is_not_there_again_when_that_was_forgotten() -> None:
    """The broker that has it now keeps it, with all that came since; the other one lets go of its own."""
    hall = Hall(line(2))
    got: list[bytes] = []
    first = hall.visit(1, "reader", lasts_s=500, got=got)
    hall.settle()
    first.subscribe("news")
    there = hall.desks[1]
    before = len(there.store.written)
    reader = hall.visit(0, "reader", lasts_s=500, got=got)
    hall.settle()
    hall.unlink("B2")
    there.restart(forgets=len(there.store.written) - before)
    assert "reader" in there.core.state.sessions
    hall.visit(0, "writer", lasts_s=500)
    hall.relink()
    hall.settle()
    assert ["reader" in desk.core.state.sessions for desk in hall.desks] == [True, False]
    reader.lose()
    writer = hall.visit(0, "writer", lasts_s=500)
    hall.settle()
    writer.publish("news", b"one")
    hall.settle()
    hall.visit(1, "reader", lasts_s=500, got=got)
    hall.settle()
    assert got == [b"one"]


def given_away_and_forgotten(hall: Hall, got: list[bytes]) -> Visitor:
    """Let B2 give a session to B1 and forget it; the client has a subscription that B2 does not know of."""
    hall.visit(1, "reader", lasts_s=500, got=got)
    hall.settle()
    there = hall.desks[1]
    before = len(there.store.written)
    reader = hall.visit(0, "reader", lasts_s=500, got=got)
    hall.settle()
    reader.subscribe("news")
    hall.unlink("B2")
    there.restart(forgets=len(there.store.written) - before)
    assert "reader" in there.core.state.sessions
    return reader


def test_a_client_that_comes_before_a_neighbour_said_what_was_forgotten_waits_for_that() -> None:
    """It is then given the session that it has, not the older one of a broker that lost its last lines."""
    hall = Hall(line(2))
    got: list[bytes] = []
    given_away_and_forgotten(hall, got)
    reader = hall.visit(1, "reader", lasts_s=500, got=got)
    assert not reader.inbox
    hall.relink()
    hall.settle()
    assert reader.inbox[0].session_present
    writer = hall.visit(0, "writer", lasts_s=500)
    hall.settle()
    writer.publish("news", b"one")
    hall.settle()
    assert got == [b"one"]


def test_a_broker_in_doubt_gives_no_session_away_before_it_knows_better() -> None:
    """A third broker asks for it, which the doubtful one is nearer to than the right one."""
    hall = Hall(line(3))
    got: list[bytes] = []
    given_away_and_forgotten(hall, got).lose()
    hall.link("B2", "B3")
    hall.cut.add("B1")
    hall.settle()
    reader = hall.visit(2, "reader", lasts_s=500, got=got)
    hall.settle()
    assert not reader.inbox
    hall.link("B1", "B2")
    hall.settle()
    assert reader.inbox[0].session_present
    assert "news" in hall.desks[2].core.state.sessions["reader"].subscriptions


def test_a_neighbour_that_does_not_come_is_waited_for_a_while_only() -> None:
    """Nothing was forgotten: clients of a broker whose neighbour is gone are served all the same."""
    hall = Hall(line(2))
    hall.visit(1, "reader", lasts_s=500)
    hall.settle()
    hall.unlink("B2")
    hall.desks[1].restart()
    reader = hall.visit(1, "reader", lasts_s=500)
    assert not reader.inbox
    hall.wait(MEETING_S)
    assert reader.inbox[0].session_present


def test_a_session_known_to_be_doubtful_is_not_given_while_the_right_one_may_be_out_of_reach() -> None:
    """Its client is told to try again, until the time to give up has passed."""
    hall = Hall(line(3, timeout_s=600.0, give_up_s=60.0))
    given_away_and_forgotten(hall, []).lose()
    hall.link("B2", "B3")
    hall.settle()
    hall.unlink("B1")
    hall.link("B2", "B3")
    hall.cut.add("B1")
    hall.settle()
    hall.wait(5.0)
    reader = hall.visit(1, "reader", lasts_s=500)
    hall.settle()
    assert reader.inbox[0].reason_code == ConnAckReasonCode.SERVER_UNAVAILABLE
    hall.wait(60.0)
    reader = hall.visit(1, "reader", lasts_s=500)
    hall.settle()
    assert reader.inbox[0].session_present


def test_a_broker_with_a_full_store_serves_nobody_with_a_session_that_was_asked_for_elsewhere() -> None:
    """It leaves its neighbours' words unread until there is room; what one says of this session counts."""
    hall = Hall(line(2))
    for name in ("reader", "other"):
        client = hall.visit(1, name, lasts_s=500)
        hall.settle()
        client.lose()
    full = hall.desks[1]
    full.tell(facts.StoreFilled("The store is full."))
    hall.visit(0, "reader", lasts_s=500, clean_start=True).lose()
    hall.settle()
    assert "reader" in full.core.state.sessions
    refused = hall.visit(1, "reader", lasts_s=500)
    assert refused.inbox[0].reason_code == ConnAckReasonCode.SERVER_UNAVAILABLE
    served = hall.visit(1, "other", lasts_s=500)
    assert served.inbox[0].session_present
    full.tell(facts.StoreMended())
    hall.settle()
    hall.visit(1, "reader", lasts_s=500)
    hall.settle()
    assert ["reader" in desk.core.state.sessions for desk in hall.desks] == [False, True]


@pytest.mark.parametrize("asked", [1, 0])
def test_nobody_is_given_up_for_the_time_in_which_this_broker_was_not_there(asked: int) -> None:
    """It was dead all the while, or its clock was set ahead: it has not tried to reach anybody since."""
    hall = Hall(line(3, timeout_s=5_000.0, give_up_s=100.0))
    first = hall.visit(2, "reader", lasts_s=5_000)
    hall.settle()
    first.lose()
    hall.unlink("B3")
    hall.link("B1", "B2")
    hall.cut.add("B3")
    hall.settle()
    hall.wait(10.0)
    hall.cut.update(("B1", "B2"))
    for desk in hall.desks[:2]:
        for peer in desk.network.links.channels:
            desk.tell(facts.PeerLost(peer))
        desk.ahead_s = 200.0
        desk.restart()
    hall.link("B1", "B2")
    hall.cut.add("B3")
    hall.settle()
    reader = hall.visit(asked, "reader", lasts_s=5_000)
    hall.settle()
    hall.wait(10.0)
    assert reader.inbox[0].reason_code == ConnAckReasonCode.SERVER_UNAVAILABLE
    hall.wait(100.0)
    reader = hall.visit(asked, "reader", lasts_s=5_000)
    hall.settle()
    hall.wait(10.0)
    assert reader.inbox[0].reason_code == ConnAckReasonCode.SUCCESS
