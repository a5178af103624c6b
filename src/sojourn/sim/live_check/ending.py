"""The end of a world: the faults stop, and in bounded time everything is well again, then forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.broker.forgetting import memory_s
from sojourn.sim.live_check.books import books, surplus
from sojourn.sim.live_check.oracle import FailedCheckError
from sojourn.sim.live_check.script import RETAINED_TOPICS, Persona, answers_to
from sojourn.sim.live_check.steps import TOPICS, VALUES, Step
from sojourn.sim.live_check.walkers import Walker
from sojourn.sim.live_check.world import GIVE_UP_S, TIMEOUT_S

if TYPE_CHECKING:
    from sojourn.sim.live_check.process import Process
    from sojourn.sim.live_check.world import World

LINKS_S = 20.0
"""Within this time all links are up."""
SERVED_S = 120.0
"""Within this time every client is served."""
CALLS = 4
"""How often every client goes to another broker when all is calm."""
CALL_S = 3.0
"""Within this time every client is served that goes to another broker of a calm network."""
ASKING_S = 0.5
"""Within this time it is granted a subscription there."""
DRAIN_S = 30.0
"""Within this time everything has arrived."""
GIVEN_S = 900.0
"""Within this time clients have what brokers stored for them wherever they were: it follows them from one to
the next, in small parts, and who went on quickly has left many behind."""
LEAVING_S = 10.0
FORGETTING_S = 300.0
"""How much later than its time is over a thing may be forgotten."""
GROWN = (
    "links.names_of",
    "links.numbers",
    "links.channels",
    "links.bits",
    "finder._others",
    "reconciling.",
    "channel to ",
)
"""Books that grow with the network, when a broker joins it."""


def end(world: World) -> None:
    """Let a world come to rest, and judge it."""
    _heal(world)
    _settle_clients(world)
    _call_around(world)
    _compare_retained(world, "after the faults")
    _probe(world)
    world.oracle.judge()
    _compare_retained(world, "in the end")
    _leave(world)
    for process in world.processes:
        world.count_resets(process)


def _heal(world: World) -> None:
    for stranger in world.strangers:
        stranger.leave()
    for link in world.links:
        link.mend()
    for process in world.processes:
        process.disk.is_full = False
    world.heal()
    world.run_until(world.now + LINKS_S)
    for process in world.processes:
        if process.broker is None:
            raise FailedCheckError("down", f"{process.name} is not back")
    for link in world.links:
        if not link.is_up:
            raise FailedCheckError("down", f"the link {link.caller.name}-{link.called.name} is not up")


def _settle_clients(world: World) -> None:
    """Let every client be somewhere, and stay."""
    for walker in world.present:
        walker.ack_s = 0.0
        if walker.goal < 0:
            broker = walker.draw.randrange(world.script.brokers)
            walker.go(Step(world.now, "go", walker.number, broker, 0.0, ("vanish",)))
    until_s = world.now + SERVED_S
    while world.now < until_s and not all(walker.is_served for walker in world.present):
        world.run_until(world.now + 1.0)
    for walker in world.present:
        if not walker.is_served:
            raise FailedCheckError(
                "unserved", f"{walker.persona.name} is not served after {walker.tries} tries"
            )
    # Who waits for what a broker has forgotten is told so by nobody, and gives up in time.
    world.run_until(world.now + DRAIN_S + (GIVE_UP_S if world.log.forgotten else 0.0))
    _let_events_follow(world)


def _let_events_follow(world: World) -> None:
    """Wait until no broker owes a client, or another broker, anything; then let the last of it arrive."""
    until_s = world.now + GIVEN_S
    if not any(_owes_or_waits(process) for process in world.processes):
        return
    while world.now < until_s and any(_owes_or_waits(process) for process in world.processes):
        world.run_until(world.now + 1.0)
    world.run_until(world.now + DRAIN_S)


def _owes_or_waits(process: Process) -> bool:
    """Whether a broker stores something, or waits for it; or has sent a client what it has not answered.

    A client that takes one event at a time answers each before it is sent the next, and has many to read.
    """
    assert process.broker is not None, "all are back"
    sessions = process.broker.core.state.sessions.values()
    if any(one.queue or one.inflight for one in sessions if one.connection is not None):
        return True
    if process.broker.network is None:
        return False
    subscribers = process.broker.network.clients.broker.subscribers
    older = (stay for stays in subscribers.older.values() for stay in stays)
    stays = (one for one in (*subscribers.main.values(), *older) if one.is_stay())
    return subscribers.is_giving or any(stay.waits or stay.successor is not None for stay in stays)


def _call_around(world: World) -> None:
    """Let every client go to other brokers, one after the other, and see that it is served there soon.

    Nothing is in its way any more, but clocks may still differ by as much as they like. At each broker it
    asks for something new, and as soon as that is granted somebody else publishes it.
    """
    for call in range(CALLS):
        for walker in world.present:
            there = (walker.client.broker + 1) % world.script.brokers
            how = walker.draw.choice(("vanish", "leave", "stay"))
            walker.go(Step(world.now, "go", walker.number, there, 0.0, (how,)))
        until_s = world.now + CALL_S
        while world.now < until_s and not all(walker.is_served for walker in world.present):
            world.run_until(world.now + 0.1)
        for walker in world.present:
            if not walker.is_served:
                text = f"{walker.persona.name} went to B{walker.goal} of a calm network and is not served"
                raise FailedCheckError("unserved", f"{world.now:.3f} s: {text} after {CALL_S:g} s")
        for walker, friend in zip(world.present, [*world.present[1:], *world.present[:1]], strict=True):
            detail = (f"{answers_to(walker.number)}/calm/{call}", "", 1, 0, friend.number)
            walker.subscribe(Step(world.now, "subscribe", walker.number, detail=detail))
        world.run_until(world.now + ASKING_S)
    _let_events_follow(world)


def _probe(world: World) -> None:
    """Let all clients publish something on every topic, each topic at once, and see that it arrives."""
    for turn, topic in enumerate((*TOPICS, *RETAINED_TOPICS)):
        for place, walker in enumerate(world.present):
            qos = 1 + (place + turn) % 2
            detail = (topic, (place + turn) % VALUES, qos, topic in RETAINED_TOPICS)
            walker.publish(Step(world.now, "publish", walker.number, detail=detail))
        world.run_until(world.now + 0.01)
    world.run_until(world.now + DRAIN_S)
    _let_events_follow(world)
    for walker in world.present:
        if walker.client.unanswered:
            left = [one.event.name for one in walker.client.unanswered.values()]
            raise FailedCheckError(
                "unanswered", f"{walker.persona.name} still waits for answers to {left[:5]}"
            )
        if walker.abandoned:
            raise FailedCheckError(
                "taken over", f"a connection that {walker.persona.name} left open is still open"
            )


def _compare_retained(world: World, when: str) -> None:
    """See that a fresh subscriber is given the same retained events at every broker."""
    readers = []
    for number in range(world.script.brokers):
        reader = Walker(world, len(world.walkers) + number, _reader(f"reader{number} {when}"))
        reader.go(Step(world.now, "go", reader.number, number, 0.0, ("vanish",)))
        reader.subscribe(Step(world.now, "subscribe", reader.number, detail=("#", "", 1, 0, -1)))
        readers.append(reader)
    world.run_until(world.now + LEAVING_S)
    found = [dict(sorted(reader.diary.retained.items())) for reader in readers]
    for number, values in enumerate(found):
        if values != found[0]:
            text = f"{when} B0 retains {found[0]} and B{number} retains {values}"
            raise FailedCheckError("retained", f"{world.now:.3f} s: {text}")
    for diary in world.oracle.diaries:
        diary.judge_retained(found[0])
    for reader in readers:
        reader.leave_for_good()


def _reader(name: str) -> Persona:
    return Persona(
        name=name,
        expiry_s=0,
        says_previous=False,
        says_marks=False,
        numbers_own=False,
        receive_max=65_535,
        aliases_max=0,
        keep_alive_s=30,
        ack_s=0.0,
        tries_elsewhere=False,
        will_delay_s=None,
        will_retain=False,
        advertises=False,
    )


def _leave(world: World) -> None:
    """Let all clients go for good, and see that everything is forgotten when its time is over."""
    world.reports = False
    for walker in world.present:
        walker.leave_for_good()
    world.run_until(world.now + LEAVING_S)
    world.is_quiet = True
    ahead_s = max(process.offset_s for process in world.processes)
    behind_s = min(process.offset_s for process in world.processes)
    world.run_until(world.now + memory_s(TIMEOUT_S) + ahead_s - behind_s + FORGETTING_S)
    for process in world.processes:
        assert process.broker is not None
        if not process.books:
            continue  # it joined when clients had come
        grown = GROWN if world.script.joins_s is not None else ()
        left = [one for one in surplus(process.books, books(process.broker)) if not one.startswith(grown)]
        if left:
            raise FailedCheckError("books", f"{process.name} has not forgotten: {', '.join(left)}")
