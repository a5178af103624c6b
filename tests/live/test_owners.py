"""Sessions belong to who began them: nobody else takes one by its client identifier, wherever it tries."""

from __future__ import annotations

import msgspec
import pytest
from mqtt5 import ConnAckPacket, DisconnectPacket

from sojourn.broker import facts
from sojourn.mqtt.effects import Knock
from sojourn.mqtt.session_state import SessionState
from tests.live.hall import Hall, Visitor, line

NOT_AUTHORIZED = 0x87
SERVER_UNAVAILABLE = 0x88


def by_name(knock: Knock) -> facts.ClientAdmitted:
    """Let a client in whose name somebody has looked at."""
    name = knock.packet.username or ""
    return facts.ClientAdmitted(knock.number, name, owner=name, among_others=True)


def hall(count: int = 3, scheme: str = "proactive", **mobility: float) -> Hall:
    """Brokers in a line that know their clients' names."""
    return Hall(line(count, scheme, **mobility), by_name)  # type: ignore[arg-type]  # whatever a case names


def answer(visitor: Visitor) -> int:
    """The answer to a CONNECT."""
    visitor.desk.hall.settle()
    found = [packet for packet in visitor.inbox if isinstance(packet, ConnAckPacket)]
    return int(found[0].reason_code)


def said(visitor: Visitor) -> list[int]:
    """Why a client was sent away."""
    return [int(packet.reason_code) for packet in visitor.inbox if isinstance(packet, DisconnectPacket)]


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize("thief", ["eve", ""])
def test_nobody_takes_the_session_of_somebody_else(
    where: int, *, away: bool, clean: bool, thief: str
) -> None:
    """At its broker or another, connected or away, to read it or to end it; its owner has it as it was."""
    world = hall()
    got: list[bytes] = []
    ann = world.visit(0, "phone", lasts_s=600, username="ann", got=got)
    ann.subscribe("private/#")
    if away:
        ann.leave()
    stolen: list[bytes] = []
    eve = world.visit(where, "phone", lasts_s=600, username=thief or None, clean_start=clean, got=stolen)
    assert answer(eve) == NOT_AUTHORIZED
    assert eve.is_over
    assert away or not ann.is_over, "the owner is not disturbed"
    world.visit(2, "desk", username="bob").publish("private/1", b"secret")
    world.settle()
    assert not stolen
    if away:
        again = world.visit(1, "phone", lasts_s=600, username="ann", got=got)
        assert answer(again) == 0
    world.settle()
    assert got == [b"secret"]


def test_the_owner_has_it_everywhere() -> None:
    """Also after others tried in between, and with a clean start it begins anew."""
    world = hall()
    ann = world.visit(0, "phone", lasts_s=600, username="ann")
    ann.subscribe("a/#")
    for where in (1, 2, 0):
        assert answer(world.visit(where, "phone", username="eve", lasts_s=600)) == NOT_AUTHORIZED
        back = world.visit(where, "phone", lasts_s=600, username="ann")
        world.settle()
        (connack,) = (packet for packet in back.inbox if isinstance(packet, ConnAckPacket))
        assert connack.session_present
    fresh = world.visit(1, "phone", lasts_s=600, username="ann", clean_start=True)
    world.settle()
    (connack,) = (packet for packet in fresh.inbox if isinstance(packet, ConnAckPacket))
    assert (int(connack.reason_code), connack.session_present) == (0, False)
    assert answer(world.visit(2, "phone", username="eve")) == NOT_AUTHORIZED


def test_when_a_session_has_ended_its_name_is_free() -> None:
    """By its time, or because it was for one connection only."""
    world = hall()
    world.visit(0, "phone", username="ann").leave()
    world.visit(0, "car", username="ann", lasts_s=5).leave()
    world.settle()
    assert answer(world.visit(1, "phone", username="eve")) == 0
    world.wait(10)
    assert answer(world.visit(2, "car", username="eve")) == 0


