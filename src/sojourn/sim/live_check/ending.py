"""The end of a world: the faults stop, and in bounded time everything is well again, then over, then forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.sim.live_check.oracle import FailedCheckError
from sojourn.sim.live_check.script import RETAINED_TOPICS, TOPICS, VALUES, Persona, Step

if TYPE_CHECKING:
    from sojourn.sim.live_check.world import World

LINKS_S = 20.0
"""Within this time all links are up."""
SERVED_S = 120.0
"""Within this time every client is served."""
DRAIN_S = 30.0
"""Within this time everything has arrived."""
LEAVING_S = 10.0


def end(world: World) -> None:
    """Let a world come to rest, and judge it."""
    _heal(world)
    _settle_clients(world)
    _probe(world)
    world.oracle.judge()
    for process in world.processes:
        world.count_resets(process)


def _heal(world: World) -> None:
    for link in world.links:
        link.mend()
    for process in world.processes:
        process.disk.is_full = False
    world.run_until(world.now + LINKS_S)
    for process in world.processes:
        if process.broker is None:
            raise FailedCheckError(f"{process.name} is not back")
    for link in world.links:
        if not link.is_up:
            raise FailedCheckError(f"the link {link.caller.name}-{link.called.name} is not up")


def _settle_clients(world: World) -> None:
    """Let every client be somewhere, and stay."""
    for walker in world.walkers:
        walker.ack_s = 0.0
        if walker.goal < 0:
            walker.go(
                Step(
                    world.now,
                    "go",
                    walker.number,
                    walker.draw.randrange(world.script.brokers),
                    0.0,
                    ("vanish",),
                )
            )
    until_s = world.now + SERVED_S
    while world.now < until_s and not all(walker.is_served for walker in world.walkers):
        world.run_until(world.now + 1.0)
    for walker in world.walkers:
        if not walker.is_served:
            raise FailedCheckError(f"{walker.persona.name} is not served after {walker.tries} tries")
    world.run_until(world.now + DRAIN_S)


def _probe(world: World) -> None:
    """Publish something on every topic at every client, and see that it arrives."""
    for place, walker in enumerate(world.walkers):
        for turn, topic in enumerate((*TOPICS, *RETAINED_TOPICS)):
            qos = 1 + (place + turn) % 2
            detail = (topic, (place + turn) % VALUES, qos, topic in RETAINED_TOPICS)
            walker.publish(Step(world.now, "publish", walker.number, detail=detail))
            world.run_until(world.now + 0.01)
    world.run_until(world.now + DRAIN_S)
    for walker in world.walkers:
        if walker.client.unanswered:
            left = [one.event.name for one in walker.client.unanswered.values()]
            raise FailedCheckError(f"{walker.persona.name} is still waiting for answers to {left[:5]}")
        if walker.abandoned:
            raise FailedCheckError(f"a connection that {walker.persona.name} took over is still open")
