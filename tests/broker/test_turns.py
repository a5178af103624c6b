"""Whose turn it is: one client's work is done behind that of the others, and what it may take is limited."""

from __future__ import annotations

from itertools import pairwise

import mqtt5
import pytest
from mqtt5 import (
    ConnectPacket,
    DisconnectPacket,
    PublishPacket,
    QoS,
    SubAckPacket,
    SubscribePacket,
    TopicFilter,
    UnsubAckPacket,
    UnsubscribePacket,
)

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.mqtt3 import written_length
from sojourn.mqtt.room import ADDRESS_FULL, levels_of
from tests.broker.alone import PING, PINGRESP, Alone, events, patterns
from tests.live.hall import Hall, line
from tests.mqtt import old_words as old
from tests.mqtt.address_uses import uses, uses_by_hand


@pytest.mark.parametrize("traces", [False, True])
def test_who_sends_endlessly_is_read_in_turn_with_others(traces: bool) -> None:
    """A ping that comes after thousands of events of somebody else is answered long before they are taken."""
    hall = Alone(traces=traces)
    endless, other = hall.client("endless"), hall.client("other")
    hall.send(endless, events(5_000))
    hall.send(other, PING)
    hall.turn()
    hall.turn()
    assert hall.came[other] == PINGRESP
    assert hall.broker.core.state.counters.received < 1_000
    hall.settle()
    assert hall.broker.core.state.counters.received == 5_000


@pytest.mark.parametrize("address", ["there", "here"])
def test_many_busy_clients_of_one_address_are_one_to_those_of_another(address: str) -> None:
    """A ping waits behind a slice of that address, or of each of its clients where it is its own address."""
    hall = Alone()
    busy = [hall.client(f"busy-{number}") for number in range(100)]
    other = hall.client("other", address)
    for number in busy:
        hall.send(number, events(2_000))
    hall.send(other, PING)
    slices = 0
    while not hall.came.get(other):
        assert slices <= len(busy) + 1
        hall.broker.handle(facts.ReadyForMore(), hall.now)
        slices += 1
        hall.turn()
    assert slices <= 2 if address == "there" else slices > 2
    hall.settle()
    assert hall.broker.core.state.counters.received == 2_000 * len(busy)


def test_what_waits_its_turn_is_not_measured_by_a_packet_that_is_done_with() -> None:
    """After a packet that came in pieces, a short one that has to wait its turn is read when that comes."""
    hall = Alone()
    endless, other = hall.client("endless"), hall.client("other")
    event = PublishPacket("a/topic", b"and something to say").write()
    hall.send(other, event[:10])
    hall.send(other, event[10:])
    hall.send(endless, events(5_000))
    hall.send(other, PING)
    hall.settle()
    assert hall.came[other] == PINGRESP


def test_a_restart_leaves_nobody_in_the_line() -> None:
    """A snapshot that is taken while a client waits its turn leads to the same broker as the journal."""
    hall = Alone()
    hall.send(hall.client("endless"), events(2_000))
    hall.turn()
    assert hall.broker.core.state.input.ring
    from_snapshot = LiveBroker.revived(hall.settings, "next", hall.now, hall.broker.snapshot(), [])
    assert not from_snapshot.core.state.input.ring
    assert not from_snapshot.has_work


def test_who_waits_is_not_read_any_further() -> None:
    """The driver is told to hold a client that waits its turn, and to go on when it has come."""
    hall = Alone()
    endless = hall.client("endless")
    hall.send(endless, events(2_000))
    hall.turn()
    assert hall.held == {endless}
    hall.settle()
    assert hall.held == set()
    hall.send(endless, events(2))
    hall.turn()
    assert hall.held == set(), "few events wait for nobody"


def test_many_who_send_are_served_in_a_circle() -> None:
    """After each round of slices everybody got as far as everybody else, but for a slice."""
    hall = Alone()
    clients = [hall.client(f"c{number}") for number in range(8)]
    for number in clients:
        hall.send(number, events(300, f"of/{number}"))
    far: dict[int, int] = {}
    state = hall.broker.core.state
    while hall.broker.has_work:
        hall.turn()
        far = {number: state.connections[number].have for number in clients}
        waiting = [have for have in far.values() if have]
        if len(waiting) == len(clients):
            assert max(waiting) - min(waiting) <= 256 * len(PublishPacket("of/1", b"x").write())
    assert state.counters.received == 8 * 300


