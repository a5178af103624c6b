"""Clients of MQTT 3.1.1 that do what nobody may, and lose their connection for it.

Their standard has no answer that refuses a PUBLISH. So a broker closes the connection in the midst of what
it was about to note, and whatever it left unfinished there would meet the next packet of somebody else. They
come to honest worlds too: the oracle asks nothing about them, and everything about the others.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from sojourn.sim.live_check.steps import Step
from sojourn.sim.live_check.wires import ClientWire

if TYPE_CHECKING:
    from sojourn.sim.live_check.world import World

TRESPASS = "trespass"
ADDRESS = "next door"
EVERY_S = (0.5, 3.0, 1_000.0)
"""How often one comes on average; each world draws one of these."""
_CONNECT = b"\x10\x10\x00\x04MQTT\x04\x02\x00\x0a\x00\x04old"
_TOPIC = b"\x00\x06$SYS/z"
_ATTEMPTS = (
    b"\x32\x0b" + _TOPIC + b"\x00\x01x",
    b"\x34\x0b" + _TOPIC + b"\x00\x01x",
    b"\x33\x0b" + _TOPIC + b"\x00\x01x",
    b"\xa2\x05\x00\x01\x00\x01z\xf0\x00",
)
"""An event of QoS 1, of QoS 2 and a retained one where only brokers publish; the end of a subscription that
there is not, and then a packet that there is not."""


def attempts(draw: random.Random, brokers: int, first_s: float, seconds: float) -> list[Step]:
    """Return when somebody comes to which broker, and with what."""
    every_s, at, steps = draw.choice(EVERY_S), first_s, []
    while (at := at + draw.expovariate(1 / every_s)) < seconds:
        detail = (draw.randrange(len(_ATTEMPTS)), draw.getrandbits(32))
        steps.append(Step(at, TRESPASS, draw.randrange(10), draw.randrange(brokers), detail=detail))
    return steps


def trespass(world: World, step: Step) -> None:
    """Come, do what nobody may, and see the connection close."""
    process = world.processes[step.where]
    if process.broker is None:
        return
    world.counts["trespasses"] += 1
    attempt, latency_seed = step.detail
    wire = ClientWire(world, process, random.Random(latency_seed), _read, _read, ADDRESS)
    wire.write(_CONNECT + b"%d" % step.who + _ATTEMPTS[attempt])


def _read(*_what: object) -> None:
    """Make nothing of what comes."""
