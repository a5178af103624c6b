"""Every queue and table of the session core has a limit, and what happens there is told and counted."""

from __future__ import annotations

import contextlib
import random

import mqtt5
import pytest
from mqtt5 import (
    ConnectPacket,
    PubAckPacket,
    PublishPacket,
    PubRecPacket,
    SubscribePacket,
    TopicFilter,
    Will,
)

from sojourn.mqtt import content
from sojourn.mqtt import state as module
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import new_message
from sojourn.mqtt.state import State
from tests.mqtt import old_words as old
from tests.mqtt.test_core import pair
from tests.mqtt.world import World


def test_a_client_that_does_not_read_waits_and_catches_up() -> None:
    """While it is blocked nothing is put into its output; then everything comes, in order."""
    world = World()
    publisher, subscriber = pair(world)
    world.core.blocked(subscriber.number)
    for number in range(100):
        publisher.publish("t", b"%d" % number, number % 2)
    assert not subscriber.inbox
    world.core.drained(subscriber.number, world.now)
    world.carry_out()
    assert subscriber.payloads() == [b"%d" % number for number in range(100)]
    assert world.core.state.queued_bytes == 0


def test_a_full_queue_drops_and_counts() -> None:
    """A blocked client of QoS 0 loses what does not fit, and nobody else notices."""
    world = World(Limits(queue_messages_max=10))
    publisher, subscriber = pair(world)
    other = world.client()
    other.connect("other")
    other.subscribe("t", 0)
    world.core.blocked(subscriber.number)
    for number in range(15):
        publisher.publish("t", b"%d" % number)
    assert world.core.state.counters.dropped["queue full"] == 5
    assert len(other.payloads()) == 15
    world.core.drained(subscriber.number, world.now)
    world.carry_out()
    assert subscriber.payloads() == [b"%d" % number for number in range(10)]


@pytest.mark.parametrize("limits", [Limits(queue_bytes_max=300), Limits(queue_bytes_max_all=300)])
def test_a_full_queue_ends_a_connection_that_holds_promises(limits: Limits) -> None:
    """QoS 1 beyond the limit, unread: the client is told and disconnected; its session is kept."""
    world = World(limits)
    publisher, subscriber = pair(world)
    world.core.blocked(subscriber.number)
    for number in range(10):
        publisher.publish("t", bytes(100), 1, number + 1)
    ended = subscriber.next(mqtt5.DisconnectPacket)
    assert int(ended.reason_code) == 0x97
    assert subscriber.closed
    session = world.core.state.sessions["subscriber"]
    assert session.connection is None
    assert 0 < session.queued_bytes <= 300
    assert world.core.state.counters.dropped["queue full"] > 0


def test_queues_of_sessions_that_end_free_their_room() -> None:
    """What waits counts for all clients together, and no longer when a session ends."""
    world = World()
    publisher, subscriber = pair(world)
    subscriber.lose()
    for number in range(10):
        publisher.publish("t", bytes(50), 1, number + 1)
    assert world.core.state.queued_bytes > 500
    world.wait(1_001)
    assert world.core.state.queued_bytes == 0
    assert "subscriber" not in world.core.state.sessions
    assert world.core.state.counters.dropped["session ended"] == 10


def test_a_connection_without_connect_is_closed_in_time() -> None:
    """Whatever it drips."""
    world = World(Limits(connect_timeout_s=10))
    client = world.client()
    for byte in ConnectPacket("slow").write()[:12]:
        client.send(bytes((byte,)))
        world.wait(0.7)
    world.wait(5)
    assert client.closed


@pytest.mark.parametrize(
    ("packet", "code"), [(ConnectPacket("patient").write(), 0x9F), (old.connect("patient"), 3)]
)
def test_who_waits_too_long_for_an_answer_to_connect_is_given_one(packet: bytes, code: int) -> None:
    """It said who it is in time: it is told so, counted and written down under a name of its own."""
    world = World(Limits(connect_timeout_s=10))
    effects = world.core.effects
    effects.refusals = []
    client = world.client()
    world.core.received(client.number, packet, world.now)
    effects.knocks.clear()  # its password waits to be compared
    world.wait(9)
    assert not world.written
    with contextlib.suppress(ValueError):  # answers of 3.1.1 are not in the codec's words
        world.wait(2)
    (answer,) = [data for _, data in world.written]
    assert answer[3] == code
    assert world.core.state.counters.refused == {"login_not_in_time": 1}
    (refused,) = effects.refusals
    assert (refused.why, refused.client) == ("login_not_in_time", "patient")


def test_limits_on_subscriptions_and_filters() -> None:
    """Each has its code; one that is replaced takes no further room."""
    world = World(Limits(subscriptions_max=3, filters_max=1, filter_bytes_max=20))
    client = world.client()
    client.connect("greedy")
    assert client.subscribe("1", user_properties=[("filter", "x = 1")]) == 2
    assert client.subscribe("2", user_properties=[("filter", "x = 1")]) == 0x97
    assert client.subscribe("2", user_properties=[("filter", "x = 1 OR x = 2 OR x = 3")]) == 0x97
    assert client.subscribe("1", user_properties=[("filter", "x = 2")]) == 2
    assert client.subscribe("2") == 2
    assert client.subscribe("3") == 2
    assert client.subscribe("4") == 0x97
    assert client.subscribe("3", 1) == 1


