"""Wills: once, when they are due, where the session is by then; never for a client that is back."""

from __future__ import annotations

from typing import Any

import mqtt5
import msgspec
import pytest
from mqtt5 import Will

from sojourn.mqtt.admission import Admission
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.session_state import SessionState
from tests.mqtt.world import Client, World

DELAYS = [
    pytest.param(0, 100, 0, id="no delay"),
    pytest.param(5, 100, 5, id="a delay"),
    pytest.param(50, 3, 3, id="a session shorter than the delay"),
]
"""The will's delay, the session's expiry interval, and when the will is due once the connection is closed."""
delays = pytest.mark.parametrize(("delay", "expiry", "due"), DELAYS)


def dying(world: World, delay: int, expiry: int) -> Client:
    """A client with a will."""
    client = world.client()
    will = Will("will", payload=b"gone", will_delay_interval=delay)
    client.connect("dying", will=will, session_expiry_interval=expiry)
    return client


class Pair:
    """Two brokers with a watcher each, between which a session can be handed over."""

    def __init__(self) -> None:
        self.here, self.there = World(), World(name="B2")
        self.watchers: list[Client] = []
        for world in (self.here, self.there):
            watcher = world.client()
            watcher.connect("watcher")
            watcher.subscribe("will")
            self.watchers.append(watcher)

    def hand_over(self) -> SessionState:
        """Give the session away at the one broker; return it after a journey as bytes."""
        state = self.here.core.custody.export_session("dying", self.here.now)
        assert state is not None
        self.here.core.custody.end_session("dying", self.here.now)
        self.here.carry_out()
        return msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=SessionState)

    def wait(self, seconds: float) -> None:
        """Let time pass at both."""
        self.here.wait(seconds)
        self.there.wait(seconds)

    def wills(self) -> list[int]:
        """How many wills came at each broker since the last look."""
        return [len(watcher.messages()) for watcher in self.watchers]


@delays
def test_a_will_comes_when_its_client_vanishes(delay: int, expiry: int, due: int) -> None:
    """Exactly then, and once."""
    pair = Pair()
    dying(pair.here, delay, expiry).lose()
    if due:
        pair.here.wait(due - 0.5)
        assert pair.wills() == [0, 0]
    pair.here.wait(1)
    assert pair.wills() == [1, 0]
    pair.here.wait(200)
    assert pair.wills() == [0, 0]


@delays
def test_a_takeover_at_the_same_broker(delay: int, expiry: int, due: int) -> None:
    """Resumed, the client is back before a delay has passed; without one its will is published."""
    pair = Pair()
    dying(pair.here, delay, expiry)
    again = pair.here.client()
    assert again.connect("dying", clean_start=False, session_expiry_interval=expiry).session_present
    assert pair.wills() == [int(due == 0), 0]
    pair.here.wait(40)
    assert pair.wills() == [0, 0]


@delays
def test_a_clean_start_at_the_same_broker_ends_the_session(delay: int, expiry: int, due: int) -> None:
    """A session that ends does not wait for its will's delay."""
    del due
    for leaves in (False, True):
        pair = Pair()
        client = dying(pair.here, delay, expiry)
        if leaves and delay:
            client.lose()
        again = pair.here.client()
        assert not again.connect("dying", session_expiry_interval=expiry).session_present
        assert pair.wills() == [1, 0]


@delays
def test_a_takeover_at_another_broker(delay: int, expiry: int, due: int) -> None:
    """The old connection is told; a will without delay is published where it was, one with goes along."""
    pair = Pair()
    client = dying(pair.here, delay, expiry)
    state = pair.hand_over()
    assert int(client.next(mqtt5.DisconnectPacket).reason_code) == 0x8E
    assert client.closed
    assert pair.wills() == [int(due == 0), 0]
    assert (state.will is None) == (due == 0)
    assert state.will_left_s == (due or None)
    pair.there.admission = Admission(state=state)
    again = pair.there.client()
    assert again.connect("dying", clean_start=False, session_expiry_interval=expiry).session_present
    pair.wait(200)
    assert pair.wills() == [0, 0]


