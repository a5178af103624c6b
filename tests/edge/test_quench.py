"""Quenching and sources that come and go: nothing wanted is held back, and buffers keep what matters."""

import random

import pytest

from sojourn.edge.quench import UNKNOWN, CombinedInterest, QuenchError, QuenchFilter, gathered, widened
from sojourn.edge.source import (
    AnswerTimedOut,
    AskQuench,
    Connected,
    Discard,
    Disconnected,
    EventSource,
    Generated,
    Publish,
    Quenched,
    SourceError,
    SourceRules,
)
from sojourn.interest import Event, Filter, covers


def _filter(draw: random.Random) -> Filter:
    low = draw.randrange(90)
    return Filter.parse(f"zone = 'z{draw.randrange(5)}' AND value >= {low} AND value < {low + 10}")


def _box(draw: random.Random) -> Filter:
    """A range in two attributes: such filters cover each other in ways that single ones do not show."""
    x, y = draw.randrange(8), draw.randrange(8)
    return Filter.parse(f"x >= {x} AND x <= {x + 4} AND y >= {y} AND y <= {y + 4}")


def _event(draw: random.Random, number: int = 0) -> Event:
    return Event({"zone": f"z{draw.randrange(7)}", "value": draw.randrange(110)}, source="s", sequence=number)


@pytest.mark.parametrize(("narrow_after", "alternatives_max"), [(1, 64), (5, 64), (1, 3), (4, 1)])
def test_a_source_never_keeps_back_what_is_wanted(narrow_after: int, alternatives_max: int) -> None:
    """Subscriptions come and go, updates get lost: with the newest update no wanted event is rejected."""
    draw = random.Random(narrow_after)
    boxes = random.Random(3)
    combined = CombinedInterest(narrow_after=narrow_after, alternatives_max=alternatives_max)
    source = QuenchFilter()
    active: list[Filter] = []
    for _ in range(300):
        if active and draw.random() < 0.45:
            combined.remove(active.pop(draw.randrange(len(active))))
        else:
            active.append(_filter(draw) if boxes.random() < 0.7 else _box(boxes))
            combined.add(active[-1])
        if draw.random() < 0.3:
            continue  # an update that was lost; the next one bridges the gap
        assert source.apply(combined.update_from(source.version))
        assert source.size <= alternatives_max
        for _ in range(10):
            event = (
                _event(draw)
                if boxes.random() < 0.7
                else Event({"x": boxes.randrange(13), "y": boxes.randrange(13)})
            )
            wanted = any(each.matches(event) for each in active)
            assert source.wants(event) or not wanted
            if narrow_after == 1 and alternatives_max == 64:
                assert source.wants(event) == wanted


def test_the_expression_is_small_and_updates_are_differences() -> None:
    """A hundred subscriptions of a zone are a few intervals; a change sends one alternative, not all."""
    combined = CombinedInterest()
    for zone in range(20):
        for low in range(0, 50, 5):
            combined.add(Filter.parse(f"zone = 'z{zone}' AND value >= {low} AND value < {low + 5}"))
    assert len(combined.expression.conjunctions) == 1, "the same range in all zones is one alternative"
    combined.add(Filter.parse("zone = 'z3' AND value >= 70 AND value < 80"))
    before = combined.version
    assert combined.add(Filter.parse("zone = 'z4' AND value >= 90 AND value < 95"))
    update = combined.update_from(before)
    assert (update.base, len(update.added)) == (before, 1)
    assert update.size_bytes < combined.update_from(UNKNOWN).size_bytes
    assert not combined.add(Filter.parse("zone = 'z4' AND value = 91")), "covered: nobody need be told"


def test_what_only_several_alternatives_cover_is_not_forgotten() -> None:
    """A subscription inside the union of two others is told on when one of the two leaves."""
    combined = CombinedInterest()
    left = Filter.parse("x >= 0 AND x <= 10 AND y >= 0 AND y < 5")
    right = Filter.parse("x >= 5 AND x <= 15 AND y >= 5 AND y <= 10")
    inside = Filter.parse("x >= 6 AND x <= 9 AND y >= 2 AND y <= 8")
    combined.add(left)
    combined.add(right)
    assert not combined.add(inside)
    combined.remove(right)
    assert covers(combined.expression, inside)
    assert not covers(combined.expression, right)


