"""Missing deliveries are explained by deleted stores, and by nothing else."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from missing_events import MOMENT_S, UNEXPLAINED, Death, Missed, explain
from plain_clients import Acknowledged, Event, SessionLoss, Subscriber

DELETED = Death("B2", 100.0, 10.0, 0.3, 1.0, 1.2, "deleted")


def reader() -> Subscriber:
    """A subscriber that subscribed anew at 105 s."""
    found = Subscriber("reader", 1, list, "seed", tells=False)
    found.renewed = [1.0, 105.0]
    return found


def missed(at_s: float, broker: str) -> Missed:
    """An event that a broker acknowledged at a moment, and that the subscriber lacks."""
    return Missed(reader(), Event("writer", 1), Acknowledged(at_s, broker))


LOSS = SessionLoss("reader", 90.0, 103.0)


def test_what_a_lost_session_missed_is_explained_until_it_subscribed_anew() -> None:
    """Its client was told that it is new; events that came before or after that are not explained by it."""
    for at_s, is_explained in ((50.0, False), (99.0, True), (103.0, True), (104.9, True), (105.1, False)):
        found = explain([missed(at_s, "B1")], [LOSS], [DELETED])
        assert (found[UNEXPLAINED] == 0) is is_explained


def test_a_session_that_was_lost_though_no_store_was_deleted_explains_nothing() -> None:
    """Neither does one that was deleted before the client was last let in with its session."""
    kept = DELETED._replace(store="kept")
    later = LOSS._replace(since_s=101.0)
    assert explain([missed(103.0, "B1")], [LOSS], [kept])[UNEXPLAINED] == 1
    assert explain([missed(103.0, "B1")], [later], [DELETED])[UNEXPLAINED] == 1


def test_a_session_may_have_been_lost_with_the_first_of_several_stores() -> None:
    """It was at one of their brokers, or on its way through one, since its client was last let in."""
    earlier, long_ago = DELETED._replace(killed_s=95.0, broker="B3"), DELETED._replace(killed_s=80.0)
    assert explain([missed(96.0, "B1")], [LOSS], [earlier, DELETED])[UNEXPLAINED] == 0
    assert explain([missed(85.0, "B1")], [LOSS], [long_ago, earlier])[UNEXPLAINED] == 1


def test_an_event_that_only_the_dead_broker_had_is_explained() -> None:
    """It was acknowledged a moment before, there or elsewhere; not long before, and not after."""
    for broker in ("B2", "B1"):
        assert explain([missed(99.9, broker)], [], [DELETED])[UNEXPLAINED] == 0
        assert explain([missed(99.9 - MOMENT_S, broker)], [], [DELETED])[UNEXPLAINED] == 1
        assert explain([missed(100.1, broker)], [], [DELETED])[UNEXPLAINED] == 1


def test_an_event_that_waited_may_have_been_lost_on_its_way_to_the_next_broker() -> None:
    """Its client was away when a store was deleted; not if it was there, or back before that."""
    for stays, is_explained in (
        ([(0.0, 90.0), (110.0, 120.0)], True),
        ([(0.0, 120.0)], False),
        ([(0.0, 90.0), (97.0, 120.0)], False),
    ):
        one = missed(95.0, "B1")
        one.subscriber.stays = stays
        assert (explain([one], [], [DELETED])[UNEXPLAINED] == 0) is is_explained
