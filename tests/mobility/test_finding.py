"""Sessions are found wherever they are, and are with one broker at a time, whatever crosses or breaks."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable

import pytest

from sojourn.mobility import finding
from sojourn.mobility.epochs import AHEAD_MAX_S, EPOCH_END, EpochClock
from sojourn.mobility.finding import EVERYBODY, Find, Finder, Found
from tests.mobility.finding_world import GIVE_UP_S, PATIENCE_S, World

SEEDS = int(os.environ.get("FINDING_SEEDS", "150"))
"""How many seeds each kind of trouble is tried with."""
TROUBLES = {
    "crossing messages": frozenset[str](),
    "stalls": frozenset({"stall"}),
    "crashes": frozenset({"stall", "crash", "end"}),
    "clean starts": frozenset({"stall", "crash", "clean"}),
    "amnesia": frozenset({"stall", "crash", "amnesia"}),
    "repetitions": frozenset({"stall", "crash", "repeat"}),
}
CLIENT = 7


def whole(brokers: int, seed: int = 1) -> World:
    """A world without faults, whose clocks agree."""
    return World(random.Random(seed), brokers)


def shuffle(world: World) -> None:
    """Deliver everything, in any order."""
    while ready := world.ready():
        world.deliver(world.draw.choice(ready))


def happen(world: World, clients: int, last: dict[int, int], kinds: frozenset[str]) -> None:
    """Let something happen by chance."""
    draw = world.draw
    for _ in range(draw.randrange(6)):
        if ready := world.ready():
            world.deliver(draw.choice(ready))
    broker, client = draw.randrange(len(world.brokers)), draw.randrange(clients)
    kind = draw.choices(
        ["connect", "lose", "wait", "stall", "mend", "long", "crash", "amnesia", "repeat", "notice", "end"],
        [35, 15, 10, 5, 7, 2, 4, 2, 4, 2, 2],
    )[0]
    if kind == "connect":
        previous = last.get(client) if draw.random() < 0.5 else None
        world.connect(broker, client, previous, is_clean="clean" in kinds and draw.random() < 0.1)
        last[client] = broker
    elif kind == "lose":
        world.disconnect(broker, client)
    elif kind == "wait":
        world.wait(draw.choice([0.01, 0.5, 3.0]))
    elif kind == "notice":
        world.notice()
    elif kind in kinds:
        trouble: dict[str, Callable[[], None]] = {
            "stall": world.stall,
            "crash": lambda: world.crash(broker, forgets=False),
            "amnesia": lambda: world.crash(broker, forgets=True),
            "repeat": world.repeat,
            "end": lambda: world.expire(broker, client),
        }
        trouble[kind]()
    elif "stall" in kinds and kind == "mend":
        world.mend(draw.choice([0.3, 1.0]))
    elif "stall" in kinds and kind == "long":
        world.wait(GIVE_UP_S * 1.2)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_no_session_is_lost_or_doubled_whatever_happens(trouble: str) -> None:
    """Clients go anywhere through every kind of trouble; when it is over, they get in and have one session.

    That none is lost, and every search ends in time, is checked by the world with each step.
    """
    kinds = TROUBLES[trouble]
    doubled = 0
    for seed in range(SEEDS):
        draw = random.Random(f"{trouble} {seed}")
        count, clients = draw.randrange(2, 7), draw.choice([1, 2])
        skew_s, quick_eyes = draw.choice([0.0, 0.05, 30.0]), draw.choice([0.2, 0.7, 1.0])
        world = World(draw, count, skew_s=skew_s, quick_eyes=quick_eyes)
        last: dict[int, int] = {}
        for _ in range(draw.randrange(20, 150)):
            happen(world, clients, last, kinds)
        world.settle()
        for client in range(clients):
            is_lawful = client not in world.given_up | world.cleared.keys() and "amnesia" not in kinds
            assert len(world.holders(client)) <= 1 or not is_lawful, f"seed {seed}"
            tries = [get_in(world, client) for _ in range(3)]
            assert "in" in tries, f"seed {seed}: {tries}"
            doubled += len(world.holders(client)) > 1
            world.connect(draw.randrange(count), client, is_clean=True)
            world.settle()
            assert len(world.holders(client)) == 1, f"seed {seed}"
    # Brokers that gave one another up mostly meet again; the rest ends with the next question to all.
    assert doubled <= SEEDS / 100


def get_in(world: World, client: int) -> str:
    """Let a client connect somewhere; return what came of it."""
    connection = world.connect(world.draw.randrange(len(world.brokers)), client)
    world.settle()
    return world.connections[connection]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("skew_s", [0.0, 25.0])
@pytest.mark.parametrize("is_known", [False, True])
def test_of_a_hundred_connections_at_once_one_survives(seed: int, skew_s: float, is_known: bool) -> None:
    """Six brokers, one client, any order of messages: one is in, all others are told; the next try wins."""
    draw = random.Random(seed)
    world = World(draw, 6, skew_s=skew_s)
    if is_known:
        first = draw.randrange(6)
        world.connect(first, CLIENT)
        shuffle(world)
        world.disconnect(first, CLIENT)
    before = len(world.connections)
    for _ in range(100):
        world.connect(draw.randrange(6), CLIENT)
        for _ in range(draw.randrange(3)):
            if ready := world.ready():
                world.deliver(draw.choice(ready))
    shuffle(world)
    fates = list(world.connections.values())[before:]
    assert fates.count("in") == 1
    assert set(fates) <= {"in", "superseded", "lost"}
    assert [world.brokers[holder].held[CLIENT].connection for holder in world.holders(CLIENT)] == [
        before + fates.index("in")
    ]
    again = world.connect(draw.randrange(6), CLIENT)
    shuffle(world)
    assert world.connections[again] == "in" or get_in(world, CLIENT) == "in"


def test_no_two_brokers_give_the_same_epoch() -> None:
    """Of connections in the same millisecond that do not know of one another exactly one is in."""
    world = whole(3)
    connections = [world.connect(broker, CLIENT) for broker in range(3)]
    shuffle(world)
    fates = [world.connections[one] for one in connections]
    assert sorted(fates) == ["in", "superseded", "superseded"]


def test_a_client_nobody_knows_starts_anew_once_all_have_answered() -> None:
    """And not before."""
    world = whole(3)
    connection = world.connect(1, CLIENT)
    for wire in ((1, 0), (0, 1), (1, 2)):
        world.deliver(wire)
    assert world.connections[connection] == "waiting"
    world.deliver((2, 1))
    assert world.connections[connection] == "in"


def test_one_broker_alone_asks_nobody() -> None:
    """The answer is there at once."""
    world = whole(1)
    assert world.connections[world.connect(0, CLIENT)] == "in"


def away(world: World, *brokers: int) -> None:
    """Put brokers out of everybody's reach."""
    for broker in brokers:
        for other in range(len(world.brokers)):
            if other != broker:
                world.cut.setdefault(frozenset((broker, other)), world.now)
    world.notice()


