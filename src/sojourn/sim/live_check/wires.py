"""Connections between clients and brokers, and links between brokers, with all that can go wrong with them.

A connection that breaks loses what is on its way in both directions, and each side notices in its own time. A
link is connected anew after a pause while both its brokers live and it is not parted. Of its two ends one
calls; the other learns of the call from the first bytes that come, as with real brokers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sojourn.broker import facts
from sojourn.sim.live_check.pipes import Pipe

if TYPE_CHECKING:
    from sojourn.sim.live_check.process import Process
    from sojourn.sim.live_check.world import World

CLIENT_LATENCY_S = (0.001, 0.02)
LINK_LATENCY_S = (0.001, 0.015)
PAUSE_S = (0.05, 0.8)
"""How long after a link broke it is called again."""
SOON_S = 0.01
SETTLING_S = 1.0
"""How long after it was connected a link counts as in use."""


class ClientWire:
    """One connection of a client to a broker."""

    def __init__(
        self,
        world: World,
        process: Process,
        draw: random.Random,
        take: Callable[[ClientWire, bytes], None],
        ended: Callable[[ClientWire], None],
        address: str = "",
    ) -> None:
        """Connect to a live process; the client is given what arrives, and told when the connection ends."""
        self.world, self.process, self.draw = world, process, draw
        self._take, self._ended = take, ended
        self.up = Pipe(world.clock, draw, CLIENT_LATENCY_S, self._arrived_up)
        self.down = Pipe(world.clock, draw, CLIENT_LATENCY_S, self._arrived_down)
        self.is_open = True
        """Whether the client believes in it."""
        self._is_served = True
        """Whether the broker does."""
        self._is_held = False
        self.number = process.accept(self, address)

    def write(self, data: bytes) -> None:
        """Send what the client says."""
        self.up.write(data)

    # The client ----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let the client close after what it said."""
        self.is_open = False
        self.down.cut()
        self.up.end()

    def vanish(self, notice_s: float) -> None:
        """Let the client be gone without a word; the broker notices after a time."""
        self.is_open = False
        self.down.cut()
        self.up.cut()
        self.world.clock.plan(self.world.now + notice_s, self._broker_notices)

    def cut(self, notice_s: float) -> None:
        """Break the connection; both sides notice, the client soon."""
        self.vanish(notice_s)
        self.is_open = True
        self.world.clock.plan(self.world.now + SOON_S * self.draw.random(), self._client_notices)

    def _client_notices(self, _thing: object) -> None:
        if self.is_open:
            self.is_open = False
            self._ended(self)

    def _broker_notices(self, _thing: object = None) -> None:
        if self._is_served:
            self._is_served = False
            self.process.lost(self.number)

    def _arrived_down(self, data: bytes | None) -> None:
        if not self.is_open:
            return
        if data is None:
            self.is_open = False
            self._ended(self)
        else:
            self._take(self, data)

    # The broker ----------------------------------------------------------------------------------------

    def _arrived_up(self, data: bytes | None) -> None:
        if not self._is_served:
            return
        if data is None:
            self._broker_notices()
        else:
            self.process.tell(facts.ClientSent(self.number, data))

    def broker_closed(self) -> None:
        """Let the broker close after what it wrote."""
        self.up.cut()
        self.down.end()
        self.world.clock.plan(self.world.now + SOON_S, self._broker_notices)

    def broker_died(self) -> None:
        """Let the broker's side be gone; what its kernel had may or may not arrive."""
        self._is_served = False
        self.up.cut()
        if self.draw.random() < 0.5:
            self.down.end()
        else:
            self.down.cut()
            self.world.clock.plan(self.world.now + SOON_S * self.draw.random(), self._client_notices)

    def stall(self, seconds: float) -> None:
        """Let the client read nothing for a while; nor is it read, so that it feels that."""
        if not self._is_served:
            return
        self.down.pause()
        self.up.pause()
        self.process.tell(facts.ClientBlocked(self.number))
        self.world.clock.plan(self.world.now + seconds, self._unstall, self.process.lives)

    def _unstall(self, life: object) -> None:
        self.down.resume()
        self.up.resume()
        if self._is_served and self.process.lives == life:
            self.process.tell(facts.ClientDrained(self.number))

    def hold(self) -> None:
        """Read no further of the client."""
        if not self._is_held:
            self._is_held = True
            self.up.pause()

    def release(self) -> None:
        """Read the client again."""
        if self._is_held:
            self._is_held = False
            self.up.resume()


class _Call:
    """One connection of a link."""

    def __init__(self, link: Link) -> None:
        ends = ((link.caller, link.called), (link.called, link.caller))
        self.pipes = {
            end: Pipe(link.world.clock, link.draw, LINK_LATENCY_S, partial(link.arrived, self, far))
            for end, far in ends
        }
        """By the end that writes."""

    @property
    def is_cut(self) -> bool:
        """Whether it is of no use any more, at least in one direction."""
        return any(pipe.is_cut for pipe in self.pipes.values())

    def cut(self) -> None:
        """Lose all that is on its way."""
        for pipe in self.pipes.values():
            pipe.cut()


