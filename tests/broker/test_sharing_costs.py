"""What members of shared subscriptions cost: by what they want, and not one by one, and within limits."""

from __future__ import annotations

import sys
from types import FrameType

import msgspec
import pytest

from sojourn.broker import sharing
from sojourn.broker.settings import AtOnce
from sojourn.interest import Filter
from sojourn.mqtt import members
from sojourn.mqtt.content import parse_filter
from sojourn.mqtt.limits import Limits
from tests.broker.crew import JOBS, member, picks, publish
from tests.live.hall import Hall, Visitor, line
from tests.mqtt.address_uses import uses, uses_by_hand

LONG = " OR ".join(f"a{number} = {{}}" for number in range(20))


def calls_of_an_event(hall: Hall, writer: Visitor) -> int:
    """How many functions it takes to publish an event and to send it on."""
    calls = 0

    def count(_frame: FrameType, what: str, _argument: object) -> None:
        nonlocal calls
        calls += what == "call"

    for warms_up in (True, False):
        calls = 0
        sys.setprofile(count)
        writer.publish("jobs/a", b"1", {f"a{number}": 1 for number in range(20)})
        sys.setprofile(None)
        assert warms_up or calls
        hall.settle()
    return calls


@pytest.mark.parametrize("condition", ["", LONG.format(*[2] * 20)])
def test_an_event_costs_no_more_where_more_members_want_the_same(condition: str) -> None:
    """Neither where nobody gets it, nor where one of them does."""
    hall = Hall(line(2))
    writer = hall.visit(0, "writer")
    hall.settle()
    counts = []
    for number in range(60):
        member(hall, number % 2, f"m{number}", condition=condition)
        if number in (9, 59):
            counts.append(calls_of_an_event(hall, writer))
    few, many = counts
    assert many <= few + 25


def test_an_event_is_compared_once_with_what_members_of_many_groups_want() -> None:
    """A group more costs what it takes to choose one of its members."""
    hall = Hall(line(2))
    writer = hall.visit(0, "writer")
    one = member(hall, 1, "one", group="$share/g/jobs/#", condition=LONG.format(*[2] * 20))
    hall.settle()
    before = calls_of_an_event(hall, writer)
    for number in range(20):
        one.subscribe(f"$share/g{number}/jobs/#", LONG.format(*[2] * 20))
    hall.settle()
    assert calls_of_an_event(hall, writer) <= before + 20 * 20


def test_an_event_costs_what_it_may_be_compared_with() -> None:
    """Others have their turn sooner, however many groups want the same."""
    hall = Hall(line(2))
    shares = hall.desks[0].network.clients.shares
    one, other = member(hall, 1, "one"), member(hall, 1, "other")
    before = shares.cost_of("jobs/a")
    one.subscribe(JOBS, LONG.format(*range(20)))
    hall.settle()
    assert before <= shares.cost_of("jobs/a") <= before + 1
    for number in range(20):
        other.subscribe(JOBS, LONG.format(*range(number, 20 + number)))
        member(hall, 1, f"m{number}", condition=LONG.format(*range(number, 20 + number)))
    hall.settle()
    assert shares.cost_of("jobs/a") >= before + 20 * 200 // 512