@pytest.mark.parametrize("traces", [False, True])
def test_a_long_subscribe_is_one_packet_to_its_client_and_many_turns_to_others(traces: bool) -> None:
    """A thousand patterns: others are answered in between, and there is one SUBACK with a thousand codes."""
    hall = Alone(traces=traces)
    greedy, other = hall.client("greedy"), hall.client("other")
    hall.send(greedy, patterns(1_000), PING)
    hall.send(other, PING)
    for _ in range(3):
        hall.turn()
    assert hall.came[other] == PINGRESP
    assert 0 < len(hall.broker.core.state.sessions["greedy"].subscriptions) < 300
    assert greedy not in hall.came
    assert hall.settle() > 10
    answer, ping = hall.packets(greedy)
    assert isinstance(answer, SubAckPacket)
    assert answer.packet_id == 7
    assert [int(code) for code in answer.reason_codes] == [1] * 1_000
    assert isinstance(ping, mqtt5.PingRespPacket)
    assert hall.broker.core.state.subscriptions == 1_000
    hall.send(greedy, UnsubscribePacket(8, [f"d/{number % 10}/{number}/+" for number in range(1_000)]))
    hall.settle()
    (answer,) = hall.packets(greedy)
    assert isinstance(answer, UnsubAckPacket)
    assert len(answer.reason_codes) == 1_000
    assert hall.broker.core.state.subscriptions == 0


def test_a_long_unsubscribe_with_topic_filters_that_are_none_is_answered_one_by_one() -> None:
    """Of a hundred, the wrong one has its own code, and the others end."""
    hall = Alone()
    client = hall.client("one that errs")
    texts = [f"d/{number}" if number != 50 else "d\x1f+/#" for number in range(100)]
    hall.send(client, SubscribePacket(7, [TopicFilter(text) for text in texts if "#" not in text]))
    hall.settle()
    body = b"\0\x08\0" + b"".join(len(text).to_bytes(2) + text.encode() for text in texts)
    hall.send(client, b"\xa2" + written_length(len(body)) + body)
    hall.settle()
    *_, answer = hall.packets(client)
    assert isinstance(answer, UnsubAckPacket)
    assert answer.packet_id == 8
    assert [int(code) for code in answer.reason_codes] == [0] * 50 + [0x8F] + [0] * 49
    assert hall.broker.core.state.subscriptions == 0


def test_deep_patterns_are_few_in_a_part_and_have_a_limit_of_their_own() -> None:
    """A part is so many levels, and a client may have so many; its broker knows that after a restart too."""
    hall = Alone()
    greedy = hall.client("greedy", session_expiry_interval=600)
    deep = [f"{number}/{'+/' * 240}x" for number in range(200)]
    hall.send(greedy, SubscribePacket(7, [TopicFilter(one) for one in deep]))
    state = hall.broker.core.state
    counts = [0, state.subscriptions]
    while hall.broker.has_work:
        hall.broker.handle(facts.ReadyForMore(), hall.now)
        counts.append(state.subscriptions)
        hall.turn()
    assert max(after - before for before, after in pairwise(counts)) <= 8  # of 32 that are not deep
    (answer,) = hall.packets(greedy)
    assert isinstance(answer, SubAckPacket)
    held = 20_000 // levels_of(deep[0])
    assert sorted(int(code) for code in answer.reason_codes) == [2] * held + [0x97] * (200 - held)
    assert state.counters.refused == {"subscribe quota_exceeded": 200 - held}
    restored = LiveBroker.revived(hall.settings, "next", hall.now, hall.broker.snapshot(), [])
    assert state.levels == sum(map(levels_of, deep[:held]))
    for again in (one.core.state for one in (hall.again(), restored)):
        assert again.levels == again.sessions["greedy"].levels == state.levels
    hall.send(greedy, UnsubscribePacket(8, deep))
    hall.settle()
    assert (state.levels, state.sessions["greedy"].levels, state.subscriptions) == (0, 0, 0)


def test_what_a_long_subscribe_has_too_much_is_refused_at_once() -> None:
    """Filters beyond what a client may have are not even looked at, and are refused all the same."""
    hall = Alone(Limits(subscriptions_max=50))
    greedy = hall.client("greedy")
    hall.send(greedy, patterns(400))
    assert hall.settle() < 10
    (answer,) = hall.packets(greedy)
    assert isinstance(answer, SubAckPacket)
    assert [int(code) for code in answer.reason_codes] == [1] * 50 + [0x97] * 350


