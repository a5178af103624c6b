"""A broker that is played by a machine, at home or as a guest, and whose turns wait for copies.

Where copies are kept there is one for each machine that may play a broker: the machine that lost the seat
may go on for a while, and nothing of what it does may be heard. `stations.py` says which machine plays what.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from sojourn.broker.effects import Turn
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import Settings
from sojourn.sim.live_check.process import Doom, Effects, Process
from sojourn.sim.live_check.seat_disks import SeatDisk

if TYPE_CHECKING:
    from sojourn.sim.live_check.stations import Station
    from sojourn.sim.live_check.world import World


LONG_BATCHES = 500
"""A journal of more batches gives way to a snapshot, at home and where it is copied, as those of live brokers
do: whoever plays the broker next has to read all of it."""


class _Waiting(NamedTuple):
    number: int
    """The batch before which all must be safe elsewhere."""
    effects: Effects
    doom: Doom | None
    calls: dict[str, object]
    """By neighbour: the connection that it is for."""
    since_s: float


class Player(Process):
    """One broker at one machine."""

    def __init__(self, world: World, number: int, settings: Settings, *, home: Player | None = None) -> None:
        super().__init__(world, number, settings, power_safe=True)
        self.station: Station
        self.waiting: deque[_Waiting] = deque()
        if home is not None:
            self.links = home.links

    def moves_in(self, station: Station) -> None:
        """Say at which machine this is."""
        self.station = station
        self._draw = random.Random(f"{self.world.script.spec.seed}/{self.name} at {station.name}")

    @property
    def is_home(self) -> bool:
        """Whether clients find it."""
        return self.station.name == self.name

    def _life(self) -> str:
        # No two lives have one name, as with real brokers: a machine may play one, stop, and play it again.
        return f"{self.name}-{self.station.name}-{self.station.lives}-{self.station.plays}.{self.lives}"

    def play(self, disk: SeatDisk) -> None:
        """Begin from what the machine holds."""
        self.disk = disk
        self.waiting.clear()
        self.station.plays += 1
        self.start()

    def stop(self) -> None:
        """End at once; nothing that waits leaves."""
        if self.broker is None:
            return
        self.world.count_resets(self)
        self._forget_doom()
        self.broker = None
        for one in self.waiting:
            self.world.log.waited(one.since_s)
        self.waiting.clear()
        for wire in list(self.wires.values()):
            wire.broker_died()
        self.wires.clear()
        for link in self.links.values():
            link.end_died(self)

    def doom(self, doom: Doom) -> None:
        """Let the machine die at a point of the broker's next turn, or soon."""
        if not self.station.is_up:
            return
        if self.broker is None:
            self._die(doom)
        else:
            super().doom(doom)

    def _die(self, doom: Doom) -> None:
        self._forget_doom()
        self.world.counts[f"{doom.how}, {doom.point}"] += 1
        self.station.die(doom.down_s, doom.how)

    # Turns ---------------------------------------------------------------------------------------------

    def _commit(self, broker: LiveBroker, turn: Turn) -> None:
        super()._commit(broker, turn)
        disk = self.disk
        assert isinstance(disk, SeatDisk)
        if len(disk.batches) > LONG_BATCHES and not broker.knocks and self.keeper.look_again_s is None:
            self.keeper.keep(broker, self.world.now)

    def _leave(self, effects: Effects, doom: Doom | None) -> bool:
        """Let what a turn leads to wait until its lines are safe elsewhere."""
        disk = self.disk
        assert isinstance(disk, SeatDisk)
        calls = {peer: link.call_of(self) for peer, link in self.links.items()}
        self.waiting.append(_Waiting(disk.next, effects, doom, calls, self.world.now))
        self.station.logged(self.name)
        return self.broker is not None

    def leave(self, released: int) -> None:
        """Carry out what may leave by now."""
        while self.waiting and self.waiting[0].number <= released and self.broker is not None:
            one = self.waiting.popleft()
            self.world.log.waited(one.since_s)
            effects = [each for each in one.effects if self._is_for_now(each, one.calls)]
            super()._leave(effects, one.doom)

    def _is_for_now(self, effect: tuple[Callable[[Any], None], Any], calls: dict[str, object]) -> bool:
        """Whether something for a neighbour is for the connection that there is still."""
        do, what = effect
        if do not in (self._write_peer, self._close_peer):
            return True
        peer = what[0]
        return calls[peer] is not None and self.links[peer].call_of(self) is calls[peer]
