"""A machine where copies are kept: it drives a council as `live/seats/` does, and can lose its disk.

It has a broker of its own (`home`), plays others as guests, and holds copies of more. When it dies all of
that ends; with its disk, what it held and what it voted for is gone too.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from sojourn.broker.seats import effects as do
from sojourn.broker.seats.council import TICK_S, Council
from sojourn.broker.seats.desk import Terms
from sojourn.broker.seats.messages import Begin, Line, Message, Part, Seat
from sojourn.broker.seats.register import Register
from sojourn.sim.live_check.machine_faults import LOSE_STORE, WIPE
from sojourn.sim.live_check.oracle import FailedCheckError
from sojourn.sim.live_check.players import LONG_BATCHES, Player
from sojourn.sim.live_check.seat_disks import SeatDisk, read_batch, written

if TYPE_CHECKING:
    from sojourn.sim.live_check.copied_world import CopiedWorld
    from sojourn.sim.live_check.mesh import Mesh

GONE_S = 1.0
SILENT_S = 2.5
REVIVAL_S = (0.02, 1.0)
"""How long it takes to begin to play a broker."""
ENDED_S = 0.5
"""After how long a machine runs again that ended because it lost its seat."""
CALM_TICK_S = 0.5
"""How often councils look what is due when nothing is to happen any more."""


class _Cursor(NamedTuple):
    """How far a machine is told the lines of a broker."""

    session: int
    number: int
    """The next batch to tell."""
    began: int
    """The first that was told."""


class Station:
    """One machine."""

    def __init__(self, world: CopiedWorld, mesh: Mesh, home: Player) -> None:
        self.world, self._mesh, self.home, self.name = world, mesh, home, home.name
        self.draw = random.Random(f"{world.script.spec.seed}/station/{self.name}")
        self.council: Council | None = None
        self.lives = 0
        self.plays = 0
        """How often it began to play a broker, its own or another's."""
        self.guests: dict[str, Player] = {}
        self.disks: dict[str, SeatDisk] = {}
        self._register: bytes | None = None
        self._incoming: dict[str, tuple[SeatDisk, bytearray, int]] = {}
        self._cursors: dict[tuple[str, str], _Cursor] = {}
        """By broker and machine that is told its lines."""
        self._is_running = False
        self._hosts: dict[str, str] = {}
        """By broker that was ever moved: the machine that plays it, as far as known here."""
        home.moves_in(self)
        mesh.stations[self.name] = self

    @property
    def is_up(self) -> bool:
        """Whether it runs."""
        return self.council is not None

    def player(self, name: str) -> Player | None:
        """Return who plays a broker here, if anybody does."""
        player = self.home if name == self.name else self.guests.get(name)
        return player if player is not None and player.broker is not None else None

    # What the council asks (`broker/seats/effects.Logs`) -----------------------------------------------

    def next(self, name: str) -> int:
        """Return the number of the batch that comes next; 0 if nothing is held of the broker."""
        disk = self.disks.get(name)
        return 0 if disk is None else disk.next

    def incoming(self, name: str) -> int:
        """Return the same of the copy that was begun beside it."""
        return self._incoming[name][0].next if name in self._incoming else 0

    def first(self, name: str) -> int:
        """Return the number of the first batch after the snapshot."""
        disk = self.disks.get(name)
        return 0 if disk is None else disk.first

    def check(self, name: str, number: int) -> int | None:
        """Return a checksum of what is before a batch."""
        disk = self.disks.get(name)
        return None if disk is None else disk.check(number)

    def is_trusted(self, _name: str) -> bool:
        """Power is never lost here."""
        return True

    # Life ----------------------------------------------------------------------------------------------

    def start(self, _thing: object = None) -> None:
        """Begin to run with what the disk holds."""
        if self.council is not None:
            return
        self.lives += 1
        settings = self.home.settings
        if self._register is None:
            self.disks.setdefault(self.name, SeatDisk())
        register = Register() if self._register is None else Register.read(self._register)
        self._hosts = {name: entry.seat.host for name, entry in register.entries.items()}
        copies = self.world.script.spec.copies
        birth = f"{self.name}/{self.lives}"
        terms = Terms(self.name, settings.brokers, settings.links, copies, GONE_S, SILENT_S, birth)
        self.council = Council(terms, register, self, self.world.now)
        self.council.invite(self.world.invited(self.name))
        self._mesh.call(self.name)
        self._tick(self.lives)

    def die(self, down_s: float, how: str = "kill") -> None:
        """End everything here without a word; with the disk, or with the broker's own journal."""
        if self.council is None:
            return
        self.council = None
        self.world.log.died(self.home)
        for player in (self.home, *self.guests.values()):
            player.stop()
        self.guests.clear()
        self._incoming.clear()
        self._cursors.clear()
        if how == WIPE:
            self.disks.clear()
            self._register = None
        elif how == LOSE_STORE:
            self.disks.pop(self.name, None)
        for other in self._mesh.stations:
            if other != self.name:
                self._mesh.break_(self.name, other)
        self.world.clock.plan(self.world.now + down_s, self.start)

    # Facts ---------------------------------------------------------------------------------------------

    def _tick(self, life: object) -> None:
        if self.council is None or life != self.lives:
            return
        self.council.tick(self.world.now)
        self._run()
        tick_s = TICK_S if self.world.is_eventful or not self.world.is_quiet else CALM_TICK_S
        self.world.clock.plan(self.world.now + tick_s, self._tick, life)

    def connected(self, peer: str) -> None:
        """There is a connection to another machine."""
        if self.council is not None:
            self.council.connected(peer, self.world.now)
            self._run()

    def lost(self, peer: str) -> None:
        """There is none any more."""
        if self.council is not None:
            self.council.lost(peer, self.world.now)
            self._run()

    def heard(self, peer: str, message: Message) -> None:
        """Another machine said something."""
        if self.council is not None:
            self.council.heard(peer, message, self.world.now)
            self._run()

    def logged(self, name: str) -> None:
        """A broker that is played here has noted more."""
        if self.council is not None:
            self._pump(name)
            self.council.logged(name)
            self._run()

    # Effects -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Do what the council wants, in order; then let leave what may."""
        if self._is_running:
            return
        self._is_running = True
        try:
            while self.council is not None and (effects := self.council.take_effects()):
                for effect in effects:
                    if self.council is not None:
                        self._DOERS[type(effect)](self, effect)
        finally:
            self._is_running = False
        for player in (self.home, *self.guests.values()):
            if self.council is not None and player.broker is not None and player.waiting:
                player.leave(self.council.released(player.name))

    def _save(self, effect: do.Save) -> None:
        self._register = effect.register

    def _send(self, effect: do.Send) -> None:
        self._mesh.send(self, effect.peer, effect.message)

    def _close(self, effect: do.Close) -> None:
        self._mesh.break_(self.name, effect.peer)

    def _ship(self, effect: do.Ship) -> None:
        name, peer, session, number = effect
        disk = self.disks[name]
        if not number:
            data, number = disk.snapshot or b"", disk.first
            self._mesh.send(self, peer, Begin(name, session, number, len(data)))
            if data:
                half = self.draw.randrange(len(data))
                for part in (data[:half], data[half:]):
                    if part:
                        self._mesh.send(self, peer, Part(name, session, part))
        self._cursors[name, peer] = _Cursor(session, number, number)
        self._pump(name)

    def _pump(self, name: str) -> None:
        """Tell batches to whoever is to be told them."""
        disk = self.disks[name]
        for key, (session, number, began) in list(self._cursors.items()):
            if key[0] != name:
                continue
            if number < disk.first or disk.first - began > LONG_BATCHES:
                # A snapshot took the place of what was still to be told, or of much that was.
                assert self.council is not None, "who is dead tells nothing"
                self.council.outran(*key)
                continue
            for place in range(number, disk.next):
                batch = written(disk.batches[place - disk.first])
                self._mesh.send(self, key[1], Line(name, session, place, batch))
            self._cursors[key] = _Cursor(session, disk.next, began)

    def _unship(self, effect: do.Unship) -> None:
        self._cursors.pop((effect.name, effect.peer), None)

    def _take(self, effect: do.Take) -> None:
        self._incoming[effect.name] = SeatDisk(effect.first), bytearray(), effect.size

    def _take_part(self, effect: do.TakePart) -> None:
        disk, got, size = self._incoming[effect.name]
        got += effect.data
        if len(got) == size:
            disk.snapshot = bytes(got)

    def _append(self, effect: do.Append) -> None:
        incoming = self._incoming.get(effect.name)
        disk = self.disks[effect.name] if incoming is None else incoming[0]
        assert disk.next == effect.number, "batches come in order"
        disk.batches.append(read_batch(effect.batch))

    def _install(self, effect: do.Install) -> None:
        self.disks[effect.name] = self._incoming.pop(effect.name)[0]

    def _drop(self, effect: do.Drop) -> None:
        self._incoming.pop(effect.name, None)

    def _forget(self, effect: do.Forget) -> None:
        self.disks.pop(effect.name, None)

    def _seated(self, effect: do.Seated) -> None:
        """Note a term; links of brokers here to one that moves end."""
        seat = effect.seat
        self.world.decided(seat)
        before, self._hosts[seat.name] = self._hosts.get(seat.name, seat.name), seat.host
        if before == seat.host:
            return
        for player in (self.home, *self.guests.values()):
            link = player.links.get(seat.name)
            if player.broker is not None and link is not None:
                link.close(player)

    def _regrouped(self, effect: do.Regrouped) -> None:
        self.world.decided(effect.roll)

    def _serve(self, effect: do.Serve) -> None:
        low, high = REVIVAL_S
        after_s = low + (high - low) * self.draw.random() if self.world.now > 1.0 else low
        seat = self.council.seat(effect.name) if self.council is not None else None
        self.world.clock.plan(self.world.now + after_s, partial(self._play, self.lives), seat)

    def _play(self, life: int, seat: Seat) -> None:
        council, name = self.council, seat.name
        if council is None or life != self.lives or name not in council.serving or council.seat(name) != seat:
            return
        if self.player(name) is not None:
            return
        if name == self.name:
            player = self.home
        else:
            player = self.guests[name] = self.world.guest(name)
            player.moves_in(self)
            player.offset_s = self.home.offset_s
            self.world.counts["brokers played by others"] += 1
        player.play(self.disks[name])
        self.world.goes_by(player)
        council.revived()
        if name != self.name:
            council.moved_in(name, self.name)
        self._run()

    def _stop(self, effect: do.Stop) -> None:
        name = effect.name
        if name in self.guests:
            self.guests.pop(name).stop()
        elif name == self.name and self.home.broker is not None:
            self.world.counts["brokers that were moved from"] += 1
            self.die(ENDED_S)

    _DOERS: ClassVar[dict[type, Callable[..., None]]] = {
        do.Save: _save,
        do.Send: _send,
        do.Close: _close,
        do.Ship: _ship,
        do.Unship: _unship,
        do.Take: _take,
        do.TakePart: _take_part,
        do.Append: _append,
        do.Install: _install,
        do.Drop: _drop,
        do.Forget: _forget,
        do.Seated: _seated,
        do.Noticed: lambda *_: None,
        do.Regrouped: _regrouped,
        do.Serve: _serve,
        do.Stop: _stop,
    }


def is_whole(stations: list[Station]) -> bool:
    """Whether every broker is at home and at work, and all its copies hold everything."""
    for station in stations:
        council = station.council
        if council is None or station.home.broker is None or not council.register.may_vote:
            return False
        if council.seat(station.name).host != station.name or council.at_risk(station.name):
            return False
    return True


def see_that_all_are_home(stations: list[Station]) -> None:
    """Fail if a broker is not at home, or its copies are not whole, when nothing breaks any more."""
    for station in stations:
        council = station.council
        if council is None or station.home.broker is None:
            why = "" if council is None else f": {council.why_not(station.name)}"
            raise FailedCheckError("down", f"{station.name} is not played at home{why}")
        if council.at_risk(station.name):
            raise FailedCheckError("copies", f"the copies of {station.name} are not whole")
