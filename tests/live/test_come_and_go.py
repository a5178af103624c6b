"""Whatever clients, links and brokers do, nothing fails on the way and nothing is left in the end."""

from __future__ import annotations

import random

import pytest

from sojourn.broker import facts
from sojourn.mqtt import conventions
from tests.live.hall import Hall, Visitor, line
from tests.live.test_forgetting import LONG_S, assert_nothing_dangles, books

CLIENTS = 5
STEPS = 150


class Bustle:
    """A hall in which anything may happen next."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        self.hall = Hall(
            line(
                draw.randrange(2, 5),
                scheme=draw.choice(["proactive", "reactive", "durable"]),
                mode=draw.choice(["content", "flooding"]),
                publishers=draw.choice(["standard", "delayed"]),
            )
        )
        self.visitors: list[Visitor] = []

    def step(self) -> None:
        """One thing happens, and then links carry a little."""
        often = {
            self.arrive: 25,
            self.subscribe: 15,
            self.unsubscribe: 5,
            self.publish: 15,
            self.advertise: 5,
            self.leave: 10,
            self.die: 3,
            self.break_link: 2,
            self.wait: 4,
        }
        self.draw.choices([*often], [*often.values()])[0]()
        for _ in range(self.draw.randrange(5)):
            self.hall.step(self.draw)
            if self.draw.random() < 0.2:
                desk = self.draw.choice(self.hall.desks)
                desk.network.forgetting._due_s = 0.0
                desk.tell(facts.TimePassed())
                assert_nothing_dangles(desk)

    def anybody(self) -> Visitor | None:
        """Somebody who was let in."""
        self.visitors = [one for one in self.visitors if one.desk.visitors.get(one.number) is one]
        inside = [one for one in self.visitors if one.inbox]
        return self.draw.choice(inside) if inside else None

    def arrive(self) -> None:
        """A client connects somewhere, whether or not it is still connected elsewhere."""
        draw, count = self.draw, len(self.hall.desks)
        says = [(conventions.PREVIOUS, f"B{draw.randrange(count) + 1}")] if draw.random() < 0.4 else []
        says += [(conventions.ADVERTISE, f"x > {draw.randrange(3)}")] if draw.random() < 0.3 else []
        self.visitors.append(
            self.hall.visit(
                draw.randrange(count),
                f"client-{draw.randrange(CLIENTS)}",
                lasts_s=draw.choice([0, 0, 5, 100, 100]),
                clean_start=draw.random() < 0.2,
                user_properties=says,
            )
        )

    def subscribe(self) -> None:
        """A client asks for events."""
        if (who := self.anybody()) is not None:
            topic = self.draw.choice(["t/#", *(f"t/{n}" for n in range(6))])
            who.subscribe(topic, self.draw.choice(["", "x > 1", "x > 2", "x > 3"]))

    def unsubscribe(self) -> None:
        """A client asks for them no longer."""
        if (who := self.anybody()) is not None:
            who.unsubscribe(self.draw.choice(["t/#", "t/1", "t/2"]))

    def publish(self) -> None:
        """A client publishes."""
        if (who := self.anybody()) is not None:
            who.publish(f"t/{self.draw.randrange(6)}", b"event", {"x": self.draw.randrange(5)})

    def advertise(self) -> None:
        """A client says what it will publish, or takes that back."""
        if (who := self.anybody()) is not None:
            text = self.draw.choice([b"x > 1", b"x > 2", b""])
            who.publish(conventions.ADVERTISE_TOPIC, text)

    def leave(self) -> None:
        """A client says goodbye, or is lost."""
        if (who := self.anybody()) is not None:
            self.draw.choice([who.lose, who.leave])()

    def die(self) -> None:
        """A broker is killed and comes back."""
        if not self.hall.cut:
            self.hall.restart(self.draw.choice(self.hall.desks).name)

    def break_link(self) -> None:
        """A broker is cut off, or is back."""
        if self.hall.cut:
            self.hall.relink()
        else:
            self.hall.unlink(self.draw.choice(self.hall.desks).name)

    def wait(self) -> None:
        """Time passes."""
        self.hall.wait(self.draw.choice([0.5, 3.0, 12.0]))


@pytest.mark.parametrize("seed", range(20))
def test_in_the_end_every_book_is_as_it_was(seed: int) -> None:
    """When all links are up again, all clients gone and all times over."""
    bustle = Bustle(seed)
    hall = bustle.hall
    before = [books(desk) for desk in hall.desks]
    for _ in range(STEPS):
        bustle.step()
    hall.relink()
    hall.settle()
    for desk in hall.desks:
        for visitor in list(desk.visitors.values()):
            visitor.lose()
    hall.wait(2 * LONG_S)
    limited = {"clients drops", "interests _plain", "interests by_topic", "links _towards"}
    """Counters by reason, and caches."""
    for desk, had in zip(hall.desks, before, strict=True):
        has = books(desk)
        assert {k: v for k, v in has.items() if k not in limited} == {
            k: v for k, v in had.items() if k not in limited
        }
