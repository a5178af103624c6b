"""Many who go at once go in turn with what others ask for."""

from __future__ import annotations

import itertools
from typing import Any

import mqtt5
import pytest
from mqtt5 import ConnectPacket, DisconnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter

from sojourn.broker import facts
from sojourn.mqtt import costs
from sojourn.mqtt import state as state_module
from sojourn.mqtt.state import WILL_DUE
from sojourn.mqtt.timekeeping import DUE_MAX
from tests.broker.alone import PING, PINGRESP, Alone, patterns

MANY = 100


def gone_by_slices(hall: Alone, numbers: list[int]) -> list[int]:
    """Lose connections in one turn; return how many are gone at once, and then with each slice."""
    connections = hall.broker.core.state.connections
    left = [len(connections)]
    for number in numbers:
        hall.tell(facts.ClientLost(number))
    left.append(len(connections))
    while hall.broker.has_slices:
        hall.broker.handle(facts.ReadyForMore(), hall.now)
        left.append(len(connections))
    return [before - after for before, after in itertools.pairwise(left)]


@pytest.mark.parametrize("traces", [False, True])
def test_wills_of_many_are_published_some_at_once(traces: bool) -> None:
    """A ping in between is answered, every will is published once, and a journal tells the same."""
    hall = Alone(traces=traces)
    watcher, other = hall.client("watcher"), hall.client("other")
    hall.send(watcher, SubscribePacket(1, [TopicFilter("will/#")]))
    numbers = [
        hall.client(f"c{one}", will=mqtt5.Will(f"will/{one}", payload=b"gone"), session_expiry_interval=600)
        for one in range(MANY)
    ]
    hall.settle()
    hall.came.clear()
    for number in numbers:
        hall.tell(facts.ClientLost(number))
    hall.send(other, PING)
    hall.turn()
    state = hall.broker.core.state
    assert len(state.connections) > MANY // 2
    hall.turn()
    assert hall.came[other] == PINGRESP
    hall.settle()
    assert state.connections.keys() == {watcher, other}
    wills = [one.topic for one in hall.packets(watcher) if isinstance(one, mqtt5.PublishPacket)]
    assert sorted(wills) == sorted(f"will/{one}" for one in range(MANY))
    again = hall.again().core.state.sessions
    mine = {name: one.expires_s for name, one in state.sessions.items() if one.expiry}
    assert {name: one.expires_s for name, one in again.items()} == mine


def test_no_slice_has_more_than_some_of_those_who_go() -> None:
    """Neither the turn in which they go nor any slice after it."""
    hall = Alone()
    numbers = [hall.client(f"c{one}", session_expiry_interval=600) for one in range(MANY)]
    first, *others = gone_by_slices(hall, numbers)
    assert 0 < first <= costs.UNSLICED_MAX // costs.LOSS + 1
    assert max(others) <= costs.SLICE // costs.LOSS
    assert first + sum(others) == MANY


def mourned(count: int, audience: int, delay_s: int) -> tuple[Alone, list[int]]:
    """Clients whose wills many get."""
    hall = Alone()
    for number in range(audience):
        hall.send(hall.client(f"s{number}"), SubscribePacket(1, [TopicFilter("will")]))
        hall.settle()
    will = mqtt5.Will("will", payload=b"gone", will_delay_interval=delay_s)
    return hall, [hall.client(f"c{one}", will=will, session_expiry_interval=600) for one in range(count)]


def test_wills_that_many_get_are_published_one_by_one() -> None:
    """Each costs what such an event costs, however its client went."""
    hall, numbers = mourned(20, 1_000, 0)
    first, *others = gone_by_slices(hall, numbers)
    assert first <= costs.UNSLICED_MAX * costs.RECIPIENTS // 1_000 + 1
    assert max(others) == 1
    assert first + sum(others) == 20


def test_wills_that_fall_due_together_are_published_some_at_once() -> None:
    """As many as take about as long as sessions that end."""
    hall, numbers = mourned(30, 1_000, 5)
    for number in numbers:
        hall.tell(facts.ClientLost(number))
        hall.settle()
    state = hall.broker.core.state
    hall.now += 6
    rounds = []
    while (left := sum(session.will is not None for session in state.sessions.values())) > 0:
        hall.broker.handle(facts.TimePassed(), hall.now)
        rounds.append(left - sum(session.will is not None for session in state.sessions.values()))
    assert sum(rounds) == 30
    assert max(rounds) <= DUE_MAX * WILL_DUE * costs.RECIPIENTS // 1_000 + 1


def test_sessions_with_many_subscriptions_end_one_by_one() -> None:
    """Who subscribed to much takes its time to go, and one that has gone is asked about no more."""
    hall = Alone()
    numbers = [hall.client(f"c{one}") for one in range(6)]
    for number in numbers:
        hall.send(number, patterns(200))
        hall.settle()
    first, *others = gone_by_slices(hall, numbers)
    assert first == 1
    assert max(others) == 1
    assert first + sum(others) == 6
    assert hall.broker.core.state.subscriptions == 0


