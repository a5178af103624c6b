"""What brings much text is taken in after that has been read in parts, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mqtt5 import ConnAckPacket, ConnectPacket

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import AtOnce
from sojourn.interest import Advertisement, Filter
from sojourn.mqtt import content
from sojourn.mqtt.conventions import ADVERTISE
from tests.broker.alone import PING, PINGRESP, Alone
from tests.live.hall import Desk, Hall, line

FILTERS, LONG = 40, 100
PART = 256
SHORT = AtOnce(read=PART)
MOST = 2 * (PART + LONG + 60)
"""A part, and the end of its last text, read twice: with its topic, or in normal form."""


def condition(number: int) -> str:
    """A filter with alternatives, so that it is read once more together with its topic."""
    text, at = f"a{number} > {number}", 0
    while len(text) < LONG:
        text += f" OR b{at} = {number * 1_000 + at}"
        at += 1
    return text


class Reader:
    """Counts the characters of filters and advertisements that every call of a broker reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[int] = []
        self._read, self._depth = 0, 0
        for kind in (Filter, Advertisement):
            monkeypatch.setattr(kind, "parse", self._counting(kind.parse))
        for name in ("handle", "turn"):
            monkeypatch.setattr(LiveBroker, name, self._watching(getattr(LiveBroker, name)))

    def begin(self) -> None:
        """Count anew, with nothing read."""
        self.calls.clear()
        for cache in (content.parse_filter, content.interest_of):
            cache.cache_clear()
        content._read_advertisement.cache_clear()
        content._steps_to_read.cache_clear()
        content.check_tellable.cache_clear()

    def _counting(self, parse: Callable[[str], Any]) -> Callable[[str], Any]:
        def counting(text: str) -> Any:
            self._read += len(text)
            return parse(text)

        return counting

    def _watching(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watching(*arguments: Any) -> Any:
            before, self._depth = self._read, self._depth + 1
            try:
                return call(*arguments)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.calls.append(self._read - before)

        return watching


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    """What is read is counted."""
    return Reader(monkeypatch)


def roaming(hall: Hall) -> None:
    """A client with many filters has been at B1, and is away."""
    roamer = hall.visit(0, "roamer", lasts_s=1_000)
    hall.settle()
    for number in range(FILTERS):
        roamer.subscribe(f"t/{number}/#", condition(number))
    roamer.lose()
    hall.settle()


def filters_at(desk: Desk) -> int:
    """How many subscriptions of the client a broker has."""
    session = desk.core.state.sessions.get("roamer")
    return 0 if session is None else len(session.subscriptions)


def test_a_session_with_many_filters_is_read_in_parts(reader: Reader) -> None:
    """No call of a broker reads more than a part, and in the end the session is there."""
    hall = Hall(line(3), at_once=SHORT)
    roaming(hall)
    reader.begin()
    roamer = hall.visit(1, "roamer", lasts_s=1_000)
    hall.settle()
    assert filters_at(hall.desks[1]) == FILTERS
    assert sum(reader.calls) >= FILTERS * LONG
    assert max(reader.calls) <= MOST
    hall.visit(2, "writer").publish("t/7/x", b"seven", {"a7": 8})
    hall.settle()
    assert roamer.got == [b"seven"]
    hall.restart("B2")
    hall.settle()
    assert filters_at(hall.desks[1]) == FILTERS


def test_a_link_that_breaks_meanwhile_brings_the_session_again(reader: Reader) -> None:
    """What was read of a frame is of no consequence; it is taken in once, on the next connection."""
    hall = Hall(line(2), at_once=SHORT)
    roaming(hall)
    reader.begin()
    near = hall.desks[1].broker
    hall.visit(1, "roamer", lasts_s=1_000)
    hall.carry("B2", "B1")
    data = bytes(hall.desks[0].peer_writes.pop("B2"))
    near.handle(facts.PeerSent("B1", data), hall.now)
    assert near.network is not None
    assert near.network.pressure.frames
    assert filters_at(hall.desks[1]) == 0
    hall.unlink("B2")
    assert not near.network.pressure.frames
    hall.relink()
    hall.settle()
    hall.wait(2.0)
    assert filters_at(hall.desks[1]) == FILTERS


def advertiser(name: str) -> ConnectPacket:
    """A CONNECT with many advertisements."""
    said = [(ADVERTISE, f"topic LIKE '{name}/{one}/#' AND {condition(one)}") for one in range(FILTERS)]
    return ConnectPacket(name, user_properties=said)


def test_a_connect_with_many_advertisements_is_read_in_parts(reader: Reader) -> None:
    """Meanwhile others are answered, and then the client is let in."""
    hall = Alone(at_once=SHORT)
    other = hall.client("other")
    reader.begin()
    hall.opened += 1
    number = hall.opened
    hall.tell(facts.ClientOpened(number, "here", "fresh"))
    hall.send(number, advertiser("adv"))
    hall.turn()
    assert number not in hall.came
    hall.send(other, PING)
    hall.turn()
    assert hall.came.pop(other) == PINGRESP
    assert number not in hall.came
    turns = hall.settle()
    assert turns >= FILTERS * LONG // (2 * PART)
    assert isinstance(hall.packets(number)[0], ConnAckPacket)
    assert sum(reader.calls) >= FILTERS * LONG
    assert max(reader.calls) <= MOST
    assert len(hall.again().core.state.sessions) == len(hall.broker.core.state.sessions) - 2


def test_advertisements_are_read_in_parts_in_a_network_too(reader: Reader) -> None:
    """Where they are read once more in normal form, as other brokers will."""
    hall = Hall(line(2), at_once=SHORT)
    reader.begin()
    visitor = hall.visit(0, "adv", user_properties=advertiser("adv").user_properties)
    hall.settle()
    assert isinstance(visitor.inbox[0], ConnAckPacket)
    assert len(hall.desks[0].core.state.sessions["adv"].advertisements) == FILTERS
    assert max(reader.calls) <= MOST


def test_a_client_that_goes_meanwhile_is_not_let_in(reader: Reader) -> None:
    """What was said of it is let go, and nothing is noted."""
    hall = Alone(at_once=SHORT)
    reader.begin()
    hall.opened += 1
    number = hall.opened
    hall.tell(facts.ClientOpened(number, "here", "fresh"))
    hall.send(number, advertiser("adv"))
    hall.turn()
    hall.tell(facts.ClientLost(number))
    hall.settle()
    assert not hall.broker.core.state.sessions
    assert not hall.again().core.state.sessions
    assert hall.client("adv")
