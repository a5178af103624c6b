"""The state of a broker as bytes: it comes back to the byte, from any release, and from no wrong bytes."""

from __future__ import annotations

import contextlib
import gc
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mqtt5 import PublishPacket, QoS, SubscribePacket, TopicFilter

from sojourn.broker import state_codec
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.snapshot import Snapshot
from sojourn.broker.state_codec import dump_state, load_in_parts, load_state, rows_of
from sojourn.broker.state_fields import Numbers
from sojourn.broker.state_kinds import StateError
from sojourn.broker.state_network import TABLE
from sojourn.interest import Filter, TopicPattern
from sojourn.mqtt.core import Core
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import new_message
from sojourn.mqtt.session import Permissions
from tests.broker.declared import undeclared
from tests.broker.traffic import NotedHall, Traffic, fresh, swap
from tests.live.hall import START_S, line
from tests.mqtt.world import World

STORED = Path(__file__).parent.parent / "data" / "state-1.hex"
STEPS = 500


def stored() -> bytes:
    """A snapshot as the first release wrote it."""
    return bytes.fromhex(STORED.read_text())


def load(state: bytes, broker: LiveBroker) -> None:
    """Fill a broker."""
    load_state(state, broker.core, broker.network)


def run(seed: int, swaps: set[int], **options: Any) -> NotedHall:
    """Random traffic through three brokers, one of which is swapped after some steps."""
    hall = NotedHall(line(3, **options))
    traffic = Traffic(hall, seed)
    for step in range(STEPS):
        traffic.step()
        if step in swaps:
            state = swap(hall.desks[1])
            assert dump_state(hall.desks[1].core, hall.desks[1].network) == state
    hall.settle()
    hall.wait(100.0)
    return hall


@pytest.mark.parametrize("seed", range(8))
def test_a_broker_that_was_swapped_for_its_state_writes_the_same_bytes(seed: int) -> None:
    """On every link and connection, also much later."""
    options = {
        "scheme": ("proactive", "reactive", "durable")[seed % 3],
        "mode": "flooding" if seed == 4 else "content",
        "publishers": "delayed" if seed == 3 else "standard",
        "covering": seed < 6,
    }
    swaps = set(random.Random(seed).sample(range(STEPS), 5))
    plain, swapped = run(seed, set(), **options), run(seed, swaps, **options)
    assert sum(b"count" in data for _, _, data in plain.noted) > 50
    assert swapped.noted == plain.noted


def test_what_is_held_back_comes_back_with_what_it_rests_on() -> None:
    """When the wide subscription goes that held others back, a broker made from its state sends those."""
    hall = NotedHall(line(2))
    wide = hall.visit(0, "wide", lasts_s=60)
    wide.subscribe("a/#")
    for client, pattern in (("one", "a/b"), ("two", "a/+/c")):
        hall.visit(0, client, lasts_s=60).subscribe(pattern)
    hall.settle()
    far = hall.desks[1].network.clients.broker.router
    assert len(far.subs) == 1
    before = hall.desks[0].network.clients.broker.router
    swap(hall.desks[0])
    again = hall.desks[0].network.clients.broker.router
    assert again is not before
    assert again.out_subs() == before.out_subs()
    assert [sent for _, _, sent in again.out_subs()] == [True, False, False]
    assert again._sub_covering._dependents == before._sub_covering._dependents
    wide.unsubscribe("a/#")
    hall.settle()
    assert {str(hall.desks[1].network.links.interests.subs[sub]) for sub in far.subs} == {
        "topic = 'a/b'",
        "topic LIKE 'a/+/c'",
    }


@pytest.mark.parametrize("seed", range(4))
def test_everything_in_a_broker_at_work_is_declared(seed: int) -> None:
    """Each attribute of each object is stored, or declared to be made again."""
    hall = NotedHall(line(3, scheme=("proactive", "reactive")[seed % 2]))
    traffic = Traffic(hall, seed)
    for _ in range(STEPS):
        traffic.step()
        for desk in hall.desks:
            assert undeclared(desk.core, desk.network) == []