def test_a_name_is_its_new_owners_from_when_it_was_free() -> None:
    """Also where the session of the one before is over and nobody has looked since."""
    world = hall(2)
    ann = world.visit(0, "phone", lasts_s=5, username="ann")
    world.settle()
    ann.leave()
    world.now += 60.0
    assert answer(world.visit(0, "phone", lasts_s=600, username="eve")) == 0
    assert world.desks[0].core.state.sessions["phone"].owned_s >= world.now - 1.0


def test_the_owner_is_in_the_store_too() -> None:
    """After a broker was killed and came back from its journal, and from a snapshot."""
    for keeps in (False, True):
        world = hall(2)
        world.visit(0, "phone", lasts_s=600, username="ann")
        world.settle()
        if keeps:
            world.by_name["B1"].keep()
        world.restart("B1")
        world.settle()
        for where in (0, 1):
            assert answer(world.visit(where, "phone", username="eve")) == NOT_AUTHORIZED
        assert answer(world.visit(1, "phone", username="ann", lasts_s=600)) == 0


def test_sessions_from_before_there_were_owners_are_for_their_user_name() -> None:
    """Of an old store or an old neighbour: whoever comes with that user name has it, and owns it then."""
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(["phone", 600, "ann", {}]), type=SessionState)
    assert state.owner is None
    world = hall(1)
    core = world.desks[0].core
    core.custody.adopt(state, world.now)
    assert answer(world.visit(0, "phone", username="eve")) == NOT_AUTHORIZED
    assert answer(world.visit(0, "phone", username="ann", lasts_s=600)) == 0
    assert core.state.sessions["phone"].owner == "ann"


def test_a_search_that_was_overtaken_gives_nothing_away() -> None:
    """Whichever of two askers a session reaches, with links that carry in any order: it stays its owner's."""
    for late in ("B2", "B3"):
        world = hall(4)
        got: list[bytes] = []
        ann = world.visit(0, "phone", lasts_s=600, username="ann", got=got)
        ann.subscribe("private/#")
        ann.leave()
        world.settle()
        back = world.visit(2, "phone", lasts_s=600, username="ann", got=got)
        stolen: list[bytes] = []
        eve = world.visit(3, "phone", lasts_s=600, username="eve", got=stolen)
        world.carry("B4", "B3")
        world.carry("B3", late if late != "B3" else "B2")
        world.settle()
        world.wait(10)
        assert eve.is_over
        if back.is_over:  # it was overtaken, and tries again
            assert answer(world.visit(1, "phone", lasts_s=600, username="ann", got=got)) == 0
        world.visit(0, "desk", username="bob").publish("private/1", b"secret")
        world.settle()
        assert got == [b"secret"]
        assert not stolen


@pytest.mark.parametrize("clean", [False, True])
def test_who_is_refused_takes_no_session_from_its_owner_who_asks_meanwhile(*, clean: bool) -> None:
    """The refusal goes on to where the owner waits; it is not the answer to what was asked for the owner."""
    world = hall()
    got: list[bytes] = []
    ann = world.visit(0, "phone", lasts_s=600, username="ann", got=got)
    ann.subscribe("private/#")
    ann.leave()
    world.visit(0, "desk", username="bob").publish("private/1", b"secret")
    world.settle()
    world.visit(1, "phone", lasts_s=600, username="eve", clean_start=clean)
    back = world.visit(2, "phone", lasts_s=600, username="ann", got=got)
    for _ in range(5):  # the first broker is asked when the two others have said all to each other
        world.carry("B2", "B3")
        world.carry("B3", "B2")
    world.settle()
    world.wait(10)
    if back.is_over:  # it was overtaken, and tries again
        back = world.visit(1, "phone", lasts_s=600, username="ann", got=got)
        world.settle()
    welcome = next(packet for packet in back.inbox if isinstance(packet, ConnAckPacket))
    assert welcome.session_present
    assert got == [b"secret"]


