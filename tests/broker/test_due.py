"""Much that is due at once is done in parts, and a journal says which."""

from __future__ import annotations

import pytest
from mqtt5 import SubscribePacket, TopicFilter

from sojourn.broker import facts, network
from sojourn.broker.live_broker import LiveBroker
from sojourn.mqtt import timekeeping
from tests.broker.alone import PING, Alone

MANY = 12


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timekeeping, "DUE_MAX", 5)
    monkeypatch.setattr("sojourn.broker.live_broker.TIMERS_MAX", 5)


def _left(alone: Alone, *, traces: bool) -> int:
    """Let clients with short keep-alives come, and some go whose sessions end at one moment."""
    for number in range(MANY):
        stays = alone.client(f"stays-{number}", keep_alive=10)
        leaves = alone.client(f"leaves-{number}", keep_alive=0, session_expiry_interval=20)
        alone.send(leaves, SubscribePacket(1, [TopicFilter(f"news/{number}")]))
        alone.tell(facts.ClientLost(leaves))
        alone.turn()
    assert traces == (alone.broker.network is not None)
    return stays


@pytest.mark.parametrize("traces", [False, True])
def test_sessions_that_end_at_once_end_a_few_at_a_time(*, traces: bool) -> None:
    """Others are served in between; nothing is forgotten, and what is left is due at once."""
    alone = Alone(traces=traces)
    _left(alone, traces=traces)
    before = len(alone.broker.core.state.sessions)
    alone.now += 60.0
    ended = []
    for _ in range(50):
        moment_s = alone.broker.next_moment()
        if moment_s is None or moment_s > alone.now:
            break
        alone.tell(facts.TimePassed())
        alone.turn()
        left = len(alone.broker.core.state.sessions)
        ended.append(before - left)
        before = left
    assert not alone.broker.core.state.sessions
    assert max(ended) <= timekeeping.DUE_MAX
    assert sum(ended) == 2 * MANY


@pytest.mark.parametrize("traces", [False, True])
def test_a_broker_that_is_told_again_ends_the_same_sessions_at_the_same_time(*, traces: bool) -> None:
    """Though its reminders of connections are others: nobody tells it of pings."""
    alone = Alone(traces=traces)
    stays = _left(alone, traces=traces)
    again = LiveBroker(alone.settings, "life", remembers=True)
    told = 0
    for _ in range(40):
        alone.now += 1.0
        for number in range(1, stays + 1, 2):
            if alone.broker.core.state.connections.get(number) is not None:
                alone.tell(facts.ClientSent(number, PING))
        moment_s = alone.broker.next_moment()
        if moment_s is not None and moment_s <= alone.now:
            alone.tell(facts.TimePassed())
        alone.turn()
        for entry in alone.entries[told:]:
            again.replay(facts.read_entry(entry))
        told = len(alone.entries)
        assert {*again.core.state.sessions} == {*alone.broker.core.state.sessions}
    assert {one.partition("-")[0] for one in again.core.state.sessions} == {"stays"}


def test_a_journal_that_does_not_say_how_many_means_all() -> None:
    """As builds before this one wrote it."""
    alone = Alone()
    _left(alone, traces=False)
    alone.broker.replay(facts.Entry(alone.now + 30.0, alone.broker.core.state.sequence, facts.TimePassed([])))
    assert not [one for one in alone.broker.core.state.sessions if one.startswith("leaves")]
    assert network.TIMERS_MAX > timekeeping.DUE_MAX, "only those above were few"