def test_a_broker_killed_within_a_long_subscribe_comes_back_as_it_was() -> None:
    """What others did between its parts happens again in the same order, from the journal."""
    hall = Alone(traces=True)
    greedy = hall.client("greedy", session_expiry_interval=600)
    other = hall.client("other", session_expiry_interval=600)
    hall.send(greedy, patterns(500))
    for turn in range(30):
        event = PublishPacket(f"d/{turn % 10}/{turn * 10}/x", b"x", qos=QoS.AT_LEAST_ONCE, packet_id=turn + 1)
        hall.send(other, event)
        hall.turn()
        again = hall.again()
        before, after = (
            one.core.state.sessions["greedy"].subscriptions.keys() for one in (hall.broker, again)
        )
        assert list(after) == list(before)
    hall.settle()
    assert len(hall.again().core.state.sessions["greedy"].subscriptions) == 500


def test_all_clients_together_have_a_limit_of_subscriptions() -> None:
    """Beyond it a subscription is refused, while those that are there may be changed."""
    hall = Alone(Limits(subscriptions_max_all=3))
    one, other = hall.client("one"), hall.client("other")
    hall.send(one, SubscribePacket(1, [TopicFilter("a"), TopicFilter("b")]))
    hall.send(other, SubscribePacket(1, [TopicFilter("a"), TopicFilter("b"), TopicFilter("a")]))
    hall.settle()
    (answer,) = hall.packets(other)
    assert isinstance(answer, SubAckPacket)
    assert [int(code) for code in answer.reason_codes] == [2, 0x97, 2]
    hall.tell(facts.ClientLost(one))
    assert hall.broker.core.state.subscriptions == 1


def test_what_an_address_was_refused_is_refused_again_when_a_journal_is_told() -> None:
    """Subscriptions and messages beyond an address's share, before and after a client moved away from it."""
    hall = Alone(Limits(subscriptions_address_max=3, queue_bytes_address_max=500))
    publisher = hall.client("publisher", "there")

    def publish(first: int) -> None:
        for number in range(first, first + 6):
            event = PublishPacket("d/0/0/x", bytes(90), qos=QoS.AT_LEAST_ONCE, packet_id=number)
            hall.send(publisher, event)
            hall.settle()

    def agree() -> None:
        cores = hall.broker.core, hall.again().core
        held = [
            {
                name: ([*one.subscriptions], [*one.inflight], len(one.queue), one.inflight_bytes)
                for name, one in core.state.sessions.items()
                if one.expiry
            }
            for core in cores
        ]
        assert held[0] == held[1]
        assert cores[0].state.counters.dropped == cores[1].state.counters.dropped
        assert cores[0].state.counters.refused == cores[1].state.counters.refused
        assert uses(cores[0]) == uses_by_hand(cores[0])
        assert uses(cores[1]) == uses_by_hand(cores[1])
        ended = {address: (0, 0, use[2]) for address, use in uses(cores[0]).items() if address != "there"}
        assert uses(cores[1]) == ended, "all connections ended with the broker, and one session"

    one = hall.client("one", session_expiry_interval=600)
    two = hall.client("two", session_expiry_interval=600)
    for number in (one, two):
        hall.send(number, patterns(2))
        hall.settle()
    publish(1)
    assert uses(hall.broker.core)["here"][:2] == (2, 3)
    assert hall.broker.core.state.counters.dropped == {ADDRESS_FULL: 8}
    assert hall.broker.core.state.counters.refused == {"subscribe address_quota_exceeded": 1}
    agree()
    moved = hall.client("one", "elsewhere", session_expiry_interval=600, clean_start=False)
    hall.send(two, patterns(2))
    hall.send(moved, patterns(2))
    hall.settle()
    publish(11)
    assert {address: use[:2] for address, use in uses(hall.broker.core).items()} == {
        "there": (1, 0),
        "here": (1, 2),
        "elsewhere": (1, 2),
    }
    assert hall.broker.core.state.counters.dropped[ADDRESS_FULL] > 8
    agree()


def test_clients_of_mqtt_3_1_1_are_read_in_turn_too() -> None:
    """Events, a long SUBSCRIBE, more events, cut anywhere: all of it is taken, in order, and answered."""
    hall = Alone()
    number, other = 99, hall.client("other")
    hall.tell(facts.ClientOpened(number, "here", "fresh"))
    hall.send(number, old.connect("old", keep_alive=60))
    hall.settle()
    hall.came.clear()
    wanted = [(f"d/{one}/+", 1) for one in range(300)]
    said = (
        old.publish("t", b"x") * 700 + old.subscribe(*wanted, number=9) + old.publish("t", b"y") * 500 + PING
    )
    for size in (1, 5, 5_000, 10**6):
        hall.send(number, said[:size])
        said = said[size:]
        hall.send(other, PING)
        hall.turn()
    assert hall.came[other] == 4 * PINGRESP
    assert hall.broker.core.state.counters.received < 1_200
    hall.settle()
    assert hall.broker.core.state.counters.received == 1_200
    found = old.read(hall.came[number])
    assert found is not None
    assert len(hall.broker.core.state.sessions["old"].subscriptions) == 300
    assert hall.came[number] == old.packet(0x90, b"\0\x09" + b"\1" * 300) + PINGRESP


