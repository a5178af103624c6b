"""Clients, identifiers and filters that come and go leave nothing behind at any broker of a network."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from sojourn.broker import facts, forgetting, roamers
from sojourn.broker.state_codec import dump_state
from sojourn.mobility.copies import State
from sojourn.mqtt import conventions
from sojourn.mqtt import state as session_state
from sojourn.routing.box_tree import BoxTree
from sojourn.routing.shelves import Place
from tests.live.hall import Desk, Hall, Visitor, line

CROWD = 2_000
LONG_S = 1_000.0
"""Longer than anything is remembered with the timeout of these halls."""


def books(desk: Desk) -> dict[str, int]:
    """How many entries each book of a broker has."""
    network, state = desk.network, desk.core.state
    broker, router = network.clients.broker, network.clients.broker.router
    parts: dict[str, object] = {
        "names": network.links.names,
        "interests": network.links.interests,
        "broker": broker,
        "router": router,
        "held-back advertisements": router._ad_covering,
        "held-back subscriptions": router._sub_covering,
        "subscribers": broker.subscribers,
        "store": broker.subscribers.store,
        "finder": network.arrivals.finder,
        "timers": network.clients.timers,
        "network": network,
        "links": network.links,
        "clients": network.clients,
        "arrivals": network.arrivals,
        "confirming": network.confirming,
        "reconciling": network.reconciling,
        "pressure": network.pressure,
        "sessions": state,
        "filters": state.filters,
        "topics": state.tree,
    }
    found = {
        f"{part} {name}": _size(book) for part, thing in parts.items() for name, book in _attributes(thing)
    }
    for client, holding in broker.subscribers.main.items():
        found[f"sources of {network.links.names.client_name(client)}"] = len(holding.marks) + len(
            holding.ceiling
        )
    matcher = network.links.interests.matcher
    found["tests of filters"] = len(matcher._tests)
    found["filters by topic"] = len(matcher._topics) + len(matcher._by_topic)
    assert matcher.use_index()
    assert matcher._index is not None
    found["index"] = len(matcher._index)
    found["range attributes"] = len(matcher._index._encoder.attributes)
    # Reminders and timers may wait for their time; routes by topic, and what covers an interest, are caches.
    caches = (" routes", "_above", " _plain", " by_topic", " _towards")
    return {name: size for name, size in found.items() if size is not None and not name.endswith(caches)}


def _attributes(thing: object) -> list[tuple[str, Any]]:
    names = [*getattr(thing, "__dict__", ())]
    names += [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    return [(name, getattr(thing, name)) for name in names if name not in {"_moments", "_heap", "by_bytes"}]


def _size(book: object) -> int | None:
    if isinstance(book, BoxTree):
        return _places(book._root)
    return len(book) if isinstance(book, (dict, list, set)) else None


def _places(place: Place) -> int:
    """How many interests stand at a place and further on, and how many places there are."""
    further = [inside for shelf in (place.shelves or {}).values() for inside in shelf.every()]
    return 1 + len(place.interests) + sum(map(_places, further))


def snapshot_bytes(desk: Desk) -> int:
    """The size of all that the broker would write down of itself."""
    return len(dump_state(desk.core, desk.network))


def come_and_go(hall: Hall, number: int) -> None:
    """One stranger: subscribes to what nobody else wants, advertises, publishes, moves perhaps, and goes."""
    at = number % len(hall.desks)
    lasts_s = 20 if number % 2 else 0
    stranger = hall.visit(at, f"stranger-{number}", lasts_s=lasts_s, clean_start=number % 4 == 2)
    hall.settle()
    stranger.subscribe(f"strange/{number}", f"s{number} > {number}" if number % 3 == 0 else "")
    if number % 5 == 0:
        stranger.publish(
            conventions.ADVERTISE_TOPIC, f"topic = 'strange/{number}' AND z{number} > 1".encode()
        )
    hall.settle()
    if number % 3 == 0:
        stranger.publish("news", f"{number}".encode())
        hall.settle()
    if number % 7 == 1:
        stranger.lose()
        stranger = hall.visit((at + 1) % len(hall.desks), f"stranger-{number}", lasts_s=lasts_s)
        hall.settle()
    if number % 2:
        stranger.lose()
    else:
        stranger.leave()
    hall.settle()


def a_reader(hall: Hall, broker: int, name: str) -> Visitor:
    """A client whose session lives, and that wants the news."""
    reader = hall.visit(broker, name, lasts_s=10_000_000)
    hall.settle()
    reader.subscribe("news")
    hall.settle()
    return reader


@pytest.mark.parametrize("mode", ["content", "flooding"])
def test_a_crowd_of_short_lived_clients_leaves_every_book_as_it_was(mode: str) -> None:
    """Thousands of identifiers, filters, advertisements; two sessions live on, and are served after that."""
    hall = Hall(line(3, mode=mode))
    reader = a_reader(hall, 0, "reader")
    other = a_reader(hall, 1, "other")
    hall.wait(LONG_S)
    before = [books(desk) for desk in hall.desks]
    sizes = [snapshot_bytes(desk) for desk in hall.desks]
    for number in range(CROWD if mode == "content" else CROWD // 4):
        come_and_go(hall, number)
    assert all(desk.network.links.names.size > 100 for desk in hall.desks), "every broker was told of them"
    hall.wait(LONG_S)
    for desk, books_before, size in zip(hall.desks, before, sizes, strict=True):
        assert books(desk) == books_before
        assert snapshot_bytes(desk) < size + 2_000
    published = len(reader.got)
    assert published > CROWD // 20
    writer = hall.visit(2, "writer")
    hall.settle()
    other.lose()
    back = hall.visit(1, "other", lasts_s=60)
    hall.settle()
    assert back.inbox.pop().session_present
    writer.publish("news", b"still here")
    hall.settle()
    assert reader.got[published:] == [b"still here"]
    assert back.got[-1] == b"still here"


def test_a_broker_that_is_told_the_same_again_forgets_the_same() -> None:
    """Replaying the facts of each broker leads to the same numbers and tables."""
    hall = Hall(line(3))
    a_reader(hall, 0, "reader")
    for number in range(120):
        come_and_go(hall, number)
        hall.wait(3.0)
    for desk in hall.desks:
        again = desk.replayed()
        assert again.network is not None
        names, interests = again.network.links.names, again.network.links.interests
        assert names.entered > names.size + 100, "some were forgotten"
        assert names._numbers == desk.network.links.names._numbers
        assert interests.subs == desk.network.links.interests.subs
        assert interests.ads == desk.network.links.interests.ads
        router, before = again.network.clients.broker.router, desk.network.clients.broker.router
        assert router.subs == before.subs
        assert router.out_subs() == before.out_subs()
        assert again.core.state.sessions.keys() == desk.core.state.sessions.keys()
        for peer, channel in again.network.links.channels.items():
            assert channel.last == desk.network.links.channels[peer].last


def assert_nothing_dangles(desk: Desk) -> None:
    """Every number that a broker keeps anywhere is in its books."""
    network, broker = desk.network, desk.network.clients.broker
    links, roamers, finder = network.links, network.clients.roamers, network.arrivals.finder
    router, half = broker.router, broker.subscribers
    holdings = [*half.main.values(), *(one for older in half.older.values() for one in older)]
    named = {*half.main, *half.older, *half.past, *broker.stays, *roamers, *network.arrivals.waiting}
    named |= finder.clients()
    assert named <= links.names._names.keys()
    subs = {*router.subs, *router.local_subs}
    subs |= {sub for held in router._sub_covering.held.values() for sub in held}
    subs |= {sub for one in holdings for sub in (*one.subscriptions, *one.fed)}
    subs |= {sub for roamer in roamers.values() for sub in roamer.held}
    assert subs <= links.interests.subs.keys()
    ads = {*router.ads, *router.local_ads}
    ads |= {ad for held in router._ad_covering.held.values() for ad in held}
    assert ads <= links.interests.ads.keys()


@pytest.mark.parametrize("seed", range(30))
def test_forgetting_that_crosses_with_hand_offs_loses_nothing(seed: int) -> None:
    """Brokers forget between any two frames, die and come back; a client moves on before it is let in."""
    draw = random.Random(seed)
    count, scheme = draw.randrange(2, 6), draw.choice(["proactive", "reactive"])
    hall = Hall(line(count, scheme=scheme, mode=draw.choice(["content", "flooding"])))
    writer = hall.visit(draw.randrange(count), "writer", lasts_s=60)
    hall.settle()
    reader = a_reader(hall, 0, "reader")
    got, names_its_last, haste = reader.got, draw.random() < 0.6, draw.randrange(1, 6)
    last, stays = "B1", True

    def comes(broker: int) -> Visitor:
        named = [(conventions.PREVIOUS, last)] if names_its_last else []
        return hall.visit(broker, "reader", lasts_s=10_000_000, user_properties=named, got=got)

    for number in range(120):
        writer.publish("news", b"%d" % number)
        if reader.is_over:
            stays = False
        elif stays and draw.random() < 0.15:
            stays = False
            if draw.random() < 0.7:  # else the old connection is there when the new one comes
                reader.lose()
        for _ in range(draw.randrange(haste)):
            hall.step(draw)
            desk = draw.choice(hall.desks)
            desk.network.forgetting._due_s = 0.0
            desk.tell(facts.TimePassed())
            assert_nothing_dangles(desk)
            if draw.random() < 0.03 and desk is not writer.desk:
                hall.restart(desk.name)
        if not stays and draw.random() < 0.4:
            last = reader.desk.name if reader.inbox else last  # it was let in
            reader, stays = comes(draw.randrange(count)), True
    hall.settle()
    if reader.is_over or not stays:
        last = reader.desk.name if reader.inbox else last
        comes(0)
        hall.settle()
    assert got == [b"%d" % number for number in range(120)]


def test_what_waits_for_a_client_survives_though_nobody_speaks_of_it() -> None:
    """A copy knows its client's name and filter when it is needed, also where both stand in it alone."""
    hall = Hall(line(2, mode="flooding"))
    writer = hall.visit(1, "writer", lasts_s=60)
    reader = a_reader(hall, 0, "reader")
    for broker in (1, 0, 1):
        reader.lose()
        hall.settle()
        reader = hall.visit(broker, "reader", lasts_s=60, got=reader.got)
        hall.settle()
    for is_away in (False, True):
        if is_away:
            reader.lose()
            hall.settle()
            writer.publish("news", b"while away")
            hall.settle()
        for desk in hall.desks:
            desk.network.arrivals.finder.forget_until(math.inf)  # as if many others had come since
            desk.network.forgetting._due_s = 0.0
            desk.tell(facts.TimePassed())
            assert_nothing_dangles(desk)
    back = hall.visit(0, "reader", lasts_s=60)
    hall.settle()
    assert back.got == [b"while away"]
    handoffs = [note.what[0] for note in hall.desks[0].notes if note.kind == "handed_off"]
    assert [handoff.how for handoff in handoffs] == ["copy", "copy"]


