"""The clients of one address have a share of the room for wills, not all; who is away goes on taking it."""

from __future__ import annotations

import random

import mqtt5
import msgspec
import pytest
from mqtt5 import ConnectPacket, PublishPacket, Will

from sojourn.mqtt.admission import Admission
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.session_state import SessionState
from tests.mqtt.world import Client, World, again

QUOTA = 0x97
PAYLOAD = 900
SHARE = Limits(will_bytes_max_all=8_000, will_bytes_address_max=4_000)
"""Room for eight of the wills here, four of them of one address."""
STEPS = 300


def come(world: World, name: str, address: str, *, delay: int = 600, size: int = PAYLOAD) -> int:
    """Let a client come with a will, in a session that outlives its connection; return the code."""
    return int(client(world, name, address, delay=delay, size=size)[1].reason_code)


def client(
    world: World, name: str, address: str, *, delay: int = 600, size: int = PAYLOAD
) -> tuple[Client, mqtt5.ConnAckPacket]:
    """The same, with the client itself."""
    one = world.client(address)
    will = Will("will", payload=bytes(size), will_delay_interval=delay)
    return one, one.connect(name, clean_start=False, will=will, session_expiry_interval=900)


def by_address(world: World) -> dict[str, int]:
    """The bytes of wills as the core counts them."""
    known = world.core.state.address_uses.by_address
    return {address: use.will_bytes for address, use in known.items() if use.will_bytes}


def by_hand(world: World) -> dict[str, int]:
    """The same of every session."""
    found: dict[str, int] = {}
    for one in world.core.state.sessions.values():
        if one.will is not None:
            found[one.address or ""] = found.get(one.address or "", 0) + one.will.message.size
    return found


def test_an_address_has_a_share_of_the_wills_and_leaves_others_theirs() -> None:
    """Beyond it its clients are refused with the way out, and that is counted; without a will they come."""
    world = World(SHARE)
    assert [come(world, f"a{number}", "a") for number in range(6)] == [0, 0, 0, 0, QUOTA, QUOTA]
    assert come(world, "honest", "b", size=3) == 0
    one = world.client("a")
    assert one.connect("without a will").reason_code == 0
    _, answer = client(world, "a9", "a")
    assert "of your address have 4000 bytes at most" in (answer.reason_str or "")
    assert world.core.state.counters.refused == {"address_quota_exceeded": 3}
    assert by_address(world) == by_hand(world)


def test_clients_that_are_away_go_on_taking_the_share_of_their_address() -> None:
    """Also after a restart from a snapshot, until their wills are published."""
    world = World(SHARE)
    for number in range(5):
        client(world, f"a{number}", "a")[0].lose()
    assert not any(one.connection for one in world.core.state.sessions.values())
    assert come(world, "a9", "a") == QUOTA
    world.core = again(world.core)
    assert come(world, "a9", "a") == QUOTA
    assert come(world, "honest", "b") == 0
    world.wait(600)
    assert by_address(world) == {"b": by_hand(world)["b"]}
    assert come(world, "a9", "a") == 0


def test_who_comes_back_replaces_its_own_will_wherever_it_comes_from() -> None:
    """A full address refuses nobody whose will is counted there already; another one takes the will over."""
    world = World(SHARE)
    for number in range(4):
        assert come(world, f"a{number}", "a") == 0
    assert come(world, "a0", "a") == 0
    assert come(world, "a0", "b") == 0
    assert by_address(world) == by_hand(world)
    assert come(world, "a9", "a") == 0
    assert come(world, "a0", "a") == QUOTA


def test_who_knocked_together_is_counted_when_it_is_let_in() -> None:
    """Passwords take a while: many could knock before the first one has its will."""
    world = World(SHARE)
    will = Will("will", payload=bytes(PAYLOAD))
    for number in range(1, 7):
        world.core.opened(number, "a", f"fresh-{number}", world.now)
        world.core.received(number, ConnectPacket(f"a{number}", clean_start=True, will=will).write(), 1_000.0)
    knocks = world.core.effects.knocks[:]
    world.core.effects.knocks.clear()
    is_in = [world.core.admit(knock.number, Admission(), world.now) for knock in knocks]
    assert is_in == [True] * 4 + [False] * 2
    assert world.core.state.counters.refused == {"address_quota_exceeded": 2}


def test_a_will_beyond_the_share_is_published_where_its_session_is_handed_over() -> None:
    """It is not kept, so that nobody collects wills at one broker by way of others; it is not lost either."""
    here, there = World(SHARE), World(SHARE, name="B2")
    watcher = there.client("w")
    watcher.connect("watcher")
    watcher.subscribe("will")
    for number in range(4):
        assert come(there, f"there{number}", "a") == 0
        assert come(here, f"here{number}", "a") == 0
    before = by_address(there)
    for address in "ab":
        come(here, f"moves-{address}", address)
    for name in ("here0", "moves-b"):
        state = here.core.custody.export_session(name, here.now)
        here.core.custody.end_session(name, here.now)
        sent = msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=SessionState)
        there.core.custody.adopt(sent, there.now)
        there.carry_out()
    assert [type(one) for one in watcher.inbox] == [PublishPacket], "one will, of the address that is full"
    assert by_address(there) == by_hand(there)
    assert by_address(there)["a"] == before["a"]
    assert by_address(there)["b"] > PAYLOAD
    assert there.core.state.counters.refused == {"will quota_exceeded": 1}
    assert "here0" in there.core.state.sessions


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_the_wills_of_each_address_are_counted_as_by_hand(seed: int) -> None:
    """Comings, goings, take-overs, goodbyes and time."""
    draw = random.Random(seed)
    world = World(SHARE)
    here: dict[str, Client] = {}
    for step in range(STEPS):
        name = draw.choice(("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"))
        one = here.get(name)
        act = draw.choice(("come", "come", "lose", "goodbye", "wait"))
        if act == "come" or one is None or one.closed:
            one = here[name] = world.client(draw.choice("aab"))
            will = Will(
                "will", payload=bytes(draw.randrange(2_000)), will_delay_interval=draw.choice((0, 5, 50))
            )
            expiry, is_clean = draw.choice((0, 10, 900)), draw.random() < 0.2
            one.connect(
                name,
                clean_start=is_clean,
                will=will if draw.random() < 0.8 else None,
                session_expiry_interval=expiry,
            )
        elif act == "lose":
            here.pop(name).lose()
        elif act == "goodbye":
            here.pop(name).send(mqtt5.DisconnectPacket())
        else:
            world.wait(draw.randrange(20))
        assert by_address(world) == by_hand(world), f"step {step}: {act}"
        assert all(size <= SHARE.will_bytes_address_max for size in by_address(world).values())
    assert world.core.state.counters.refused["address_quota_exceeded"] > 0
