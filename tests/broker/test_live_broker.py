"""A whole broker that is revived from its store: it goes on as it would have, also with other settings."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable

import mqtt5
import msgspec
import pytest
from mqtt5 import AuthPacket, ConnectPacket, PublishPacket, QoS

from sojourn.broker import facts
from sojourn.broker.frame_heads import Position
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import MobilityConfig
from sojourn.broker.snapshot import Snapshot
from sojourn.broker.state_codec import load_state
from sojourn.broker.state_kinds import StateError
from sojourn.live.config import BrokerConfig, Config
from sojourn.mqtt.limits import Limits
from tests.broker.traffic import NotedHall, Traffic
from tests.live.hall import START_S, Desk, Hall, Visitor, frames_of, line

STEPS = 250
SECRET = b"open sesame"
LATER_S = 10.0
"""How long after its death a broker comes back whose numbers are to be dates again."""


# The same as before -----------------------------------------------------------------------------------------


def from_everything(desk: Desk, life: str) -> LiveBroker:
    """The broker that all lines ever written lead to."""
    return LiveBroker.revived(desk.settings, life, desk.hall.now, None, everything(desk))


def from_snapshot(desk: Desk, life: str) -> LiveBroker:
    """The broker that a snapshot and the lines after it lead to."""
    return LiveBroker.revived(desk.settings, life, desk.hall.now, desk.store.state, list(desk.store.written))


def undying(desk: Desk, life: str) -> LiveBroker:
    """The broker that never died, and has only lost its connections."""
    desk.broker.handle(facts.Started(life, desk.settings), desk.hall.now)
    return desk.broker


def everything(desk: Desk) -> list[bytes]:
    """The lines that came before a desk's snapshot, and those after it."""
    return [*desk.hall.before[desk.name], *desk.store.written]  # type: ignore[attr-defined]  # put there by this test


def life_with(
    seed: int, revive: Callable[[Desk, str], LiveBroker], **options: str
) -> dict[tuple[str, str], bytes]:
    """All that is said in a hall in which one broker dies twice and comes back this way.

    What no line tells of is left out: events of QoS 0, and how far neighbours and clients had read.
    """
    hall = NotedHall(line(3, **options))  # type: ignore[arg-type]  # whatever a case names
    hall.before = {"B2": []}  # type: ignore[attr-defined]  # put there by this test
    desk, traffic = hall.desks[1], Traffic(hall, seed, levels=(1, 1, 2))
    traffic.forget = lambda: None  # type: ignore[method-assign]  # whoever dies here does it as is said below
    desk.revived = lambda life: revive(desk, life)  # type: ignore[method-assign]  # for this test
    for step in range(3 * STEPS):
        traffic.step()
        if step == STEPS // 2:
            hall.before["B2"] = everything(desk)  # type: ignore[attr-defined]  # put there by this test
            desk.keep()
        if step in (STEPS, 2 * STEPS):
            hall.unlink("B2")
            hall.now += LATER_S
            desk.restart()
            hall.relink()
    hall.settle()
    hall.wait(100.0)
    spoken: dict[tuple[str, str], bytes] = {}
    for end, far, data in hall.noted:
        said = b"".join(one for one in frames_of(data) if is_numbered(one)) if far in hall.by_name else data
        spoken[end, far] = spoken.get((end, far), b"") + said
    return spoken


def is_numbered(frame: bytes) -> bool:
    """Whether a frame is one that is remembered: no hello, no acknowledgement, nothing volatile."""
    _, kind, _, rank = struct.unpack_from(">IBQI", frame)
    return kind == 2 and not rank


@pytest.mark.parametrize("seed", range(4))
def test_a_revived_broker_writes_what_one_that_never_died_would_have_written(seed: int) -> None:
    """On every link and connection; from its first line on, and from a snapshot and the lines after it."""
    options = {"scheme": ("proactive", "reactive", "durable")[seed % 3]}
    written = life_with(seed, undying, **options)
    assert sum(len(data) for (_, far), data in written.items() if far.startswith("B")) > 10_000
    assert sum(data.count(b'{"count"') for data in written.values()) > 100
    assert life_with(seed, from_snapshot, **options) == written
    assert life_with(seed, from_everything, **options) == written


