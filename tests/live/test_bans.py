"""Kicks and bans reach every broker of a network; bans hold until they are ended, over restarts too."""

from __future__ import annotations

from typing import Any

import pytest
from mqtt5 import ConnAckPacket, DisconnectPacket, Will

from sojourn.broker import facts
from sojourn.mqtt.bans import BANS_MAX, Bans, Order
from tests.live.hall import Hall, Visitor, line
from tests.live.test_owners import by_name

BANNED, ADMINISTRATIVE = 0x8A, 0x98


def code(world: Hall, broker: int, client_id: str, **options: Any) -> int:
    """The answer to a CONNECT."""
    visitor = world.visit(broker, client_id, **options)
    world.settle()
    answer = next(packet for packet in visitor.inbox if isinstance(packet, ConnAckPacket))
    visitor.leave()
    return int(answer.reason_code)


def order(world: Hall, broker: int, *words: str) -> None:
    """Let an operator speak to a broker."""
    world.now += 0.01
    world.desks[broker].tell(facts.OrderGiven(*words))
    world.settle()


def ended(visitor: Visitor) -> list[int]:
    """Why a connection was ended."""
    return [int(packet.reason_code) for packet in visitor.inbox if isinstance(packet, DisconnectPacket)]


def test_a_kick_ends_a_connection_wherever_it_is() -> None:
    """The client may come back, to its session."""
    world = Hall(line(3), by_name)
    phone = world.visit(2, "phone", lasts_s=600, username="ann")
    other = world.visit(2, "other", username="ann")
    world.settle()
    order(world, 0, "kick", "client", "phone")
    assert ended(phone) == [ADMINISTRATIVE]
    assert not other.is_over
    assert code(world, 1, "phone", lasts_s=600, username="ann") == 0


def test_a_ban_holds_everywhere_until_it_is_ended() -> None:
    """By client, by user and by address; who is connected is sent away."""
    world = Hall(line(3), by_name)
    cases: list[tuple[tuple[str, str], dict[str, Any]]] = [
        (("client", "phone"), {}),
        (("user", "ann"), {"username": "ann"}),
        (("address", "10.1.0.0/16"), {}),
    ]
    for words, options in cases:
        phone = world.visit(2, "phone", **options)
        if words[0] == "address":
            world.desks[2].core.state.connections[phone.number].peer = "10.1.2.3"
        world.settle()
        order(world, 0, "ban", *words)
        assert ended(phone) == [ADMINISTRATIVE], words
        if words[0] != "address":
            assert [code(world, broker, "phone", **options) for broker in range(3)] == [BANNED] * 3
            assert code(world, 1, "another", username="bob") == 0
        order(world, 1, "unban", *words)
        assert [code(world, broker, "phone", **options) for broker in range(3)] == [0] * 3


def test_a_ban_outlives_brokers_and_reaches_those_that_were_away() -> None:
    """From a journal, from a snapshot, and told by a neighbour after the store was deleted."""
    world = Hall(line(3), by_name)
    world.unlink("B3")
    order(world, 0, "ban", "user", "eve")
    world.relink()
    world.settle()
    assert code(world, 2, "x", username="eve") == BANNED
    world.by_name["B1"].keep()
    for name in ("B1", "B2"):
        world.restart(name)
        world.settle()
    assert [code(world, broker, "x", username="eve") for broker in range(3)] == [BANNED] * 3
    world.unlink("B2")
    world.by_name["B2"].delete_store()
    world.by_name["B2"].restart()
    world.relink()
    world.settle()
    assert code(world, 1, "x", username="eve") == BANNED


def wills_of_banned(world: Hall) -> tuple[list[bytes], Visitor]:
    """What is published of a will at once, and of one after a delay, once their user is banned elsewhere."""
    got: list[bytes] = []
    reader = world.visit(0, "reader", got=got)
    reader.subscribe("wills")
    at_once = Will(topic="wills", payload=b"at once")
    later = Will(topic="wills", payload=b"later", will_delay_interval=30)
    world.visit(2, "phone", lasts_s=600, username="eve", will=at_once)
    tablet = world.visit(2, "tablet", lasts_s=600, username="eve", will=later)
    world.settle()
    tablet.lose()
    order(world, 0, "ban", "user", "eve")
    world.wait(40)
    return got, reader


def test_wills_of_banned_users_are_not_published() -> None:
    """Neither when connections end nor when they are due; sessions stay, and what is stored for them."""
    world = Hall(line(3), by_name)
    away = world.visit(2, "away", lasts_s=600, username="eve")
    away.subscribe("news")
    away.lose()
    got, reader = wills_of_banned(world)
    assert got == []
    core = world.desks[2].core
    assert core.state.counters.refused["will banned"] == 2
    assert {"away", "phone", "tablet"} <= core.state.sessions.keys()
    reader.publish("news", b"kept")
    world.settle()
    order(world, 0, "unban", "user", "eve")
    back = world.visit(2, "away", lasts_s=600, username="eve")
    world.settle()
    assert back.got == [b"kept"]
    told_again = world.desks[2].replayed()
    assert told_again.core.state.counters.refused["will banned"] == 2


def test_journals_of_before_publish_wills_of_banned_users_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours have them: what is told again sends what was sent. The next life goes by today's rule."""
    started = facts.Started
    monkeypatch.setattr(facts, "Started", lambda life, settings, **_: started(life, settings))
    world = Hall(line(3), by_name)
    got, _ = wills_of_banned(world)
    assert sorted(got) == [b"at once", b"later"]
    assert "will banned" not in world.desks[2].replayed().core.state.counters.refused
    monkeypatch.undo()
    world.restart("B3")
    assert world.desks[2].core.state.bans.hush


def test_states_of_before_have_addresses_in_many_spellings() -> None:
    """They are one when they are read, and the later order counts."""
    bans = Bans()
    bans.known |= {"address 10.0.0.1/32": [5, True], "address 10.0.0.1": [6, False], "user eve": [1, True]}
    bans.rebuild()
    assert [*bans] == [Order("user", "eve", 1, banned=True), Order("address", "10.0.0.1", 6, banned=False)]
    assert not bans.concerns("x", (), "10.0.0.1")


def test_of_two_orders_the_later_one_counts() -> None:
    """In whichever order they come; and there is a limit to what is remembered."""
    bans = Bans()
    assert bans.take(Order("user", "eve", 5, banned=False))
    assert not bans.take(Order("user", "eve", 4, banned=True))
    assert not bans.concerns("x", ("eve",), "")
    assert bans.take(Order("user", "eve", 6, banned=True))
    assert bans.concerns("x", ("eve",), "")
    assert not bans.take(Order("planet", "earth", 6, banned=True))
    for number in range(BANS_MAX + 5):
        bans.take(Order("client", str(number), number + 10, banned=number % 2 == 0))
    assert len(bans.known) <= BANS_MAX
    assert bans.concerns("x", ("eve",), "")


def test_addresses_are_banned_as_what_they_are() -> None:
    """One or many, also where IPv6 carries IPv4; what is no address matches nothing."""
    bans = Bans()
    bans.take(Order("address", "10.0.0.0/8", 1, banned=True))
    bans.take(Order("address", "2001:db8::1", 2, banned=True))
    tried = ("10.9.9.9", "::ffff:10.1.1.1", "11.0.0.1", "2001:db8::1", "here", "")
    hit = [one for one in tried if bans.concerns("x", (), one)]
    assert hit == ["10.9.9.9", "::ffff:10.1.1.1", "2001:db8::1"]
