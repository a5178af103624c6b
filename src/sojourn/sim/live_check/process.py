"""A broker's process: it drives one `LiveBroker` as the real one does, and can die between any two effects.

The beats are those of `live/brokers/node.py`: facts as they come, knocks answered, once a loop turn the
entries committed and then everything else carried out. A death is planned ahead (`doom`) and strikes in the
next turn that has anything to do, or after a while if there is none.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from sojourn.broker import facts
from sojourn.broker.channel import Channel
from sojourn.broker.effects import Turn
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.meetings import FORGOTTEN
from sojourn.broker.settings import Settings
from sojourn.mqtt.payload import Data
from sojourn.sim.live_check.comparing import differences
from sojourn.sim.live_check.disk import Disk, Keeper, NoRoomError
from sojourn.sim.live_check.oracle import FailedCheckError

if TYPE_CHECKING:
    from sojourn.sim.live_check.wires import ClientWire, Link
    from sojourn.sim.live_check.world import World

ADDRESSES = 3
"""Whence clients come; each has a share of what a broker stores."""
START_S = 1_700_000_000.0
"""The date at which worlds begin."""
IDLE_S = 1.0
"""How long a process that is to die in the middle of something waits for it."""
TICK_S_MAX = 60.0
REPORT_S = 1.0
SYNC_S = 2.0
"""How often what was written is synced, about."""
NO_ROOM_S = 1.0
"""After how long a process is started again that ended because its disk was full."""
LATER_S = 10.0
"""How long after its last fact a broker is thought to come back: by then numbers are dates again."""


Effects = list[tuple[Callable[[Any], None], Any]]
"""What is to be done, and with what."""


class Doom(NamedTuple):
    """How a process is to die."""

    how: str
    """`kill`, `power loss`, `lose store`, `full disk`; `wipe` where copies are kept."""
    point: str
    effect: int
    """After how many effects, modulo as many as there are."""
    down_s: float
    loses_all: bool = False
    """Whether a loss of power costs all that was not synced."""


class Process:
    """One broker, its disk and its clock."""

    def __init__(self, world: World, number: int, settings: Settings, *, power_safe: bool) -> None:
        self.world, self.number, self.name, self.settings = world, number, settings.name, settings
        self.power_safe = power_safe
        self.disk = Disk()
        self.keeper = Keeper(self.disk, power_safe=power_safe)
        self.broker: LiveBroker | None = None
        self.offset_s = world.script.offsets_s[number]
        """How far its clock is ahead."""
        self.next_offset_s: float | None = None
        """How far it will be from the next start on."""
        self.wants_snapshot = False
        """Whether the next turn is to be followed by a snapshot."""
        self.lives = 0
        self.books: dict[str, int] = {}
        """What its books hold before the first client."""
        self.wires: dict[int, ClientWire] = {}
        self.links: dict[str, Link] = {}
        self._draw = random.Random(f"{world.script.spec.seed}/process/{number}")
        self._turn_s = world.script.spec.pace.turn_s
        self._opened = 0
        self._sent: dict[str, tuple[str, int]] | None = None
        """By neighbour: the stream and number of the last frame when it was killed, all facts being safe."""
        self._doom: Doom | None = None
        self._flushing = False
        self._timer_s = 0.0

    def now(self) -> float:
        """Return the time as this process sees it."""
        return START_S + self.world.now + self.offset_s

    # Life ----------------------------------------------------------------------------------------------

    def start(self, _thing: object = None) -> None:
        """Begin a life with what the disk holds."""
        if self.broker is not None:
            return
        self.lives += 1
        if self.next_offset_s is not None:
            self.world.log.jumped(self, self.next_offset_s - self.offset_s)
            self.offset_s, self.next_offset_s = self.next_offset_s, None
        self.keeper = Keeper(self.disk, power_safe=self.power_safe)
        life = self._life()
        snapshot, entries = self.disk.read()
        self.broker = LiveBroker.revived(self.settings, life, self.now(), snapshot, entries)
        if self.broker.refused_again:
            raise self._failed(
                "replay", f"refused {self.broker.refused_again} facts that it had noted itself"
            )
        self._compare_frames()
        self.offset_s += max(0.0, self.broker.now_s - self.now())
        self._flushing = False
        self._schedule()
        plan = self.world.clock.plan
        if self.world.reports:
            plan(self.world.now + REPORT_S, self._report, self.lives)
        plan(self.world.now + SYNC_S * self._draw.random(), self._sync, self.lives)
        for link in self.links.values():
            link.retry()

    def _life(self) -> str:
        return f"{self.name}-{self.lives}"

    def _forget_doom(self) -> None:
        self._doom = None

    def _compare_frames(self) -> None:
        """See that a broker which was killed has queued the same frames again when it was told the same."""
        assert self.broker is not None
        sent, self._sent = self._sent, None
        if sent is None:
            return
        for peer, channel in _channels(self.broker):
            before, after = sent[peer], (channel.stream, channel.births[-1][1])
            if before != after:
                text = f"had queued frame {before} for {peer} and comes back with {after}"
                raise self._failed("replay", text)

    def _failed(self, kind: str, text: str) -> FailedCheckError:
        """Return the failure of this broker: none may raise, refuse or skip what other brokers send."""
        return FailedCheckError(kind, f"{self.world.now:.3f} s: {self.name} {text}")

    def doom(self, doom: Doom) -> None:
        """Let the process die at a point of its next turn, or soon."""
        if self.broker is None or self._doom is not None:
            return
        if doom.point == "idle":
            self._die(doom)
        else:
            self._doom = doom
            self.world.clock.plan(self.world.now + IDLE_S, self._die_idle, self.lives)

    def _die_idle(self, life: object) -> None:
        if self._doom is not None and self.lives == life:
            self._die(self._doom)

    def _die(self, doom: Doom) -> None:
        assert self.broker is not None, "only who lives dies"
        world = self.world
        world.count_resets(self)
        if doom.how == "kill" and doom.point != "before commit" and not self._flushing:
            self._sent = {peer: (one.stream, one.last) for peer, one in _channels(self.broker)}
        self.broker = None
        self._doom = None
        world.counts[f"{doom.how}, {doom.point}"] += 1
        if doom.how == "power loss":
            lost = self.disk.lose_power(self._draw, loses_all=doom.loses_all)
            world.log.forgot(self, self.disk.synced_s if lost else None)
        elif doom.how == "lose store":
            self.disk.erase()
            world.log.forgot(self, 0.0)
        world.log.died(self)
        for wire in list(self.wires.values()):
            wire.broker_died()
        self.wires.clear()
        for link in self.links.values():
            link.end_died(self)
        world.clock.plan(world.now + doom.down_s, self.start)

    # Facts ---------------------------------------------------------------------------------------------

    def tell(self, fact: facts.Fact) -> None:
        """Tell the broker what happened, answer its questions, and have the rest done soon."""
        broker = self.broker
        if broker is None:
            return
        now = self.now()
        broker.handle(fact, now)
        while broker.knocks:
            broker.handle(facts.ClientAdmitted(broker.knocks.pop(0).number), now)
        self._schedule()

    def accept(self, wire: ClientWire, address: str = "") -> int:
        """Take a new connection, and number it; those who do not say whence come from one of a few places."""
        self._opened += 1
        number = self._opened
        self.wires[number] = wire
        address = address or f"here{number % ADDRESSES}"  # so a client comes back from another one
        self.tell(facts.ClientOpened(number, address, f"fresh-{self.name}-{self.lives}-{number}"))
        return number

    def lost(self, number: int) -> None:
        """Note that a connection is gone."""
        if self.wires.pop(number, None) is not None:
            self.tell(facts.ClientLost(number))

    # Effects -------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._flushing:
            self._flushing = True
            within_s = self._turn_s * self._draw.random()
            self.world.clock.plan(self.world.now + within_s, self._flush, self.lives)

    def _flush(self, life: object) -> None:
        broker = self.broker
        if broker is None or life != self.lives:
            return
        self._flushing = False
        while broker.knocks:
            broker.handle(facts.ClientAdmitted(broker.knocks.pop(0).number), self.now())
        turn = broker.turn(self.now())
        effects = self._effects(turn)
        doom = self._doom if effects or turn.entries else None
        if doom is not None and doom.point == "before commit":
            self._die(doom)
            return
        try:
            self._commit(broker, turn)
        except NoRoomError:
            self._die(Doom("full disk", "before commit", 0, NO_ROOM_S))
            return
        if doom is not None and doom.point == "after commit":
            self._die(doom)
            return
        if not self._leave(effects, doom):
            return
        if broker.has_work:
            self._schedule()
        self._set_timer()

    def _leave(self, effects: Effects, doom: Doom | None) -> bool:
        """Do what a turn leads to, one by one; return whether the process lives on."""
        fatal = doom.effect % len(effects) if doom is not None and effects else -1
        for place, (do, what) in enumerate(effects):
            do(what)
            if place == fatal and doom is not None:
                self._die(doom)
                return False
        return True

    def _commit(self, broker: LiveBroker, turn: Turn) -> None:
        fact = self.keeper.commit(broker, turn.entries, self.world.now)
        # Who waits to be let in is in no snapshot.
        if self.wants_snapshot and self.keeper.look_again_s is None and not broker.knocks:
            self.wants_snapshot = False
            self.world.counts["snapshots"] += 1
            self._compare_replay(broker)
            self.keeper.keep(broker, self.world.now)
        if fact is not None:
            self.world.counts["disk full"] += 1
            self.tell(fact)

    def _compare_replay(self, broker: LiveBroker) -> None:
        """See that what the disk holds leads to what a broker knows, before a snapshot takes its place."""
        life, now_s = f"{self.name}-{self.lives}+", broker.now_s + LATER_S
        told = LiveBroker.revived(self.settings, life, now_s, *self.disk.read())
        kept = LiveBroker.revived(self.settings, life, now_s, broker.snapshot(), [])
        names = differences(told, kept)
        if names:
            raise self._failed("replay", f"would come back from its disk with other {', '.join(names)}")

    def _effects(self, turn: Turn) -> Effects:
        """Return what is to be done, one by one in order."""
        effects: Effects = []
        for do, things in (
            (self._write, turn.writes),
            (self._close, turn.closes),
            (self._write_peer, turn.peer_writes),
            (self._close_peer, turn.peer_closes),
            (self._hold, turn.holds),
            (self._release, turn.releases),
        ):
            if things:
                effects += [(do, what) for what in things]
        for note in turn.notes:
            if note.kind == "handed_off":
                self.world.counts["hand-offs"] += 1
            elif note.kind == "skipped":
                peer, why = note.what
                raise self._failed("skipped", f"skipped a frame of {peer}: {why}")
        return effects

    def _write(self, what: tuple[int, Data]) -> None:
        number, data = what[0], bytes(what[1])
        self.world.saw(self.name, number, data)
        wire = self.wires.get(number)
        if wire is not None:
            wire.down.write(data)

    def _close(self, number: int) -> None:
        wire = self.wires.get(number)
        if wire is not None:
            wire.broker_closed()

    def _write_peer(self, what: tuple[str, bytes]) -> None:
        peer, data = what
        self.world.saw(self.name, peer, data)
        self.links[peer].write(self, data)

    def _close_peer(self, what: tuple[str, str]) -> None:
        peer, why = what
        if FORGOTTEN not in why:
            raise self._failed("refused", f"closed its link to {peer}: {why}")
        self.world.counts["links closed by a broker"] += 1
        self.links[peer].close(self)

    def _hold(self, number: int) -> None:
        wire = self.wires.get(number)
        if wire is not None:
            wire.hold()

    def _release(self, number: int) -> None:
        wire = self.wires.get(number)
        if wire is not None:
            wire.release()

    # Time ----------------------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        assert self.broker is not None
        moment_s = self.broker.next_moment()
        if self.keeper.look_again_s is not None:
            moment_s = min(moment_s or self.keeper.look_again_s, self.keeper.look_again_s)
        if moment_s is None:
            return
        world_now = self.world.now
        at_s = max(moment_s - START_S - self.offset_s, world_now + 1e-3)
        at_s = min(at_s, world_now + TICK_S_MAX)
        if world_now < self._timer_s <= at_s:
            return
        self._timer_s = at_s
        self.world.clock.plan(at_s, self._tick, at_s)

    def _tick(self, at_s: object) -> None:
        if at_s != self._timer_s or self.broker is None:
            return
        self._timer_s = 0.0
        fact = self.keeper.look_for_room(self.broker)
        if fact is not None:
            self.tell(fact)
        self.tell(facts.TimePassed())

    def _report(self, life: object) -> None:
        if self.broker is not None and life == self.lives and self.world.reports:
            self.tell(facts.StatusMade(b'{"name":"%s"}' % self.name.encode()))
            self.world.clock.plan(self.world.now + REPORT_S, self._report, life)

    def _sync(self, life: object) -> None:
        if self.broker is not None and life == self.lives:
            every_s = SYNC_S if self.world.is_eventful else TICK_S_MAX
            if self.world.now < self.disk.slow_until_s:
                every_s = self.disk.slow_until_s - self.world.now
            else:
                self.disk.sync(self.world.now)
            self.world.clock.plan(self.world.now + every_s, self._sync, life)


def _channels(broker: LiveBroker) -> list[tuple[str, Channel]]:
    return list(broker.network.links.channels.items()) if broker.network is not None else []
