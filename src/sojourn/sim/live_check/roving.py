"""Links between brokers that machines play in turn: who calls finds the other where its machine thinks it is.

As with real brokers, a caller asks its own council which machine plays the neighbour, and who is called hears
only the machine that its own council names. So a machine that lost a seat and does not know it may still be
linked for a while to neighbours that do not know it either.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sojourn.broker import facts
from sojourn.sim.live_check.pipes import Pipe
from sojourn.sim.live_check.players import Player
from sojourn.sim.live_check.process import Process
from sojourn.sim.live_check.script import FIRST_CLIENT_S
from sojourn.sim.live_check.wires import LINK_LATENCY_S, SOON_S, Link

if TYPE_CHECKING:
    from sojourn.sim.live_check.copied_world import CopiedWorld


class Call:
    """One connection of two players."""

    def __init__(self, link: RovingLink, caller: Player, called: Player) -> None:
        self.caller, self.called = caller, called
        self.pipes: dict[Process, Pipe] = {
            end: Pipe(link.world.clock, link.draw, LINK_LATENCY_S, partial(link.heard, self, far))
            for end, far in ((caller, called), (called, caller))
        }
        """By the end that writes."""
        self.lives = {caller: caller.lives, called: called.lives}

    def other(self, end: Process) -> Player:
        """Return the other end."""
        return self.called if end is self.caller else self.caller

    @property
    def is_cut(self) -> bool:
        """Whether it is of no use any more."""
        return any(pipe.is_cut for pipe in self.pipes.values())

    def cut(self) -> None:
        """Lose all that is on its way."""
        for pipe in self.pipes.values():
            pipe.cut()


class RovingLink(Link):
    """Two neighbours, whoever plays them, and the connections between those."""

    world: CopiedWorld

    def __init__(self, world: CopiedWorld, number: int, caller: Player, called: Player) -> None:
        super().__init__(world, number, caller, called)
        self._calls: dict[Process, Call] = {}
        """By player: the connection that it believes in."""
        self._is_marked_up = False

    @property
    def is_up(self) -> bool:
        """Whether those that have the seats now know of one connection that works."""
        ends = [self.world.seated(home.name) for home in (self.caller, self.called)]
        calls = [self._calls.get(end) if end is not None else None for end in ends]
        return calls[0] is not None and calls[0] is calls[1] and not calls[0].is_cut

    def far(self, end: Process) -> Process:
        """Return the neighbour, of which only the name matters here."""
        return self.called if end.name == self.caller.name else self.caller

    def call_of(self, end: Process) -> object:
        """Return the connection that a player believes in."""
        return self._calls.get(end)

    def _mark(self) -> None:
        """Note when the link is in use, and when not."""
        is_up = self.is_up
        if is_up:
            self.world.log.link_up(self)
        elif self._is_marked_up or not self.world.now:
            self.world.log.link_down(self)
        self._is_marked_up = is_up

    # Connecting ----------------------------------------------------------------------------------------

    def retry(self) -> None:
        """Call soon, if that is not under way; at once in the beginning, where brokers begin late enough."""
        if self.world.now < FIRST_CLIENT_S and not self._is_calling:
            self._is_calling = True
            self.world.clock.plan(self.world.now + SOON_S, self._try)
        else:
            super().retry()

    def _try(self, _thing: object) -> None:
        self._is_calling = False
        for caller in self.world.players(self.caller.name):
            if caller in self._calls:
                continue
            called = self._found(caller)
            if called is None:
                self.retry()
                continue
            call = Call(self, caller, called)
            self._admit_to(call, caller)

    def _found(self, caller: Player) -> Player | None:
        """Return the neighbour that a player's machine believes in, if it is there."""
        council = caller.station.council
        if council is None or self.world.now < self._parted_s:
            return None
        if self.called.name not in council.register.entries:
            return None  # it has not joined yet
        host = self.world.station(council.seat(self.called.name).host)
        if not self.world.mesh_sees(caller.station.name, host.name):
            return None
        return host.player(self.called.name)

    def _is_right(self, call: Call) -> bool:
        """Whether who is called believes that the caller has its seat."""
        council = call.called.station.council
        return council is not None and council.seat(call.caller.name).host == call.caller.station.name

    def _admit_to(self, call: Call, end: Player) -> None:
        before = self._calls.pop(end, None)
        if before is not None:
            before.cut()
            end.tell(facts.PeerLost(self.far(end).name))
            self._lose_later(before, before.other(end), SOON_S)
        self._calls[end] = call
        self.world.introduce(end, self.far(end))
        end.tell(facts.PeerConnected(self.far(end).name))
        self._mark()

    def heard(self, call: Call, end: Player, data: bytes | None) -> None:
        """Take what the far end wrote."""
        if end.broker is None or end.lives != call.lives[end]:
            return
        if self._calls.get(end) is not call:
            if end is call.caller or data is None:
                return
            if not self._is_right(call):
                self.world.counts["links refused to who lost a seat"] += 1
                call.cut()
                self._lose_later(call, call.caller, SOON_S)
                return
            self._admit_to(call, end)
        if data is None:
            self._lose_call(call, end)
        else:
            end.tell(facts.PeerSent(self.far(end).name, data))

    def _lose_call(self, call: Call, end: Player) -> None:
        if self._calls.get(end) is call:
            del self._calls[end]
            call.cut()
            end.tell(facts.PeerLost(self.far(end).name))
            self._mark()
        self.retry()

    def _lose_later(self, call: Call, end: Player, within_s: float) -> None:
        at_s = self.world.now + within_s * self.draw.random()
        self.world.clock.plan(at_s, lambda _: self._lose_call(call, end))

    # Effects -------------------------------------------------------------------------------------------

    def write(self, end: Process, data: bytes) -> None:
        """Write what a broker says to its neighbour."""
        call = self._calls.get(end)
        if call is not None:
            call.pipes[end].write(data)

    def close(self, end: Process) -> None:
        """Let a broker close the connection after what it wrote."""
        call = self._calls.pop(end, None)
        if call is not None:
            call.pipes[end].end()
            call.pipes[call.other(end)].cut()
            end.tell(facts.PeerLost(self.far(end).name))
            self._mark()
        self.retry()

    # Faults --------------------------------------------------------------------------------------------

    def break_(self, notice_s: float) -> None:
        """Break all connections; each end notices in its own time."""
        for call in self._present():
            self.world.counts["links broken"] += 1
            self._break_call(call, notice_s)

    def _break_call(self, call: Call, notice_s: float) -> None:
        call.cut()
        for end in (call.caller, call.called):
            self._lose_later(call, end, notice_s)
        self._mark()

    def part_machines(self, group: frozenset[str], notice_s: float) -> None:
        """Break the connections between machines of a group and others."""
        for call in self._present():
            if (call.caller.station.name in group) != (call.called.station.name in group):
                self._break_call(call, notice_s)

    def _present(self) -> list[Call]:
        return [call for call in dict.fromkeys(self._calls.values()) if not call.is_cut]

    def stall(self, seconds: float, way: str) -> None:
        """Let nothing arrive for a while in one direction or both; nothing breaks."""
        for call in self._present():
            self.world.counts["links stalled" if way == "both" else "links stalled in one direction"] += 1
            self.world.log.link_stalled(self, seconds)
            for end, pipe in call.pipes.items():
                if way == "both" or (way == "to caller") == (end is call.called):
                    pipe.pause()
                    self.world.clock.plan(self.world.now + seconds, pipe.resume)

    def end_died(self, end: Process) -> None:
        """Let the other end notice that a player is gone, also one that has not heard of a call yet."""
        gone = [call for call in dict.fromkeys(self._calls.values()) if end in (call.caller, call.called)]
        self._calls.pop(end, None)
        for call in gone:
            call.cut()
            self._lose_later(call, call.other(end), SOON_S)
        if gone:
            self._mark()