# Other settings ---------------------------------------------------------------------------------------------


def places(*names: str) -> list[BrokerConfig]:
    """Brokers of these names."""
    return [BrokerConfig(name=name, listen="127.0.0.1:0") for name in names]


def network(names: str, *links: str, **mobility: float) -> Config:
    """A network of these brokers and links: `network("B1 B2", "B1 B2")`."""
    return Config(
        brokers=places(*names.split()),
        links=[(one, other) for one, other in (link.split() for link in links)],
        mobility=MobilityConfig(**{"timeout_s": 600.0, **mobility}),  # type: ignore[arg-type]  # whatever a case names
    )


THREE = network("B1 B2 B3", "B1 B2", "B2 B3")
ALONE = network("B2")
CHANGES = {
    "nothing": (THREE, THREE),
    "other limits": (THREE, msgspec.structs.replace(THREE, limits=Limits(sessions_max=50))),
    "another timeout": (THREE, network("B1 B2 B3", "B1 B2", "B2 B3", timeout_s=1_200.0)),
    "a broker in the middle": (THREE, network("B1 X B2 B3", "B1 X", "X B2", "B2 B3")),
    "a broker at the edge": (THREE, network("X B1 B2 B3", "B1 B2", "B2 B3", "B2 X")),
    "a link moved": (THREE, network("B1 B2 B3", "B1 B2", "B1 B3")),
    "a broker removed": (THREE, network("B2 B3", "B2 B3")),
    "from alone to a network": (ALONE, THREE),
    "from a network to alone": (THREE, ALONE),
}


def move_into(hall: Hall, config: Config) -> None:
    """Restart all brokers with another configuration, each from its store."""
    for name in hall.by_name:
        hall.unlink(name)
    hall.now += 1.0
    hall.config = config
    found = []
    for broker in config.brokers:
        desk = hall.by_name.get(broker.name)
        if desk is None:
            desk = Desk(hall, broker.name)
        else:
            desk.settings = config.settings(broker.name)
            desk.restart()
        found.append(desk)
    hall.desks = found
    hall.by_name = {desk.name: desk for desk in found}
    hall.cut = {*hall.by_name}
    hall.relink()
    hall.settle()


def place(hall: Hall, name: str) -> int:
    """The place of a broker in the hall."""
    return [desk.name for desk in hall.desks].index(name)


def guest(hall: Hall, name: str, *, got: list[bytes] | None = None) -> Visitor:
    """A client of B2 whose session lasts."""
    visitor = hall.visit(place(hall, "B2"), name, lasts_s=500, got=got)
    hall.settle()
    return visitor


def sure(number: int, payload: bytes, *, duplicate: bool = False) -> PublishPacket:
    """An event of QoS 2."""
    return PublishPacket("up", payload, qos=QoS.EXACTLY_ONCE, packet_id=number, duplicate=duplicate)


