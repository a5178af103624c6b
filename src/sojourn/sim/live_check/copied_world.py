"""A world whose machines keep copies of one another's brokers, lose their disks, and play others' brokers.

Nothing may be lost as long as no more disks are lost at once than there are copies: so a disk is only lost
when all copies are whole, as `scripts/kill_brokers.py` does it with real processes.
"""

from __future__ import annotations

from msgspec.structs import replace

from sojourn.broker.seats.messages import ROLL, Seat
from sojourn.broker.settings import AtOnce
from sojourn.sim.live_check.machine_faults import KINDS, LOSE_STORE, WIPE
from sojourn.sim.live_check.mesh import Mesh
from sojourn.sim.live_check.oracle import FailedCheckError
from sojourn.sim.live_check.players import Player
from sojourn.sim.live_check.process import IDLE_S, Doom, Process
from sojourn.sim.live_check.roving import RovingLink
from sojourn.sim.live_check.script import Script
from sojourn.sim.live_check.stations import Station, is_whole, see_that_all_are_home
from sojourn.sim.live_check.steps import Step
from sojourn.sim.live_check.wires import Link
from sojourn.sim.live_check.world import LITTLE, World

AGAIN_S = 0.3
"""How soon it is looked again whether a disk may be lost."""
LOSSES = (WIPE, LOSE_STORE)
RESTART_S = 0.1
HOME_S = 90.0
"""Within this time all brokers are at home, and their copies whole."""


class CopiedWorld(World):
    """Everything that there is, with copies."""

    def __init__(self, script: Script) -> None:
        self._seats: dict[tuple[str, int], Seat] = {}
        self._latest: dict[str, Seat] = {}
        self._homes: list[Player] = []
        self._wiping_s = 0.0
        """Until when a machine may still be about to lose its disk."""
        self._clocks: dict[str, tuple[str, float]] = {}
        """By broker: the machine that played it last, and how far its clock is ahead."""
        super().__init__(script)
        self.mesh = Mesh(self)
        self.stations = [Station(self, self.mesh, home) for home in self._homes]
        self._by_name = {station.name: station for station in self.stations}

    def make_process(self, number: int) -> Process:
        """Return a broker at home."""
        player = Player(self, number, self._settings(number))
        self._homes.append(player)
        return player

    def make_link(self, number: int, one: Process, other: Process) -> Link:
        """Return the link of two brokers, wherever they are played."""
        return RovingLink(self, number, self._homes[one.number], self._homes[other.number])

    def begin(self) -> None:
        """Let all machines run, but for one that joins later."""
        joins_s = self.script.joins_s
        for station in self.stations if joins_s is None else self.stations[:-1]:
            station.start()
        if joins_s is not None:
            self.clock.plan(joins_s, self.stations[-1].start)

    def invited(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return who may join by a machine, with its links."""
        if self.script.joins_s is None:
            return {}
        joins, by = self._homes[-1].settings.joined[0]
        return {joins: (by,)} if by == name else {}

    # What the parts ask ----------------------------------------------------------------------------------

    def station(self, name: str) -> Station:
        """Return a machine."""
        return self._by_name[name]

    def mesh_sees(self, one: str, other: str) -> bool:
        """Whether two machines can reach each other."""
        return self.mesh.can_see(one, other)

    def guest(self, name: str) -> Player:
        """Return somebody who can play a broker away from home."""
        home = self.station(name).home
        return Player(self, home.number, home.settings, home=home)

    def goes_by(self, player: Player) -> None:
        """A broker is played: if that is at another machine than before, its clock may jump ahead."""
        machine = player.station.name
        before, offset_s = self._clocks.get(player.name, (player.name, player.offset_s))
        if before != machine:
            self.log.jumped(player, player.offset_s - offset_s)
        self._clocks[player.name] = machine, player.offset_s

    def players(self, name: str) -> list[Player]:
        """Return all who play a broker at present: who has its seat, and who has lost it unawares."""
        found = [station.player(name) for station in self.stations]
        return [player for player in found if player is not None]

    def seated(self, name: str) -> Player | None:
        """Return who plays a broker by right."""
        latest = self._latest.get(name)
        return self.station(name if latest is None else latest.host).player(name)

    def waiting_since(self) -> list[float]:
        """Return since when turns wait for copies."""
        everybody = [one for station in self.stations for one in (station.home, *station.guests.values())]
        return [player.waiting[0].since_s for player in everybody if player.waiting]

    def decided(self, seat: Seat) -> None:
        """A machine has learnt of a term: all learn the same."""
        known = self._seats.setdefault((seat.name, seat.term), seat)
        if known != seat:
            raise FailedCheckError("seats", f"{self.now:.3f} s: {seat} and {known} were both decided")
        latest = self._latest.get(seat.name)
        if latest is None or seat.term > latest.term:
            self.counts["terms"] += 1
            self._latest[seat.name] = seat

    # Steps -----------------------------------------------------------------------------------------------

    def _do(self, thing: object) -> None:
        assert isinstance(thing, Step)
        if thing.what not in KINDS:
            super()._do(thing)
        elif thing.what in LOSSES and (self.now < self._wiping_s or not self._may_lose(thing.who)):
            if self.now + AGAIN_S < self.script.spec.seconds:
                self.clock.plan(self.now + AGAIN_S, self._do, thing)
        elif thing.what == "kill" or thing.what in LOSSES:
            point, effect = thing.detail
            if thing.what in LOSSES:
                self._wiping_s = self.now + IDLE_S + AGAIN_S
            self._homes[thing.who].doom(Doom(thing.what, point, effect, thing.seconds))
        elif thing.what == "silence machine":
            self.mesh.silence(f"B{thing.who}", thing.seconds)
        elif thing.what == "break machines":
            one, other = thing.detail
            self.mesh.break_(f"B{one}", f"B{other}", thing.seconds)
        else:
            group = frozenset(f"B{number}" for number in thing.detail)
            self.mesh.part(group, thing.seconds)
            for link in self.links:
                assert isinstance(link, RovingLink)
                link.part_machines(group, min(thing.seconds, 3.0))

    def _may_lose(self, number: int) -> bool:
        """Whether a machine may lose its disk: it votes, and all copies of those that vote are whole."""
        roll = self._latest.get(ROLL)
        voting = [one for one in self.stations if roll is None or one.name in roll.members]
        if self.script.joins_s is not None and roll is None:
            voting = self.stations[:-1]
        return self.stations[number] in voting and is_whole(voting)

    def heal(self) -> None:
        """Let machines see each other, and wait until all brokers are at home; then let them give more."""
        self.mesh.mend()
        self._come_home()
        for home in self._homes:
            if home.settings.at_once == LITTLE:
                # Stays of clients that went on quickly wait for one another, very many by now: that does not
                # end with two events a turn. An operator restarts each broker with other settings.
                home.settings = replace(home.settings, at_once=AtOnce())
                home.doom(Doom("kill", "idle", 0, RESTART_S))
                self._come_home()

    def _come_home(self) -> None:
        until_s = self.now + HOME_S
        self.run_until(self.now + 2 * RESTART_S)
        while self.now < until_s and not is_whole(self.stations):
            self.run_until(self.now + 0.5)
        see_that_all_are_home(self.stations)