def test_what_is_wrong_behind_what_waits_is_found_in_its_turn() -> None:
    """A client of MQTT 3.1.1 that breaks the protocol after many events has those taken first."""
    hall = Alone()
    number = 99
    hall.tell(facts.ClientOpened(number, "here", "fresh"))
    hall.send(number, old.connect("old"))
    hall.settle()
    hall.send(number, old.publish("t", b"x") * 900 + b"\xf0\x00")
    hall.turn()
    assert number not in hall.closed
    hall.settle()
    assert number in hall.closed
    assert hall.broker.core.state.counters.received == 900


def test_frames_of_a_neighbour_are_taken_in_slices() -> None:
    """A thousand subscriptions that arrive at once leave a broker time for its own clients in between."""
    hall = Hall(line(2))
    near, far = hall.desks
    greedy = hall.visit(0, "greedy")
    hall.settle()
    greedy.send(patterns(1_000))
    data = bytes(near.peer_writes.pop("B2"))
    broker = far.broker
    broker.handle(facts.PeerSent("B1", data), hall.now)
    known = len(broker.network.links.interests.subs) if broker.network is not None else 0
    assert known < 100
    slices = 0
    while broker.has_slices:
        broker.handle(facts.ReadyForMore(), hall.now)
        slices += 1
    assert slices > 50


@pytest.mark.parametrize("traces", [False, True])
def test_who_says_much_and_goes_is_heard_to_the_end(traces: bool) -> None:
    """All that came before a connection ended counts, its DISCONNECT too, so that no will is published."""
    hall = Alone(traces=traces)
    watcher = hall.client("watcher")
    hall.send(watcher, SubscribePacket(1, [TopicFilter("will")]))
    hall.settle()
    hall.came.clear()
    brief = hall.client("brief", will=mqtt5.Will("will", payload=b"gone"), session_expiry_interval=600)
    hall.send(brief, events(3_000), DisconnectPacket())
    hall.tell(facts.ClientLost(brief))
    rude = hall.client("rude", will=mqtt5.Will("will", payload=b"rude"))
    hall.send(rude, events(2_000))
    hall.tell(facts.ClientLost(rude))
    hall.settle()
    state = hall.broker.core.state
    assert state.counters.received == 5_001, "with one will"
    assert [one.payload for one in hall.packets(watcher) if isinstance(one, PublishPacket)] == [b"rude"]
    assert state.connections.keys() == {watcher}
    assert state.sessions["brief"].connection is None
    assert not state.input.ring
    again = hall.again().core.state.sessions["brief"]
    assert again.expires_s == state.sessions["brief"].expires_s


def test_who_answers_and_leaves_at_once_is_sent_nothing_more_when_it_is_told_again() -> None:
    """An answer makes room for what waits, but who said goodbye behind it is not there to get it."""
    hall = Alone()
    reader = hall.client("reader", receive_max=1, session_expiry_interval=600)
    hall.send(reader, SubscribePacket(1, [TopicFilter("t", max_qos=QoS.AT_LEAST_ONCE)]))
    hall.settle()
    writer = hall.client("writer")
    hall.send(writer, *(PublishPacket("t", b"x", qos=QoS.AT_LEAST_ONCE, packet_id=n) for n in (1, 2)))
    hall.settle()
    sent = next(one for one in hall.packets(reader) if isinstance(one, PublishPacket))
    assert sent.packet_id is not None
    hall.send(reader, mqtt5.PubAckPacket(sent.packet_id), DisconnectPacket())
    hall.settle()
    session = hall.broker.core.state.sessions["reader"]
    again = hall.again().core.state.sessions["reader"]
    assert (len(session.inflight), len(session.queue)) == (0, 1)
    assert (len(again.inflight), len(again.queue)) == (0, 1)


def test_who_waited_in_a_snapshot_left_when_its_journal_says_so() -> None:
    """What it had said by then was taken in after the snapshot, and before it was gone."""
    hall = Alone()
    endless = hall.client("endless", session_expiry_interval=600)
    hall.send(endless, events(2_000))
    hall.turn()
    snapshot, hall.entries = hall.broker.snapshot(), []
    assert hall.broker.core.state.input.ring
    hall.settle()
    hall.tell(facts.ClientLost(endless))
    hall.settle()
    hall.now += 60.0
    again = LiveBroker.revived(hall.settings, "next", hall.now, snapshot, hall.entries)
    left_s = hall.broker.core.state.sessions["endless"].expires_s
    assert left_s is not None
    assert again.core.state.sessions["endless"].expires_s == left_s


