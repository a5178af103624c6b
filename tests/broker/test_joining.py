"""Brokers join a network and leave it while the others, and their clients, go on."""

from __future__ import annotations

import random
from collections.abc import Iterator

import mqtt5
import pytest
from msgspec.structs import replace

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.offering import left_behind
from sojourn.broker.regrouping import check_is_gone
from sojourn.broker.roll import JOINED_MAX, Roll, RollError, behind, by_whom, merged, roll_of, with_roll
from sojourn.broker.state_codec import dump_state, load_state
from sojourn.broker.tree import overlay_of
from sojourn.live.config import BrokerConfig, Config, check_config
from sojourn.mobility.finding_messages import Find
from sojourn.routing.overlay import NOWHERE, OverlayError
from tests.live.hall import Desk, Hall, Visitor, line

NEW = "A0"
"""A name before all others, so that a number by alphabet would be another one."""


def grown(config: Config, name: str, *links: str) -> Config:
    """The configuration with a broker that joined."""
    brokers = [*config.brokers, BrokerConfig(name=name, listen="127.0.0.1:0")]
    network = replace(config.network, joined=[*config.network.joined, name])
    return replace(
        config, brokers=brokers, links=[*config.links, *((other, name) for other in links)], network=network
    )


def shrunk(config: Config, name: str) -> Config:
    """The configuration without a broker that left."""
    others = config.neighbours(name)
    network = replace(config.network, left=config.network.left | {name: others})
    return replace(
        config,
        brokers=[one for one in config.brokers if one.name != name],
        links=[link for link in config.links if name not in link],
        network=network,
    )


def told(config: Config, name: str) -> facts.RollTold:
    """What an operator says of a configuration to its broker."""
    settings = config.settings(name)
    return facts.RollTold(settings.joined, settings.left)


def join(hall: Hall, name: str, at: str) -> Desk:
    """Let a broker join, linked to one that is there, which alone is told."""
    hall.config = grown(hall.config, name, at)
    desk = Desk(hall, name)
    hall.desks.append(desk)
    hall.by_name[name] = desk
    hall.by_name[at].tell(told(hall.config, at))
    hall.link(at, name)
    return desk


def drain(hall: Hall, name: str, to: str) -> None:
    """Let a broker give away all that it has."""
    desk = hall.by_name[name]
    desk.tell(facts.Stopping(None))
    for _ in range(50):
        desk.tell(facts.SessionsOffered(to, 10))
        hall.settle()
        hall.wait(0.5)
        if not left_behind(desk.network):
            return
    raise AssertionError(f"{name} keeps {left_behind(desk.network)}")


def leave(hall: Hall, name: str, to: str) -> None:
    """Let a broker that has nothing any more say so, and go."""
    desk = hall.by_name[name]
    desk.tell(facts.FarewellSaid())
    hall.settle()
    assert not left_behind(desk.network), "its neighbour has acknowledged it"
    hall.by_name[to].tell(facts.PeerLost(name))
    hall.config = shrunk(hall.config, name)
    hall.desks.remove(desk)
    del hall.by_name[name]
    hall.settle()


def subscriber(hall: Hall, broker: int, name: str, got: list[bytes] | None = None) -> Visitor:
    """A client whose session lasts and that wants news."""
    visitor = hall.visit(broker, name, lasts_s=500, got=got)
    hall.settle()
    visitor.subscribe("news/#")
    return visitor


def come_back(hall: Hall, broker: int, name: str, got: list[bytes]) -> Visitor:
    """Let a client connect that finds its session."""
    visitor = hall.visit(broker, name, lasts_s=500, got=got)
    hall.settle()
    assert visitor.inbox[0].session_present
    return visitor


def publish(hall: Hall, visitor: Visitor, numbers: Iterator[int], count: int = 3) -> list[bytes]:
    """Let a client publish the next events."""
    payloads = [b"%d" % next(numbers) for _ in range(count)]
    for payload in payloads:
        visitor.publish("news/a", payload)
    return payloads