def test_limits_on_connections_and_sessions() -> None:
    """One too many is told so."""
    world = World(Limits(connections_max=2, sessions_max=2))
    clients = [world.client() for _ in range(3)]
    assert int(clients[0].connect("1").reason_code) == 0x89
    clients[0].lose()
    assert int(clients[1].connect("1", session_expiry_interval=9).reason_code) == 0
    clients[1].lose()
    assert int(clients[2].connect("2").reason_code) == 0
    late = world.client()
    assert int(late.connect("3").reason_code) == 0x97


def test_retained_messages_have_a_limit() -> None:
    """A publish that cannot be retained is refused; one that replaces another is not."""
    world = World(Limits(retained_messages_max=2))
    client = world.client()
    client.connect("keeper")
    codes = []
    for topic in ("a", "b", "c", "a", "b"):
        client.publish(topic, b"x", 1, retain=True)
        codes.append(int(client.next(PubAckPacket).reason_code))
    assert codes == [0, 0, 0x97, 0, 0]
    client.publish("a", b"", 1, retain=True)
    client.publish("c", b"x", 1, retain=True)
    client.next(PubAckPacket)
    assert int(client.next(PubAckPacket).reason_code) == 0


def test_a_refusing_broker_takes_quality_0_only() -> None:
    """With a full disk QoS 1 and 2 get a reason; the rest is served."""
    world = World()
    publisher, subscriber = pair(world)
    world.core.state.refusing = "The disk is full; try again later."
    for qos in range(3):
        publisher.publish("t", b"%d" % qos, qos)
    ack = publisher.next(PubAckPacket)
    assert (int(ack.reason_code), ack.reason_str) == (0x97, "The disk is full; try again later.")
    assert int(publisher.next(PubRecPacket).reason_code) == 0x97
    assert subscriber.payloads() == [b"0"]


def test_incomplete_packets_have_a_limit_together() -> None:
    """Whoever goes beyond it is told; what others have begun is still taken."""
    world = World(Limits(packet_bytes_max=1_000, input_bytes_max_all=2_500))
    clients = [world.client() for _ in range(4)]
    packet = PublishPacket("t", bytes(900)).write()
    for number, client in enumerate(clients):
        client.connect(f"c{number}")
        client.send(packet[:-1])
    assert int(clients[2].next(mqtt5.DisconnectPacket).reason_code) == 0x97
    assert [client.closed for client in clients] == [False, False, True, True]
    for client in clients[2:]:
        client.lose()
    assert world.core.state.input.bytes == 2 * (len(packet) - 1)
    clients[0].send(packet[-1:])
    clients[1].lose()
    assert world.core.state.input.bytes == 0
    assert world.core.state.counters.received == 1


def test_many_retained_messages_do_not_flood_an_output() -> None:
    """What a new subscriber may not leave unread at once waits in its queue."""
    world = World(Limits(output_bytes_max=1_000))
    keeper, late = world.client(), world.client()
    keeper.connect("keeper")
    for number in range(100):
        keeper.publish(f"kept/{number}", bytes(100), retain=True)
    late.connect("late")
    late.send(SubscribePacket(1, [TopicFilter("kept/+")]))
    late.inbox.popleft()
    first = len(late.messages())
    assert 5 < first < 20
    got = first
    for _ in range(40):
        world.core.drained(late.number, world.now)
        world.carry_out()
        got += len(late.messages())
    assert got == 100


def test_coming_and_going_leaves_no_reminders_behind() -> None:
    """A client that reconnects all day costs no more memory than one that stays away."""
    world = World()
    for _ in range(200):
        client = world.client()
        client.connect(
            "commuter",
            clean_start=False,
            session_expiry_interval=100_000,
            will=Will("w", will_delay_interval=5_000),
        )
        client.lose()
        world.wait(30)
    assert len(world.core.state._moments) < 10
    world.wait(100_000)
    assert not world.core.state.sessions


