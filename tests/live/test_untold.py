"""A neighbour that has not said yet what it wants may want everything, so nothing goes into the void."""

from __future__ import annotations

import msgspec
import pytest

from sojourn.broker import links
from sojourn.broker.clients import UNTOLD
from sojourn.broker.regrouping import REMOVED
from sojourn.broker.settings import Settings
from tests.live.hall import Hall, line
from tests.live.test_reconciling import assert_all_links_are_up, restart_empty, subscribed, visitor


def carry_between(hall: Hall, one: str, other: str) -> None:
    """Let one link carry all that waits, and no other."""
    cut = {*hall.cut}
    hall.link(one, other)
    hall.cut = cut
    while hall.carry(one, other) or hall.carry(other, one) or hall.begin_anew():
        pass


def restart_alone(hall: Hall, name: str, *, deletes: bool) -> None:
    """Restart a broker, and leave its links down."""
    hall.unlink(name)
    if deletes:
        hall.by_name[name].delete_store()
    hall.by_name[name].restart()


def test_an_event_published_at_a_broker_that_has_forgotten_what_others_want_arrives() -> None:
    """It is accepted before any neighbour has told the broker anything."""
    hall = Hall(line(3))
    near, far = subscribed(hall, 0, "near"), subscribed(hall, 2, "far")
    restart_alone(hall, "B2", deletes=True)
    writer = hall.visit(1, "writer", clean_start=True)
    writer.publish("news", b"early")
    assert UNTOLD not in hall.desks[1].network.clients.drops, "there was room"
    hall.relink()
    hall.settle()
    assert near.got == far.got == [b"early"]
    assert_all_links_are_up(hall)
    assert not any(desk.network.clients.broker.router.untold for desk in hall.desks)


@pytest.mark.parametrize("deletes", [True, False])
def test_a_broker_in_between_says_what_others_want_only_when_it_knows(*, deletes: bool) -> None:
    """One link of a broker without a memory heals sooner than the other; with a memory nothing is to heal."""
    hall = Hall(line(4))
    reader = subscribed(hall, 3, "reader")
    writer = visitor(hall, 0, "writer")
    restart_alone(hall, "B2", deletes=deletes)
    carry_between(hall, "B1", "B2")
    writer.publish("news", b"passes")
    hall.carry("B1", "B2")
    hall.relink()
    hall.settle()
    writer.publish("news", b"later")
    hall.settle()
    assert reader.got == [b"passes", b"later"]
    assert_all_links_are_up(hall)


@pytest.mark.parametrize("first", [("B1", "B2"), ("B2", "B3")])
def test_all_brokers_are_restarted_with_another_timeout(first: tuple[str, str]) -> None:
    """Sessions stay, and events that are accepted before all links are back reach them."""
    hall = Hall(line(3))
    readers = [subscribed(hall, place, f"reader {place}") for place in range(3)]
    for desk in hall.desks:
        mobility = msgspec.structs.replace(desk.settings.mobility, timeout_s=120.0)
        desk.settings = msgspec.structs.replace(desk.settings, mobility=mobility)
        restart_alone(hall, desk.name, deletes=False)
    writers = [hall.visit(place, f"writer {place}", clean_start=True) for place in range(3)]
    for place, writer in enumerate(writers):
        writer.publish("news", b"at once %d" % place)
    carry_between(hall, *first)
    for place, writer in enumerate(writers):
        writer.publish("news", b"a little later %d" % place)
    hall.relink()
    hall.settle()
    for place, reader in enumerate(readers):
        hall.visit(place, f"reader {place}", lasts_s=50, got=reader.got)
    hall.settle()
    expected = {b"at once %d" % place for place in range(3)} | {b"a little later %d" % n for n in range(3)}
    for reader in readers:
        assert len(reader.got) == len(expected)
        assert {*reader.got} == expected
    assert_all_links_are_up(hall)


