"""A world of processes that keep copies of one another's brokers and in which everything breaks, from a seed.

A broker is a list of lines here: who plays one notes lines, and what may leave is a promise. Connections have
latency and lose what is under way when they break; processes are killed, lose their disks, stall, and cannot
see each other. After every step the oracle compares promises with what is held:

- whoever plays a broker, or promises anything for it, holds all that was ever promised for it, in order;
- so no two processes ever promise for the same broker unless one took over from the other;
- when nothing breaks any more, every broker is at home again and goes on promising.
"""

from __future__ import annotations

import heapq
import random
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sojourn.broker.seats import effects as do
from sojourn.broker.seats.council import TICK_S, Council
from sojourn.broker.seats.desk import Terms
from sojourn.broker.seats.messages import ROLL, Begin, Line, MessageReader, Part, Seat, write_message
from sojourn.broker.seats.register import Register, enough_to_enrol, majority

LATENCY_S = (0.001, 0.02)
GONE_S = 2.0


class WorldError(AssertionError):
    """The protocol broke a promise."""


@dataclass
class Log:
    """A journal: lines before the first batch as a snapshot, and the batches."""

    first: int = 1
    snapshot: list[bytes] = field(default_factory=list)
    batches: list[bytes] = field(default_factory=list)
    is_rotten: bool = False
    """Whether something in it cannot be read any more; who only appends does not notice."""

    @property
    def next(self) -> int:
        """Return the number of the batch that comes next."""
        return self.first + len(self.batches)

    @property
    def lines(self) -> list[bytes]:
        """Return all lines that were ever noted."""
        return [*self.snapshot, *self.batches]

    def holds(self, promised: list[bytes]) -> bool:
        """Whether all that was promised is there; lines are appended, so the last one tells of the others."""
        place = len(promised) - 1
        if place < 0:
            return True
        if place < len(self.snapshot):
            return self.snapshot[place] == promised[place]
        place -= len(self.snapshot)
        return place < len(self.batches) and self.batches[place] == promised[-1]

    def check(self, number: int) -> int | None:
        """Return a checksum of what is before a batch."""
        if number < self.first or number > self.next:
            return None
        if number == self.first:
            return zlib.crc32(b"\n".join(self.snapshot))
        return zlib.crc32(self.batches[number - self.first - 1])


class Disk:
    """What survives the death of a process."""

    def __init__(self) -> None:
        self.register: bytes | None = None
        self.logs: dict[str, Log] = {}
        self.hurt: set[str] = set()
        """Brokers of which something was lost, until a copy has taken its place."""
        self.aside: dict[str, Log] = {}
        """What could not be read, until a copy has taken its place."""