@pytest.mark.parametrize("first", ["ann", "eve"])
def test_two_owners_in_a_divided_network(first: str) -> None:
    """Who had the name first keeps it when the parts meet; the other one is sent away."""
    world = hall(2, give_up_s=1.0)
    second = "eve" if first == "ann" else "ann"
    one = world.visit(0, "phone", lasts_s=600, username=first)
    world.settle()
    world.unlink("B2")
    world.wait(5)
    two = world.visit(1, "phone", lasts_s=600, username=second, clean_start=True)
    assert answer(two) == 0
    world.relink()
    world.settle()
    world.wait(5)
    assert not one.is_over
    assert two.is_over
    assert said(two) == [NOT_AUTHORIZED]
    assert answer(world.visit(1, "phone", lasts_s=600, username=second)) == NOT_AUTHORIZED
    assert answer(world.visit(1, "phone", lasts_s=600, username=first)) == 0


def test_of_two_owners_in_a_divided_network_one_stays() -> None:
    """Also where a question of the first, asked before it had a session, comes late and is refused."""
    world = hall(2, give_up_s=1.0)
    world.unlink("B2")
    world.wait(5)
    one = world.visit(1, "phone", lasts_s=600, username="eve", clean_start=True)
    assert answer(one) == 0
    world.wait(5)
    two = world.visit(0, "phone", lasts_s=600, username="ann", clean_start=True)
    assert answer(two) == 0
    world.relink()
    world.settle()
    world.wait(5)
    assert not one.is_over
    assert two.is_over


def test_who_began_anew_in_a_divided_network_had_the_name_before() -> None:
    """Its first session ends for its later one, which is its owner's for as long as the first was.

    Somebody else took the name in a third part, before the owner began anew in the second.
    """
    world = hall(3, give_up_s=1.0)
    first = world.visit(0, "phone", lasts_s=600, username="ann")
    world.settle()
    world.unlink("B1")
    world.unlink("B3")
    world.wait(5)
    eve = world.visit(2, "phone", lasts_s=600, username="eve", clean_start=True)
    assert answer(eve) == 0
    world.wait(5)
    again = world.visit(1, "phone", lasts_s=600, username="ann", clean_start=True)
    assert answer(again) == 0
    world.link("B1", "B2")
    world.settle()
    world.wait(5)
    assert first.is_over
    world.relink()
    world.settle()
    world.wait(5)
    assert eve.is_over
    assert not again.is_over
    assert answer(world.visit(2, "phone", lasts_s=600, username="eve")) == NOT_AUTHORIZED


def test_with_copies_nobody_begins_anew_while_a_session_may_be_out_of_reach() -> None:
    """Whoever comes is told to try again: the broker that is gone is played by another process soon."""
    world = hall(2, copies=1)
    ann = world.visit(0, "phone", lasts_s=600, username="ann")
    world.settle()
    world.unlink("B2")
    world.wait(5)
    eve = world.visit(1, "phone", lasts_s=600, username="eve", clean_start=True)
    assert answer(eve) == SERVER_UNAVAILABLE
    world.relink()
    world.settle()
    assert not ann.is_over
    assert answer(world.visit(1, "phone", lasts_s=600, username="eve", clean_start=True)) == NOT_AUTHORIZED


def test_with_durable_subscriptions_ownership_holds_at_each_broker() -> None:
    """Every broker keeps its own sessions: another user has one of its own elsewhere, and no event of it."""
    world = hall(2, "durable")
    got: list[bytes] = []
    world.visit(0, "phone", lasts_s=600, username="ann", got=got).subscribe("private/#")
    assert answer(world.visit(0, "phone", username="eve")) == NOT_AUTHORIZED
    stolen: list[bytes] = []
    assert answer(world.visit(1, "phone", lasts_s=600, username="eve", got=stolen)) == 0
    world.visit(1, "desk", username="bob").publish("private/1", b"secret")
    world.settle()
    assert got == [b"secret"]
    assert not stolen
