"""One world: brokers, links, clients and a clock, driven by a script from its first step to its end.

The loop takes what is due from the clock's heap. Everything that any broker or client writes enters one
digest, so that two runs of one script can be compared to the byte.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from sojourn.broker import facts
from sojourn.broker.settings import AtOnce, MobilityConfig, RoutingConfig, Settings
from sojourn.mqtt.limits import Limits
from sojourn.sim.clock import Clock
from sojourn.sim.live_check.books import books
from sojourn.sim.live_check.log import Log
from sojourn.sim.live_check.oracle import Oracle
from sojourn.sim.live_check.process import Doom, Process
from sojourn.sim.live_check.script import CLIENT_STEPS, FIRST_CLIENT_S, HOSTILE, STRANGERS, Script
from sojourn.sim.live_check.steps import LOSES_ALL, Step
from sojourn.sim.live_check.strangers import Stranger
from sojourn.sim.live_check.trespassers import TRESPASS, trespass
from sojourn.sim.live_check.walkers import Walker
from sojourn.sim.live_check.wires import Link

TIMEOUT_S = 120.0
"""How long events are stored for a client that is away."""
NARROW = Limits(
    packet_bytes_max=8_192,
    input_bytes_max_all=30_000,
    input_bytes_address_max=25_000,
    packet_timeout_s=5,
    subscriptions_max=80,
    filters_max=20,
    client_id_bytes_max=200,
    connect_timeout_s=5,
    will_bytes_address_max=5_000,
    retained_messages_address_max=20,
)
"""Limits that strangers run into soon, and nobody honest."""
GIVE_UP_S = 90.0
"""How long sessions and events are waited for that a broker out of reach may have, or has forgotten."""
GRACE_S = 0.05
"""For how long clients are away before copies store, in every other world; in the rest they store at once."""

LITTLE = AtOnce(given=2, withdrawn=1, picked_again=1, read=16)
"""Parts so small that much is done in several turns, in two of three worlds; in the rest as live."""


class World:
    """Everything that there is."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.clock = Clock()
        self.counts: Counter[str] = Counter()
        self.digest = hashlib.blake2b(digest_size=16)
        self.is_eventful = True
        """Whether steps are still to come."""
        self.is_quiet = False
        """Whether clients are gone for good, too."""
        self.reports = script.reports
        """Whether brokers tell each other how they are."""
        self.log = Log(self)
        self.oracle = Oracle(self)
        self.processes = [self.make_process(number) for number in range(script.brokers)]
        self.links = [
            self.make_link(number, self.processes[one], self.processes[other])
            for number, (one, other) in enumerate(script.links)
        ]
        self.walkers = [Walker(self, number, persona) for number, persona in enumerate(script.personas)]
        self.strangers = [Stranger(self, number) for number in range(STRANGERS if script.spec.hostile else 0)]
        acting = {step.who for step in script.steps if step.what in CLIENT_STEPS}
        self.present = [walker for walker in self.walkers if walker.number in acting]
        """Those that come at all."""

    def make_process(self, number: int) -> Process:
        """Return the process of a broker."""
        return Process(self, number, self._settings(number), power_safe=self.script.power_safe[number])

    def make_link(self, number: int, one: Process, other: Process) -> Link:
        """Return the link of two brokers."""
        return Link(self, number, one, other)

    def begin(self) -> None:
        """Let all brokers begin, but for one that joins later."""
        joins_s = self.script.joins_s
        for process in self.processes if joins_s is None else self.processes[:-1]:
            process.start()
        if joins_s is not None:
            self.clock.plan(joins_s, self.processes[-1].start)

    def introduce(self, end: Process, far: Process) -> None:
        """Let a broker know of one that joins and calls it, as its operator would have."""
        if self.script.joins_s is None or far is not self.processes[-1]:
            return
        network = end.broker.network if end.broker is not None else None
        if network is not None and far.name not in network.links.channels:
            self.counts["brokers joined"] += 1
            end.tell(facts.RollTold(far.settings.joined))

    def heal(self) -> None:
        """Let what stands between machines end; here there is nothing."""

    def waiting_since(self) -> list[float]:
        """Return since when turns wait for copies; here none does."""
        return []

    def _settings(self, number: int) -> Settings:
        script = self.script
        names = tuple(f"B{number}" for number in range(script.brokers))
        links = tuple((names[one], names[other]) for one, other in script.links)
        joined: tuple[tuple[str, ...], ...] = ()
        if script.joins_s is not None and number == script.brokers - 1:
            joined = ((names[-1], links[-1][0]),)
        elif script.joins_s is not None:
            names, links = names[:-1], links[:-1]
        return Settings(
            name=names[number],
            brokers=names,
            links=links,
            joined=joined,
            mobility=MobilityConfig(
                subscribers=script.scheme,  # type: ignore[arg-type]  # drawn from the names there are
                timeout_s=TIMEOUT_S,
                give_up_s=GIVE_UP_S,
                grace_s=GRACE_S if script.spec.seed % 2 else 0.0,
                publishers=script.publishers,
            ),
            routing=RoutingConfig(mode=script.routing),  # type: ignore[arg-type]  # one of the modes
            limits=NARROW if script.spec.hostile else Limits(output_bytes_max=script.output_bytes),
            at_once=LITTLE if script.spec.seed % 3 else AtOnce(),
        )

    @property
    def now(self) -> float:
        """Return the seconds since the world began."""
        return self.clock.now

    def saw(self, who: str, to: int | str, data: bytes) -> None:
        """Enter what somebody wrote into the digest."""
        self.digest.update(f"{who}>{to}:{self.clock.now!r}:".encode())
        self.digest.update(data)

    def count_resets(self, process: Process) -> None:
        """Count how often a broker that ends began anew with its neighbours in this life."""
        network = process.broker.network if process.broker is not None else None
        if network is not None:
            self.counts["links reset"] += sum(network.reconciling.resets.values())

    # Running -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Live through the script."""
        self.begin()
        for step in self.script.steps:
            self.clock.plan(step.time_s, self._do, step)
        self.run_until(FIRST_CLIENT_S)
        for process in self.processes:
            if process.broker is not None:
                process.books = books(process.broker)
        self.run_until(self.script.spec.seconds)
        self.is_eventful = False

    def run_until(self, until_s: float) -> None:
        """Let everything happen that happens before a time."""
        self.clock.run_through(until_s)

    def _do(self, thing: object) -> None:
        assert isinstance(thing, Step)
        step = thing
        match step.what:
            case what if what in CLIENT_STEPS:
                getattr(self.walkers[step.who], step.what)(step)
            case what if what == HOSTILE:
                self.strangers[step.who].act(step)
            case what if what == TRESPASS:
                trespass(self, step)
            case "cut client" | "stall client":
                getattr(self.walkers[step.who], step.what.split()[0])(step)
            case "break link":
                self.links[step.who].break_(step.seconds)
            case "part link":
                self.links[step.who].part(step.seconds, min(step.seconds, 3.0))
            case "stall link":
                self.links[step.who].stall(step.seconds, *step.detail)
            case "kill" | "power loss" | "lose store":
                point, effect, *more = step.detail
                doom = Doom(step.what, point, effect, step.seconds, loses_all=LOSES_ALL in more)
                self.processes[step.who].doom(doom)
            case "set clock":
                process = self.processes[step.who]
                process.next_offset_s = process.offset_s + step.detail[0]
            case "snapshot":
                self.processes[step.who].wants_snapshot = True
            case "fill disk" | "slow disk":
                self._burden_disk(step)
            case _:
                raise AssertionError(f"nobody knows how to {step.what}")

    def _burden_disk(self, step: Step) -> None:
        disk = self.processes[step.who].disk
        if step.what == "slow disk":
            disk.slow_until_s = self.now + step.seconds
            return
        disk.is_full = True
        self.log.disk_filled(step.seconds)
        self.clock.plan(self.now + step.seconds, lambda _: setattr(disk, "is_full", False))