class Process:
    """One process and its disk."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.disk = Disk()
        self.council: Council | None = None
        self.life = 0
        self.incoming_logs: dict[str, tuple[Log, bytearray, int]] = {}
        self.cursors: dict[tuple[str, str], tuple[int, int]] = {}
        """By broker and process that is told its lines: the session, and the next batch to tell."""
        self.playing: dict[str, int] = {}
        """By broker that is played: the batch up to which promises were looked at."""
        self.stalled_until_s = 0.0
        self.file = world.names, world.links
        """The brokers and links of its configuration."""
        self.invites: dict[str, tuple[str, ...]] = {}
        self.is_gone = False
        """Whether nobody starts it any more."""

    # Logs, as the council sees them --------------------------------------------------------------------

    def next(self, name: str) -> int:
        """Return the number of the batch that comes next."""
        log = self.disk.logs.get(name)
        return log.next if log is not None else 0

    def incoming(self, name: str) -> int:
        """Return the same of a copy that was begun."""
        return self.incoming_logs[name][0].next if name in self.incoming_logs else 0

    def first(self, name: str) -> int:
        """Return the first batch after the snapshot."""
        log = self.disk.logs.get(name)
        return log.first if log is not None else 0

    def check(self, name: str, number: int) -> int | None:
        """Return a checksum of what is before a batch."""
        log = self.disk.logs.get(name)
        return log.check(number) if log is not None else None

    def is_trusted(self, name: str) -> bool:
        """Whether nothing can be missing at the end of a journal."""
        return name not in self.disk.hurt

    @property
    def register(self) -> Register | None:
        """What it has not forgotten."""
        if self.council is not None:
            return self.council.register
        return None if self.disk.register is None else Register.read(self.disk.register)

    # Life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a life with what the disk holds."""
        if self.council is not None or self.is_gone:
            return
        self.life += 1
        world = self.world
        if self.disk.register is None:
            self.disk.logs.setdefault(self.name, Log())
            register = Register()
        else:
            register = Register.read(self.disk.register)
        terms = Terms(self.name, *self.file, world.copies, GONE_S, GONE_S, f"{self.name}/{self.life}")
        self.council = Council(terms, register, self, world.now)
        self.council.invite(self.invites)
        self.council.parted(world.left)
        self.run()
        world.plan(TICK_S * world.draw.random(), self._tick, self.life)

    def die(self, *, wipes: bool) -> None:
        """End it, with the disk if that is wanted."""
        self.council = None
        self.incoming_logs.clear()
        self.cursors.clear()
        self.playing.clear()
        if wipes:
            self.disk = Disk()
        for other in self.world.names:
            self.world.break_(self.name, other)

    def lose(self, how: str) -> None:
        """Lose the journal of its own broker, or its last lines, but not what it voted for."""
        log = self.disk.logs[self.name]
        self.disk.hurt.add(self.name)
        if how == "lose store":
            del self.disk.logs[self.name]
        else:
            del log.batches[-self.world.draw.randrange(1, 9) :]

    def _tick(self, life: object) -> None:
        if self.council is None or life != self.life:
            return
        if self.world.now < self.stalled_until_s:
            self.world.plan(self.stalled_until_s - self.world.now, self._tick, life)
            return
        self.council.tick(self.world.now)
        self.run()
        self.world.plan(TICK_S, self._tick, life)

    # Effects -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Do what the council wants; a process may die between any two effects."""
        council, world = self.council, self.world
        if council is None:
            return
        for effect in council.take_effects():
            self._do(effect)
            if world.draw.random() < world.death_share:
                world.counts["died between effects"] += 1
                self.die(wipes=False)
                world.plan(world.draw.uniform(0.1, 3.0), lambda _: self.start())
                return
        for name in list(self.playing):
            self._promise(council, name)

    def _do(self, effect: do.Effect) -> None:  # noqa: C901, PLR0912 - one case each
        world = self.world
        match effect:
            case do.Save(register):
                self.disk.register = register
            case do.Send(peer, message):
                world.send(self.name, peer, write_message(message))
            case do.Close(peer, _):
                world.break_(self.name, peer)
            case do.Ship(name, peer, session, number):
                self._ship(name, peer, session, number)
            case do.Unship(name, peer):
                self.cursors.pop((name, peer), None)
            case do.Take(name, first, size):
                self.incoming_logs[name] = Log(first), bytearray(), size
            case do.TakePart(name, data):
                log, got, size = self.incoming_logs[name]
                got += data
                if len(got) == size:
                    log.snapshot = bytes(got).split(b"\n")
            case do.Append(name, number, batch):
                log = self.incoming_logs[name][0] if name in self.incoming_logs else self.disk.logs[name]
                assert log.next == number, "lines are appended in order"
                log.batches.append(batch)
            case do.Install(name):
                self.disk.logs[name] = self.incoming_logs.pop(name)[0]
                self.disk.hurt.discard(name)
                self.disk.aside.pop(name, None)
            case do.Drop(name):
                self.incoming_logs.pop(name, None)
            case do.Forget(name):
                self.disk.aside[name] = self.disk.logs.pop(name)
            case do.Serve(name, _):
                self._serve(name)
            case do.Stop(name, _):
                self.playing.pop(name, None)
            case do.Seated(seat):
                world.decided(seat)
                world.counts["terms"] += 1
            case do.Regrouped(roll):
                world.regrouped(self, roll)

    def _serve(self, name: str) -> None:
        world = self.world
        log = self.disk.logs[name]
        if self._finds_rot(name):
            return
        promised = world.promised[name]
        if log.lines[: len(promised)] != promised:
            raise WorldError(
                f"{world.now:.3f} s: {self.name} begins to play {name} without what was promised"
            )
        self.playing[name] = log.next
        world.counts["served at home" if name == self.name else "served as a guest"] += 1
        self.note(name)

    def note(self, name: str) -> None:
        """Let a broker note a line."""
        if self.council is None or name not in self.playing:
            return
        log = self.disk.logs[name]
        self.world.lines += 1
        log.batches.append(b"%s/%d" % (name.encode(), self.world.lines))
        self._pump(name)
        if self.world.draw.random() < 0.05:
            log.snapshot, log.first, log.batches = log.lines, log.next, []
        self.council.logged(name)
        self._promise(self.council, name)

    def _promise(self, council: Council, name: str) -> None:
        log, promised = self.disk.logs[name], self.world.promised[name]
        free = len(log.snapshot) + council.released(name) - log.first
        if free > len(promised):
            if not log.holds(promised):
                raise WorldError(f"{self.world.now:.3f} s: {self.name} promises for {name} and lacks some")
            promised += log.lines[len(promised) : free]
            self.world.compare(name)

    def _finds_rot(self, name: str) -> bool:
        """Read a journal; say whether it cannot be read, and note that."""
        if not self.disk.logs[name].is_rotten:
            return False
        assert self.council is not None, "it runs"
        self.world.counts["found rot"] += 1
        self.council.cannot_play(name)
        return True

    def _ship(self, name: str, peer: str, session: int, number: int) -> None:
        log = self.disk.logs[name]
        if self._finds_rot(name):
            return
        if not number:
            data = b"\n".join(log.snapshot)
            number = log.first
            size = len(data)
            self.world.send(self.name, peer, write_message(Begin(name, session, number, size)))
            if data:
                half = self.world.draw.randrange(len(data))
                for part in (data[:half], data[half:]):
                    if part:
                        self.world.send(self.name, peer, write_message(Part(name, session, part)))
        self.cursors[name, peer] = session, number
        self._pump(name)

    def _pump(self, name: str) -> None:
        log = self.disk.logs[name]
        for (one, peer), (session, number) in list(self.cursors.items()):
            if one != name:
                continue
            for place in range(max(number, log.first), log.next):
                batch = log.batches[place - log.first]
                self.world.send(self.name, peer, write_message(Line(name, session, place, batch)))
            self.cursors[one, peer] = session, log.next


