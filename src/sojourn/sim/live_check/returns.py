"""Clients that leave and come back just before their broker loses power, and move on when all is well again.

What such a broker forgets is that its client was elsewhere, and what it then told the others to keep for that
client. A fault in that is not seen until much later: events are published when nothing is amiss any more, the
client gets them at the broker that forgot, comes back there, and goes once more to where it had been. Clients
that go their own ways hardly ever do all of that.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sojourn.sim.live_check.steps import LOSES_ALL, TOPICS, VALUES, Place, Step

RETURNING = 0.7
"""Before how many losses of power clients do that."""
TRAVELLERS = 2
"""How many of them."""
FIRST_TRAVELLERS = 4
"""And before the first loss."""
EARLY_S = 3.0
"""How long before the loss a client comes to the broker, so that it still knows then."""
ASKS_S = 0.2
"""How long after that it asks for what is going to be published."""
WELL_S = 6.0
"""How long after its start a broker has come to terms with all others."""
STAY_S = 1.0
"""How long a client stays in one place afterwards, and how long others publish meanwhile."""
EVENTS = 5
"""How many events are published during such a stay."""
HOP_S = 0.3
"""How long it takes to leave and return."""
SLOW_S = 0.8
"""For how long before the loss nothing is synced."""
FIRST_S = (5.7, 8.0)
"""When power is lost for the first time."""


class Trip(NamedTuple):
    """Who goes where and back before a broker loses power."""

    loss: Step
    there: int
    travellers: list[int]

    @property
    def began_s(self) -> float:
        """When travellers come to the broker that is going to forget where they go."""
        return self.loss.time_s - EARLY_S

    @property
    def well_s(self) -> float:
        """When everything is well again."""
        return self.loss.time_s + self.loss.seconds + WELL_S

    @property
    def ended_s(self) -> float:
        """When they go their own ways."""
        return self.well_s + 3 * STAY_S


def with_returns(
    draw: random.Random, steps: list[Step], place: Place, unsafe: Sequence[int], seconds: float
) -> list[Step]:
    """Return steps with what clients do around losses of power; these go nowhere else meanwhile.

    Brokers that are `unsafe` may forget something then.
    """
    losses = [step for step in steps if step.what == "power loss" and draw.random() < RETURNING]
    for loss in losses:
        there = (loss.who + draw.randrange(1, place.brokers)) % place.brokers
        trip = Trip(loss, there, draw.sample(range(place.clients), TRAVELLERS))
        if trip.began_s > 0 and trip.ended_s < seconds:
            steps = _staying(steps, trip.travellers, trip.began_s, trip.ended_s)
            steps = [step for step in steps if step is not loss] + _steps_of(draw, trip, place)
    return _with_first(draw, steps, place, unsafe) if losses and unsafe else steps


def _with_first(draw: random.Random, steps: list[Step], place: Place, unsafe: Sequence[int]) -> list[Step]:
    """Return steps with such a trip in the beginning, before anybody has gone from one broker to another.

    Brokers that no client has gone between do not tell each other to keep anything. Nothing else goes wrong.
    """
    here = draw.choice(unsafe)
    there = (here + draw.randrange(1, place.brokers)) % place.brokers
    loss = Step(draw.uniform(*FIRST_S), "power loss", here, seconds=0.5, detail=("idle", 0))
    begins = {step.who: step for step in reversed(steps) if step.what == "go"}
    travellers = [who for who, step in sorted(begins.items()) if step.where != there]
    trip = Trip(loss, there, draw.sample(travellers, min(FIRST_TRAVELLERS, len(travellers))))
    came = list(begins.values())
    rest = [
        step
        for step in steps
        if step not in came and (step.time_s > trip.ended_s or step.what in ("publish", "subscribe"))
    ]
    return came + rest + _steps_of(draw, trip, place)


def _staying(steps: list[Step], clients: Sequence[int], since_s: float, until_s: float) -> list[Step]:
    """Return steps in which clients go nowhere in a time."""
    return [
        step
        for step in steps
        if step.what not in ("go", "away") or step.who not in clients or not since_s <= step.time_s <= until_s
    ]


def _steps_of(draw: random.Random, trip: Trip, place: Place) -> list[Step]:
    loss = trip.loss
    steps = [
        Step(loss.time_s - SLOW_S, "slow disk", loss.who, seconds=SLOW_S),
        replace(loss, detail=(*loss.detail, LOSES_ALL)),
    ]
    for who in trip.travellers:
        steps += _way(draw, who, trip)
    return steps + _news(draw, trip, place)


def _way(draw: random.Random, who: int, trip: Trip) -> list[Step]:
    """Return where one traveller goes."""
    here, there, well_s = trip.loss.who, trip.there, trip.well_s
    gone_s = trip.loss.time_s - draw.uniform(0.05, 0.25)
    ways = [
        (trip.began_s, here),
        (gone_s - HOP_S * draw.uniform(0.8, 1.0), there),
        (gone_s - HOP_S * draw.uniform(0.3, 0.5), here),
        (well_s, here),
        (well_s + STAY_S, here),
        (well_s + 2 * STAY_S, there),
    ]
    wants = Step(trip.began_s + ASKS_S, "subscribe", who, detail=("t/#", "", draw.choice((1, 2)), 0, -1))
    gone = Step(gone_s, "away", who, detail=("leave",))
    return [wants, gone, *(Step(at, "go", who, broker, detail=("leave",)) for at, broker in ways)]


def _news(draw: random.Random, trip: Trip, place: Place) -> list[Step]:
    """Return what is published while travellers go on."""
    steps = []
    for place_in_trip in range(3 * EVENTS):
        at = trip.well_s + STAY_S * (place_in_trip // EVENTS + draw.uniform(0.2, 0.9))
        what = (draw.choice(TOPICS), draw.randrange(VALUES), draw.choice((1, 2)), False)
        steps.append(Step(at, "publish", draw.randrange(place.clients), detail=what))
    return steps