def test_members_are_let_go_without_reading_what_they_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may leave a hundred of them at once, with forty thousand characters."""
    hall = Hall(line(2))
    one = member(hall, 1, "one", condition="n > 5 AND m > 7")
    writer = hall.visit(0, "writer")
    hall.settle()
    writer.publish("jobs/a", b"1", {"n": 6, "m": 8})
    hall.settle()
    assert one.got == [b"1"]
    read: list[str] = []

    def noted(text: str) -> Filter:
        read.append(text)
        return parse_filter(text)

    monkeypatch.setattr(members, "parse_filter", noted)
    members.member_of.cache_clear()
    one.unsubscribe(JOBS)
    hall.settle()
    assert not read
    assert not hall.desks[0].network.clients.shares.groups


# Limits ----------------------------------------------------------------------------------------------------


def asks(one: Visitor, group: str, condition: str) -> int:
    """The code of the answer to a SUBSCRIBE."""
    one.ask(group, condition)
    one.desk.hall.settle()
    return int(one.inbox.pop().reason_codes[0])


def test_what_members_want_has_a_limit_in_the_whole_network() -> None:
    """What others want already may be wanted, and what takes the place of another counts, too."""
    size = 16 + len("n > 1")
    hall = Hall(msgspec.structs.replace(line(2), limits=Limits(member_filter_chars_max_all=2 * size + 16)))
    near, far = hall.visit(0, "near"), hall.visit(1, "far")
    hall.settle()
    near.inbox.clear()
    far.inbox.clear()
    assert [asks(near, f"$share/{number}/t", f"n > {number}") for number in (1, 2, 3)] == [1, 1, 0x97]
    assert [asks(far, f"$share/{number}/t", f"n > {number}") for number in (1, 2, 3)] == [1, 1, 0x97]
    assert asks(far, "$share/1/t", "n > 4") == 0x97
    assert asks(far, "$share/1/t", "n > 2") == 1, "that takes some room for its group"
    assert asks(far, "$share/2/t", "n > 1") == 0x97
    assert asks(far, "t", "n > 5") == 1, "who shares nothing is not looked at one by one"
    assert hall.desks[1].broker.core.state.counters.refused["subscribe quota_exceeded"] == 3
    assert asks(far, "$share/1/t", "n > 1") == 1
    near.unsubscribe("$share/2/t")
    far.unsubscribe("$share/2/t")
    hall.settle()
    near.inbox.clear()
    assert asks(near, "$share/3/t", "n > 3") == 1
    core = hall.desks[0].broker.core
    assert uses(core) == uses_by_hand(core)


def test_what_members_of_one_address_want_has_a_limit() -> None:
    """Others are left their part."""
    size = 16 + len("n > 1")
    limits = Limits(member_filter_chars_max_all=9 * size, member_filter_chars_address_max=size + 16)
    hall = Hall(msgspec.structs.replace(line(2), limits=limits))
    one, two = hall.visit(0, "one"), hall.visit(1, "two")
    hall.settle()
    one.inbox.clear()
    two.inbox.clear()
    assert [asks(one, f"$share/{number}/t", f"n > {1 + number // 2}") for number in range(3)] == [1, 1, 0x97]
    assert asks(two, "$share/2/t", "n > 2") == 1
    core = hall.desks[0].broker.core
    assert core.state.counters.refused["subscribe address_quota_exceeded"] == 1
    assert uses(core) == uses_by_hand(core)


# What is picked again --------------------------------------------------------------------------------------


def test_what_members_decline_is_picked_again_in_parts() -> None:
    """As what they leave is: one may decline a thousand events at once."""
    hall = Hall(line(2), at_once=AtOnce(picked_again=2))
    decliner = member(hall, 0, "decliner")
    decliner.lose()
    hall.settle()
    writer = hall.visit(1, "writer")
    large = [b"%d" % number + b" " * 200 for number in range(6)]
    for payload in large:
        writer.publish("jobs/a", payload)
    hall.settle()
    rest = member(hall, 1, "rest")
    hall.visit(0, "decliner", lasts_s=500, max_packet_size=100)
    hall.settle()
    shares = hall.desks[1].network.clients.shares
    assert len(shares.left) == len(large) - 2
    assert len(rest.got) == 2
    again = hall.desks[1].replayed().network
    assert again is not None
    assert again.clients.shares.left == shares.left
    hall.wait(2.0)
    assert rest.got == large
    assert picks(hall) == 0


def test_a_part_is_shorter_where_there_is_much_to_compare_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event that is picked again is compared with all that the group's members want."""
    monkeypatch.setattr(sharing, "AGAIN_CHARS", 16 + len("n > 1"))
    hall = Hall(line(2), at_once=AtOnce(picked_again=4))
    away = member(hall, 0, "away")
    away.lose()
    hall.settle()
    publish(hall, 0, 5)
    for number in range(2):
        member(hall, 1, f"m{number}", condition=f"n > {number}")
    hall.visit(0, "away", lasts_s=0, clean_start=True)
    hall.settle()
    shares = hall.desks[0].network.clients.shares
    assert len(shares.left) == 5 - 2
    hall.wait(2.0)
    assert not shares.left


def test_what_is_remembered_of_topics_has_a_limit() -> None:
    """However long topics are that nobody wants: whoever may publish once there is a group sends many."""
    hall = Hall(line(2))
    writer = hall.visit(0, "writer")
    hall.settle()
    member(hall, 1, "m")
    shares = hall.desks[0].network.clients.shares
    for number in range(100):
        writer.publish(f"{number}/" + "x" * 30_000, b"")
        hall.settle()
        assert sum(map(len, shares._by_topic)) <= sharing.TOPIC_WEIGHT_MAX
    assert len(shares._by_topic) > 10