@delays
@pytest.mark.parametrize("leaves", [False, True], ids=["taken over", "left before"])
def test_a_client_that_tried_another_broker_and_vanished(
    delay: int, expiry: int, due: int, *, leaves: bool
) -> None:
    """Its will comes from the broker that adopted the session, when what was left of the delay is over."""
    pair = Pair()
    client = dying(pair.here, delay, expiry)
    if leaves:
        client.lose()
        pair.wait(1)
    state = pair.hand_over()
    assert pair.wills() == [int(due == 0), 0]
    assert pair.there.core.custody.adopt(state, pair.there.now) is not None
    left = due - 1 if leaves else due
    if due:
        pair.wait(left - 0.5)
        assert pair.wills() == [0, 0]
    pair.wait(1)
    assert pair.wills() == [0, int(due > 0)]
    pair.wait(200)
    assert pair.wills() == [0, 0]
    assert "dying" not in pair.there.core.state.sessions


@delays
def test_an_adopted_session_that_is_resumed(delay: int, expiry: int, due: int) -> None:
    """The client came after all, before the rest of the delay was over; its new will counts."""
    pair = Pair()
    dying(pair.here, delay, expiry).lose()
    pair.wills()
    pair.there.core.custody.adopt(pair.hand_over(), pair.there.now)
    if due:
        pair.wait(due - 0.5)
    again = pair.there.client()
    options: dict[str, Any] = {"will": Will("will", payload=b"second", will_delay_interval=7)}
    assert again.connect("dying", clean_start=False, session_expiry_interval=100, **options).session_present
    pair.wait(30)
    assert pair.wills() == [0, 0]
    again.lose()
    pair.wait(7)
    assert pair.watchers[1].payloads() == [b"second"]


@delays
def test_an_adopted_session_that_is_handed_on(delay: int, expiry: int, due: int) -> None:
    """What is left of the delay is less at each broker, and the will comes once."""
    pair = Pair()
    dying(pair.here, delay, expiry).lose()
    pair.there.core.custody.adopt(pair.hand_over(), pair.there.now)
    pair.wills()
    pair.wait(1)
    state = pair.there.core.custody.export_session("dying", pair.there.now)
    assert state is not None
    pair.there.core.custody.end_session("dying", pair.there.now)
    assert state.will_left_s == (due - 1 if due else None)
    pair.here.core.custody.adopt(state, pair.here.now)
    pair.wait(200)
    assert pair.wills() == [int(due > 0), 0]


def test_a_will_that_was_due_on_its_way_is_published_by_who_has_it() -> None:
    """At the old broker if it is due when the session is asked for; else at the new one, at once."""
    pair = Pair()
    dying(pair.here, 5, 100).lose()
    pair.here.now += 6  # nobody told it yet that time has passed
    state = pair.hand_over()
    assert state.will is None
    assert pair.wills() == [1, 0]
    late = msgspec.structs.replace(_state_with_will(5), will_left_s=0.0)
    pair.there.core.custody.adopt(late, pair.there.now)
    pair.there.wait(0)
    assert pair.wills() == [0, 1]


def _state_with_will(delay: int) -> SessionState:
    pair = Pair()
    dying(pair.here, delay, 100)
    return pair.hand_over()


def test_a_session_that_came_too_late_ends_with_its_will() -> None:
    """The client has begun another one here, so the one that comes is over."""
    pair = Pair()
    dying(pair.here, 5, 100)
    state = pair.hand_over()
    client = pair.there.client()
    client.connect("dying", session_expiry_interval=100)
    assert pair.there.core.custody.adopt(state, pair.there.now) is None
    pair.there.carry_out()
    assert pair.wills() == [0, 1]
    assert not client.closed
    assert pair.there.core.state.sessions["dying"].connection is not None


def test_a_clean_start_at_another_broker_ends_the_session_that_comes_along() -> None:
    """Its will is due: the client did not come back to it."""
    pair = Pair()
    dying(pair.here, 5, 100)
    pair.there.admission = Admission(state=pair.hand_over())
    client = pair.there.client()
    assert not client.connect("dying").session_present
    pair.there.carry_out()
    assert pair.wills() == [0, 1]


@delays
def test_a_session_that_ends_for_another_broker_publishes_its_will(delay: int, expiry: int, due: int) -> None:
    """Its client began anew elsewhere, and nobody asked for the session."""
    del due
    pair = Pair()
    client = dying(pair.here, delay, expiry)
    pair.here.core.custody.end_session("dying", pair.here.now)
    pair.here.carry_out()
    assert pair.wills() == [1, 0]
    assert client.closed
    assert "dying" not in pair.here.core.state.sessions


