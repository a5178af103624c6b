"""What a seed decides: brokers and links, what kind each client is, and a list of steps that happen to them.

The steps are drawn before anything runs and do not depend on what brokers answer. Any part of them, in order,
is a script too: who is told to go where it is stays there, a broker that is dead cannot be killed. So a
failing script can be cut down to the few steps that it needs (`shrink.py`). What is drawn while a world runs,
how long a byte takes or when a client tries again, comes from streams that each belong to one client or one
link.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from sojourn.sim.live_check.joining import joining
from sojourn.sim.live_check.machine_faults import machine_faults
from sojourn.sim.live_check.returns import with_returns
from sojourn.sim.live_check.steps import TOPICS, VALUES, Place, Step
from sojourn.sim.live_check.trespassers import attempts

FAULTS = ("client", "break", "stall", "part", "kill", "power", "amnesia", "clock", "full")
"""Kinds of faults: connections of clients; links that break, stall and part; processes that are killed, that
lose power, that lose their store; clocks that jump at a restart; disks that fill."""
FORGETFUL = ("power", "amnesia")
"""Those that may make a broker forget what it had promised."""

BESIDE_COPIES = ("client", "break", "stall", "part", "clock")
"""Those that worlds with copies have too, besides what happens to machines (`machine_faults.py`)."""

RETAINED_TOPICS = ("r/0", "r/1", "r/2")
DOORS = ("d/0", "d/1")
"""Topics with a retained state that changes while clients subscribe to it."""
PATTERNS = ("t/#", "t/+", "t/0", "t/1", "t/2", "+/1", "r/#", "w/#")
CONDITIONS = ("", "", "x > 4", "x <= 6", "x > 2 AND x < 8", "x = 3 OR x = 7", "topic LIKE 't/+' AND x > 5")
GROUPS = ("$share/g/t/#", "$share/g/t/+", "$share/h/t/1", "$share/h/+/1")
"""Shared subscriptions, where a world has any."""
GROUPED = 0.6
"""How many worlds have some, and how many of the clients there."""
ASKING_SHARE = 0.4
"""How often a subscription is for answers to a question: as soon as it is granted somebody else publishes."""
ANSWERS = 3
"""Topics for answers that one client has."""
OUTPUT_BYTES = (40, 200, 1 << 20)
EXPIRIES_S = (0, 30, 3_600, 3_600, 3_600)
CLIENT_STEPS = ("go", "away", "subscribe", "unsubscribe", "publish")
"""What clients do by themselves."""
WAYS = ("both", "to caller", "to called")
"""In which directions a link carries nothing while it stalls."""
HOSTILE = "be hostile"
"""What strangers do."""
STRANGERS = 6
BURST = 12
"""Events that are published in a second or so before power is lost."""
FIRST_CLIENT_S = 1.0
"""When links are up, and the first client may come."""
QUIET_S = 3.0
"""How long a world lives before the first fault."""


class Pace(NamedTuple):
    """How long clients stay."""

    stay_s: float
    """The least that one stays before it does something."""
    patience_s: tuple[float, ...]
    """How much longer it stays on average; each client draws one of these."""
    away_s: float
    """How long it is away on average."""
    ack_s: tuple[float, ...]
    """How long it takes to acknowledge, at the most; each client draws one of these."""
    expiries_s: tuple[int, ...]
    """How long its session lives without it."""
    brokers: tuple[int, ...]
    """How many brokers there may be; each more makes hand-offs dearer."""
    turn_s: float
    """How long a loop turn of a broker takes at the most."""


CALM = Pace(0.3, (0.4, 1.0, 2.0, 4.0, 30.0), 3.0, (0.0, 0.05, 1.0), EXPIRIES_S, (2, 3, 3, 4, 4, 5, 6), 0.002)
RESTLESS = Pace(
    0.12,
    (0.04, 0.08, 0.15, 0.3),
    0.5,
    (0.0, 0.01, 0.1),
    (0, 30, *[3_600] * 8),
    (2, 2, 3, 3, 3, 4, 4, 5, 6),
    0.005,
)
"""A hand-off takes some tens of milliseconds, so here many clients go on before they are welcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a world is drawn from."""

    seed: int
    seconds: float = 120.0
    """How long clients move and things break; afterwards everything has time to come to rest."""
    brokers: int | None = None
    """How many; drawn from the seed if it is not given."""
    faults: tuple[str, ...] = FAULTS
    restless: bool = False
    """Whether clients move on about ten times as often, which makes most of the work hand-offs."""
    copies: int = 0
    """How many other machines hold a copy of each broker's journal; with any, machines lose their disks."""
    hostile: int = 0
    """How many steps strangers take that keep no rule (`strangers.py`); with any, honest clients are few."""

    @property
    def pace(self) -> Pace:
        """Return how long clients stay."""
        return RESTLESS if self.restless else CALM

    def command(self) -> str:
        """Return the command that repeats this check."""
        faults = "all" if self.faults == FAULTS else ",".join(self.faults) or "none"
        brokers = "" if self.brokers is None else f" --brokers {self.brokers}"
        if self.hostile:
            return (
                f"sojourn check fuzz --first-seed {self.seed} --seeds 1 --seconds {self.seconds:g}"
                f"{brokers} --faults {faults} --world-steps {self.hostile}"
            )
        return (
            f"sojourn check live --first-seed {self.seed} --seeds 1 --seconds {self.seconds:g}"
            f"{brokers} --faults {faults}{' --restless' if self.restless else ''}"
            f"{f' --copies {self.copies}' if self.copies else ''}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """What kind of client one is."""

    name: str
    expiry_s: int
    says_previous: bool
    """Whether it names the broker that it was with last."""
    says_marks: bool
    """Whether it asks for the numbers of events and states how far it has come."""
    numbers_own: bool
    """Whether it numbers what it publishes, so that repetitions are known."""
    receive_max: int
    aliases_max: int
    keep_alive_s: int
    ack_s: float
    """How long it takes to acknowledge, at the most."""
    tries_elsewhere: bool
    """Whether it goes to another broker when one refuses it or does not answer."""
    will_delay_s: int | None
    """How long after its connection its will is due; None for no will."""
    will_retain: bool
    advertises: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The whole life of a world."""

    spec: Spec
    brokers: int
    links: tuple[tuple[int, int], ...]
    scheme: str
    routing: str
    publishers: str
    power_safe: tuple[bool, ...]
    reports: bool
    """Whether brokers tell each other every second how they are."""
    output_bytes: int
    """How much clients may leave unread of what brokers send them at once."""
    personas: tuple[Persona, ...]
    offsets_s: tuple[float, ...]
    """How far the clock of each broker is ahead at first."""
    steps: list[Step] = field(repr=False)
    joins_s: float | None = None
    """When the last broker, at the end of a branch, joins the others; None: it is there from the start."""


def write_script(spec: Spec) -> Script:
    """Return the script of a seed."""
    draw = random.Random(f"{spec.seed}/script")
    pace = spec.pace
    brokers = spec.brokers or draw.choice(pace.brokers)
    links = tuple((draw.randrange(one), one) for one in range(1, brokers))
    honest = draw.randrange(5, 11) if not spec.hostile else draw.randrange(3, 5)
    personas = tuple(_persona(draw, number, pace) for number in range(honest))
    steps: list[Step] = []
    for number in range(len(personas)):
        own = random.Random(f"{spec.seed}/life/{number}")
        steps += _life(own, number, brokers, honest, spec.seconds, pace)
    faulty = random.Random(f"{spec.seed}/faults")
    # Every kind is drawn for, so that leaving one out leaves the others as they were.
    chosen = {kind for kind in FAULTS if faulty.random() < (0.15 if kind in FORGETFUL else 0.5)}
    chosen = {kind for kind in chosen if kind in spec.faults}
    if spec.copies:  # machines die there in their own ways, and disks are lost with them
        chosen &= set(BESIDE_COPIES)
    place = Place(brokers, links, len(personas))
    for kind in sorted(chosen):
        own = random.Random(f"{spec.seed}/faults/{kind}")
        steps += _FAULT_WRITERS[kind](own, spec, place)
    if spec.copies:
        steps += machine_faults(spec.seed, brokers, partial(_times, spec=spec))
    steps += _hostilities(random.Random(f"{spec.seed}/hostile"), spec, brokers)
    steps += attempts(random.Random(f"{spec.seed}/trespassers"), brokers, FIRST_CLIENT_S, spec.seconds)
    kept = random.Random(f"{spec.seed}/snapshots")
    every_s = kept.choice((5.0, 20.0, 1_000.0))
    steps += [Step(at, "snapshot", kept.randrange(brokers)) for at in _times(kept, spec, every_s)]
    steps += _doors(random.Random(f"{spec.seed}/doors"), len(personas), spec)
    jumps = "clock" in chosen
    scheme, routing = (
        draw.choice(("proactive", "proactive", "reactive")),
        draw.choice(("content", "content", "flooding")),
    )
    publishers = draw.choice(("standard", "delayed"))
    power_safe = tuple(draw.random() < 0.3 for _ in range(brokers))
    unsafe = [number for number in range(brokers) if not power_safe[number]]
    if not spec.copies:
        steps = with_returns(random.Random(f"{spec.seed}/returns"), steps, place, unsafe, spec.seconds)
    if routing == "content":
        steps += _grouping(random.Random(f"{spec.seed}/groups"), len(personas), spec)
    return Script(
        spec=spec,
        brokers=brokers,
        links=links,
        scheme=scheme,
        routing=routing,
        publishers=publishers,
        power_safe=power_safe,
        reports=draw.random() < 0.2,
        output_bytes=random.Random(f"{spec.seed}/output").choice(OUTPUT_BYTES),
        personas=personas,
        offsets_s=tuple(faulty.uniform(-5.0, 5.0) if jumps else 0.0 for _ in range(brokers)),
        steps=sorted(steps, key=lambda step: step.time_s),
        joins_s=joining(spec.seed, brokers - spec.copies, FIRST_CLIENT_S, spec.seconds),
    )


def _persona(draw: random.Random, number: int, pace: Pace) -> Persona:
    return Persona(
        name=f"c{number}",
        expiry_s=draw.choice(pace.expiries_s),
        says_previous=draw.random() < 0.4,
        says_marks=draw.random() < 0.4,
        numbers_own=draw.random() < 0.3,
        receive_max=draw.choice((1, 3, 10, 100, 65_535)),
        aliases_max=draw.choice((0, 0, 2)),
        keep_alive_s=draw.choice((5, 10, 30)),
        ack_s=draw.choice(pace.ack_s),
        tries_elsewhere=draw.random() < 0.4,
        will_delay_s=draw.choice((None, None, 0, 3, 20)),
        will_retain=draw.random() < 0.3,
        advertises=draw.random() < 0.2,
    )


# Lives -----------------------------------------------------------------------------------------------------


def _life(
    draw: random.Random, who: int, brokers: int, clients: int, seconds: float, pace: Pace
) -> list[Step]:
    """Return all that one client does by itself."""
    now = FIRST_CLIENT_S + draw.uniform(0.1, 1.5)
    at_broker = draw.randrange(brokers)
    steps = [Step(now, "go", who, at_broker, detail=("vanish",))]
    steps += [_subscribing(draw, now + 0.01 * turn, who, clients) for turn in range(draw.randrange(1, 4))]
    patience_s = draw.choice(pace.patience_s)
    at = now
    while True:
        at += pace.stay_s + draw.expovariate(1 / patience_s)
        if at >= seconds:
            break
        what = draw.random()
        if what < 0.72:
            how = draw.choices(("vanish", "leave", "stay", "clean"), (500, 250, 200, 4))[0]
            notice_s = draw.choice((0.0, 0.05, 0.5, 4.0, 60.0))
            at_broker = (at_broker + draw.randrange(brokers - (draw.random() < 0.9)) + 1) % brokers
            steps.append(Step(at, "go", who, at_broker, notice_s, (how,)))
        elif what < 0.86:
            how = draw.choice(("vanish", "leave"))
            steps.append(Step(at, "away", who, seconds=draw.choice((0.0, 0.5, 60.0)), detail=(how,)))
            at += draw.expovariate(1 / pace.away_s)
            at_broker = draw.randrange(brokers)
            steps.append(Step(at, "go", who, at_broker, detail=("vanish",)))
        elif what < 0.95:
            steps.append(_subscribing(draw, at, who, clients))
        else:
            steps.append(_unsubscribing(draw, at, who))
    steps += _publishing(draw, who, seconds)
    return steps


def _subscribing(draw: random.Random, at: float, who: int, clients: int) -> Step:
    """Return a subscription, and who hears of it as soon as it is granted and publishes something for it."""
    pattern, condition, friend = draw.choice(PATTERNS), draw.choice(CONDITIONS), -1
    qos, retain_handling = draw.choices((0, 1, 2), (10, 55, 35))[0], draw.choice((0, 1, 2))
    if draw.random() < ASKING_SHARE:
        pattern, condition, friend = _answers(draw, who), "", draw.randrange(clients)
    return Step(at, "subscribe", who, detail=(pattern, condition, qos, retain_handling, friend))


def _unsubscribing(draw: random.Random, at: float, who: int) -> Step:
    pattern = _answers(draw, who) if draw.random() < ASKING_SHARE else draw.choice(PATTERNS)
    return Step(at, "unsubscribe", who, detail=(pattern,))


def answers_to(who: int) -> str:
    """Return where a client wants answers to what it asks: below a topic that nobody else subscribes to."""
    return f"a/{who}"


def _answers(draw: random.Random, who: int) -> str:
    return f"{answers_to(who)}/{draw.randrange(ANSWERS)}"


def _grouping(draw: random.Random, clients: int, spec: Spec) -> list[Step]:
    """Return which clients become members of groups, and leave them; drawn apart from all else."""
    if draw.random() >= GROUPED:
        return []
    steps = []
    patterns = draw.sample(GROUPS, draw.randrange(1, 3))
    for who in range(clients):
        own = random.Random(f"{spec.seed}/groups/{who}")
        if own.random() >= GROUPED:
            continue
        at = FIRST_CLIENT_S + own.uniform(0.1, 4.0)
        every_s = own.choice((10.0, 40.0, 1_000.0))
        while at < spec.seconds:
            pattern = own.choice(patterns)
            if own.random() < 0.7:
                condition = own.choice(("", "", "", *CONDITIONS))
                detail = (pattern, condition, own.choice((1, 1, 2)), 0, -1)
                steps.append(Step(at, "subscribe", who, detail=detail))
            else:
                steps.append(Step(at, "unsubscribe", who, detail=(pattern,)))
            at += own.expovariate(1 / every_s)
    return steps


def _publishing(draw: random.Random, who: int, seconds: float) -> list[Step]:
    every_s = draw.choice((0.7, 2.0, 5.0, 20.0))
    at = FIRST_CLIENT_S + draw.uniform(0.5, 4.0)
    steps = []
    while (at := at + draw.expovariate(1 / every_s)) < seconds:
        qos = draw.choices((0, 1, 2), (15, 50, 35))[0]
        is_kept = draw.random() < 0.1
        topic = draw.choice(RETAINED_TOPICS if is_kept else TOPICS)
        is_empty = is_kept and draw.random() < 0.15
        value = -1 if is_empty else draw.randrange(VALUES)
        steps.append(Step(at, "publish", who, detail=(topic, value, qos, is_kept)))
    return steps


def _doors(draw: random.Random, clients: int, spec: Spec) -> list[Step]:
    """Return who says how a door is at some times, and who asks just then; drawn apart from all else."""
    steps = []
    for at, topic in [(at, topic) for topic in DOORS for at in _times(draw, spec, 10.0)]:
        teller, *readers = (draw.randrange(clients) for _ in range(3))
        steps.append(Step(at, "publish", teller, detail=(topic, draw.randrange(VALUES), 1, True)))
        for who in readers:
            asks_s = at + draw.choice((0.0, 0.001, 0.01, 0.1))
            steps.append(Step(asks_s - 0.5, "unsubscribe", who, detail=(topic,)))
            steps.append(Step(asks_s, "subscribe", who, detail=(topic, "", 1, 0, -1)))
    return steps


def _hostilities(draw: random.Random, spec: Spec, brokers: int) -> list[Step]:
    """Return what strangers do, each step with a seed of its own."""
    return [
        Step(
            draw.uniform(FIRST_CLIENT_S, spec.seconds),
            HOSTILE,
            draw.randrange(STRANGERS),
            draw.randrange(brokers),
            detail=(draw.getrandbits(48),),
        )
        for _ in range(spec.hostile)
    ]


# Faults ----------------------------------------------------------------------------------------------------


def _times(draw: random.Random, spec: Spec, every_s: float) -> list[float]:
    found, at = [], QUIET_S
    while (at := at + draw.expovariate(1 / every_s)) < spec.seconds:
        found.append(at)
    return found


def _client_faults(draw: random.Random, spec: Spec, place: Place) -> list[Step]:
    steps = []
    for at in _times(draw, spec, 4.0):
        what = draw.choice(("cut client", "cut client", "stall client"))
        steps.append(Step(at, what, draw.randrange(place.clients), seconds=draw.choice((0.0, 0.2, 1.0, 5.0))))
    return steps


def _breaks(draw: random.Random, spec: Spec, place: Place) -> list[Step]:
    return [
        Step(at, "break link", draw.randrange(len(place.links)), seconds=draw.choice((0.0, 0.1, 1.0, 3.0)))
        for at in _times(draw, spec, 8.0)
    ]


def _stalls(draw: random.Random, spec: Spec, place: Place) -> list[Step]:
    """Return times in which a link carries nothing, in both directions or in one."""
    return [
        Step(
            at,
            "stall link",
            draw.randrange(len(place.links)),
            seconds=draw.choice((0.3, 1.0, 3.0, 8.0)),
            detail=(draw.choice(WAYS),),
        )
        for at in _times(draw, spec, 10.0)
    ]


def _parts(draw: random.Random, spec: Spec, place: Place) -> list[Step]:
    return [
        Step(at, "part link", draw.randrange(len(place.links)), seconds=draw.choice((1.0, 4.0, 12.0, 25.0)))
        for at in _times(draw, spec, 25.0)
    ]


def _deaths(draw: random.Random, spec: Spec, brokers: int, how: str, every_s: float) -> list[Step]:
    return [
        Step(
            at,
            how,
            draw.randrange(brokers),
            seconds=draw.choice((0.1, 0.5, 2.0, 8.0)),
            detail=(draw.choice(("idle", "before commit", "after commit", "effect")), draw.randrange(8)),
        )
        for at in _times(draw, spec, every_s)
    ]


def _kills(draw: random.Random, spec: Spec, place: Place) -> list[Step]:
    return _deaths(draw, spec, place.brokers, "kill", 12.0)


def _power_losses(draw: random.Random, spec: Spec, place: Place) -> list[Step]:
    """Return losses of power; before most of them much is published, and one link does not hear the broker.

    The broker still hears: what its neighbour says it takes in, passes on and forgets, and the neighbour,
    which has heard of no acknowledgement, says it again.
    """
    steps = _deaths(draw, spec, place.brokers, "power loss", 20.0)
    for step in [one for one in steps if draw.random() < 0.7]:
        at = step.time_s - draw.uniform(0.5, 2.0)
        link = draw.choice([number for number, ends in enumerate(place.links) if step.who in ends])
        way = "to called" if place.links[link][0] == step.who else "to caller"
        steps.append(Step(at, "stall link", link, seconds=3.0, detail=(way,)))
        for _ in range(BURST):
            what = (draw.choice(TOPICS), draw.randrange(VALUES), draw.choice((1, 2)), False)
            who = draw.randrange(place.clients)
            steps.append(Step(draw.uniform(at, step.time_s), "publish", who, detail=what))
    return steps


def _amnesias(draw: random.Random, spec: Spec, place: Place) -> list[Step]:
    return _deaths(draw, spec, place.brokers, "lose store", 60.0)


def _clocks(draw: random.Random, spec: Spec, place: Place) -> list[Step]:
    """Return jumps of clocks, each of which a broker sees at its next start."""
    return [
        Step(
            at,
            "set clock",
            draw.randrange(place.brokers),
            detail=(draw.choices((-30.0, -3.0, 3.0, 30.0, 3_600.0, -3_600.0), (4, 4, 4, 4, 1, 1))[0],),
        )
        for at in _times(draw, spec, 20.0)
    ]


def _fillings(draw: random.Random, spec: Spec, place: Place) -> list[Step]:
    return [
        Step(at, "fill disk", draw.randrange(place.brokers), seconds=draw.choice((0.5, 3.0, 10.0)))
        for at in _times(draw, spec, 30.0)
    ]


_FAULT_WRITERS = {
    "client": _client_faults,
    "break": _breaks,
    "stall": _stalls,
    "part": _parts,
    "kill": _kills,
    "power": _power_losses,
    "amnesia": _amnesias,
    "clock": _clocks,
    "full": _fillings,
}