def numbers() -> Iterator[int]:
    """Numbers of events."""
    return iter(range(10_000))


# The roll --------------------------------------------------------------------------------------------------


def test_two_rolls_become_one_that_knows_all_or_contradict() -> None:
    """The longer list of who joined goes on from the shorter one; who has left has left for everybody."""
    one, other = Roll((("X", "B1"),), ("B3",)), Roll((("X", "B1"), ("Y", "X")), ("B2",))
    assert merged(one, other) == merged(other, one) == Roll((("X", "B1"), ("Y", "X")), ("B2", "B3"))
    assert merged(Roll((("X", "B1"),)), Roll((("Y", "B1"),))) is None


def test_numbers_and_the_tree_between_others_stay_what_they_were() -> None:
    """Whoever joins and leaves a network with loops: numbers stay, and so do the ways between the others."""
    draw = random.Random(4)
    for _ in range(60):
        config = line(6)
        pairs = [(f"B{one + 1}", f"B{other + 1}") for one in range(6) for other in range(one)]
        config = replace(config, links=sorted({*config.links, *draw.sample(pairs, 4)}))
        for step in range(6):
            before = config.settings("B1")
            tree = overlay_of(before)
            live = [one.name for one in config.brokers]
            leaves = [one for one in live if len(tree.neighbours[before.brokers.index(one)]) == 1]
            if draw.random() < 0.5 and len(live) > 3 and leaves != ["B1"]:
                config = shrunk(config, draw.choice([one for one in leaves if one != "B1"]))
            else:
                config = grown(config, f"A{step}", *draw.sample(live, draw.randint(1, 3)))
            check_config(replace(config, links=config.links))
            after = config.settings("B1")
            assert after.brokers[: len(before.brokers)] == before.brokers
            assert after.network == before.network
            assert with_roll(before, roll_of(after)) == after, "whoever is told the roll knows the same"
            stay = [one for one in before.brokers if one not in after.left]
            for one in stay:
                for other in stay:
                    ends = before.brokers.index(one), before.brokers.index(other)
                    if one != other:
                        assert overlay_of(after).next_hop(*ends) == tree.next_hop(*ends)
            for name in after.left:
                assert overlay_of(after).next_hop(0, after.brokers.index(name)) == NOWHERE


def test_a_roll_that_no_network_has_is_refused() -> None:
    """A name that was there, links to strangers, an unknown leaver, and who is in the middle are refused."""
    settings = line(3).settings("B1")
    too_many = tuple((f"X{number}", "B1") for number in range(JOINED_MAX + 1))
    for joined in ((("B2", "B1"),), (("X",),), ((),), (("X", "Y"),), (("X", "B1"), ("X", "B1")), too_many):
        with pytest.raises(RollError):
            with_roll(settings, Roll(joined))
    with pytest.raises(RollError):
        with_roll(settings, Roll((), ("B9",)))
    with pytest.raises(OverlayError, match="B3 cannot be reached without B2, which left"):
        overlay_of(with_roll(settings, Roll((), ("B2",))))
    with pytest.raises(RollError, match="has left"):
        check_config(replace(line(3), network=replace(line(3).network, left={"B3": ["B2"]})))


def test_who_joins_by_whom_is_known_and_the_last_of_a_chain_comes_first() -> None:
    """By the link to the one that was there first; who has left is behind nobody."""
    config = line(3)
    for name, *links in (("D", "B3"), ("C", "D"), ("B", "C"), ("A", "C", "B2")):
        config = grown(config, name, *links)
    settings = config.settings("B1")
    assert [by_whom(settings, name) for name in ("B1", "D", "C", "B", "A")] == [None, "B3", "D", "C", "B2"]
    assert behind(settings, "B3") == ["B", "C", "D"]
    assert behind(settings, "B2") == ["A"]
    assert behind(settings, "B1") == behind(settings, "B") == []
    assert behind(shrunk(config, "B").settings("B1"), "D") == ["C"]