@delays
def test_a_redirected_client_that_never_arrives(delay: int, expiry: int, due: int) -> None:
    """It has the delay to get somewhere; then its will is published."""
    pair = Pair()
    dying(pair.here, delay, expiry)
    pair.here.core.custody.redirect("dying", "there:1883", pair.here.now)
    pair.here.carry_out()
    assert pair.wills() == [int(due == 0), 0]
    pair.here.wait(due)
    assert pair.wills() == [int(due > 0), 0]


def test_a_client_that_is_not_let_in_leaves_its_session_to_be_adopted() -> None:
    """Whoever found the session hears that nobody has it, and its will goes on."""
    pair = Pair()
    dying(pair.here, 5, 100)
    state = pair.hand_over()
    core = pair.there.core
    core.opened(77, "here", "fresh", pair.there.now)
    core.received(77, mqtt5.ConnectPacket("dying", clean_start=False).write(), pair.there.now)
    core.effects.knocks.clear()
    core.lost(77, pair.there.now)
    assert not core.admit(77, Admission(state=state), pair.there.now)
    core.custody.adopt(state, pair.there.now)
    pair.wait(5)
    assert pair.wills() == [0, 1]


def test_a_normal_disconnect_takes_the_will_back() -> None:
    """And so there is nothing to hand over."""
    pair = Pair()
    client = dying(pair.here, 5, 100)
    client.send(mqtt5.DisconnectPacket())
    state = pair.hand_over()
    assert (state.will, state.will_left_s) == (None, None)
    pair.there.core.custody.adopt(state, pair.there.now)
    pair.wait(50)
    assert pair.wills() == [0, 0]


def test_the_will_of_a_client_that_a_stopping_broker_sent_away() -> None:
    """Its delay does not run while the broker is down, and runs in full where the session goes next."""
    pair = Pair()
    dying(pair.here, 5, 100)
    pair.here.core.stop(None, pair.here.now)
    pair.here.carry_out()
    pair.here.wait(50)
    state = pair.hand_over()
    assert (state.will_left_s, pair.wills()) == (5, [0, 0])
    pair.there.core.custody.adopt(state, pair.there.now)
    pair.there.wait(5)
    assert pair.wills() == [0, 1]


def test_wills_of_all_clients_have_a_limit() -> None:
    """Who comes with one beyond it is refused with the way out; one's own takes the place of its earlier."""
    world = World(Limits(will_bytes_max_all=10_000))
    large = Will("will", payload=b"x" * 4_000, will_delay_interval=600)
    clients = [world.client() for _ in range(3)]
    codes = [
        int(one.connect(f"dying {number}", will=large, session_expiry_interval=900).reason_code)
        for number, one in enumerate(clients)
    ]
    assert codes == [0, 0, int(mqtt5.ConnAckReasonCode.QUOTA_EXCEEDED)]
    again = world.client()
    answer = again.connect("dying 0", clean_start=False, will=large, session_expiry_interval=900)
    assert answer.reason_code == 0
    assert 8_000 < world.core.state.will_bytes < 10_000


def test_the_bytes_of_wills_are_counted_through_all_that_happens_to_them() -> None:
    """Made, replaced, taken back, published, handed over, and stored: the count is what counting gives."""
    pair = Pair()
    world = pair.here
    dying(world, 5, 100)
    other = world.client()
    other.connect("other", will=Will("will", payload=b"y" * 100), session_expiry_interval=50)
    counted(world)
    assert world.core.state.will_bytes > 100
    other.send(mqtt5.DisconnectPacket())
    counted(world)
    state = pair.hand_over()
    counted(world)
    assert world.core.state.will_bytes == 0
    pair.there.core.custody.adopt(state, pair.there.now)
    pair.there.carry_out()
    counted(pair.there)
    assert pair.there.core.state.will_bytes > 0
    pair.wait(200)
    counted(pair.there)
    assert pair.there.core.state.will_bytes == 0


def counted(world: World) -> None:
    """The running count of wills is what counting gives."""
    before = world.core.state.will_bytes
    world.core.state.count_wills()
    assert world.core.state.will_bytes == before
