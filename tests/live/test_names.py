"""The interests of a live broker: the advertisement of anything, and what a packet of many patterns costs."""

from __future__ import annotations

from typing import Any

import pytest
from mqtt5 import QoS, SubscribePacket, TopicFilter

from sojourn.broker import names
from sojourn.broker.names import LiveInterests, Names
from sojourn.interest import Advertisement, Filter
from sojourn.mobility import facts
from sojourn.mqtt.content import TEXTS_MAX
from sojourn.mqtt.cutting import PART
from sojourn.routing.effects import Effects
from sojourn.routing.messages import Advertise
from sojourn.routing.neighbours import LOCAL, Neighbours
from sojourn.routing.router import Router
from tests.live.hall import Hall, line


def test_no_advertisement_stands_in_for_anything() -> None:
    """Whatever a client announces, neighbours hear that anything may be published."""
    interests = LiveInterests()
    router = Router(Neighbours((1,)), interests, Effects())
    for text in ("topic LIKE '$sojourn/%'", "topic = '$sojourn/anything'", "FALSE"):
        number = interests.advertisement(Advertisement.parse(text))
        assert number != interests.anything
        router.advertise(Advertise(number), LOCAL)
    router.effects.clear()
    router.advertise(Advertise(interests.anything), LOCAL)
    assert [message for _, message in router.effects.sends] == [Advertise(interests.anything)]


def test_every_subscription_intersects_anything() -> None:
    """One that is entered later does too, and one that is forgotten no longer does."""
    interests = LiveInterests()
    first, second = (interests.subscription(Filter.parse(text)) for text in ("a = 1", "topic LIKE '#'"))
    assert list(interests.subs_of[interests.anything]) == [first, second]
    interests.forget(set(), {first})
    assert list(interests.subs_of[interests.anything]) == [second]


def test_an_advertisement_is_compared_with_no_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscriptions go everywhere anyway; a hundred wide ones beside many subscriptions once took minutes."""

    def intersects(self: Advertisement, subscription: Filter) -> bool:
        raise AssertionError(f"{self} is compared with {subscription}")

    monkeypatch.setattr(Advertisement, "intersects", intersects)
    interests = LiveInterests()
    before = interests.subscription(Filter.parse("topic LIKE 'a/#'"))
    wide = interests.advertisement(Advertisement.parse("topic LIKE '#'"))
    after = interests.subscription(Filter.parse("topic LIKE 'b/#'"))
    assert not interests.subs_of[wide]
    assert list(interests.subs_of[interests.anything]) == [before, after]


def test_a_packet_of_many_patterns_is_one_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core is told once what a client wants after a SUBSCRIBE, and each pattern goes over a link once.

    That holds up to `cutting.PART` patterns; a longer packet is taken in parts, one change each.
    """
    for lasts_s, kind in ((60, facts.SubscriberChanged), (0, facts.ClientSubscribed)):
        hall = Hall(line(2))
        visitor = hall.visit(0, "many", lasts_s=lasts_s)
        hall.settle()
        clients = hall.desks[0].network.clients
        told: list[facts.Fact] = []
        tell = clients.tell

        def listen(fact: facts.Fact, now: float, told: Any = told, tell: Any = tell) -> None:
            told.append(fact)
            tell(fact, now)

        monkeypatch.setattr(clients, "tell", listen)
        patterns = [TopicFilter(f"d/{n}/+", max_qos=QoS.AT_LEAST_ONCE) for n in range(PART)]
        visitor.send(SubscribePacket(1, patterns))
        monkeypatch.undo()
        assert [type(fact) for fact in told] == [kind] * (1 if lasts_s else PART)
        assert len(clients.broker.router.subs) == PART
        hall.settle()
        assert len(hall.desks[1].network.clients.broker.router.subs) == PART
        visitor.unsubscribe("d/7/+")
        hall.settle()
        assert len(hall.desks[1].network.clients.broker.router.subs) == PART - 1


def test_long_texts_are_written_once_however_often_a_client_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until nobody speaks of the subscription any more; there may be more than any cache remembers."""
    written: list[Filter] = []

    def write(wanted: Filter) -> str:
        written.append(wanted)
        return str(wanted)

    monkeypatch.setattr(names, "_text", write)
    book = Names(LiveInterests())
    numbers = [book.subscription_number(f"value > {number}") for number in range(3 * TEXTS_MAX)]
    for _ in range(2):
        texts = [book.subscription_text(number) for number in numbers]
    assert len(written) == len(numbers)
    assert [book.subscription_number(text) for text in texts] == numbers
    book.keep(set(), set(), set(numbers[:1]))
    assert book._texts.keys() == {numbers[0]}