# Joining ---------------------------------------------------------------------------------------------------


def test_a_broker_joins_and_nobody_s_connection_ends() -> None:
    """Clients of the others stay, get all events in order, and those of the new broker get them too."""
    hall, count = Hall(line(3)), numbers()
    reader, writer = subscriber(hall, 0, "reader"), hall.visit(2, "writer")
    sent = publish(hall, writer, count)
    join(hall, NEW, "B2")
    sent += publish(hall, writer, count)
    hall.settle()
    assert [desk.network.links.names_of for desk in hall.desks] == [["B1", "B2", "B3", NEW]] * 4
    late = subscriber(hall, 3, "late")
    more = publish(hall, writer, count)
    stranger = hall.visit(3, "stranger")
    more += publish(hall, stranger, count)
    hall.settle()
    assert reader.got == sent + more
    assert late.got == more
    assert not reader.is_over
    assert not writer.is_over
    assert all(desk.broker.settings.joined == ((NEW, "B2"),) for desk in hall.desks)


def test_a_client_moves_to_a_broker_that_joined_and_on_when_it_has_left() -> None:
    """Its session, and what waits for it, goes along: to the new broker, and back when that one leaves."""
    hall, count = Hall(line(3)), numbers()
    got: list[bytes] = []
    subscriber(hall, 0, "rider", got).lose()
    writer = hall.visit(2, "writer")
    sent = publish(hall, writer, count)
    join(hall, NEW, "B3")
    sent += publish(hall, writer, count)
    hall.settle()
    rider = come_back(hall, 3, "rider", got)
    assert got == sent
    rider.lose()
    sent += publish(hall, writer, count)
    hall.settle()
    drain(hall, NEW, "B3")
    sent += publish(hall, writer, count)
    leave(hall, NEW, "B3")
    sent += publish(hall, writer, count)
    hall.settle()
    assert hall.by_name["B3"].core.state.sessions.keys() >= {"rider"}
    come_back(hall, 0, "rider", got)
    assert got == sent
    assert [desk.network.links.left for desk in hall.desks] == [{3}] * 3


def test_an_original_broker_leaves_too() -> None:
    """One at the end of the line goes; the others keep their numbers, and go on."""
    hall, count = Hall(line(4)), numbers()
    reader = subscriber(hall, 1, "reader")
    subscriber(hall, 0, "away").lose()
    writer = hall.visit(3, "writer")
    sent = publish(hall, writer, count)
    hall.settle()
    drain(hall, "B1", "B2")
    leave(hall, "B1", "B2")
    sent += publish(hall, writer, count)
    hall.settle()
    assert reader.got == sent
    back: list[bytes] = []
    come_back(hall, 2, "away", back)
    assert back == sent
    with pytest.raises(RollError, match="reach each other by it"):
        hall.by_name["B3"].tell(facts.FarewellSaid())


def test_brokers_restarted_from_their_stores_know_who_joined_and_left() -> None:
    """From a journal and from a snapshot alike, with the old file and with the new one."""
    hall, count = Hall(line(3)), numbers()
    subscriber(hall, 0, "rider").lose()
    join(hall, NEW, "B2")
    hall.settle()
    writer = hall.visit(3, "writer")
    sent = publish(hall, writer, count)
    hall.settle()
    for name, keeps in (("B2", False), ("B1", True), (NEW, True), ("B2", True), ("B3", False)):
        if keeps:
            hall.by_name[name].keep()
        hall.restart(name)
        hall.settle()
    assert [desk.broker.settings.joined for desk in hall.desks] == [((NEW, "B2"),)] * 4
    hall.by_name["B3"].settings = hall.config.settings("B3")  # its file was written anew
    hall.restart("B3")
    writer = hall.visit(3, "writer again")
    sent += publish(hall, writer, count)
    hall.settle()
    drain(hall, NEW, "B2")
    leave(hall, NEW, "B2")
    for name in ("B1", "B2", "B3"):
        hall.restart(name)
        hall.settle()
    got: list[bytes] = []
    come_back(hall, 2, "rider", got)
    assert got == sent