def test_what_a_client_is_sent_again_comes_before_what_is_new() -> None:
    """Also where it is more than may be left unread at once, and something new comes in between."""
    hall = Alone(Limits(output_bytes_max=1_000))
    reader = hall.client("reader", session_expiry_interval=600)
    hall.send(reader, SubscribePacket(1, [TopicFilter("t", max_qos=QoS.AT_LEAST_ONCE)]))
    hall.settle()
    writer = hall.client("writer")

    def publish(number: int) -> None:
        event = PublishPacket("t", b"%d" % number + bytes(600), qos=QoS.AT_LEAST_ONCE, packet_id=number)
        hall.send(writer, event)

    for number in range(1, 6):
        publish(number)
        hall.settle()
    hall.tell(facts.ClientLost(reader))
    hall.settle()
    again = reader + 2
    hall.tell(facts.ClientOpened(again, "here", "fresh"))
    hall.send(again, ConnectPacket("reader", clean_start=False, session_expiry_interval=600))
    publish(6)
    hall.settle()
    hall.tell(facts.ClientDrained(again))
    hall.settle()
    events = [one for one in hall.packets(again) if isinstance(one, PublishPacket)]
    assert [int(one.payload[:1]) for one in events] == [1, 2, 3, 4, 5, 6]
    assert [one.duplicate for one in events] == [True] * 5 + [False]


def test_a_ping_has_nothing_sent_that_waits() -> None:
    """It is not told again: a broker that comes back would not know that it had sent more than was noted."""
    hall = Alone(Limits(output_bytes_max=1_000))
    reader = hall.client("reader", session_expiry_interval=600)
    hall.send(reader, SubscribePacket(1, [TopicFilter("t", max_qos=QoS.AT_LEAST_ONCE)]))
    hall.settle()
    hall.tell(facts.ClientLost(reader))
    writer = hall.client("writer")
    for number in range(1, 8):
        hall.send(writer, PublishPacket("t", bytes(600), qos=QoS.AT_LEAST_ONCE, packet_id=number))
    hall.settle()
    again = reader + 2
    hall.tell(facts.ClientOpened(again, "here", "fresh"))
    hall.send(again, ConnectPacket("reader", clean_start=False, session_expiry_interval=600))
    hall.send(again, PING)
    turn = hall.broker.turn(hall.now)
    live = hall.broker.core.state.sessions["reader"]
    entries = [*hall.entries, *turn.entries]
    told = LiveBroker.revived(hall.settings, "next", hall.now, None, entries).core.state.sessions["reader"]
    assert 0 < len(live.inflight) < 7
    assert (len(told.inflight), len(told.queue)) == (len(live.inflight), len(live.queue))


@pytest.mark.parametrize("traces", [False, True])
def test_what_a_broker_says_of_itself_is_told_in_parts(traces: bool) -> None:
    """Thousands may want it: others are answered in between, and a round ends before the next one begins."""
    hall = Alone(traces=traces)
    everybody = [hall.client(f"c{number}") for number in range(300)]
    other = hall.client("other")
    for number in everybody:
        hall.send(number, SubscribePacket(1, [TopicFilter("$SYS/#")]))
    hall.settle()
    for number in everybody:
        hall.packets(number)
    hall.tell(facts.SystemDue())
    counters = hall.broker.core.state.counters
    before, most, slices = counters.delivered, 0, 0
    hall.send(other, PING)
    while hall.broker.has_slices:
        so_far = counters.delivered
        hall.broker.handle(facts.ReadyForMore(), hall.now)
        slices += 1
        if slices == 5:
            hall.tell(facts.SystemDue())
            leaves = everybody.pop()
            hall.tell(facts.ClientLost(leaves))
        most = max(most, counters.delivered - so_far)
    hall.settle()
    assert most <= 256
    assert 300 * 13 // 256 < slices < 300
    assert counters.delivered - before > 299 * 13
    assert {len(hall.packets(number)) for number in everybody} == {13}


def test_a_subscribe_costs_what_it_is_told_of_the_broker() -> None:
    """Each of its topic filters may ask for all of that."""
    hall = Alone()
    one = hall.client("one")
    core, found = hall.broker.core, []
    for patterns_ in (["a", "b"], ["$SYS/#", "$SYS/broker/#"]):
        hall.send(one, SubscribePacket(1, [TopicFilter(each) for each in patterns_]))
        hall.settle()
        found.append(core.subscriber.cost)
    assert found[1] == found[0] + 26 * 4