def test_reminders_are_tidied_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, none takes long, none that is of use is lost, and they come in order."""
    monkeypatch.setattr(module, "SPARE_MOMENTS", 100)
    looks: list[object] = []
    is_current = State._is_current

    def looked(self: State, moment_s: float, whom: int | str) -> bool:
        looks.append(whom)
        return is_current(self, moment_s, whom)

    monkeypatch.setattr(State, "_is_current", looked)
    world = World()
    state = world.core.state
    state._moments_max = 100
    draw = random.Random(1)
    for number in range(500):
        client = world.client()
        client.connect(f"c{number}", session_expiry_interval=draw.randrange(1_000, 9_000))
        looks.clear()
        client.lose()
        assert len(looks) <= 8
    assert len(state._moments) + len(state._aged) < 2_000
    expiries = {one.client_id: one.reminded_s or 0.0 for one in state.sessions.values()}
    ended = []
    while state.sessions:
        moment_s = state.next_moment()
        assert moment_s is not None
        before = {*state.sessions}
        world.wait(max(moment_s - world.now, 0.0) + 1e-6)
        ended += sorted(before - {*state.sessions}, key=lambda name: expiries[name])
    assert [expiries[name] for name in ended] == sorted(expiries.values())


def test_a_packet_full_of_subscriptions_is_answered_one_by_one() -> None:
    """As many topic filters as a packet may have are answered each, and take no room beyond the limit."""
    world = World(Limits(subscriptions_max=50, filters_max=10))
    client = world.client()
    client.connect("greedy")
    wanted = [TopicFilter(f"{number}") for number in range(10_000)]
    client.send(SubscribePacket(1, wanted, user_properties=[("filter", "x = 1")]))
    codes = [int(code) for code in client.next(mqtt5.SubAckPacket).reason_codes]
    assert codes == [2] * 10 + [0x97] * 9_990
    session = world.core.state.sessions["greedy"]
    assert (len(session.subscriptions), session.filters) == (10, 10)
    client.send(mqtt5.UnsubscribePacket(1, [f"{number}" for number in range(5)]))
    assert session.filters == 5


def test_a_network_is_told_what_its_client_does_not_get() -> None:
    """Such a message is done with as if it had been sent; else all later ones would come again."""
    world = World()
    world.core.effects.collects = True
    client = world.client()
    client.connect("c", max_packet_size=100)
    client.subscribe("t")
    for size, expiry, qos in ((10, None, 1), (200, None, -1), (10, 5, 1)):
        message = new_message("t", bytes(size), qos=1, now=world.now, expiry=expiry)
        assert world.core.custody.deliver_to("c", message, world.now) == qos
    assert world.core.custody.deliver_to("c", message, world.now + 5) == -1  # its time has run out
    assert len(client.messages()) == 0  # they are in the output until somebody looks
    world.carry_out()
    assert [len(one.payload) for one in client.messages()] == [10, 10]


def alternatives(count: int, name: str = "a") -> str:
    """A short filter that has 2**count alternatives."""
    return " AND ".join(f"({name}{number} = 1 OR b{number} = 1)" for number in range(count))


@pytest.mark.parametrize(
    ("topic", "condition", "in_network"),
    [
        ("t", alternatives(5), 2),
        ("t", alternatives(6), 0x83),  # 64 alternatives of 6 comparisons, and the topic in each
        ("t", alternatives(5, "a" * 60), 0x83),
        ("t" * 300, alternatives(5), 0x83),
        ("t" * 4_000 + "/+/#", None, 2),
        ("t" * 5_000, None, 0x83),
        ("it's/100%/\\/+", None, 2),
    ],
)
def test_what_other_brokers_could_not_read_is_refused(
    topic: str, condition: str | None, in_network: int
) -> None:
    """Brokers tell each other filters with OR distributed over AND; alone, a broker takes more."""
    for collects, code in ((False, 2), (True, in_network)):
        world = World()
        world.core.effects.collects = collects
        client = world.client()
        client.connect("c")
        filters = [] if condition is None else [("filter", condition)]
        assert client.subscribe(topic, user_properties=filters) == code
        if condition is not None and topic == "t":
            client.publish("t", b"", 1, user_properties=[("policy", condition)])
            assert int(client.next(PubAckPacket).reason_code) == (0 if code == 2 else code)


def test_advertisements_are_limited_before_and_read_after_a_client_is_let_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stranger has nothing read; too many, too long or too much in all is refused at the door."""
    read: list[str] = []
    read_before: list[int] = []
    steps_to_read = content._steps_to_read

    def note(text: str, *, in_network: bool) -> int:
        read.append(text)
        return steps_to_read(text, in_network=in_network)

    monkeypatch.setattr(content, "_steps_to_read", note)

    def knock(*texts: str) -> int:
        client = world.client()
        answer = client.connect("c", user_properties=[("sojourn-advertise", text) for text in texts])
        return int(answer.reason_code)

    world = World(Limits(advertisements_max=30, filter_bytes_max=20))
    admit = world.core.admit

    def let_in(number: int, admission: Admission, now: float) -> None:
        read_before.append(len(read))
        admit(number, admission, now)

    monkeypatch.setattr(world.core, "admit", let_in)
    assert knock(*["a = 1"] * 31) == 0x97
    assert knock("a = 1", "b = '" + "x" * 20 + "'") == 0x97
    assert knock(*["a = 1234567890123456"[:20]] * 17) == 0x97
    assert read == []
    assert knock("a = 1", "b >") == 0x83
    assert (read_before, read) == ([0], ["a = 1", "b >"])
    assert knock("a = 1") == 0
