"""The fixed network as nodes of an ad-hoc network find it."""

from sojourn.adhoc.election.messages import Custody, Kept
from sojourn.interest.events import Event
from sojourn.sim.election.fixed import FixedNetwork


def _kept(number: int, term: int = 1) -> Kept:
    event = Event({"value": number}, source="s", sequence=10 * term + number)
    return Kept(event, 0.0, Custody(broker=3, term=term, number=number))


def test_what_is_offered_again_is_known_by_its_stream_and_number() -> None:
    """Once is enough, and another term is another stream."""
    fixed = FixedNetwork()
    for kept in (_kept(1), _kept(2), _kept(1), _kept(2), _kept(1, term=2)):
        fixed.take(kept)
    assert set(fixed.got.values()) == {1}
    assert (len(fixed.got), fixed.repeats) == (3, 2)


def test_who_was_in_reach_once_finds_what_came_since() -> None:
    """In order; what it was not told stays, also while it is out of reach; others have their own sessions."""
    fixed = FixedNetwork()
    events = [Event({"value": n}, source="s", sequence=n) for n in range(4)]
    fixed.publish(events[0])
    fixed.connect(5)
    assert fixed.next_for(5) is None, "it was not there"
    fixed.publish(events[1])
    fixed.reach.discard(5)
    fixed.publish(events[2])
    fixed.connect(5)
    fixed.connect(6)
    fixed.publish(events[3])
    assert fixed.next_for(5) is fixed.next_for(5) is events[1], "until it is told"
    told = []
    while (event := fixed.next_for(5)) is not None:
        told.append(event)
        fixed.told(5)
    assert told == events[1:]
    assert fixed.next_for(6) is events[3]
