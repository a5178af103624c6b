"""What quenching costs a broker: nothing for those who may not know, and little whatever is wanted."""

from __future__ import annotations

from collections import Counter

import mqtt5
import msgspec
import pytest

from sojourn.broker import quenching
from sojourn.broker.facts import ClientAdmitted
from sojourn.edge.quench import CombinedInterest
from sojourn.interest.work import TopicsTooComplexError, Work, within
from sojourn.mqtt import conventions
from sojourn.mqtt.content import interest_of
from sojourn.mqtt.effects import Knock
from sojourn.mqtt.rights import NOTHING
from tests.live.hall import Hall, Visitor, line

QUENCH = [(conventions.QUENCH, "1")]


def has_no_rights(knock: Knock) -> ClientAdmitted:
    """Let in everybody, and let clients named `guest` see nothing."""
    allowed: list[str] | None = [] if knock.packet.client_id == "guest" else None
    return ClientAdmitted(knock.number, subscribe=allowed)


def was_told_everything(source: Visitor) -> bool:
    """Whether the last thing that a source heard is to send everything."""
    return bool(msgspec.json.decode(source.got[-1])["added"] == [[0, "TRUE"]])


@pytest.mark.parametrize("brokers", [1, 2])
def test_who_may_not_know_what_is_wanted_has_nothing_combined(
    brokers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told to send everything, however often it comes; and so is one that loses its rights."""
    hall = Hall(line(brokers), has_no_rights)
    reader = hall.visit(0, "reader")
    reader.ask("cars/#")
    hall.settle()
    made: list[CombinedInterest] = []

    def combined(**options: int) -> CombinedInterest:
        made.append(CombinedInterest(**options))
        return made[-1]

    monkeypatch.setattr(quenching, "CombinedInterest", combined)
    for _ in range(3):
        guest = hall.visit(0, "guest", user_properties=QUENCH)
        hall.settle()
        assert was_told_everything(guest)
    assert made == []
    trusted = hall.visit(0, "trusted", user_properties=QUENCH)
    hall.settle()
    assert not was_told_everything(trusted)
    before = len(made)
    assert before
    hall.desks[0].broker.core.state.sessions["trusted"].permissions = NOTHING
    reader.ask("bikes/#")
    hall.settle()
    assert was_told_everything(trusted)
    assert len(made) == before


CROSSED = ["+/" * (n % 5) + f"a{n}/+/{n}/#" for n in range(150)]


def test_patterns_that_are_too_many_to_combine_are_not_combined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps are taken, whatever a client asks for; sources are told to send everything meanwhile."""
    hall = Hall(line(1))
    source = hall.visit(0, "source", user_properties=QUENCH)
    reader = hall.visit(0, "reader")
    reader.ask("cars/#")
    hall.settle()
    assert not was_told_everything(source)
    steps: list[int] = []
    spend = Work.spend

    def counted(work: Work, count: int) -> None:
        spend(work, count)
        steps.append(count)

    monkeypatch.setattr(Work, "spend", counted)
    wanted = Counter(interest_of(one, None) for one in CROSSED)
    steps.clear()
    with pytest.raises(TopicsTooComplexError):
        CombinedInterest(steps_max=quenching.STEPS_MAX).add_all(wanted)
    assert sum(steps) <= quenching.STEPS_MAX
    reader.send(mqtt5.SubscribePacket(9, [mqtt5.TopicFilter(one) for one in CROSSED]))
    hall.settle()
    assert was_told_everything(source)
    reader.send(mqtt5.UnsubscribePacket(10, CROSSED))
    hall.settle()
    assert not was_told_everything(source)


def test_changes_of_one_turn_share_what_they_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight patterns that come at once take no more steps than one, however they are entangled."""
    hall = Hall(line(1))
    source, reader = hall.visit(0, "source", user_properties=QUENCH), hall.visit(0, "reader")
    reader.send(mqtt5.SubscribePacket(8, [mqtt5.TopicFilter(one) for one in CROSSED[:20]]))
    hall.settle()
    assert not was_told_everything(source)
    steps: list[int] = []
    spend = Work.spend

    def counted(work: Work, count: int) -> None:
        spend(work, count)
        steps.append(count)

    wanted = [mqtt5.TopicFilter(one) for one in CROSSED[20:28]]
    monkeypatch.setattr(Work, "spend", counted)
    reader.send(mqtt5.SubscribePacket(9, wanted))
    hall.settle()
    limit = quenching.CHANGE_STEPS_MAX + quenching.STEPS_MAX
    assert quenching.CHANGE_STEPS_MAX < sum(steps) <= limit + 500, "some for reading them"


@pytest.mark.parametrize("at_once", [1, 3, 9, 10, 11, 70])
def test_it_does_not_depend_on_turns_what_sources_are_told(at_once: int) -> None:
    """Seventy patterns beside each other are few enough, whichever of them come together."""
    hall = Hall(line(1))
    source, reader = hall.visit(0, "source", user_properties=QUENCH), hall.visit(0, "reader")
    for first in range(0, 70, at_once):
        together = [mqtt5.TopicFilter(f"t/{n}/#") for n in range(first, min(70, first + at_once))]
        reader.send(mqtt5.SubscribePacket(9 + first, together))
        hall.settle()
        assert not was_told_everything(source), first


def test_what_narrowing_takes_is_counted_for_whoever_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps that are taken are taken from what is allowed around."""
    interests = [interest_of(one, None) for one in CROSSED[:20]]
    combined = CombinedInterest(steps_max=quenching.STEPS_MAX, narrow_after=100)
    combined.add_all(interests)
    for one in interests[:10]:
        combined.remove(one)
    taken: list[int] = []
    spend = Work.spend

    def counted(work: Work, count: int) -> None:
        spend(work, count)
        taken.append(count)

    monkeypatch.setattr(Work, "spend", counted)
    with within(Work(quenching.STEPS_MAX)) as work:
        combined.narrow()
    assert sum(taken) == quenching.STEPS_MAX - work.left > 1_000