def test_a_flood_of_names_is_forgotten_before_the_usual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come within a minute, the books stay within twice the limit."""
    monkeypatch.setattr(forgetting, "GROWTH_MAX", 100)
    hall = Hall(line(2))
    for number in range(400):
        visitor = hall.visit(0, "", lasts_s=0)
        visitor.subscribe(f"flood/{number}")
        hall.settle()
        visitor.leave()
        hall.settle()
        hall.tick()
        assert all(desk.network.links.names.size <= 210 for desk in hall.desks)
    assert hall.now - 1_700_000_000.0 < forgetting.SWEEP_S


def test_copies_whose_broker_is_gone_for_good_are_forgotten() -> None:
    """A client's broker vanishes with its client: in time, its neighbour forgets both copy and client."""
    hall = Hall(line(2))
    a_reader(hall, 0, "reader").lose()
    again = hall.visit(1, "reader", lasts_s=60)
    hall.settle()
    assert again.inbox.pop().session_present
    near = hall.desks[0].network
    assert [copy.state for copy in near.clients.broker.subscribers.main.values()] == [State.PASSIVE]
    hall.unlink("B2")
    hall.wait(100.0)
    assert near.clients.broker.subscribers.main, "it is kept for a while"
    hall.wait(LONG_S)
    assert not near.clients.broker.subscribers.main
    assert not near.clients.broker.subscribers.past
    assert not near.links.names._numbers


