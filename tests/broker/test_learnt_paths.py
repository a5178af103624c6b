"""Copies wait only where a client is likely to go, as brokers are told; nothing is lost where it is not."""

from __future__ import annotations

import itertools
import random

import pytest
from msgspec.structs import replace

from sojourn.broker import facts
from sojourn.broker.settings import Settings
from sojourn.mobility.prediction import Foreseen
from sojourn.routing.messages import Kind
from sojourn.sim.live_check import comparing
from sojourn.sim.live_check.comparing import differences
from tests.live.hall import Desk, Hall, line

PHONE, LASTS_S = "phone", 600


def copies(world: Hall, client_id: str = PHONE) -> list[str]:
    """What each broker holds of a client."""
    found = []
    for desk in world.desks:
        clients = desk.network.clients
        holding = clients.broker.subscribers.main.get(clients.names.client_number(client_id))
        found.append("-" if holding is None else holding.state.name)
    return found


def learn(desk: Desk, *rows: Foreseen) -> None:
    """Tell a broker where its clients go."""
    desk.tell(facts.PathsLearnt(rows))
    desk.hall.settle()


def walk(world: Hall, *brokers: int) -> None:
    """Let the phone be at one broker after the other, and stay at the last."""
    for broker, following in itertools.pairwise((*brokers, None)):
        assert broker is not None
        visitor = world.visit(broker, PHONE, lasts_s=LASTS_S)
        world.settle()
        visitor.subscribe("news/#")
        if following is not None:
            visitor.lose()
            world.settle()


def test_copies_wait_only_where_a_client_is_likely_to_go() -> None:
    """By where it is and came from; without a word about that, at all neighbours that were crossed."""
    world = Hall(line(4))
    walk(world, 0, 1, 2, 1)
    assert copies(world) == ["PASSIVE", "PRESENT", "PASSIVE", "-"]
    learn(world.desks[1], Foreseen("B2", ("B1",)), Foreseen("B2", ("B4",), "B3"))
    walk(world, 0, 1)
    assert copies(world) == ["PASSIVE", "PRESENT", "-", "-"]
    walk(world, 2, 1)
    assert copies(world)[1:] == ["PRESENT", "-", "PASSIVE"]
    learn(world.desks[1])
    walk(world, 0, 1)
    assert copies(world) == ["PASSIVE", "PRESENT", "PASSIVE", "-"]


def test_what_was_learnt_is_in_the_journal_and_in_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is killed goes by it as before, until its configuration says something else."""
    world = Hall(line(3))
    desk = world.desks[1]
    rows = (Foreseen("B2", ("B3",)),)
    learn(desk, *rows)
    walk(world, 0, 1)
    assert copies(world) == ["-", "PRESENT", "PASSIVE"]
    again = desk.replayed()
    assert again.settings.learnt == rows
    # Which frames a neighbour acknowledged is noted now and then; all else is as it was.
    monkeypatch.setattr(comparing, "DIFFERENCES_MAX", 1_000)
    assert [one for one in differences(desk.broker, again) if ".channels." not in one] == []
    desk.keep()
    desk.settings = replace(desk.settings, learnt=rows)
    world.restart("B2")
    walk(world, 0, 1)
    assert copies(world) == ["-", "PRESENT", "PASSIVE"]
    desk.settings = replace(desk.settings, learnt=())
    world.restart("B2")
    walk(world, 2, 1)
    assert copies(world)[0] == "PASSIVE", "what is no longer in the file counts no more"


def test_a_network_may_start_with_the_graph_of_its_links() -> None:
    """Then the very first hand-off finds a copy that stores events."""
    for graph, expected in (("crossed", "-"), ("links", "ACTIVE")):
        world = Hall(line(3, graph=graph))
        visitor = world.visit(1, PHONE, lasts_s=LASTS_S)
        visitor.subscribe("news/#")
        visitor.lose()
        world.settle()
        assert copies(world) == [expected, "AWAY", expected]


def test_a_publishers_tree_is_prepared_where_it_is_likely_to_go() -> None:
    """With the prefetching protocol of paper 000, from the same predictions."""
    world = Hall(line(3, publishers="prefetching"))
    prepared: list[tuple[str, int]] = []
    for desk in world.desks:
        receivers = list(desk.network.clients.broker.receivers)
        prepare = receivers[Kind.PREPARE]

        def note(message: object, bit: int, desk: Desk = desk, prepare: object = prepare) -> None:
            prepared.append((desk.name, message.destination))  # type: ignore[attr-defined]  # as the method it stands for
            prepare(message, bit)  # type: ignore[operator]  # as the method it stands for

        receivers[Kind.PREPARE] = note
        desk.network.clients.broker.receivers = tuple(receivers)
    learn(world.desks[1], Foreseen("B2", ("B3", "B1")))
    car = world.visit(1, "car", lasts_s=LASTS_S, user_properties=[("sojourn-advertise", "speed > 0")])
    world.settle()
    car.lose()
    world.settle()
    assert prepared == [("B3", 2)]


def anything(draw: random.Random, settings: Settings) -> tuple[Foreseen, ...]:
    """Predictions that mean nothing: of brokers there are and are not, this one itself among them."""
    names = (*settings.brokers, "nowhere")
    return tuple(
        Foreseen(
            draw.choice(names),
            tuple(draw.sample(names, draw.randrange(1, len(names)))),
            draw.choice((None, *names)),
            draw.choice((None, draw.randrange(24))),
        )
        for _ in range(draw.randrange(6))
    )


@pytest.mark.parametrize("seed", range(60))
def test_no_prediction_costs_an_event(seed: int) -> None:
    """Brokers are told nonsense, again and again, are killed, and the phone goes where it likes."""
    draw = random.Random(seed)
    world = Hall(line(4, graph=draw.choice(("crossed", "links"))))
    got: list[bytes] = []
    visitor = world.visit(0, PHONE, lasts_s=LASTS_S, got=got)
    visitor.subscribe("news/#")
    publisher = world.visit(3, "publisher")
    world.settle()
    sent = []
    for step in range(40):
        what = draw.randrange(5)
        if what == 0:
            desk = draw.choice(world.desks)
            desk.settings = replace(desk.settings, learnt=anything(draw, desk.settings))
            desk.tell(facts.PathsLearnt(desk.settings.learnt))
        elif what == 1:
            visitor.lose()
            visitor = world.visit(draw.randrange(4), PHONE, lasts_s=LASTS_S, got=got)
        elif what == 2 and draw.random() < 0.3:
            name = draw.choice(("B1", "B2", "B3"))
            world.restart(name)
        else:
            sent.append(b"%d" % step)
            publisher.publish("news/now", sent[-1])
        for _ in range(draw.randrange(8)):
            world.step(draw)
    world.settle()
    visitor.lose()
    visitor = world.visit(draw.randrange(4), PHONE, lasts_s=LASTS_S, got=got)
    world.wait(2.0)
    assert list(dict.fromkeys(got)) == sent