class World:
    """All processes, their connections and a clock."""

    def __init__(
        self,
        seed: int,
        *,
        brokers: int = 5,
        copies: int = 1,
        death_share: float = 0.0,
        losses: bool = False,
        rots: bool = False,
        votes_go: bool = False,
        changes_s: float = 0.0,
    ) -> None:
        self._votes_go = votes_go
        """Whether disks are lost one after the other, however few remember their votes then."""
        self._changes_s = changes_s
        """How often somebody joins or leaves, about; never with 0."""
        self.left: set[str] = set()
        """Brokers that have left, whether or not all know it."""
        self._is_leaving: set[str] = set()
        self._losses = ("lose store", "lose end") if losses else ()
        """What happens besides to the journal of a process that remembers its votes."""
        self._rots = ("rot",) * 4 if rots else ()
        """Whether copies rot that others do not need."""
        self.draw = random.Random(f"seats/{seed}")
        self.names = self._first_names = tuple(f"B{k}" for k in range(brokers))
        self.links = tuple((self.names[self.draw.randrange(k)], self.names[k]) for k in range(1, brokers))
        self.copies, self.death_share = copies, death_share
        self.now = 0.0
        self.lines = 0
        self.counts: Counter[str] = Counter()
        self.promised: dict[str, list[bytes]] = {name: [] for name in self.names}
        self.seats: dict[tuple[str, int], Seat] = {}
        self.latest: dict[str, Seat] = {}
        self._heap: list[tuple[float, int, Callable[[Any], None], object]] = []
        self._sequence = 0
        self._connections: dict[tuple[str, str], int] = {}
        """By pair, in order of names: the number of the connection that there is."""
        self._last_s: dict[tuple[str, str, int], float] = {}
        self._readers: dict[tuple[str, str, int], MessageReader] = {}
        self._parted: Counter[frozenset[str]] = Counter()
        self._numbers = 0
        self.processes = {name: Process(self, name) for name in self.names}
        self.is_eventful = True

    @property
    def _on_roll(self) -> tuple[str, ...]:
        """Who votes; at first those that there were then."""
        latest = self.latest.get(ROLL)
        return self._first_names if latest is None else latest.members

    @property
    def running(self) -> list[str]:
        """Those that are started again when they end."""
        return [name for name in self.names if not self.processes[name].is_gone]

    def plan(self, after_s: float, what: Callable[[Any], None], thing: object = None) -> None:
        """Have something happen later."""
        self._sequence += 1
        heapq.heappush(self._heap, (self.now + after_s, self._sequence, what, thing))

    def decided(self, seat: Seat) -> None:
        """A process has learnt of a term."""
        known = self.seats.setdefault((seat.name, seat.term), seat)
        if known != seat:
            raise WorldError(f"{self.now:.3f} s: two seatings {seat} and {known} in one term")
        latest = self.latest.get(seat.name)
        if latest is None or seat.term > latest.term:
            self.latest[seat.name] = seat
            self.compare(seat.name)

    def compare(self, name: str) -> None:
        """See that every member of a broker's latest term that thinks so holds all that was promised."""
        latest = self.latest.get(name)
        if latest is None or name == ROLL:
            return
        for member in latest.members:
            process = self.processes[member]
            register = process.register
            if register is None or name in self.left or name not in register.entries:
                continue
            if register.entries[name].whole < latest.term or name in process.disk.hurt:
                continue
            log = process.disk.logs.get(name)
            if log is None or not log.holds(self.promised[name]):
                raise WorldError(f"{self.now:.3f} s: {member} follows {name} in {latest} and lacks something")

    # Connections ---------------------------------------------------------------------------------------

    def send(self, sender: str, peer: str, data: bytes) -> None:
        """Send bytes over the connection that there is, if any."""
        pair = min(sender, peer), max(sender, peer)
        number = self._connections.get(pair)
        if number is None:
            return
        key = sender, peer, number
        at = max(self._last_s.get(key, 0.0), self.now + self.draw.uniform(*LATENCY_S))
        self._last_s[key] = at
        self.plan(at - self.now, self._arrive, (key, data))

    def _arrive(self, thing: Any) -> None:
        (sender, peer, number), data = thing
        if self._connections.get((min(sender, peer), max(sender, peer))) != number:
            return
        process = self.processes[peer]
        if self.now < process.stalled_until_s:
            self._last_s[sender, peer, number] = process.stalled_until_s
            self.plan(process.stalled_until_s - self.now, self._arrive, thing)
            return
        reader = self._readers.setdefault((sender, peer, number), MessageReader())
        for message in reader.arrived(data):
            if (
                process.council is None
                or self._connections.get((min(sender, peer), max(sender, peer))) != number
            ):
                return
            process.council.heard(sender, message, self.now)
            process.run()

    def break_(self, one: str, other: str) -> None:
        """Break a connection; what is under way is lost."""
        pair = min(one, other), max(one, other)
        if self._connections.pop(pair, None) is None:
            return
        for here, there in (pair, pair[::-1]):
            process = self.processes[here]
            if process.council is not None:
                process.council.lost(there, self.now)
                process.run()

    def _connect(self, _thing: object = None) -> None:
        """Make the connections that can be made."""
        for place, one in enumerate(self.names):
            for other in self.names[place + 1 :]:
                pair = min(one, other), max(one, other)
                ends = [self.processes[name].council for name in pair]
                if pair in self._connections or None in ends or self._parted[frozenset(pair)]:
                    continue
                if not (self._accepts(one, other) and self._accepts(other, one)):
                    continue
                if self.draw.random() < 0.5:
                    continue
                self._numbers += 1
                self._connections[pair] = self._numbers
                for here, there in (pair, pair[::-1]):
                    council = self.processes[here].council
                    if council is not None:
                        council.connected(there, self.now)
                        self.processes[here].run()
        self.plan(0.05, self._connect)

    def _accepts(self, name: str, peer: str) -> bool:
        """Whether a process lets another one connect: one of its roll, or that was, or that may join."""
        process = self.processes[name]
        assert process.council is not None, "it runs"
        roll = process.council.register.roll.seat
        is_new = name not in roll.members and peer in process.file[0]
        return peer in roll.members or peer in roll.left or peer in process.invites or is_new

    # Who joins and leaves --------------------------------------------------------------------------------

    def _change(self, _thing: object = None) -> None:
        if not self.is_eventful:
            return
        draw = self.draw
        stay = [name for name in self.running if name not in self._is_leaving]
        waiting = {*stay}.difference(self._on_roll)
        # Those who are still to join do not vote: without them enough have to stay.
        if draw.random() < 0.5 or len(stay) - len(waiting) <= max(3, self.copies + 2):
            self._join(draw.choice(stay))
        else:
            # Nobody leaves who is still to join, or by whom somebody is.
            may = [one for one in stay if not waiting.intersection((one, *self.processes[one].invites))]
            if may:
                self._leave(draw.choice(may))
        self.plan(draw.expovariate(1 / self._changes_s), self._change)

    def _join(self, by: str) -> None:
        name = f"B{len(self.names)}"
        self.counts["joins"] += 1
        self.names, self.links = (*self.names, name), (*self.links, (by, name))
        self.promised[name] = []
        process = self.processes[name] = Process(self, name)
        sponsor = self.processes[by]
        sponsor.invites = {**sponsor.invites, name: (by,)}
        if self.draw.random() < 0.5:
            sponsor.file = self.names, self.links
        if sponsor.council is not None:
            sponsor.council.invite(sponsor.invites)
        self.plan(self.draw.uniform(0.0, 3.0), partial(_start, process))

    def _leave(self, name: str) -> None:
        """A broker leaves that has nothing any more, or whose process is gone for good."""
        process = self.processes[name]
        if self.draw.random() < 0.5 and process.council is not None and self.may_lose(name):
            self.counts["gone for good"] += 1
            process.die(wipes=True)
            process.is_gone = True
        self.counts["leaves"] += 1
        self._is_leaving.add(name)
        self.plan(self.draw.choice((0.0, 1.0, 5.0)), self._has_left, name)

    def _has_left(self, name: Any) -> None:
        self.left.add(name)
        for process in self.processes.values():
            self.plan(self.draw.choice((0.0, 0.1, 3.0)), partial(self._tell_left, process))

    def _tell_left(self, process: Process, _thing: object) -> None:
        if process.council is not None:
            process.council.parted(self.left)
            process.run()

    def regrouped(self, process: Process, roll: Seat) -> None:
        """A process has learnt of a roll."""
        self.decided(roll)
        if process.name in roll.left:
            self.counts["ended after it left"] += 1
            if self.draw.random() < 0.5:
                process.is_gone = True

    # Faults --------------------------------------------------------------------------------------------

    def may_lose(self, name: str) -> bool:
        """Whether a process may lose its disk: others hold all that it holds, and remember their votes."""
        registers = {
            one: Register.read(process.disk.register)
            for one, process in self.processes.items()
            if process.disk.register is not None
        }
        voting = [one for one, register in registers.items() if one != name and register.may_vote]
        rolls = {one.number: one.names for one in registers.values()}
        names = self._on_roll
        if name not in names or not (self._votes_go or {*names} <= registers.keys()):
            return False
        for roll in rolls.values():  # also an earlier one, by which some still go
            enough = min(majority(len(roll)), len(roll) - 1)
            if not self._votes_go and len({*voting}.intersection(roll)) < enough:
                return False
        for broker in {*names} - self.left:
            known = [one.entries[broker].seat for one in registers.values() if broker in one.entries]
            latest = max(known, key=lambda seat: seat.term)
            holders = [
                one
                for one in latest.members
                if one != name
                and one in registers
                and broker in registers[one].entries
                and registers[one].entries[broker].seat == latest
                and registers[one].entries[broker].whole >= latest.term
                and broker not in self.processes[one].disk.hurt
                and not self.processes[one].disk.logs[broker].is_rotten
            ]
            if not holders:
                return False
        return True

    def rot(self, process: Process) -> None:
        """Let copies rot that a process keeps, if it may lose them."""
        if self.may_lose(process.name):
            for name in process.disk.logs.keys() - process.playing.keys() - {process.name}:
                process.disk.logs[name].is_rotten = True
                self.counts["rot"] += 1

    def _count_who_remembers(self) -> None:
        """Count the times when too few remember what was voted to tell those who do not."""
        voting = [one.register is not None and one.register.may_vote for one in self.processes.values()]
        self.counts["too few remember"] += sum(voting) < enough_to_enrol(len(self.names))

    def _fault(self, _thing: object = None) -> None:
        if not self.is_eventful:
            return
        draw = self.draw
        name = draw.choice(self.running)
        process = self.processes[name]
        kinds = ("kill", "kill", "wipe", "wipe", "part", "part", "isolate", "stall", "break")
        kind = draw.choice((*kinds, *self._losses, *self._rots, *("wipe",) * (8 * self._votes_go)))
        if kind in ("kill", "wipe", *self._losses) and process.council is not None:
            if kind != "kill" and not (self.may_lose(name) and name in process.disk.logs):
                kind = "kill"
            self.counts[kind] += 1
            process.die(wipes=kind == "wipe")
            self._count_who_remembers()
            if kind in self._losses:
                process.lose(kind)
            away_s = (0.1, 1.0, 4.0, 10.0, 30.0) if self._votes_go else (0.1, 1.0, 4.0, 10.0)
            self.plan(draw.choice(away_s), lambda _: process.start())
        elif kind == "rot" and process.council is not None:
            self.rot(process)
        elif kind == "part":
            self._part([frozenset((name, draw.choice(self.names)))], draw.choice((0.5, 3.0, 10.0)))
        elif kind == "isolate":
            rest = [other for other in self.names if other != name]
            self._part([frozenset((name, other)) for other in rest], draw.choice((0.5, 3.0, 10.0)))
        elif kind == "stall":
            self.counts["stall"] += 1
            process.stalled_until_s = self.now + draw.choice((0.5, 3.0, 6.0))
        elif kind == "break":
            self.break_(name, draw.choice(self.names))
        self.plan(draw.expovariate(1 / draw.choice((0.2, 2.0, 8.0))), self._fault)

    def _part(self, pairs: list[frozenset[str]], seconds: float) -> None:
        pairs = [pair for pair in pairs if len(pair) == 2]
        self.counts["part"] += len(pairs)

        def heal(_thing: object) -> None:
            self._parted.subtract(pairs)

        for pair in pairs:
            self._parted[pair] += 1
            self.break_(*sorted(pair))
        self.plan(seconds, heal)

    def _traffic(self, _thing: object = None) -> None:
        process = self.processes[self.draw.choice(self.names)]
        brokers = sorted(process.playing.keys() - self.left)
        if brokers and self.now >= process.stalled_until_s:
            process.note(self.draw.choice(brokers))
        self.plan(0.02, self._traffic)

    # Running -------------------------------------------------------------------------------------------

    def run_until(self, until_s: float) -> None:
        """Let everything happen that happens before a time."""
        while self._heap and self._heap[0][0] <= until_s:
            self.now, _, what, thing = heapq.heappop(self._heap)
            what(thing)
        self.now = until_s

    def begin(self) -> None:
        """Start all processes, and let them meet and note lines."""
        for process in self.processes.values():
            self.plan(self.draw.uniform(0.0, 1.0), partial(_start, process))
        self._connect()
        self._traffic()

    def run(self, seconds: float = 60.0, rest_s: float = 60.0) -> None:
        """Let everything break for a time, and then come to rest."""
        self.begin()
        self.plan(5.0, self._fault)
        if self._changes_s:
            self.plan(8.0, self._change)
        self.run_until(seconds)
        self.is_eventful, self.death_share = False, 0.0
        self._parted.clear()
        self.run_until(seconds + 11.0)
        self._parted.clear()
        self.rest(rest_s - 11.0)

    def rest(self, rest_s: float) -> None:
        """Let nothing happen any more; then every broker is at home, and goes on promising."""
        self.run_until(self.now + rest_s)
        before = {name: len(lines) for name, lines in self.promised.items()}
        self.run_until(self.now + 5.0)
        names = [name for name in self.names if name not in self.left]
        self._compare_rolls(names)
        for name in names:
            if name not in self.processes[name].playing:
                seat = self.processes[name].council.seat(name)  # type: ignore[union-attr]  # it is there
                raise WorldError(f"{name} is not at home: {seat}")
            if len(self.promised[name]) == before[name]:
                raise WorldError(f"{name} promises nothing any more")

    def _compare_rolls(self, names: list[str]) -> None:
        """See that all who joined and have not left are on the roll, and nobody else."""
        for name in names:
            council = self.processes[name].council
            assert council is not None, "all run in the end"
            if sorted(names) != sorted(council.desk.names):
                raise WorldError(f"{name} goes by the roll of {council.desk.names}, and there are {names}")


def _start(process: Process, _thing: object) -> None:
    process.start()
