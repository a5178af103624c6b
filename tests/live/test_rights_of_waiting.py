"""Rights that change while a client waits to be let in hold for it, whatever it waits for."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pytest
from mqtt5 import ConnAckPacket, ConnectPacket, Will

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import AtOnce
from sojourn.interest import TopicPattern
from sojourn.live.brokers.admission import permissions_of
from sojourn.live.brokers.rights_today import rights_today
from sojourn.live.config import BrokerConfig, Config, UserConfig
from sojourn.mqtt.effects import Knock
from sojourn.mqtt.rights import NOTHING, may_publish, may_subscribe
from sojourn.mqtt.session import Session
from tests.broker.test_preparing import advertiser
from tests.live.hall import Hall, Visitor, line

NOT_AUTHORIZED = 0x87
OPEN = ("open/#",)
PART = 256
Topics = tuple[str, ...] | None
"""What a user may publish and subscribe to; None for everything."""


class Offices(Hall):
    """Brokers in a line, each of which has read a configuration of its own time."""

    def __init__(self, count: int, **options: Any) -> None:
        self.read: dict[str, Config] = {}
        """By broker: what it goes by today."""
        self.knocking = ""
        """The broker at which a client comes."""
        self.lasts_s: float | None = None
        """For how long what users prove their names by holds; None for ever."""
        super().__init__(line(count, **options), self.decided, AtOnce(read=PART), self.today)  # type: ignore[arg-type]  # refuses, too

    def today(self, broker: str, entitled: Iterable[Any]) -> Iterator[facts.RightsChanged]:
        """What a broker's configuration says of rights."""
        return rights_today(self.read.get(broker, said({"ann": None})), entitled)

    def decided(self, knock: Knock) -> facts.ClientAdmitted | facts.ClientRefused:
        """Let users in."""
        name = knock.packet.username or ""
        if name == "boss":
            return facts.ClientAdmitted(knock.number, name, owner=name)
        users = {user.name: user for user in self.read.get(self.knocking, said({"ann": None})).users}
        if name not in users:
            return facts.ClientRefused(knock.number, NOT_AUTHORIZED, "Nobody knows you.")
        now = facts.RightsChanged.of(name, permissions_of(users[name]))
        until_s = None if self.lasts_s is None else self.now + self.lasts_s
        admitted = facts.ClientAdmitted(knock.number, name, owner=name, among_others=True, until_s=until_s)
        return now.given_to(admitted)

    def come(self, broker: int, client_id: str = "phone", username: str = "ann", **options: Any) -> Visitor:
        """Let a user connect."""
        self.knocking = self.desks[broker].name
        return self.visit(broker, client_id, lasts_s=600, username=username, **options)

    def reload(self, broker: int, **users: Topics) -> None:
        """Let a broker read that these are its users, and send those away who are not."""
        desk = self.desks[broker]
        before, now = self.read.get(desk.name, said({"ann": None})), said(users)
        self.read[desk.name] = now
        for fact in list(rights_today(now, desk.broker.ruling.entitled(desk.network), before)):
            desk.tell(fact)
        for number, connection in list(desk.core.state.connections.items()):
            if number in desk.visitors and connection.said[1] not in (*users, "boss"):
                kind = facts.ClientRefused if connection.session is None else facts.ClientDismissed
                desk.tell(kind(number, NOT_AUTHORIZED, "Nobody knows you any more."))

    def has(self, broker: int, client_id: str = "phone") -> tuple[object, list[str], str | None]:
        """What a client may do at a broker, what it subscribes to, and the topic of its will."""
        return rights_of(self.desks[broker].core.state.sessions[client_id])


def said(users: dict[str, Topics]) -> Config:
    """A configuration with these users."""
    lists = {name: None if topics is None else list(topics) for name, topics in users.items()}
    known = [UserConfig(name=name, publish=topics, subscribe=topics) for name, topics in lists.items()]
    return Config(brokers=[BrokerConfig(name="B1", listen="127.0.0.1:0")], users=known)


def rights_of(one: Session) -> tuple[object, list[str], str | None]:
    """What a session may do, and what there is of it."""
    return one.permissions, sorted(one.subscriptions), one.will and one.will.message.topic


def may(topics: Topics) -> object:
    """The permissions of somebody who may do this."""
    return permissions_of(said({"ann": topics}).users[0])


def answers(visitor: Visitor) -> list[int]:
    """How a client's CONNECT was answered."""
    return [int(packet.reason_code) for packet in visitor.inbox if isinstance(packet, ConnAckPacket)]