def test_what_is_not_declared_is_found() -> None:
    """An attribute that somebody adds to a class, and an object of a class that nobody declared."""
    world = World()
    world.client().connect("c")
    world.core.state.forgotten = 1  # type: ignore[attr-defined]  # that is the mistake
    assert undeclared(world.core, None) == ["State.forgotten"]
    del world.core.state.forgotten  # type: ignore[attr-defined]  # that is the mistake
    world.core.state.sessions["c"].will = world  # type: ignore[assignment]  # that is the mistake
    assert undeclared(world.core, None) == ["World"]
    with pytest.raises(StateError, match="World is referred to and not declared"):
        dump_state(world.core, None)


def single_traffic(world: World, draw: random.Random, steps: int) -> None:
    """Clients of one broker: shares, filters, retained events, slow readers."""
    for _ in range(steps):
        world.now += draw.choice((0.0, 0.1, 30.0))
        here = [client for client in world.clients.values() if not client.closed]
        what = draw.randrange(8) if here else 0
        if what == 0:
            world.client().connect(
                f"c{draw.randrange(6)}",
                clean_start=False,
                session_expiry_interval=draw.choice((0, 500)),
                receive_max=3,
            )
            continue
        client = draw.choice(here)
        if what == 1:
            client.lose()
            client.closed = True
        elif what in (2, 3):
            pattern = draw.choice(("a/+", "a/b", "#", "$share/s/a/#", "$share/t/a/b", "+/b"))
            properties = [("filter", f"n > {draw.randrange(4)}")] if draw.random() < 0.5 else []
            wanted = TopicFilter(pattern, max_qos=QoS(draw.randrange(3)))
            client.send(SubscribePacket(1, [wanted], user_properties=properties))
        else:
            level = draw.randrange(3)
            client.send(
                PublishPacket(
                    draw.choice(("a/b", "a/c", "x/b", "deep/er")),
                    b"%d" % draw.randrange(1_000),
                    qos=QoS(level),
                    packet_id=5 if level else None,
                    retain=draw.random() < 0.3,
                    user_properties=[("n", str(draw.randrange(6)))],
                )
            )
        world.core.time_passed(world.now)
        world.carry_out()


@pytest.mark.parametrize("seed", range(5))
def test_a_single_broker_goes_on_as_it_would_have(seed: int) -> None:
    """The same packets to the same clients, in the same order of connections and of turns in shares."""
    written = []
    for swaps in (False, True):
        world, draw = World(), random.Random(seed)
        for _ in range(6):
            single_traffic(world, draw, 40)
            if swaps:
                state, core = dump_state(world.core, None), Core("B1", Limits())
                load_state(state, core, None)
                assert dump_state(core, None) == state
                world.core = core
        written.append(world.written)
    assert len(written[0]) > 100
    assert written[0] == written[1]


def test_what_is_shared_stays_shared() -> None:
    """One event in many queues is stored once, and is one object again."""
    world = World()
    for number in range(5):
        reader = world.client()
        reader.connect(f"r{number}", session_expiry_interval=500)
        reader.subscribe("t", qos=1)
        reader.lose()
    world.client().connect("w")
    list(world.clients.values())[-1].publish("t", b"x" * 1_000, 1)
    state = dump_state(world.core, None)
    assert len(state) < 4_000
    core = Core("B1", Limits())
    load_state(state, core, None)
    queued = [one for session in core.state.sessions.values() for one in session.queue]
    assert len(queued) == 5
    assert len({id(one.message) for one in queued}) == 1