def test_a_snapshot_holds_bits_of_neighbours_as_they_were() -> None:
    """A broker that lost a neighbour between two others, and gained one, is the same after a snapshot.

    Whoever starts after that, the new broker and the one that comes back, waits for nobody who has left.
    """
    hall, count = Hall(line(2)), numbers()
    readers: dict[str, Visitor] = {}
    for number, name in enumerate(("X", "Y", "Z")):
        join(hall, name, "B1")
        hall.settle()
        readers[name] = subscriber(hall, 2 + number, f"reader {name}")
    drain(hall, "Y", "B1")
    leave(hall, "Y", "B1")
    join(hall, "W", "B1")
    hall.settle()
    readers["W"] = subscriber(hall, len(hall.desks) - 1, "reader W")
    desk = hall.by_name["B1"]
    desk.keep()
    fresh = LiveBroker(desk.broker.settings, "life", remembers=True)
    assert desk.store.state is not None
    load_state(dump_state(desk.core, desk.network), fresh.core, fresh.network)
    assert fresh.network is not None
    assert fresh.network.links.bits == desk.network.links.bits
    hall.restart("B1")
    hall.settle()
    writer = hall.visit(1, "writer")
    sent = publish(hall, writer, count)
    hall.settle()
    assert readers["X"].got == readers["Z"].got == readers["W"].got == sent


def test_a_broker_out_of_reach_learns_of_it_when_it_is_back() -> None:
    """Who was cut off while a broker joined hears of it first, and then of its clients."""
    hall, count = Hall(line(3)), numbers()
    reader = subscriber(hall, 0, "reader")
    hall.unlink("B1")
    join(hall, NEW, "B3")
    writer = hall.visit(3, "writer")
    sent = publish(hall, writer, count)
    hall.settle()
    hall.relink()
    hall.settle()
    assert reader.got == sent
    assert hall.by_name["B1"].broker.settings.joined == ((NEW, "B3"),)


def test_brokers_that_join_in_two_places_at_once_are_not_mixed_up() -> None:
    """Where two brokers would have one number, the link between those who say so ends with a sentence."""
    hall = Hall(line(2))
    one, other = grown(hall.config, "X", "B1"), grown(hall.config, "Y", "B2")
    hall.by_name["B1"].tell(told(one, "B1"))
    hall.by_name["B2"].tell(told(other, "B2"))
    frames = bytes(hall.by_name["B1"].peer_writes.pop("B2"))
    hall.by_name["B2"].tell(facts.PeerSent("B1", frames))
    assert hall.by_name["B2"].peer_closes == ["B1"]
    assert hall.by_name["B2"].broker.settings.joined == (("Y", "B2"),)


def test_a_dead_broker_is_left_out_and_nobody_waits_for_it() -> None:
    """Its clients begin anew at once, where they had waited for it, and what was queued for it is counted."""
    hall, count = Hall(line(3)), numbers()
    subscriber(hall, 2, "rider").lose()
    writer = hall.visit(0, "writer")
    hall.settle()
    with pytest.raises(RollError, match="B3 is in reach"):
        check_is_gone(hall.by_name["B1"].network, "B3")
    hall.unlink("B3")
    publish(hall, writer, count)
    hall.settle()
    check_is_gone(hall.by_name["B1"].network, "B3")
    hall.wait(5)
    refused = hall.visit(0, "rider", lasts_s=500)
    hall.wait(6)
    assert refused.inbox[0].reason_code == mqtt5.ConnAckReasonCode.SERVER_UNAVAILABLE
    config = shrunk(hall.config, "B3")
    hall.by_name["B1"].tell(told(config, "B1"))
    hall.config = config
    hall.desks.remove(hall.by_name.pop("B3"))
    hall.settle()
    fresh = hall.visit(0, "rider", lasts_s=500)
    hall.settle()
    assert fresh.inbox[0].reason_code == mqtt5.ConnAckReasonCode.SUCCESS
    assert not fresh.inbox[0].session_present
    assert hall.by_name["B2"].network.clients.drops["the link was removed"] == 3