def away(hall: Offices, broker: int = 0) -> None:
    """Let ann be away from a broker, with two subscriptions."""
    there = hall.come(broker)
    for topic in ("open/#", "closed/#"):
        there.subscribe(topic)
    there.lose()
    hall.settle()


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_who_waits_for_its_session_has_the_rights_of_today(scheme: str) -> None:
    """Its subscriptions end that are not allowed any more, and a journal tells the same."""
    hall = Offices(2, scheme=scheme)
    away(hall)
    ann = hall.come(1)
    hall.reload(1, ann=OPEN)
    assert not answers(ann)
    hall.settle()
    assert answers(ann) == [0]
    assert hall.has(1) == (may(OPEN), ["open/#"], None)
    boss = hall.come(0, "boss", "boss")
    for topic in ("closed/1", "open/1"):
        boss.publish(topic, topic.encode())
    hall.settle()
    assert ann.got == [b"open/1"]
    assert rights_of(hall.desks[1].replayed().core.state.sessions["phone"]) == hall.has(1)


@pytest.mark.parametrize("clean_start", [False, True])
def test_who_runs_out_of_its_proof_while_it_waits_gets_nothing(*, clean_start: bool) -> None:
    """Its session came from another broker meanwhile; it stays as it was, also where it was to end."""
    hall = Offices(2)
    away(hall)
    hall.lasts_s = 5.0
    ann = hall.come(1, clean_start=clean_start)
    assert not answers(ann)
    hall.now += 6
    hall.settle()
    assert answers(ann) == [NOT_AUTHORIZED]
    assert hall.has(1) == (None, ["closed/#", "open/#"], None)
    again = hall.come(1)
    assert answers(again) == [0]
    assert rights_of(hall.desks[1].replayed().core.state.sessions["phone"]) == hall.has(1)


def test_wider_rights_reach_who_waits_too() -> None:
    """It may at once what it is allowed now, and keeps its subscriptions."""
    hall = Offices(2)
    away(hall)
    hall.reload(1, ann=OPEN)
    ann = hall.come(1)
    hall.reload(1, ann=None)
    hall.settle()
    assert answers(ann) == [0]
    assert hall.has(1) == (None, ["closed/#", "open/#"], None)


def test_the_will_of_who_waits_obeys_the_rights_of_today() -> None:
    """A client that may not publish its will any more is refused, as if it came now; its session stays."""
    hall = Offices(2)
    away(hall)
    ann = hall.come(1, will=Will("closed/will", payload=b"gone"))
    hall.reload(1, ann=OPEN)
    hall.settle()
    assert answers(ann) == [NOT_AUTHORIZED]
    assert hall.has(1) == (may(OPEN), ["open/#"], None)


def test_who_is_no_user_any_more_is_refused_while_it_waits() -> None:
    """At once; its session, which comes later, has no rights."""
    hall = Offices(2)
    away(hall)
    ann = hall.come(1)
    hall.reload(1, bob=None)
    assert answers(ann) == [NOT_AUTHORIZED]
    hall.settle()
    assert hall.has(1) == (NOTHING, [], None)


def test_a_session_that_comes_without_its_client_has_the_rights_of_today() -> None:
    """The client went while it waited; the broker that gave the session had not read what is new."""
    hall = Offices(2)
    there = hall.come(0, will=Will("closed/will", payload=b"gone", will_delay_interval=60))
    for topic in ("open/#", "closed/#"):
        there.subscribe(topic)
    there.lose()
    hall.settle()
    hall.reload(1, ann=OPEN)
    hall.come(1).lose()
    hall.settle()
    assert hall.has(1) == (may(OPEN), ["open/#"], None)
    assert rights_of(hall.desks[1].replayed().core.state.sessions["phone"]) == hall.has(1)


def test_who_goes_on_with_a_session_that_is_in_doubt_has_the_rights_of_today() -> None:
    """A broker that is back waits until its neighbours have spoken."""
    hall = Offices(2, give_up_s=100.0)
    away(hall)
    hall.unlink("B1")
    hall.desks[0].restart()
    ann = hall.come(0)
    assert hall.desks[0].network.arrivals.doubts.held
    hall.reload(0, ann=OPEN)
    hall.relink()
    hall.settle()
    assert answers(ann) == [0]
    assert hall.has(0) == (may(OPEN), ["open/#"], None)


def test_who_is_let_in_after_much_was_read_has_the_rights_of_today() -> None:
    """That it is let in is noted then, with what it may by then."""
    hall = Offices(2)
    desk = hall.desks[0]
    ann = Visitor(desk, [])
    many = advertiser("phone").user_properties
    packet = ConnectPacket("phone", username="ann", user_properties=many)
    desk.broker.handle(facts.ClientSent(ann.number, packet.write()), hall.now)
    desk.broker.handle(hall.decided(desk.broker.knocks.pop()), hall.now)
    assert desk.broker.has_slices
    hall.reload(0, ann=OPEN)
    hall.settle()
    assert answers(ann) == [0]
    for broker in (desk.broker, desk.replayed()):
        assert broker.core.state.sessions["phone"].permissions == may(OPEN)


CLIENTS, USERS, STEPS = ("phone", "car"), ("ann", "eve"), 120
CHANCES = {"come": 6, "go": 3, "reload": 5, "carry": 30, "wait": 2, "cut": 1, "heal": 2}


