"""What SUBACK promises: an event published anywhere in reach after it is delivered."""

from __future__ import annotations

import random

import mqtt5
import pytest

from sojourn.broker.confirming import WAVE_S
from tests.live.hall import Hall, Visitor, line


def guest(hall: Hall, broker: int, name: str) -> Visitor:
    """A client that was let in."""
    visitor = hall.visit(broker, name)
    hall.settle()
    assert isinstance(visitor.inbox.popleft(), mqtt5.ConnAckPacket)
    return visitor


def is_answered(visitor: Visitor) -> bool:
    """Whether a client was told that its subscription is made."""
    return any(isinstance(packet, mqtt5.SubAckPacket) for packet in visitor.inbox)


@pytest.mark.parametrize("seed", range(40))
def test_who_was_answered_misses_nothing(seed: int) -> None:
    """However slowly links carry: an event published at the far end at the moment of SUBACK arrives."""
    draw = random.Random(seed)
    hall = Hall(line(draw.randrange(2, 6)))
    reader, writer = guest(hall, 0, "reader"), guest(hall, len(hall.desks) - 1, "writer")
    reader.ask("news")
    assert not is_answered(reader), "nobody else knows of it yet"
    steps = 0
    while not is_answered(reader):
        hall.step(draw)
        steps += 1
        assert steps < 1_000
    writer.publish("news", b"at once")
    hall.settle()
    assert reader.got == [b"at once"]


def test_all_who_ask_while_a_wave_is_under_way_are_answered_by_the_next() -> None:
    """One wave for all of them, however many they are."""
    hall = Hall(line(3))
    readers = [guest(hall, 0, f"reader {number}") for number in range(3)]
    round_trip = [("B1", "B2"), ("B2", "B3"), ("B3", "B2"), ("B2", "B1")]
    for number, reader in enumerate(readers):
        reader.ask(f"topic {number}")
    answered = []
    for _ in range(2):
        for end, far in round_trip:
            hall.carry(end, far)
        answered.append([is_answered(reader) for reader in readers])
    assert answered == [[True, False, False], [True, True, True]]


def test_a_broker_that_is_cut_off_is_not_waited_for() -> None:
    """Neither one that was away when the client asked, nor one that goes meanwhile."""
    hall = Hall(line(3))
    early, late = guest(hall, 0, "early"), guest(hall, 0, "late")
    early.ask("news")
    hall.carry("B1", "B2")
    hall.unlink("B3")
    hall.settle()
    assert is_answered(early)
    late.ask("news")
    hall.settle()
    assert is_answered(late)
    hall.unlink("B2")
    late.inbox.clear()
    late.ask("more")
    assert is_answered(late), "nobody is in reach"


def test_a_broker_that_is_back_learns_of_the_subscription() -> None:
    """What it accepts after that is delivered."""
    hall = Hall(line(3))
    reader, writer = guest(hall, 0, "reader"), guest(hall, 2, "writer")
    hall.unlink("B3")
    reader.subscribe("news")
    hall.relink()
    hall.settle()
    writer.publish("news", b"back")
    hall.settle()
    assert reader.got == [b"back"]


def test_a_stalled_link_delays_an_answer_for_a_limited_time() -> None:
    """It is there and carries nothing: the client is told all the same, and that is counted."""
    hall = Hall(line(2))
    reader = guest(hall, 0, "reader")
    hall.settle()
    reader.ask("news")
    desk = hall.desks[0]
    assert desk.due_s <= hall.now + WAVE_S
    hall.now += WAVE_S - 0.1
    hall.tick()
    assert not is_answered(reader)
    hall.now += 0.2
    hall.tick()
    assert is_answered(reader)
    assert desk.network.confirming.unconfirmed == 1


def test_an_answer_that_comes_too_late_answers_nobody_else() -> None:
    """The echo of a wave that was given up does not confirm the next one."""
    hall = Hall(line(2))
    early, late = guest(hall, 0, "early"), guest(hall, 0, "late")
    early.ask("a")
    hall.now += WAVE_S + 0.1
    hall.tick()
    assert is_answered(early)
    hall.carry("B1", "B2")
    late.ask("b")
    hall.carry("B2", "B1")
    assert not is_answered(late), "that was the echo of the first wave"
    hall.settle()
    assert is_answered(late)


def test_a_client_whose_connection_goes_meanwhile_harms_nobody() -> None:
    """Its answer has nowhere to go."""
    hall = Hall(line(2))
    reader, other = guest(hall, 0, "reader"), guest(hall, 0, "other")
    reader.ask("news")
    other.ask("news")
    reader.lose()
    hall.settle()
    assert not is_answered(reader)
    assert is_answered(other)


def test_where_events_are_flooded_or_nobody_is_near_answers_come_at_once() -> None:
    """No broker has to know of a subscription."""
    for hall in (Hall(line(2, mode="flooding")), Hall(line(1))):
        reader = guest(hall, 0, "reader")
        reader.ask("news")
        assert is_answered(reader)