@pytest.mark.parametrize("keeps", [False, True], ids=["lines", "snapshot"])
@pytest.mark.parametrize("name", CHANGES)
def test_what_clients_have_survives_other_settings(name: str, *, keeps: bool) -> None:
    """Sessions, subscriptions, stored events, retained values, and what QoS 2 remembers."""
    before, after = CHANGES[name]
    hall = Hall(before)
    reader, writer = guest(hall, "reader"), guest(hall, "writer")
    reader.subscribe("news/#", "n > 1")
    reader.subscribe("up")
    writer.send(sure(7, b"once"))
    hall.settle()
    assert reader.got == [b"once"]
    reader.lose()
    for number in (1, 2, 3):
        writer.publish("news/a", b"missed %d" % number, {"n": number})
    if keeps:
        hall.by_name["B2"].keep()
    writer.publish("news/a", b"missed 4", {"n": 4})
    writer.publish("kept", b"for later", retain=True)
    hall.settle()

    move_into(hall, after)
    again = guest(hall, "reader", got=reader.got)
    assert again.inbox.popleft().session_present
    assert reader.got == [b"once", b"missed 2", b"missed 3", b"missed 4"]
    back = guest(hall, "writer")
    assert back.inbox.popleft().session_present
    back.send(sure(7, b"once", duplicate=True))
    assert isinstance(back.inbox.pop(), mqtt5.PubRecPacket)
    back.send(mqtt5.PubRelPacket(7))
    assert isinstance(back.inbox.pop(), mqtt5.PubCompPacket)
    back.send(sure(7, b"another"))
    back.publish("news/a", b"unwanted", {"n": 0})
    hall.settle()
    assert reader.got[4:] == [b"another"]
    assert retained_everywhere(hall, "kept") == [[b"for later"]] * len(hall.desks)
    if after is not ALONE:
        hall.visit(len(hall.desks) - 1, "far").publish("news/b", b"from afar", {"n": 9})
        hall.settle()
        assert reader.got[5:] == [b"from afar"]
    assert len(reader.got) == len({*reader.got})


def retained_everywhere(hall: Hall, topic: str) -> list[list[bytes]]:
    """What somebody who subscribes is sent, at each broker."""
    found = []
    for number, desk in enumerate(hall.desks):
        late = hall.visit(number, f"late at {desk.name}")
        late.subscribe(topic)
        hall.settle()
        found.append(late.got)
    return found


def test_a_store_that_is_lost_when_settings_change_costs_no_retained_value() -> None:
    """Its neighbours have no reason to think that it forgot something, since all links are new."""
    hall = Hall(THREE)
    guest(hall, "writer").publish("kept", b"for later", retain=True)
    hall.settle()
    hall.unlink("B2")
    hall.settle()
    hall.by_name["B2"].delete_store()
    move_into(hall, network("B1 B2 B3", "B1 B2", "B2 B3", timeout_s=1_200.0))
    assert retained_everywhere(hall, "kept") == [[b"for later"]] * 3


@pytest.mark.parametrize("ways", [(THREE, ALONE, THREE), (ALONE, THREE, ALONE)])
def test_settings_may_change_again_and_again(ways: tuple[Config, ...]) -> None:
    """What is stored goes along each time, and nothing comes twice."""
    hall = Hall(ways[0])
    reader = guest(hall, "reader")
    reader.subscribe("news")
    reader.lose()
    for number, config in enumerate(ways[1:]):
        guest(hall, "writer").publish("news", b"%d" % number)
        hall.settle()
        move_into(hall, config)
    guest(hall, "writer").publish("news", b"last")
    guest(hall, "reader", got=reader.got)
    assert reader.got == [b"0", b"1", b"last"]
    move_into(hall, ways[0])
    guest(hall, "reader", got=reader.got)
    assert reader.got == [b"0", b"1", b"last"]


# Beginnings -------------------------------------------------------------------------------------------------


def test_a_fresh_store_begins_with_the_start() -> None:
    """Its first line says with which settings."""
    settings = ALONE.settings("B2")
    broker = LiveBroker.revived(settings, "first", START_S, None, [])
    (line_,) = broker.turn(START_S).entries
    assert facts.read_entry(line_) == facts.Entry(
        START_S, 0, facts.Started("first", settings, hushes_banned=True)
    )


@pytest.mark.parametrize("keeps", [False, True], ids=["lines", "snapshot"])
def test_time_does_not_go_back(*, keeps: bool) -> None:
    """A clock that was set back since the last life changes nothing."""
    hall = Hall(ALONE)
    guest(hall, "client")
    store, last_s = hall.desks[0].store, hall.now
    if keeps:
        hall.desks[0].keep()
    settings = ALONE.settings("B2")
    broker = LiveBroker.revived(settings, "later", last_s - 1_000.0, store.state, store.written)
    assert broker.now_s == last_s
    assert facts.read_entry(broker.turn(last_s).entries[-1]).now == last_s