def test_equal_filters_are_one_row_whether_or_not_they_are_one_object() -> None:
    """Which of them are shared depends on how a broker came by them, and is nothing to remember."""
    writer = state_codec._Writer(TABLE)
    one, same, other = (Filter.parse(text) for text in ("x > 4", "x > 4", "x > 5"))
    assert one is not same
    assert [writer.ref(each) for each in (one, same, other, same, one)] == [0, 0, 1, 0, 0]


def test_a_state_is_read_a_few_objects_at_a_time() -> None:
    """Whoever begins to play a broker has others to serve meanwhile, and they may need the collector."""
    world = World()
    for number in range(1_000):
        topic = f"news/{number}"
        world.core.retain(new_message(topic, b"deep", qos=1, now=1.0, retain=True))
    state = dump_state(world.core, None)
    core = Core("B1", Limits())
    stops = 0
    for _ in load_in_parts(state, core, None):
        stops += 1
        assert gc.isenabled()
    assert stops > len(list(rows_of(state_codec.read_document(state)))) / state_codec.PART_ROWS
    assert dump_state(core, None) == state


def test_a_topic_of_a_thousand_levels_is_no_depth_of_calls() -> None:
    """A retained event and a subscription; deep data never made a broker's state unreadable."""
    world = World()
    deep = "/".join("x" for _ in range(1_000))
    world.core.retain(new_message(deep, b"deep", qos=1, now=1.0, retain=True))
    reader = world.client()
    reader.connect("r", session_expiry_interval=500)
    reader.subscribe("/".join("+" for _ in range(250)))
    core = Core("B1", Limits())
    load_state(dump_state(world.core, None), core, None)
    kept = core.state.retained.get(deep)
    assert kept is not None
    assert kept.payload == b"deep"
    assert core.state.retained.count == 1


def test_a_filter_longer_in_normal_form_than_one_may_write_comes_back() -> None:
    """A broker without neighbours takes it, so its state must too."""
    text = " AND ".join(f"(NOT a{n} = 1.5 OR b{n} LIKE 'x%')" for n in range(6))
    assert len(str(Filter.parse(text))) > 4_096
    world = World()
    reader = world.client()
    reader.connect("r", session_expiry_interval=500)
    reader.subscribe("t", user_properties=[("filter", text)])
    core = Core("B1", Limits())
    load_state(dump_state(world.core, None), core, None)
    assert core.state.sessions["r"].subscriptions["t"].filter == Filter.parse(text)
    assert len(core.state.filters) == 1


def test_fields_may_come_and_go_between_releases() -> None:
    """One that is not known is passed over, one that is missing is as the constructor makes it."""
    world = World()
    world.client().connect("c", session_expiry_interval=500)
    document = state_codec.read_document(dump_state(world.core, None))
    numbers = {name: number for number, (name, _) in enumerate(document["classes"])}
    names = document["classes"][numbers["session"]][1]
    place = names.index("thin_at")
    names[place] = "invented later"
    for row in document["rows"]:
        if row[0] == numbers["session"]:
            row[1 + place] = ["anything"]
    document["parts"]["core.state"]["invented too"] = 1
    del document["parts"]["core.state"]["sequence"]
    core = Core("B1", Limits())
    load_state(msgspec.msgpack.encode(document), core, None)
    assert core.state.sessions["c"].thin_at == 0
    assert core.state.sessions["c"].expiry == 500


def test_a_state_of_another_place_is_refused() -> None:
    """It is of classes or of parts that are not there."""
    hall = NotedHall(line(3))
    state = dump_state(hall.desks[1].core, hall.desks[1].network)
    with pytest.raises(StateError, match="that is not known"):
        load_state(state, Core("B2", Limits()), None)
    with pytest.raises(StateError, match=r"parts that are not there: network.links.channels.B3"):
        load(state, fresh(line(2), "B2"))