def test_reminders_and_timers_of_what_is_over_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that moves to and fro for long leaves a few of them, and its session still ends in time."""
    monkeypatch.setattr(session_state, "SPARE_MOMENTS", 20)
    monkeypatch.setattr(roamers, "SPARE_TIMERS", 20)
    hall = Hall(line(2, timeout_s=1_000.0))
    early = hall.visit(0, "early", lasts_s=300)
    hall.settle()
    early.lose()
    for desk in hall.desks:
        desk.core.state._moments_max = 20
    for number in range(200):
        visitor = hall.visit(number % 2, "rover", lasts_s=100_000)
        hall.settle()
        visitor.subscribe("news")
        hall.settle()
        visitor.lose()
        hall.settle()
        hall.wait(0.1)
    for desk in hall.desks:
        assert len(desk.core.state._moments) <= 50
        assert len(desk.network.clients.timers._heap) <= 50
    assert list(hall.desks[0].core.state.sessions) == ["early"]
    hall.wait(300.0)
    assert [list(desk.core.state.sessions) for desk in hall.desks] == [[], ["rover"]]


def test_sources_are_forgotten_also_where_no_client_ever_was() -> None:
    """A broker that only passes events on remembers how far each source had come, for a limited time."""
    hall = Hall(line(3, mode="flooding"))
    for _ in range(50):
        writer = hall.visit(0, "")  # nobody else hears of a client without a name
        hall.settle()
        writer.publish("news", b"event")
        hall.settle()
        writer.leave()
        hall.settle()
    assert all(len(desk.network.seen) == 50 for desk in hall.desks[1:])
    hall.wait(LONG_S)
    assert [len(desk.network.seen) for desk in hall.desks] == [0, 0, 0]
    assert all(desk.broker.next_moment() is None for desk in hall.desks), "nothing more is to be looked for"