def test_a_session_out_of_reach_is_not_replaced_and_is_found_later() -> None:
    """The client is refused at once, not after a patience; when the broker is back, it has its session."""
    world = whole(3)
    world.connect(0, CLIENT)
    shuffle(world)
    state = world.brokers[0].held[CLIENT].state
    away(world, 0)
    connection = world.connect(1, CLIENT, previous=0)
    shuffle(world)
    assert world.connections[connection] == "unreachable"
    world.settle()
    assert get_in(world, CLIENT) == "in"
    assert [world.brokers[broker].held[CLIENT].state for broker in world.holders(CLIENT)] == [state]


def test_a_session_that_comes_late_is_found_where_it_came() -> None:
    """The asker gave up and the client left; the old broker answers the old question; a third finds it."""
    world = whole(3)
    world.connect(0, CLIENT)
    shuffle(world)
    world.disconnect(0, CLIENT)
    state = world.brokers[0].held[CLIENT].state
    away(world, 0)
    world.connect(1, CLIENT)
    shuffle(world)
    del world.cut[frozenset((0, 1))]
    world.notice()
    world.deliver((1, 0))
    assert not world.holders(CLIENT), "it is on its way"
    connection = world.connect(2, CLIENT)
    for wire in ((2, 1), (0, 1), (1, 2)):
        world.deliver(wire)
    assert world.connections[connection] == "in"
    assert world.brokers[2].held[CLIENT].state == state


