"""What happens to subscribers and brokers in one check of the hand-off: a list of steps from one seed.

The steps are drawn before anything runs and do not depend on what the brokers answer, so that a failing
check can be cut down to the few steps that make it fail (`handoff_check.py`). Any subset of them, in order,
is a script too: who connects twice loses the first connection, who is not connected cannot lose it.

The interests are ranges of one number, some of them covering others, so that content-based routing has
covering to do; each publisher advertises a range and publishes inside it.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from sojourn.errors import SojournError
from sojourn.interest.advertisements import Advertisement
from sojourn.interest.filters import Filter
from sojourn.mobility.schemes import PROACTIVE, REACTIVE
from sojourn.routing.filter_interests import FilterInterests
from sojourn.sim.streams import Streams

FLOODING = "flooding"
CONTENT = "content"
ROUTINGS = (FLOODING, CONTENT)
CHECKED_SCHEMES = (REACTIVE, PROACTIVE)

NUMBERS = 16
RANGES = ((0, 15), (0, 7), (8, 15), (0, 3), (4, 11), (2, 5), (5, 6), (12, 15), (6, 13), (9, 9), (3, 12))
ADVERTISED = ((0, 15), (0, 9), (6, 15))


class CheckError(SojournError):
    """A check was asked for that cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSpec:
    """What a check is drawn from."""

    seed: int
    scheme: str = PROACTIVE
    routing: str = FLOODING
    duration_s: float = 60.0
    """How long clients move; afterwards everything has time to come to rest."""
    clients_max: int = 8
    brokers_max: int = 7

    def __post_init__(self) -> None:
        if self.scheme not in CHECKED_SCHEMES:
            raise CheckError(f"scheme may be {' or '.join(CHECKED_SCHEMES)}, not {self.scheme!r}.")
        if self.routing not in ROUTINGS:
            raise CheckError(f"routing may be {' or '.join(ROUTINGS)}, not {self.routing!r}.")
        if not self.duration_s > 0:
            raise CheckError(f"duration must be more than 0 seconds, not {self.duration_s:g}.")


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens to a client (or `who` is a broker or publisher) at a time."""

    time_s: float
    what: str
    """`connect`, `break`, `move out`, `change`, `goodbye`, `die`, `stall` or `publish`."""
    who: int
    where: int = -1
    """The broker to connect to, or the number published."""
    seconds: float = 0.0
    """How long until a break is noticed, or how long a broker stalls."""
    interests: tuple[int, ...] = ()
    """What the client wants from now on, as places in RANGES."""

    def __str__(self) -> str:
        extra = {
            "connect": f" to broker {self.where}",
            "break": f", noticed after {self.seconds:.2f} s",
            "change": f" to interests {self.interests}",
            "stall": f" for {self.seconds:.2f} s",
            "publish": f" {self.where}",
        }.get(self.what, "")
        subject = {"stall": "broker", "publish": "publisher"}.get(self.what, "client")
        return f"{self.time_s:9.4f} s  {subject} {self.who}: {self.what}{extra}"


@dataclass(frozen=True, slots=True)
class Script:
    """One check: the network, who is in it, and what happens."""

    spec: CheckSpec
    graph: list[list[int]]
    first_interests: list[tuple[int, ...]]
    publishers: list[tuple[int, int]]
    """(broker, place in ADVERTISED)."""
    steps: list[Step] = field(default_factory=list)


@lru_cache(maxsize=1)
def vocabulary() -> tuple[FilterInterests, list[Filter], list[int], list[int]]:
    """The interests of all checks: the table, the filters, and the numbers of filters and advertisements."""
    interests = FilterInterests()
    filters = [Filter.parse(f"n >= {low} AND n <= {high}") for low, high in RANGES]
    ads = [Advertisement.parse(f"n >= {low} AND n <= {high}") for low, high in ADVERTISED]
    return (
        interests,
        filters,
        [interests.subscription(one) for one in filters],
        [interests.advertisement(one) for one in ads],
    )


def write_script(spec: CheckSpec) -> Script:
    """Draw a check from its seed."""
    streams = Streams(spec.seed)
    draw = streams.get("check")
    brokers = int(draw.integers(2, spec.brokers_max + 1))
    graph: list[list[int]] = [[] for _ in range(brokers)]
    for broker in range(1, brokers):
        near = int(draw.integers(0, broker))
        graph[broker].append(near)
        graph[near].append(broker)
    clients = int(draw.integers(1, spec.clients_max + 1))
    first = [_interests(draw) for _ in range(clients)]
    publishers = [
        (int(draw.integers(0, brokers)), int(draw.integers(0, len(ADVERTISED))))
        for _ in range(int(draw.integers(1, 4)))
    ]
    script = Script(spec, graph, first, publishers)
    for client in range(clients):
        script.steps.extend(_life(spec, brokers, client, streams.get("life", client)))
    for publisher, (_, advertised) in enumerate(publishers):
        script.steps.extend(_publishing(spec, publisher, advertised, streams.get("publish", publisher)))
    for broker in range(brokers):
        script.steps.extend(_stalls(spec, broker, streams.get("stall", broker)))
    script.steps.sort(key=lambda step: step.time_s)
    return script


def _interests(draw: np.random.Generator) -> tuple[int, ...]:
    count = int(draw.integers(1, 3))
    return tuple(sorted(int(place) for place in draw.choice(len(RANGES), count, replace=False)))


def _life(spec: CheckSpec, brokers: int, client: int, draw: np.random.Generator) -> list[Step]:
    """A client's moves. Short stays and shorter absences make requests of several epochs cross."""
    steps: list[Step] = []
    pace = float(draw.choice([0.1, 0.4, 1.0, 4.0]))
    now, at = float(draw.uniform(0, 3)), int(draw.integers(0, brokers))
    while now < spec.duration_s:
        steps.append(Step(now, "connect", client, at))
        stay = float(draw.exponential(pace))
        if draw.random() < 0.05:
            steps.append(Step(now + stay * draw.random(), "change", client, interests=_interests(draw)))
        now += stay
        fate = draw.random()
        if fate < 0.01:
            steps.append(Step(now, "goodbye", client))
            break
        if fate < 0.02:
            steps.append(Step(now, "die", client, seconds=float(draw.exponential(1.0))))
            break
        if fate < 0.8:
            steps.append(
                Step(now, "break", client, seconds=float(draw.exponential(draw.choice([0.05, 2.0]))))
            )
        else:
            steps.append(Step(now, "move out", client))
        now += float(draw.exponential(draw.choice([0.01, 0.3, 3.0])))
        if draw.random() < 0.7:
            at = int(draw.integers(0, brokers))
    return steps


def _publishing(spec: CheckSpec, publisher: int, advertised: int, draw: np.random.Generator) -> list[Step]:
    low, high = ADVERTISED[advertised]
    pace = float(draw.choice([0.1, 0.5, 2.0]))
    steps: list[Step] = []
    now = 0.0
    while True:
        now += float(draw.exponential(pace))
        if now >= spec.duration_s:
            return steps
        steps.append(Step(now, "publish", publisher, int(draw.integers(low, high + 1))))


def _stalls(spec: CheckSpec, broker: int, draw: np.random.Generator) -> list[Step]:
    steps: list[Step] = []
    now = 0.0
    while True:
        now += float(draw.exponential(25.0))
        if now >= spec.duration_s:
            return steps
        steps.append(Step(now, "stall", broker, seconds=float(draw.uniform(0.1, 4.0))))