def test_sessions_with_many_subscriptions_run_out_one_by_one() -> None:
    """Also where they end because their time has come, all at one moment."""
    hall = Alone()
    numbers = [hall.client(f"c{one}", session_expiry_interval=20) for one in range(6)]
    for number in numbers:
        hall.send(number, patterns(1_000))
        hall.settle()
        hall.tell(facts.ClientLost(number))
        hall.settle()
    hall.now += 60.0
    sessions = hall.broker.core.state.sessions
    left = []
    while sessions:
        hall.tell(facts.TimePassed())
        left.append(len(sessions))
        hall.turn()
    assert left == [5, 4, 3, 2, 1, 0]
    assert not hall.again().core.state.sessions


def subscribed(hall: Alone, count: int, **options: Any) -> list[int]:
    """Clients with many subscriptions."""
    numbers = []
    for one in range(count):
        numbers.append(hall.client(f"c{one}", **options))
        hall.send(numbers[-1], patterns(1_000))
        hall.settle()
    return numbers


def ended_by_time(hall: Alone) -> list[int]:
    """Let what is due be done; return how many sessions are left after each part."""
    sessions, left = hall.broker.core.state.sessions, []
    while sessions:
        hall.tell(facts.TimePassed())
        left.append(len(sessions))
        hall.turn()
    return left


@pytest.mark.parametrize("traces", [False, True])
def test_sessions_that_end_with_silent_connections_end_one_by_one(traces: bool) -> None:
    """Clients that kept nothing beyond their connection take as long, and a journal tells the same."""
    hall = Alone(traces=traces)
    subscribed(hall, 6, keep_alive=10)
    hall.now += 60.0
    assert ended_by_time(hall) == [5, 4, 3, 2, 1, 0]
    assert not hall.again().core.state.sessions


def test_clients_that_spoke_in_time_do_not_put_off_what_else_is_due() -> None:
    """Nothing of them ends, however much they subscribed to."""
    hall = Alone()
    numbers = subscribed(hall, 6, keep_alive=10)
    for _ in range(3):
        hall.now += 6.0
        for number in numbers:
            hall.send(number, PING)
        hall.settle()
    hall.tell(facts.TimePassed())
    moment_s = hall.broker.next_moment()
    assert moment_s is not None
    assert moment_s > hall.now


def test_sessions_for_which_much_waits_end_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """To let go of what waits takes its time too."""
    monkeypatch.setattr(state_module, "QUEUED_DUE", 1)
    hall = Alone()
    for one in range(4):
        number = hall.client(f"c{one}", session_expiry_interval=20)
        hall.send(number, SubscribePacket(1, [TopicFilter("t", max_qos=QoS.AT_LEAST_ONCE)]))
        hall.tell(facts.ClientLost(number))
        hall.settle()
    publisher = hall.client("publisher")
    for packet_id in range(1, DUE_MAX + 1):
        hall.send(publisher, PublishPacket("t", b"x", qos=QoS.AT_LEAST_ONCE, packet_id=packet_id))
        hall.settle()
    hall.tell(facts.ClientLost(publisher))
    hall.settle()
    hall.now += 60.0
    assert ended_by_time(hall) == [3, 2, 1, 0]


@pytest.mark.parametrize("leaves", [None, DisconnectPacket().write(), b"\xff\x00"])
def test_no_turn_ends_more_than_one_session_with_many_subscriptions(leaves: bytes | None) -> None:
    """However clients go: neither the turn in which they do nor one that takes a slice of those who wait."""
    hall = Alone()
    numbers = subscribed(hall, 6)
    sessions = hall.broker.core.state.sessions
    left: list[int] = []
    for number in numbers:
        hall.tell(facts.ClientLost(number) if leaves is None else facts.ClientSent(number, leaves))
    while sessions:
        if left:
            hall.broker.handle(facts.ReadyForMore(), hall.now)  # as a driver does before it ends a turn
        hall.turn()
        left.append(len(sessions))
    assert left == [5, 4, 3, 2, 1, 0]
    assert not hall.again().core.state.sessions


def test_what_clients_say_before_their_rights_are_looked_at_is_told_again() -> None:
    """Who runs out of rights behind others is closed later, and a journal says when."""
    hall = Alone()
    until_s = hall.now + 30.0
    for one in range(3):
        hall.opened += 1
        connect = ConnectPacket(f"c{one}", keep_alive=0, session_expiry_interval=600 if one == 2 else 0)
        hall.tell(facts.ClientOpened(hall.opened, "here", f"fresh-{one}"))
        hall.broker.handle(facts.ClientSent(hall.opened, connect.write()), hall.now)
        hall.broker.knocks.clear()
        hall.tell(facts.ClientAdmitted(hall.opened, until_s=until_s))
        hall.send(hall.opened, patterns(1 if one == 2 else 1_000))
        hall.settle()
    hall.now = until_s
    hall.tell(facts.TimePassed())
    hall.turn()
    hall.send(hall.opened, SubscribePacket(8, [TopicFilter("late")]))
    hall.settle()
    while (moment_s := hall.broker.next_moment()) is not None and moment_s <= hall.now:
        hall.tell(facts.TimePassed())
        hall.turn()
    assert hall.closed == {1, 2, 3}
    again = hall.again().core.state.sessions
    assert {name: [*one.subscriptions] for name, one in again.items()} == {"c2": ["d/0/0/+", "late"]}