def test_who_never_comes_costs_a_limited_queue_and_makes_nobody_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may have been wanted beyond the limit is counted, and publishers are read on."""
    monkeypatch.setattr(links, "GUESS_QUEUE_BYTES", 5_000)
    hall = Hall(line(2))
    restart_alone(hall, "B1", deletes=True)
    writer = hall.visit(0, "writer", clean_start=True)
    for number in range(10):
        writer.publish("news", b"%d" % number * 1_000)
    desk = hall.desks[0]
    assert desk.network.links.channels["B2"].queued < 7_000
    assert desk.network.clients.drops[UNTOLD] == 10 - 5
    assert not desk.held


def test_publishers_are_not_quenched_while_it_is_unknown_what_is_wanted() -> None:
    """A quencher tells sources to send everything until all neighbours have told."""
    hall = Hall(line(2))
    subscribed(hall, 1, "reader", "wanted")
    restart_empty(hall, "B1")
    assert not hall.desks[0].network.clients.broker.router.untold
    restart_alone(hall, "B1", deletes=True)
    source = hall.visit(0, "source", clean_start=True, user_properties=[("sojourn-quench", "1")])
    assert b'"TRUE"' in source.got[-1]
    hall.relink()
    hall.settle()
    assert b"wanted" in source.got[-1]
    assert b'"TRUE"' not in source.got[-1]


@pytest.mark.parametrize("changes", ["nothing", "timeout", "routing"])
def test_a_session_on_its_way_arrives_though_its_old_broker_comes_back_with_other_settings(
    changes: str,
) -> None:
    """It was given away, the link broke before it had left, and the file was changed meanwhile."""
    hall = Hall(line(2))
    roamer = subscribed(hall, 0, "roamer")
    writer = visitor(hall, 0, "writer")
    roamer.leave()
    writer.publish("news", b"stored")
    hall.settle()
    moved = hall.visit(1, "roamer", lasts_s=50)
    hall.carry("B2", "B1")
    one = hall.by_name["B1"]
    assert "roamer" not in one.core.state.sessions, "it was given away"
    for desk in hall.desks:
        desk.settings = changed(desk.settings, changes)
        restart_alone(hall, desk.name, deletes=False)
    assert moved.is_over
    hall.relink()
    hall.settle()
    again = hall.visit(1, "roamer", lasts_s=50)
    hall.settle()
    hall.wait(1.0)
    assert again.inbox[0].session_present
    assert again.got == [b"stored"]
    writer = visitor(hall, 0, "writer")
    writer.publish("news", b"new")
    hall.settle()
    assert again.got == [b"stored", b"new"]


def test_a_session_on_its_way_arrives_though_brokers_have_other_numbers() -> None:
    """The first broker was taken out of the file: what was for it is counted, and the rest arrives."""
    hall = Hall(line(3))
    roamer, elsewhere = subscribed(hall, 1, "roamer"), subscribed(hall, 0, "elsewhere", "other")
    del elsewhere
    reader = subscribed(hall, 2, "reader", "large")
    writer = visitor(hall, 1, "writer")
    roamer.leave()
    writer.publish("news", b"stored")
    hall.settle()
    hall.visit(2, "roamer", lasts_s=50)
    hall.carry("B3", "B2")
    writer.publish("large", b"x" * 1_500_000)
    writer.publish("other", b"for nobody")
    two, three = hall.by_name["B2"], hall.by_name["B3"]
    assert "roamer" not in two.core.state.sessions, "it was given away"
    for desk in (two, three):
        desk.settings = msgspec.structs.replace(desk.settings, brokers=("B2", "B3"), links=(("B2", "B3"),))
        restart_alone(hall, desk.name, deletes=False)
    hall.config = msgspec.structs.replace(hall.config, links=[("B2", "B3")])
    hall.relink()
    hall.settle()
    assert two.network.clients.drops[REMOVED] == 1
    again = hall.visit(2, "roamer", lasts_s=50)
    hall.settle()
    assert again.inbox[0].session_present
    assert again.got == [b"stored"]
    hall.visit(2, "reader", lasts_s=50, got=reader.got)
    hall.settle()
    assert [len(one) for one in reader.got] == [1_500_000]


def changed(settings: Settings, what: str) -> Settings:
    """Settings with something else in them."""
    if what == "timeout":
        mobility = msgspec.structs.replace(settings.mobility, timeout_s=120.0)
        return msgspec.structs.replace(settings, mobility=mobility)
    if what == "routing":
        routing = msgspec.structs.replace(settings.routing, covering=False)
        return msgspec.structs.replace(settings, routing=routing)
    return settings
