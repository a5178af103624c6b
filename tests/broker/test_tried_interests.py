"""Events are compared with the filters that somebody has, not with all that were ever said."""

from __future__ import annotations

import random

from mqtt5 import SubscribePacket, TopicFilter

from sojourn.broker import facts
from sojourn.broker.names import IDLE_MAX, IDLE_MIN, LiveInterests
from sojourn.interest import Event, Filter
from sojourn.interest.filter_tests import Test
from sojourn.mqtt import conventions
from sojourn.routing.effects import Effects
from sojourn.routing.messages import Publish, Subscribe, Unsubscribe
from sojourn.routing.neighbours import LOCAL, Neighbours
from sojourn.routing.router import Router
from tests.live.hall import Hall, line

HELD = 10


def tried_at(hall: Hall, broker: int) -> dict[int, Test]:
    """What a broker tries on an event, one filter after the other."""
    matcher = hall.desks[broker].network.links.interests.matcher
    matcher.waits_for_index = True
    matcher.match(Event({"topic": "fresh", "a": 1}))
    return matcher._tests


def test_who_replaces_its_filters_again_and_again_makes_nobodys_events_dear() -> None:
    """At its own broker and at others no more filters are tried than it holds, and a few besides."""
    hall = Hall(line(2))
    churner = hall.visit(0, "churner")
    hall.settle()
    for said in range(20 * HELD):
        properties = [(conventions.FILTER, f"a = {said} AND b > {-said}")]
        churner.send(SubscribePacket(1, [TopicFilter(f"ch/{said % HELD}")], user_properties=properties))
    hall.settle()
    for broker in range(2):
        known = hall.desks[broker].network.links.interests.subs
        assert len(known) >= 20 * HELD, "names are forgotten later"
        assert HELD <= len(tried_at(hall, broker)) <= HELD + IDLE_MIN + 1
    churner.lose()
    hall.settle()
    for broker in range(2):
        assert len(tried_at(hall, broker)) <= IDLE_MIN + 1
    desk = hall.desks[1]
    desk.keep()
    desk.restart()
    hall.settle()
    assert not desk.network.links.interests.tried


def test_a_broker_that_comes_back_from_its_state_tries_what_is_held() -> None:
    """And what is published then finds its way."""
    hall = Hall(line(2))
    reader = hall.visit(1, "reader")
    hall.settle()
    reader.subscribe("t", "a > 1")
    hall.desks[0].keep()
    hall.desks[0].restart()
    hall.begin_anew()
    for one, other in (("B1", "B2"), ("B2", "B1")):
        hall.by_name[one].tell(facts.PeerLost(other))
    hall.link("B1", "B2")
    hall.settle()
    writer = hall.visit(0, "writer")
    hall.settle()
    writer.publish("t", b"no", {"a": 1})
    writer.publish("t", b"yes", {"a": 2})
    hall.settle()
    assert reader.got == [b"yes"]


def test_what_is_matched_is_what_is_held_whatever_came_and_went() -> None:
    """Filters come and go at random; events, also ones matched before, go where they are wanted."""
    draw = random.Random("tried")
    interests = LiveInterests()
    interests.matcher.waits_for_index = True  # which would take a moment to load
    router = Router(Neighbours((1, 2)), interests, Effects())
    texts = [f"a > {number}" for number in range(60)] + [f"topic = 't{number}'" for number in range(60)]
    filters = [Filter.parse(text) for text in texts]
    held: set[int] = set()
    seen: list[Publish] = []
    for step in range(1_500):
        number = draw.randrange(len(filters))
        sub = interests.subscription(filters[number])
        if number in held:
            router.unsubscribe(Unsubscribe(sub), LOCAL)
        else:
            router.subscribe(Subscribe(sub), LOCAL)
        held ^= {number}
        assert len(interests.tried) <= len(held) + min(IDLE_MAX, max(IDLE_MIN, len(held))) + 1
        if step % 5 == 0:
            attributes: dict[str, str | int] = {"topic": f"t{draw.randrange(60)}", "a": draw.randrange(60)}
            seen.append(Publish(Event(attributes, source="s", sequence=step)))
            for message in (seen[-1], draw.choice(seen)):
                router.publish(message, router.neighbours.bit(1))
                wanted = {filters[one] for one in held if filters[one].matches(message.event)}
                found = {interests.subs[one] for one in message.matched if one in router.subs}
                assert found == wanted
        if step % 400 == 399:
            unused = interests.subs.keys() - router.subs.keys()
            interests.refile(len(interests.subs))
            interests.forget(set(), unused)
            interests.refile(len(interests.subs))
