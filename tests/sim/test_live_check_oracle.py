"""What the oracle of `sojourn check live` takes for a broken promise, and what not."""

from __future__ import annotations

import pytest

from sojourn.sim.live_check.events import Event, Send, Wish
from sojourn.sim.live_check.oracle import Diary, FailedCheckError
from sojourn.sim.live_check.script import Spec, write_script
from sojourn.sim.live_check.world import World

TOPIC = "r/0"


@pytest.fixture
def diary() -> Diary:
    """What a client knows that is not there yet, in a world where nothing has happened."""
    world = World(write_script(Spec(seed=0, seconds=1.0, faults=())))
    return next(walker.client.diary for walker in world.walkers if walker.persona.expiry_s)


def _begin(diary: Diary, *stated: str) -> None:
    """Connect, saying what the client has; begin anew, and subscribe."""
    wish = Wish(TOPIC, "", 1, 0)
    diary.connects(0, clean=True, stated=frozenset(stated))
    diary.begins(0, present=False)
    diary.asks(wish, 0)
    diary.granted(wish)


def _retained(diary: Diary) -> dict[str, str]:
    """Return what is retained in the end: an event that somebody else had published before."""
    event = Event("c9", 1, TOPIC, 3, 1, retain=True)
    event.sends.append(Send(0.0, 0, 1))
    event.acked_s = 0.0
    event.is_anew = False
    diary.makes(event)
    return {TOPIC: event.name}


def test_who_was_not_given_a_retained_event_is_missed(diary: Diary) -> None:
    """It subscribed to the topic, and does not know its value."""
    values = _retained(diary)
    _begin(diary)
    with pytest.raises(FailedCheckError, match=r"does not know c9\.1"):
        diary.judge_retained(values)


def test_who_says_that_it_has_an_event_is_not_sent_it_again(diary: Diary) -> None:
    """It had it in a session that is gone, and marks of that came with the CONNECT of the new one."""
    values = _retained(diary)
    _begin(diary, values[TOPIC])
    diary.judge_retained(values)


def test_what_was_stated_to_a_session_holds_for_one_that_may_be_the_same(diary: Diary) -> None:
    """The client began anew, and cannot know whether what it finds later is what it began then."""
    values = _retained(diary)
    _begin(diary)
    _begin(diary, values[TOPIC])
    diary.connects(1, clean=False, stated=frozenset())
    diary.begins(1, present=True)
    assert diary.session is not None
    assert values[TOPIC] in diary.session.stated


@pytest.mark.parametrize("is_retained", [True, False])
def test_what_was_given_to_a_session_holds_for_one_that_may_be_the_same(
    diary: Diary, *, is_retained: bool
) -> None:
    """It began anew while another part of the network had its old session, and came back to that."""
    values = _retained(diary)
    _begin(diary)
    diary.arrived(values[TOPIC], TOPIC, 1, is_again=False, is_retained=is_retained)
    diary.connects(1, clean=False, stated=frozenset())
    assert diary.begins(1, present=True), "it may be the old one"
    wish = Wish(TOPIC, "", 1, 0)
    diary.asks(wish, 1)
    diary.granted(wish)
    diary.judge_retained(values)