class Link:
    """Two neighbours, and the connections between them, one at a time."""

    def __init__(self, world: World, number: int, caller: Process, called: Process) -> None:
        self.world, self.number, self.caller, self.called = world, number, caller, called
        self.draw = random.Random(f"{world.script.spec.seed}/link/{number}")
        self._latest: _Call | None = None
        self._known: dict[Process, _Call] = {}
        """By end: the connection that it believes in."""
        self._parted_s = 0.0
        self._is_calling = False
        caller.links[called.name] = called.links[caller.name] = self

    @property
    def is_up(self) -> bool:
        """Whether both ends know of one connection that works."""
        call = self._latest
        return call is not None and not call.is_cut and [*self._known.values()] == [call, call]

    def call_of(self, end: Process) -> object:
        """Return the connection that an end believes in."""
        return self._known.get(end)

    def far(self, end: Process) -> Process:
        """Return the other end."""
        return self.called if end is self.caller else self.caller

    # Connecting ----------------------------------------------------------------------------------------

    def retry(self) -> None:
        """Call soon, if that is not under way."""
        if not self._is_calling:
            self._is_calling = True
            low, high = PAUSE_S
            self.world.clock.plan(self.world.now + low + (high - low) * self.draw.random(), self._try)

    def _try(self, _thing: object) -> None:
        self._is_calling = False
        if self.caller.broker is None or self.caller in self._known:
            return  # it calls when it is back, or when it has noticed that the connection is gone
        if self.called.broker is None or self.world.now < self._parted_s:
            self.retry()
            return
        if self._latest is not None:
            self._latest.cut()
        self._latest = _Call(self)
        self._admit(self._latest, self.caller)

    def _admit(self, call: _Call, end: Process) -> None:
        """Let an end know of a connection; an older one, half dead, makes way."""
        if self._known.pop(end, None) is not None:
            end.tell(facts.PeerLost(self.far(end).name))
        self._known[end] = call
        self.world.introduce(end, self.far(end))
        end.tell(facts.PeerConnected(self.far(end).name))
        if self.is_up:
            self.world.log.link_up(self)

    def arrived(self, call: _Call, end: Process, data: bytes | None) -> None:
        """Take what the far end wrote."""
        if call is not self._latest or end.broker is None:
            return
        if self._known.get(end) is not call:
            if end is self.caller or data is None:
                return
            self._admit(call, end)
        if data is None:
            self._lose(call, end)
        else:
            end.tell(facts.PeerSent(self.far(end).name, data))

    def _lose(self, call: _Call, end: Process) -> None:
        """Let an end know that a connection is gone."""
        if self._known.get(end) is call:
            del self._known[end]
            call.cut()
            end.tell(facts.PeerLost(self.far(end).name))
            self.retry()

    def _lose_soon(self, call: _Call, end: Process, within_s: float) -> None:
        at_s = self.world.now + within_s * self.draw.random()
        self.world.clock.plan(at_s, lambda _: self._lose(call, end))

    # Effects -------------------------------------------------------------------------------------------

    def write(self, end: Process, data: bytes) -> None:
        """Write what a broker says to its neighbour."""
        call = self._known.get(end)
        if call is not None:
            call.pipes[end].write(data)

    def close(self, end: Process) -> None:
        """Let a broker close the connection after what it wrote."""
        call = self._known.get(end)
        if call is not None:
            self.world.log.link_down(self)
            call.pipes[end].end()
            call.pipes[self.far(end)].cut()
            del self._known[end]
            end.tell(facts.PeerLost(self.far(end).name))
            self.retry()

    # Faults --------------------------------------------------------------------------------------------

    def break_(self, notice_s: float) -> None:
        """Break the connection; each end notices in its own time."""
        call = self._latest
        if call is not None and not call.is_cut:
            self.world.counts["links broken"] += 1
            self.world.log.link_down(self)
            call.cut()
            for end in (self.caller, self.called):
                self._lose_soon(call, end, notice_s)

    def part(self, seconds: float, notice_s: float) -> None:
        """Break it, and let no call through for a while, unless that is so already."""
        if self.world.now < self._parted_s:
            return
        self.world.counts["links parted"] += 1
        self._parted_s = self.world.now + seconds
        self.break_(notice_s)

    def mend(self) -> None:
        """Let calls through again."""
        self._parted_s = 0.0

    def stall(self, seconds: float, way: str) -> None:
        """Let nothing arrive for a while in one direction or both (`script.WAYS`); nothing breaks."""
        call = self._latest
        if call is not None and not call.is_cut:
            self.world.counts["links stalled" if way == "both" else "links stalled in one direction"] += 1
            self.world.log.link_stalled(self, seconds)
            quiet = {"to caller": (self.called,), "to called": (self.caller,)}.get(way, call.pipes)
            for end in quiet:
                pipe = call.pipes[end]
                pipe.pause()
                self.world.clock.plan(self.world.now + seconds, pipe.resume)

    def end_died(self, end: Process) -> None:
        """Let the other end notice that a broker is gone; what its kernel had is lost."""
        self._known.pop(end, None)
        call = self._latest
        if call is not None:
            self.world.log.link_down(self)
            call.cut()
            self._lose_soon(call, self.far(end), SOON_S)