def test_a_client_that_asks_while_the_session_travels_out_of_reach_gets_no_new_one() -> None:
    """Who waits for a broker out of reach says so, and its silence is not taken for an answer."""
    world = whole(4)
    world.connect(0, CLIENT)
    shuffle(world)
    world.disconnect(0, CLIENT)
    world.connect(1, CLIENT)
    world.deliver((1, 0))  # the session is given, and the link breaks
    world.cut[frozenset((0, 1))] = world.now
    world.notice()
    connection = world.connect(2, CLIENT)
    shuffle(world)
    assert world.connections[connection] == "unreachable"
    assert not world.holders(CLIENT)
    world.settle()
    assert get_in(world, CLIENT) == "in"
    assert world.sessions == 1


def test_brokers_out_of_reach_for_too_long_are_given_up() -> None:
    """The client starts anew; the old session ends when the question reaches it."""
    world = whole(3)
    world.connect(0, CLIENT)
    shuffle(world)
    away(world, 0)
    world.wait(GIVE_UP_S - 1.0)
    early = world.connect(1, CLIENT)
    shuffle(world)
    assert world.connections[early] == "unreachable"
    world.wait(2.0)
    late = world.connect(2, CLIENT)
    shuffle(world)
    assert world.connections[late] == "in"
    assert world.holders(CLIENT) == [0, 2]
    world.settle()
    assert world.holders(CLIENT) == [2]


def test_a_silent_broker_in_reach_makes_a_client_wait_but_not_for_ever() -> None:
    """The named one for a second, then all for five."""
    world = World(random.Random(1), 3, quick_eyes=0.0)
    world.cut[frozenset((1, 2))] = world.now  # nobody has noticed
    connection = world.connect(1, CLIENT, previous=2)
    finder = world.brokers[1].finder
    assert not world.wires[1, 0]
    assert finder.next_moment() == world.local_s(1) + 1.0
    world.wait(1.1)
    assert [message.destination for message in world.wires[1, 0]] == [EVERYBODY]
    shuffle(world)
    world.wait(PATIENCE_S - 0.5)
    assert world.connections[connection] == "waiting"
    world.wait(1.0)
    assert world.connections[connection] == "unreachable"


def test_the_named_broker_is_only_a_hint() -> None:
    """One that has nothing is answered by asking all."""
    world = whole(3)
    world.connect(0, CLIENT)
    shuffle(world)
    connection = world.connect(1, CLIENT, previous=2)
    shuffle(world)
    assert world.connections[connection] == "in"
    assert world.sessions == 1


@pytest.mark.parametrize("is_present", [False, True])
def test_a_broker_whose_clock_is_ahead_delays_nobody(is_present: bool) -> None:
    """Roamers from there are let in at once if they have left, with the second try if they seem present."""
    world = whole(3)
    world.brokers[0].skew_s = 25.0
    world.brokers[0].held[CLIENT] = held = world.new_session(int(world.local_s(0) * 1000))
    if is_present:
        held.connection = 0
        world.connections[0] = "in"
    connection = world.connect(1, CLIENT)
    shuffle(world)
    if is_present:
        assert world.connections[connection] == "superseded"
        connection = world.connect(1, CLIENT)
        shuffle(world)
    assert world.connections[connection] == "in"
    assert world.holders(CLIENT) == [1]
    assert world.brokers[1].held[CLIENT].epoch > held.epoch