def test_limits_may_change() -> None:
    """What was kept under wider limits is kept on."""
    world = World()
    for number in range(5):
        world.core.retain(new_message(f"t/{number}", b"x", qos=1, now=1.0, retain=True))
    core = Core("B1", Limits(retained_messages_max=2))
    load_state(dump_state(world.core, None), core, None)
    assert core.state.retained.count == 5


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_wrong_bytes_are_refused_in_a_sentence(data: st.DataObject) -> None:
    """Whatever is changed in a state: it reads as one, or is refused as a state that does not."""
    state = bytearray(msgspec.msgpack.decode(stored(), type=Snapshot).state)
    for _ in range(data.draw(st.integers(1, 4))):
        state[data.draw(st.integers(0, len(state) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(StateError):
        load(bytes(state), fresh(line(2), "B1"))


def with_permissions() -> tuple[Core, Permissions]:
    """A broker with one client that may not do everything."""
    allowed = Permissions(
        publish=(TopicPattern.parse("a/+/#"), TopicPattern.starting_with("b/c")),
        subscribe=None,
        subscribe_if=Filter.parse("n > 3"),
    )
    world = World()
    world.client().connect("c", session_expiry_interval=500)
    world.core.state.sessions["c"].permissions = allowed
    return world.core, allowed


def test_permissions_come_back() -> None:
    """Patterns and filters."""
    core, allowed = with_permissions()
    again = Core("B1", Limits())
    load_state(dump_state(core, None), again, None)
    assert again.state.sessions["c"].permissions == allowed


def test_references_out_of_bounds_are_refused() -> None:
    """A negative place is no place, and nothing contains itself."""
    core, _ = with_permissions()
    good = msgspec.msgpack.decode(dump_state(core, None))

    def refuse(document: dict[str, Any], why: str) -> None:
        with pytest.raises(StateError, match=why):
            load_state(msgspec.msgpack.encode(document), Core("B1", Limits()), None)

    numbers = {name: number for number, (name, _) in enumerate(good["classes"])}
    names = good["classes"][numbers["permissions"]][1]
    place = next(at for at, row in enumerate(good["rows"]) if row[0] == numbers["permissions"])
    for wrong in (-1, len(good["rows"]), "0", 1.0):
        good["rows"][place][1 + names.index("publish_if")] = wrong
        refuse(good, "refers to place" if isinstance(wrong, int) else "Expected `int")
    good["rows"][place][1 + names.index("publish_if")] = place
    refuse(good, "contain themselves")
    refuse({"format": "else"}, "something else")
    refuse(good | {"version": 2}, "version 2, and this release reads up to 1")


def test_numbers_of_any_size_come_back() -> None:
    """A client may state marks that no other number reaches."""
    codec: Any = Numbers()
    marks = {"a": 1, "b": (1 << 64) - 1, "c": 1 << 64, "d": -(1 << 80), "e": -(1 << 63)}
    packed = msgspec.msgpack.decode(msgspec.msgpack.encode(codec.pack(marks, None)))
    assert codec.unpack(packed, None) == marks


def test_a_snapshot_that_was_stored_by_the_first_release_is_read() -> None:
    """It was written once and is never written again."""
    broker = LiveBroker.revived(line(2).settings("B1"), "another life", START_S, stored(), [])
    core, network = broker.core, broker.network
    assert network is not None
    session = core.state.sessions["reader"]
    assert [one.text for one in session.subscriptions.values()] == ["news/#", "sport"]
    assert str(session.subscriptions["sport"].filter) == "n > 3"
    holding = network.clients.broker.subscribers.main[network.links.names.client_number("reader")]
    assert [one.message.payload for one in holding.queue] == [b"missed", b"for later"]  # type: ignore[attr-defined]  # of a subscriber
    kept = core.state.retained.get("news/kept")
    assert kept is not None
    assert kept.payload == b"for later"
    assert network.links.channels["B2"].last > 0
    document = state_codec.read_document(msgspec.msgpack.decode(stored(), type=Snapshot).state)
    names = {name for name, _ in rows_of(document)}
    assert names >= {"session", "subscription", "filter", "message", "carried", "holding", "roamer"}