def test_numbers_do_not_go_back_with_a_clock() -> None:
    """What is stored after a restart is handed on, however late the last event was that no line tells of."""
    hall = Hall(line(2))
    reader = hall.visit(1, "reader", lasts_s=100)
    reader.subscribe("t")
    publisher, desk = hall.visit(0, "publisher", lasts_s=100), hall.desks[0]
    hall.settle()
    for _ in range(20):
        hall.now += 0.9
        publisher.send(PublishPacket("t", b"unsure"))
        hall.settle()
    reader.lose()
    desk.ahead_s = -15.0
    hall.restart("B1", forgets=1)  # who is killed does not note that its link is gone
    hall.settle()
    hall.visit(0, "publisher", lasts_s=100).publish("t", b"sure")
    hall.settle()
    hall.visit(0, "reader", lasts_s=100, got=reader.got)
    hall.settle()
    assert reader.got == [b"unsure"] * 20 + [b"sure"]


def test_events_that_nobody_notes_are_noted_once_in_a_while() -> None:
    """Numbers are never more than a second beyond what a restart knows of, which costs a line a second."""
    hall = Hall(line(2))
    publisher, desk = hall.visit(0, "publisher"), hall.desks[0]
    hall.settle()
    before = len(desk.store.written)
    for _ in range(100):
        hall.now += 0.1
        publisher.send(PublishPacket("t", b"unsure"))
        # The first number that it gives is one more.
        assert desk.revived("next").core.state.sequence >= desk.core.state.sequence
    assert 5 <= len(desk.store.written) - before <= 15


def test_what_is_no_snapshot_is_refused() -> None:
    """In a sentence."""
    settings = ALONE.settings("B2")
    for data in (b"", b"\x93", b"\x80", b"anything", b"\x93\x01\x02\xc4\x00"):
        with pytest.raises(StateError, match="a snapshot does not read"):
            LiveBroker.revived(settings, "life", START_S, data, [])
    empty = msgspec.msgpack.encode(Snapshot(settings, START_S, b""))
    with pytest.raises(StateError, match="a state does not read"):
        LiveBroker.revived(settings, "life", START_S, empty, [])


# Secrets ----------------------------------------------------------------------------------------------------

HELLO = ConnectPacket("client", username="somebody", password=SECRET, session_expiry_interval=100).write()
PROOF = AuthPacket(authentication_method="any", authentication_data=SECRET).write()
KNOCKS = {
    "whole": [HELLO],
    "in pieces": [HELLO[:3], HELLO[3:-2], HELLO[-2:]],
    "twice": [HELLO, HELLO],
    "twice, with a question between": [HELLO + b"\xc0\x00" + HELLO],
    "cut short": [HELLO[:-1]],
    "malformed": [HELLO.replace(b"somebody", b"\xff" * 8)],
    "an older version": [HELLO.replace(b"MQTT\x05", b"MQTT\x04")],
    "a later version": [HELLO.replace(b"MQTT\x05", b"MQTT\x06")],
    "by a method": [ConnectPacket("client", authentication_method="any", authentication_data=SECRET).write()],
    "proved again": [HELLO, PROOF],
    "proved again in pieces": [HELLO, PROOF[:-1], PROOF[-1:]],
    "proved again with the CONNECT": [HELLO + PROOF],
    "proved again, malformed": [HELLO, b"\xf1" + PROOF[1:]],
    "proved first": [PROOF],
    "proved again, of an older version": [HELLO.replace(b"MQTT\x05", b"MQTT\x04"), PROOF],
}