def wrong_with(broker: LiveBroker, config: Config) -> list[str]:
    """What sessions may do and have at a broker that its configuration does not allow."""
    users = {user.name: user for user in config.users}
    found = []
    for one in broker.core.state.sessions.values():
        user = users.get(one.owner or "")
        allowed = NOTHING if user is None else permissions_of(user)
        if one.owner == "boss" or one.owner is None:
            continue
        if one.permissions != allowed:
            found.append(f"{one.client_id} of {one.owner} may do {one.permissions}, not {allowed}")
        texts = one.subscriptions
        found += [text for text in texts if not may_subscribe(allowed, TopicPattern.parse(text))]
        if one.will is not None and not may_publish(allowed, one.will.message.topic):
            found.append(f"will of {one.client_id}")
    return found


class Days:
    """One world, from a seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.hall = Offices(3, scheme=self.draw.choice(("proactive", "reactive")), give_up_s=2.0)
        self.visitors: list[Visitor] = []
        for broker in range(3):
            self.reload(broker)

    def reload(self, broker: int) -> None:
        """Let a broker read something else of everybody, perhaps nothing."""
        draw = self.draw
        known = [name for name in USERS if draw.random() < 0.8]
        self.hall.reload(
            broker, **{name: draw.choice((None, OPEN, ("closed/#", "open/1"))) for name in known}
        )

    def come(self) -> None:
        """Let a user connect somewhere, perhaps with a will, and subscribe."""
        draw, name = self.draw, self.draw.choice(USERS)
        will = Will(draw.choice(("open/1", "closed/1")), payload=b"gone", will_delay_interval=5)
        options = {"will": will} if draw.random() < 0.5 else {}
        one = self.hall.come(draw.randrange(3), f"{name} {draw.choice(CLIENTS)}", name, **options)
        if one.number in one.desk.visitors:
            one.ask(draw.choice(("open/#", "closed/#", "open/1")))
        self.visitors.append(one)

    def step(self) -> None:
        """Let something happen."""
        draw, hall = self.draw, self.hall
        what = draw.choices([*CHANCES], [*CHANCES.values()])[0]
        if what == "come":
            self.come()
        elif what == "go" and self.visitors:
            self.visitors.pop(draw.randrange(len(self.visitors))).lose()
        elif what == "reload":
            self.reload(draw.randrange(3))
        elif what == "carry":
            hall.step(draw)
        elif what == "wait":
            hall.wait(draw.choice((0.5, 6.0)))
        elif what == "cut" and not hall.cut:
            hall.unlink(draw.choice(hall.desks).name)
        elif what == "heal":
            hall.relink()


@pytest.mark.parametrize("seed", range(20))
def test_rights_are_those_of_today_whatever_happens(seed: int) -> None:
    """Users come and go and move while brokers read one configuration after another, and links stall."""
    days = Days(seed)
    hall = days.hall
    for _ in range(STEPS):
        days.step()
        for desk in hall.desks:
            assert not wrong_with(desk.broker, hall.read[desk.name])
    hall.relink()
    hall.settle()
    for desk in hall.desks:
        now, again = (broker.core.state.sessions for broker in (desk.broker, desk.replayed()))
        assert {name: rights_of(one) for name, one in again.items()} == {
            name: rights_of(one) for name, one in now.items()
        }


def test_the_journals_of_earlier_builds_are_read_as_they_were_meant() -> None:
    """There rights changed for sessions alone: what followed, and was told to neighbours, went by that."""
    hall = Offices(2)
    away(hall)
    hall.come(1)
    hall.reload(1, ann=OPEN)
    desk = hall.desks[1]
    at, entry = next(
        (place, one)
        for place, one in enumerate(map(facts.read_entry, desk.store.written))
        if isinstance(one.fact, facts.RightsChanged)
    )
    fields = msgspec.to_builtins(entry.fact)[: -len(("also", "clients", "is_for_waiting"))]
    desk.store.written[at] = msgspec.msgpack.encode((entry.now, entry.sequence, fields))
    hall.settle()
    again = desk.replayed().core.state.sessions["phone"]
    assert rights_of(again) == (None, ["closed/#", "open/#"], None)
    assert hall.has(1) == (may(OPEN), ["open/#"], None)


@pytest.mark.parametrize("scheme", ["proactive", "reactive"])
def test_nothing_is_stored_anywhere_for_who_has_no_rights_any_more(scheme: str) -> None:
    """Neither at the broker that it left nor where copies wait for it."""
    hall = Offices(3, scheme=scheme)
    away(hall, 1)
    hall.wait(1.0)
    hall.reload(1, bob=None)
    hall.settle()
    hall.come(2, "boss", "boss").publish("open/1", b"forbidden")
    hall.settle()
    hall.reload(1, ann=None)
    ann = hall.come(0)
    hall.settle()
    hall.wait(2.0)
    assert answers(ann) == [0]
    ann.subscribe("open/#")
    hall.come(2, "chief", "boss").publish("open/2", b"allowed")
    hall.settle()
    assert ann.got == [b"allowed"]