def test_a_client_that_tries_again_fills_no_link() -> None:
    """While a broker is out of reach one question a client waits for it, however often the client tries."""
    world = whole(3)
    away(world, 0)
    for _ in range(50):
        world.connect(1, CLIENT)
        shuffle(world)
    assert len(world.wires[1, 0]) == 1


def test_what_is_remembered_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """In number and in time, and nobody who is being looked for is forgotten."""
    monkeypatch.setattr(finding, "TRAILS_MAX", 10)
    finder = Finder(0, 2, give_up_s=50.0)
    finder.seek(1000, 1, None, 0.0)
    for client in range(100):
        finder.asked(Find(destination=0, sender=1, client=client, epoch=5), None, 1.0, present=False)
    assert len(finder.clients()) <= 12
    assert finder.seeks(1000)
    finder.time_passed(10.0)
    finder.forget_until(20.0)
    assert finder.clients() == {1000}, "somebody still owes an answer about it"
    finder.forget_until(200.0)
    assert not finder.clients()


def test_senseless_messages_are_ignored() -> None:
    """Epochs beyond all dates, brokers that are none of ours."""
    finder = Finder(0, 2)
    for sender, epoch in ((1, EPOCH_END), (0, 5), (9, 5)):
        finder.asked(Find(destination=0, sender=sender, client=1, epoch=epoch), 3, 1.0, present=False)
    found = {"destination": 0, "client": 1, "epoch": 5, "held_at": 1, "present": True, "holds": True}
    for sender, epoch in ((1, EPOCH_END), (7, 6)):
        message = Found(**found, sender=sender, held_epoch=epoch, waits_for=(), holder=1, state=None)  # type: ignore[arg-type]  # whatever a case names
        finder.answered(message, None, 1.0, present=False)
    assert not finder.sends
    assert not finder.gives
    assert not finder.results


def test_a_clock_never_repeats_itself_and_catches_up() -> None:
    """Also after a restart, and when the date goes back."""
    clock = EpochClock()
    assert clock.next(2.0) == 2000
    assert clock.next(2.0) == 2001
    clock.witness(9000, 2.0)
    assert clock.next(1.0) == 9001
    assert pickle.loads(pickle.dumps(clock)).next(1.0) == 9002


def test_a_message_pushes_a_clock_by_a_year_at_most() -> None:
    """What lies beyond is overtaken for the one client it is about, and changes no other epoch."""
    clock = EpochClock()
    beyond = int((2.0 + AHEAD_MAX_S) * 1000) + 1
    clock.witness(beyond, 2.0)
    assert clock.next(2.0) == 2000
    assert clock.next(2.0, after=beyond) == beyond + 1
    assert clock.next(2.0) == 2002
    clock.witness(beyond - 1, 2.0)
    assert clock.next(2.0) == beyond


def test_a_broker_that_joins_while_a_session_is_looked_for_is_asked_too() -> None:
    """The session may have gone there: a search does not end without a broker that was heard of late."""
    finder = Finder(0, 2, give_up_s=GIVE_UP_S)
    epoch = finder.next_epoch(CLIENT, 100.0)
    finder.seek(CLIENT, epoch, None, 100.0)
    finder.sends.clear()
    finder.regroup(3, (), 100.1)
    assert [(send.destination, send.epoch) for send in finder.sends if isinstance(send, Find)] == [(2, epoch)]

    for sender, state in ((1, None), (2, b"session")):
        assert not finder.results
        answer = Found(
            destination=0,
            sender=sender,
            client=CLIENT,
            epoch=epoch,
            held_epoch=0,
            held_at=sender,
            present=False,
            holds=False,
            waits_for=(),
            holder=sender,
            state=state,
        )
        finder.answered(answer, None, 100.2, present=False)
    assert [result.state for result in finder.results] == [b"session"]