def test_a_source_that_missed_a_version_asks_for_all() -> None:
    """An update from elsewhere is refused, an old one is harmless, a whole one is always taken."""
    combined = CombinedInterest()
    combined.add(Filter.parse("a = 1"))
    first = combined.update_from(UNKNOWN)
    combined.add(Filter.parse("b = 1 AND c = 2"))
    second = combined.update_from(1)
    source = QuenchFilter()
    assert not source.apply(second)
    assert source.wants(Event({"z": 1})), "without an expression everything goes"
    assert source.apply(first)
    assert source.apply(second)
    assert source.apply(second)
    assert source.wants(Event({"b": 1, "c": 2}))
    assert not source.wants(Event({"z": 1}))
    core = EventSource(SourceRules(quench=True))
    core.handle(Connected(), 0.0)
    assert core.handle(Quenched(second), 0.0) == [AskQuench(UNKNOWN, 2, 5.0)]


def test_gathering_keeps_the_meaning() -> None:
    """Joined all at once or pair by pair: each covers the other."""
    draw = random.Random(10)
    for _ in range(10):
        filters = [_filter(draw) for _ in range(25)] + [
            Filter.parse("other = 3"),
            Filter.parse("zone = 'z1'"),
        ]
        every = [conjunction for each in filters for conjunction in each.conjunctions]
        few, merged = Filter(gathered(every)), Filter.union(every)
        assert covers(few, merged)
        assert covers(merged, few)
        assert len(few.conjunctions) < len(every)


def test_widening_never_narrows() -> None:
    """However few alternatives are allowed, what was let through still is."""
    draw = random.Random(9)
    for most in (1, 2, 5):
        filters = [_filter(draw) for _ in range(15)] + [Filter.parse("other = 3")]
        every = Filter.union(c for each in filters for c in each.conjunctions)
        wide = Filter(widened(every.conjunctions, most))
        assert len(wide.conjunctions) <= most
        assert all(covers(wide, each) for each in filters)


def test_a_disconnected_source_discards_by_what_it_knows_only_when_full() -> None:
    """Room for all: nothing is lost, wanted or not. No room: the rejected go first, the oldest first."""
    combined = CombinedInterest()
    combined.add(Filter.parse("zone = 'a'"))
    events = [Event({"zone": zone}, source="s", sequence=n) for n, zone in enumerate("abababab")]
    outcomes = {}
    for discarding in ("oldest", "quench"):
        source = EventSource(SourceRules(quench=True, discarding=discarding, buffer_events_max=5))
        source.handle(Connected(), 0.0)
        source.handle(Quenched(combined.update_from(UNKNOWN)), 0.0)
        source.handle(Disconnected(), 0.0)
        effects = [effect for event in events for effect in source.handle(Generated(event, 10), 1.0)]
        gone = [
            effect for effect in effects if isinstance(effect, Discard) and effect.reason == "buffer_full"
        ]
        assert gone == effects
        outcomes[discarding] = [discard.event.sequence for discard in gone]
    assert outcomes == {"oldest": [0, 1, 2], "quench": [1, 3, 5]}
    roomy = EventSource(SourceRules(quench=True, discarding="quench"))
    roomy.handle(Connected(), 0.0)
    roomy.handle(Quenched(combined.update_from(UNKNOWN)), 0.0)
    roomy.handle(Disconnected(), 0.0)
    assert not [effect for event in events for effect in roomy.handle(Generated(event, 10), 1.0)]
    combined.add(Filter.parse("zone = 'b'"))
    roomy.handle(Connected(), 2.0)
    sent = roomy.handle(Quenched(combined.update_from(roomy.filter.version)), 2.0)
    numbers = [effect.event.sequence for effect in sent if isinstance(effect, Publish)]
    assert numbers == list(range(8)), "a new subscription gets them too"


def test_a_broker_that_does_not_answer_gets_everything() -> None:
    """After the time-out the buffer is uploaded in order, once."""
    source = EventSource(SourceRules(quench=True))
    for number in range(3):
        source.handle(Generated(Event({"a": 1}, sequence=number), 10), 0.0)
    (asked,) = source.handle(Connected(), 0.0)
    assert isinstance(asked, AskQuench)
    assert source.handle(Generated(Event({"a": 1}, sequence=3), 10), 0.0) == []
    sent = source.handle(AnswerTimedOut(asked.token), 5.0)
    assert [effect.event.sequence for effect in sent if isinstance(effect, Publish)] == [0, 1, 2, 3]
    assert source.handle(AnswerTimedOut(asked.token), 6.0) == []
    assert source.buffered == 0


def test_refusals_are_one_sentence() -> None:
    """What cannot be is named."""
    with pytest.raises(SourceError, match="needs quench"):
        EventSource(SourceRules(discarding="quench"))
    with pytest.raises(SourceError, match="buffer_bytes_max must be at least 1"):
        EventSource(SourceRules(buffer_bytes_max=0))
    with pytest.raises(QuenchError, match="narrow_after"):
        CombinedInterest(narrow_after=0)
    with pytest.raises(QuenchError, match="not active"):
        CombinedInterest().remove(Filter.parse("a = 1"))