@pytest.mark.parametrize("config", [ALONE, THREE], ids=["alone", "network"])
@pytest.mark.parametrize("name", KNOCKS)
def test_no_password_is_ever_stored(name: str, config: Config) -> None:
    """Neither in lines nor in a snapshot, at whatever moment that is taken; the doorkeeper alone hears it."""
    settings = config.settings("B2")
    broker = LiveBroker.revived(settings, "life", START_S, None, [])
    lines: list[bytes] = []
    heard: list[bytes | None] = []

    def turn() -> None:
        lines.extend(broker.turn(START_S).entries)
        assert not any(SECRET[:-1] in one for one in lines)
        assert SECRET[:-1] not in broker.snapshot()

    broker.handle(facts.ClientOpened(1, "here", "fresh"), START_S)
    for data in KNOCKS[name]:
        broker.handle(facts.ClientSent(1, data), START_S)
        knocks = broker.knocks[:]
        broker.knocks.clear()
        turn()
        for knock in knocks:
            heard.append(knock.packet.password)
            broker.handle(facts.ClientAdmitted(1, "somebody"), START_S)
        turn()
    again = LiveBroker(settings, "life", remembers=True)
    for one in lines:
        again.replay(facts.read_entry(one))
    assert again.core.state.sessions.keys() == broker.core.state.sessions.keys()
    assert again.core.state.connections[1].state == broker.core.state.connections[1].state
    assert again.core.state.counters.refused == broker.core.state.counters.refused
    if name in ("whole", "in pieces", "twice"):
        assert heard == [SECRET]


def test_events_that_say_what_goes_without_saying_are_sent_on_after_a_restart() -> None:
    """A PUBLISH with properties of their default values is no plain one: neighbours would not read it."""
    hall = Hall(THREE)
    reader, writer = guest(hall, "reader"), guest(hall, "writer")
    reader.subscribe("news")
    reader.lose()
    writer.desk.tell(facts.ClientSent(writer.number, b"\x32\x0d\x00\x04news\x00\x01\x02\x01\x00hi"))
    hall.by_name["B2"].keep()
    hall.restart("B2")
    hall.settle()
    hall.visit(0, "reader", lasts_s=500, got=reader.got)
    hall.settle()
    assert reader.got == [b"hi"]


def test_nobody_waits_for_an_answer_after_a_restart() -> None:
    """Whom a broker kept waiting when a snapshot was taken has gone, and others get the same numbers."""
    hall = Hall(THREE)
    reader = guest(hall, "reader")
    reader.ask("news")
    desk = hall.by_name["B2"]
    desk.network.pressure.held[reader.number] = 0.0
    assert desk.network.confirming.next_moment() is not None
    desk.keep()
    broker = desk.revived("another life")
    assert broker.network is not None
    assert not broker.network.pressure.held
    assert not broker.network.confirming.waiting
    assert broker.network.confirming.next_moment() is None
    turn = broker.turn(hall.now)
    assert (turn.writes, turn.releases) == ([], [])


def test_frames_that_wait_because_a_link_is_full_are_part_of_a_state() -> None:
    """As are those who fill it."""
    hall = Hall(THREE)
    desk = hall.by_name["B2"]
    pressure = desk.network.pressure
    pressure.frames["B1"] = deque([(Position(3), b"one"), (Position(3, 1), b"two")])
    pressure._spoken_of[2, "writer"] = 5.0
    pressure.held[4] = 0.0
    snapshot = Snapshot.read(desk.broker.snapshot())
    again = LiveBroker(snapshot.settings, "life", remembers=True)
    load_state(snapshot.state, again.core, again.network)
    assert again.network is not None
    assert again.network.pressure.frames == pressure.frames
    assert again.network.pressure._spoken_of == pressure._spoken_of
    assert again.network.pressure.held == pressure.held


def test_numbers_of_a_broker_that_comes_back_are_dates() -> None:
    """Events grow old by their numbers, so none lies ahead of the clock unless one before it did."""
    hall = Hall(line(2))
    desk = hall.desks[0]
    assert desk.core.state.sequence <= hall.now * 1e6
    hall.now += 10.0
    assert desk.revived("next").core.state.sequence <= hall.now * 1e6
