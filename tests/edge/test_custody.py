"""Displayers that move: each event once, whatever the old broker does, and not so without asking it."""

import pytest

from sojourn.edge.connections import Connection, Fetch, Handed
from sojourn.edge.custody import Custody, CustodyRules, Deliver, Settled
from sojourn.edge.displayer import Arrived, Connected, Disconnected, EventDisplayer, Show, Upload
from sojourn.edge.filters import DisplayerError
from sojourn.edge.queues import Queued, QueuePolicy
from sojourn.interest.events import Event
from sojourn.sim.edge.roaming import EdgeRoaming, roam_edge

POLICY = QueuePolicy()


def _item(number: int, generated_s: float) -> Queued:
    return Queued(Event({"a": 1}, source="s", sequence=number), generated_s, 10)


def _numbers(effects: object) -> list[int]:
    assert isinstance(effects, list)
    return [effect.item.event.sequence for effect in effects if isinstance(effect, Deliver)]


@pytest.mark.parametrize("architecture", ["multicast", "broadcast"])
@pytest.mark.parametrize("coordination", ["log", "wait"])
def test_each_event_once_over_random_moves_and_failures(architecture: str, coordination: str) -> None:
    """Brokers down, links cut, displayers thrown out: nothing lost, nothing twice, nothing unwanted."""
    old_down = 0
    for seed in range(1, 16):
        roaming = EdgeRoaming(
            seed=seed,
            architecture=architecture,
            coordination=coordination,  # type: ignore[arg-type]  # pytest gives plain texts
            duration_s=80.0,
        )
        roamed = roam_edge(roaming)
        assert (roamed.lost, roamed.duplicated, roamed.unwanted) == (0, 0, 0), f"seed {seed}"
        assert roamed.expected > 100
        old_down += roamed.while_old_down
    assert old_down > 100, "the runs must contain what they are about"


def test_without_asking_events_come_twice() -> None:
    """The same runs show duplicates and losses when brokers do not ask each other: the test can fail."""
    roamed = roam_edge(EdgeRoaming(coordination="careless"))
    assert roamed.duplicated > 0


def test_a_run_repeats_itself() -> None:
    """One seed, one outcome."""
    assert roam_edge(EdgeRoaming(seed=5, duration_s=30)) == roam_edge(EdgeRoaming(seed=5, duration_s=30))


def test_new_events_flow_while_the_old_broker_is_silent() -> None:
    """What was generated after the last connection elsewhere comes at once, the rest after the answer."""
    custody = Custody(7, 2, CustodyRules(skew_s=0.5), POLICY)
    log = [Connection(1, 1, 0.0, 10.0, 3)]
    effects = custody.arrive(2, log, POLICY, 12.0)
    assert effects == [Settled(2, 2), Fetch(1, 2, 7, 2, ((1, 3),))]
    assert _numbers(custody.event(_item(8, 9.0), 12.1)) == []
    assert _numbers(custody.event(_item(9, 10.4), 12.1)) == [], "clocks may differ by half a second"
    assert _numbers(custody.event(_item(10, 11.0), 12.2)) == [10]
    assert _numbers(custody.event(_item(10, 11.0), 12.3)) == []
    answer = Handed(2, 1, 7, 2, (_item(7, 8.0), _item(9, 10.4), _item(10, 11.0)), ((("s", 8), 9.0),))
    effects = custody.handed(answer, 13.0)
    assert sorted(_numbers(effects)) == [7, 9]
    assert Settled(2, 1) in effects
    assert custody.waiting == 0


def test_what_was_on_the_way_when_a_connection_broke_is_sent_again() -> None:
    """The log's count of received events tells which ones, at the same broker or another."""
    custody = Custody(7, 1, CustodyRules(), POLICY)
    custody.arrive(1, [], POLICY, 0.0)
    for number in range(4):
        custody.event(_item(number, 1.0), 1.0)
    custody.lose(1, 2.0)
    assert custody.event(_item(4, 2.5), 2.5) == []
    answer = custody.fetched(Fetch(1, 3, 7, 2, ((1, 3),)), 3.0)
    assert answer is not None
    (handed,) = answer
    assert isinstance(handed, Handed)
    assert [item.event.sequence for item in handed.items] == [3, 4]
    assert {event for event, _ in handed.delivered} == {("s", 0), ("s", 1), ("s", 2)}
    assert custody.fetched(Fetch(1, 4, 7, 2, ()), 3.0) is None, "an older question changes nothing"
    # A late answer of a third broker goes after the displayer.
    (passed_on,) = custody.handed(Handed(1, 9, 7, 1, (_item(5, 0.5),), ()), 4.0)
    assert isinstance(passed_on, Handed)
    assert passed_on.destination == 3


def test_a_displayer_logs_its_connections_and_strikes_out_settled_ones() -> None:
    """Subscriptions and log go up at each connection; a closed connection shows nothing any more."""
    displayer = EventDisplayer((4, 5))
    (first,) = displayer.handle(Connected(1), 0.0)
    assert isinstance(first, Upload)
    assert (first.subscriptions, first.log) == ((4, 5), ())
    (shown,) = displayer.handle(Arrived(1, Deliver(1, 0, _item(0, 0.0))), 1.0)
    assert isinstance(shown, Show)
    displayer.handle(Disconnected(1), 2.0)
    assert displayer.handle(Arrived(1, Deliver(1, 1, _item(1, 0.0))), 2.1) == []
    (second,) = displayer.handle(Connected(2), 3.0)
    assert isinstance(second, Upload)
    assert second.log == (Connection(1, 1, 0.0, 2.0, 1),)
    displayer.handle(Arrived(2, Settled(2, 1)), 4.0)
    assert [line.broker for line in displayer.log] == [2]
    short = EventDisplayer((), log_max=2)
    for broker in range(5):
        short.handle(Connected(broker), float(broker))
    assert len(short.log) == 2
    with pytest.raises(DisplayerError, match="log_max"):
        EventDisplayer((), log_max=0)