@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_lost_or_doubled_while_brokers_come_go_and_die(seed: int) -> None:
    """Whatever crosses, clients get every event once and in order while brokers join, leave and die."""
    draw, count = random.Random(seed), numbers()
    hall = Hall(line(3))
    stays = subscriber(hall, 0, "stays")
    roams: list[bytes] = []
    roamer = subscriber(hall, 1, "roams", roams)
    writer = hall.visit(2, "writer", lasts_s=500)
    hall.settle()
    sent: list[bytes] = []
    guests: list[str] = []
    for step in range(12):
        sent += publish(hall, writer, count, draw.randint(0, 3))
        for _ in range(draw.randint(0, 12)):
            hall.step(draw)
        what = draw.random()
        if what < 0.3 and len(guests) < 3:
            guests.append(f"{draw.choice('AZ')}{step}")
            join(hall, guests[-1], draw.choice([desk.name for desk in hall.desks[:-1]]))
        elif what < 0.5 and not roamer.is_over:
            roamer.lose()
            roamer = hall.visit(draw.randrange(len(hall.desks)), "roams", lasts_s=500, got=roams)
        elif what < 0.6:
            hall.restart(draw.choice(["B2", *guests]))
        elif what < 0.75 and guests:
            gone = guests[-1]  # the last one is at the end of a branch
            to = hall.config.neighbours(gone)[0]
            if roamer.desk.name == gone:
                roamer.lose()
            hall.settle()
            drain(hall, gone, to)
            sent += publish(hall, writer, count, draw.randint(0, 3))
            if draw.random() < 0.4:
                hall.restart(draw.choice([gone, *({to} - {"B1", "B3"})]))  # where nobody stays
                hall.settle()
                drain(hall, gone, to)
            leave(hall, gone, to)
            guests.pop()
        hall.now += 0.1
    hall.settle()
    if roamer.is_over or roamer.desk.name not in hall.by_name:
        roamer = hall.visit(0, "roams", lasts_s=500, got=roams)
    hall.wait(10)
    if not roamer.inbox or roamer.inbox[0].reason_code:
        hall.visit(0, "roams", lasts_s=500, got=roams)
        hall.wait(10)
    assert roams == sent
    assert stays.got == sent
    assert not stays.is_over


def test_what_is_for_a_broker_that_has_left_goes_nowhere() -> None:
    """A frame that would be passed on unread ends at the first broker that knows better."""
    hall = Hall(line(3))
    join(hall, NEW, "B3")
    hall.settle()
    links = hall.by_name["B1"].network.links
    find = Find(destination=3, sender=0, client=links.names.client_number("rider"), epoch=1)
    body = links.wire.encode(find, hall.now)
    drain(hall, NEW, "B3")
    leave(hall, NEW, "B3")
    links.channels["B2"].put(body)
    hall.by_name["B1"].carry_out()
    hall.settle()
    assert not any(channel.waiting for desk in hall.desks for channel in desk.network.links.channels.values())


def test_a_broker_stays_by_which_another_has_joined_meanwhile() -> None:
    """Its farewell is forgotten when its link ends, and the network goes on as it is."""
    hall, count = Hall(line(2)), numbers()
    join(hall, NEW, "B2")
    hall.settle()
    reader = subscriber(hall, 0, "reader")
    hall.by_name[NEW].tell(facts.FarewellSaid())
    hall.settle()
    join(hall, "X", NEW)
    hall.settle()
    hall.unlink(NEW)
    hall.relink()
    hall.settle()
    assert [desk.network.links.left for desk in hall.desks] == [set()] * 4
    sent = publish(hall, hall.visit(3, "writer"), count)
    hall.settle()
    assert reader.got == sent
