"""One broker: the session core tied to its clients' connections, and the seams for everything else.

A node is driven by `ClientConnection`s (`connection.py`), which tell it what came and went, and carries out
the core's effects:

- output is written once a loop turn (`flush`), whatever came in during the turn, so that many small packets
  become few writes; what a broker with a store must remember is made safe just before;
- clients that knock are shown to the doorkeeper;
- a broker with neighbours has a `Network`, which is told what was published and what changed, and whose
  links are written at the end of the turn too; a single broker has none and pays nothing for it.

Time is the loop's clock, moved so that it reads as seconds since 1970 and never goes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from typing import TYPE_CHECKING

from sojourn.broker.channel import Position
from sojourn.broker.pressure import Pressure
from sojourn.live.brokers.admission import Doorkeeper, Question, Refusal, password_fits
from sojourn.live.brokers.warming import load_index_kernels
from sojourn.live.config import Config, parse_address
from sojourn.live.links.peers import PeerAddress, PeerLinks
from sojourn.live.links.tls import for_callers, for_calling
from sojourn.live.store.journal import Journal
from sojourn.live.store.recording import (
    BLOCKED,
    DRAINED,
    FRAME,
    LINK,
    LOST,
    OPENED,
    OVERFLOWED,
    RECEIVED,
    REFUSED,
    STOPPED,
    TICK,
    Recording,
)
from sojourn.live.store.safekeeping import Safekeeping
from sojourn.live.tracing import Tracer
from sojourn.mqtt.connection import State
from sojourn.mqtt.core import Core
from sojourn.mqtt.effects import Knock
from sojourn.mqtt.handshake import Admission

if TYPE_CHECKING:
    from sojourn.broker.network import Network
    from sojourn.broker.quenching import Quencher
    from sojourn.live.brokers.connection import ClientConnection

LINGER_S = 5.0
"""How long a connection that is closed may take to read what it was told."""
CHECKS_AT_ONCE_MAX = 2
"""Passwords that are compared at the same time."""
TICK_S_MAX = 60.0
SEAL_S = 5.0

_log = logging.getLogger("sojourn.node")


class Node:
    """One broker of a configuration, at work."""

    def __init__(self, config: Config, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self.config = config
        self.broker = config.broker(name)
        self.loop = loop
        address = parse_address(self.broker.listen, "listen")
        # Who routes, or accounts for what each subscriber got, knows subscribers one by one and no shares.
        routes = bool(config.neighbours(name)) or config.trace is not None
        self.core = Core(name, config.limits, shared_subscriptions=not routes)
        self.doorkeeper = Doorkeeper(config, on_loopback=address.is_loopback)
        self.connections: dict[int, ClientConnection] = {}
        self.network: Network | None = None
        self.links: PeerLinks | None = None
        self.pressure = Pressure({})
        self.recording: Recording | None = None
        self._safekeeping: Safekeeping | None = None
        if routes:
            # Imported here: a single broker does without the kernels that routing brings along.
            from sojourn.broker.network import Network  # noqa: PLC0415

            self.network = Network(config.settings(name), self.core, secrets.token_hex(8))
        self._effects = self.core.effects
        self._quencher: Quencher | None = None
        self._tracer: Tracer | None = None
        self._last_number = 0
        self._flushing = False
        self._indexing = False
        self._to_pump: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0
        self._checks = asyncio.Semaphore(CHECKS_AT_ONCE_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._emptied: asyncio.Event | None = None
        self._epoch_s = time.time() - loop.time()
        if self.broker.store is not None:
            self._revive(self.broker.store)
        if self.network is not None:
            self._join(self.network)
            self._trace(self.network)
        self.core.state.quenches = config.routing.mode == "content" or not config.neighbours(name)
        self._effects.interests = None

    def now(self) -> float:
        """Return the time in seconds since 1970; it never goes back."""
        return self._epoch_s + self.loop.time()

    # Facts -------------------------------------------------------------------------------------------

    def opened(self, client: ClientConnection, peer: str) -> int:
        """Take a new connection, and number it."""
        self._last_number += 1
        number = self._last_number
        self.connections[number] = client
        fresh_id, now = f"auto-{secrets.token_hex(12)}", self.now()
        self.core.opened(number, peer, fresh_id, now)
        if self.recording is not None:
            self.recording.note(OPENED, now, number, peer, fresh_id)
        self.carry_out(now)
        return number

    def received(self, number: int, data: bytes) -> None:
        """Take bytes of a client."""
        now = self._epoch_s + self.loop.time()
        self._read(number, data, now)
        effects = self._effects
        if effects.touched and not self._flushing:
            self._flushing = True
            self.loop.call_soon(self.flush)
        if effects.knocks or effects.collects or effects.overflowing or self._timer is None:
            self.carry_out(now)

    def _read(self, number: int, data: bytes, now: float) -> None:
        self.core.received(number, data, now)
        if self._effects.published and self.pressure.is_on:
            self.pressure.hold_client(number, self.connections[number])
        if self.recording is not None:
            self._note_packets(self.recording, number, now)

    def blocked(self, number: int) -> None:
        """Note that a client does not read."""
        self.core.blocked(number)
        if self.recording is not None:
            self.recording.note(BLOCKED, self.now(), number)

    def drained(self, number: int) -> None:
        """Note that a client reads again."""
        now = self.now()
        self._drain(number, now)
        self.carry_out(now)

    def _drain(self, number: int, now: float) -> None:
        self.core.drained(number, now)
        if self.recording is not None:
            self.recording.note(DRAINED, now, number)

    def lost(self, number: int) -> None:
        """Note that a connection is gone."""
        del self.connections[number]
        self.pressure.clients.pop(number, None)
        if self._emptied is not None and not self.connections:
            self._emptied.set()
        now = self.now()
        self.core.lost(number, now)
        if self.recording is not None:
            self.recording.note(LOST, now, number)
        self.carry_out(now)

    def _note_packets(self, recording: Recording, number: int, now: float) -> None:
        """Record the packets that the last call took in, once it is known which events are stored."""
        stored: list[int] = []
        if self.network is not None:
            self.network.report(now)
            stored, self.network.stored_unsure = self.network.stored_unsure, []
        if self.core.kept:
            kept = self.core.take_kept(stored)
            if kept:
                recording.note(RECEIVED, now, number, kept)

    # Effects -----------------------------------------------------------------------------------------

    def carry_out(self, now: float) -> None:
        """Do what the core asks for; writing waits for the end of the loop turn.

        `now` is the time of the fact that led to it, so that the same follows from it when it is told again.
        What the driver does in turn is a fact with a time of its own.
        """
        effects, network = self._effects, self.network
        if network is not None:
            network.report(now)
            network.stored_unsure.clear()
        while effects.knocks or effects.unread or effects.overflowing:
            now = self.now()
            if effects.knocks:
                self._answer(effects.knocks.pop(0), now)
            elif effects.unread:
                self._read(effects.unread.pop(0), b"", now)
            else:
                self._close_overflowing(now)
            if network is not None:
                network.report(now)
        if (effects.touched or self.network is not None) and not self._flushing:
            self._flushing = True
            self.loop.call_soon(self.flush)
        self._set_timer()

    def _close_overflowing(self, now: float) -> None:
        number = next(iter(self._effects.overflowing))
        del self._effects.overflowing[number]
        self.core.overflowed(number, now)
        if self.recording is not None:
            self.recording.note(OVERFLOWED, now, number)

    def _join(self, network: Network) -> None:
        """Take the broker's place among its neighbours."""
        self.pressure = Pressure(network.channels)
        calls = {}
        for peer in network.channels:
            address = self.config.broker(peer).peers
            # Of two neighbours the first in the configuration calls the other.
            if address is not None and network.numbers[peer] > network.number:
                calls[peer] = PeerAddress(*parse_address(address, f"peers of {peer}"))
        tls = self.config.tls if self.config.tls is not None and self.config.tls.peers else None
        name = self.broker.name
        self.links = PeerLinks(
            name,
            network.channels,
            calls=calls,
            on_frame=self._on_frame,
            on_change=self._on_link,
            on_read=self._on_read,
            server_tls=for_callers(tls, name) if tls is not None else None,
            client_tls=for_calling(tls, name) if tls is not None else None,
        )
        for peer in network.channels:
            self._note_link(peer, self.now(), up=False)

    def _trace(self, network: Network) -> None:
        """Write a trace, if the configuration wants one."""
        wanted = self.config.trace
        if wanted is not None:
            self._tracer = network.tracer = Tracer.open(
                wanted.folder, wanted.run, self.broker.name, self.now(), wanted.sample
            )
            self.loop.call_later(SEAL_S, self._seal, self._tracer)

    def _seal(self, tracer: Tracer) -> None:
        tracer.seal()
        self.loop.call_later(SEAL_S, self._seal, tracer)

    def _on_frame(self, peer: str, position: Position, body: bytes) -> None:
        if not self.pressure.hold_frame(peer, (position, body)):
            self._take_frame(peer, position, body)

    def _take_frame(self, peer: str, position: Position, body: bytes) -> None:
        assert self.network is not None
        now = self.now()
        is_remembered = self.network.frame_arrived(peer, position, body, now)
        if self.recording is not None and is_remembered:
            self.recording.note(FRAME, now, peer, position.number, body)
        self.carry_out(now)

    def _on_link(self, peer: str, up: bool) -> None:  # noqa: FBT001 - up or down
        _log.info("link", extra={"peer": peer, "up": up})
        now = self.now()
        self._note_link(peer, now, up=up)
        if not up:
            self.pressure.forget(peer)
        self.carry_out(now)

    def _note_link(self, peer: str, now: float, *, up: bool) -> None:
        assert self.network is not None
        self.network.linked(peer, now, up=up)
        if self.recording is not None:
            self.recording.note(LINK, now, peer, up)

    def _on_read(self) -> None:
        """Go on with what waited for room, now that a neighbour may have made some."""
        pressure = self.pressure
        if not pressure.waits:
            return
        while (found := pressure.next_frame()) is not None:
            peer, frame = found
            self._take_frame(peer, *frame)
        if not pressure.is_on:
            pressure.release_clients()
            return
        now = self.now()
        for number in pressure.clients:
            connection = self.core.state.connections.get(number)
            if connection is not None:
                connection.seen_s = now  # it is silent because it is not read

    def flush(self) -> None:
        """Write what the loop turn brought, each connection once."""
        self._flushing = False
        if self._safekeeping is not None:
            self._safekeeping.commit(self.now())
        self._quench()
        touched = self._effects.touched
        connections = self.connections
        for connection in touched:
            client = connections.get(connection.number)
            output = connection.output
            if output:
                # Taken out first: writing may tell us at once that there is room, and more is put in.
                data = output[0] if len(output) == 1 else b"".join(output)
                output.clear()
                if client is not None:
                    client.write(data)
            if connection.state is State.CLOSED:
                if client is not None:
                    client.close()
            elif not connection.direct and not connection.blocked:
                session = connection.session
                if session is not None and (session.queue or session.unsent):
                    self._to_pump.append(connection.number)
        touched.clear()
        if self.core.state.filters.wants_index and not self._indexing:
            self._prepare_index()
        if self.links is not None:
            self.links.flush()
        if self._to_pump:
            self.loop.call_soon(self._pump)

    def _quench(self) -> None:
        """Tell publishers that asked for it what is wanted."""
        if self._quencher is None:
            if not self._effects.sources:
                return
            # Imported here: most brokers have no such publishers, and start faster.
            from sojourn.broker.quenching import Quencher  # noqa: PLC0415

            self._quencher = Quencher(self.core, self.network)
        self._quencher.settle()

    def _prepare_index(self) -> None:
        """Load the kernels of the filter index in a thread, and use it then."""
        filters = self.core.state.filters
        self._indexing = True

        async def prepare() -> None:
            await self.loop.run_in_executor(None, load_index_kernels)
            filters.indexed = True
            filters.wants_index = False

        task = self.loop.create_task(prepare())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _pump(self) -> None:
        """Go on with queues that were cut off because a connection had been given enough for a turn."""
        numbers, self._to_pump = self._to_pump, []
        now = self.now()
        for number in numbers:
            connection = self.core.state.connections.get(number)
            if connection is not None and not connection.blocked:
                self._drain(number, now)
        self.carry_out(now)

    def _set_timer(self) -> None:
        moment_s = self.core.next_moment()
        if self.network is not None:
            also_s = self.network.next_moment()
            moment_s = also_s if moment_s is None else moment_s if also_s is None else min(moment_s, also_s)
        if moment_s is None:
            return
        moment_s = min(moment_s, self.now() + TICK_S_MAX)
        if self._timer is not None:
            if self._timer_s <= moment_s:
                return
            self._timer.cancel()
        self._timer_s = moment_s
        self._timer = self.loop.call_at(moment_s - self._epoch_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = self.now()
        silent = self.core.time_passed(now)
        if self.network is not None:
            self.network.time_passed(now)
        if self.recording is not None:
            self.recording.note(TICK, now, silent)
        self.carry_out(now)

    # Admission ---------------------------------------------------------------------------------------

    def _answer(self, knock: Knock, now: float) -> None:
        decision = self.doorkeeper.ask(knock.packet)
        if isinstance(decision, Question):
            task = self.loop.create_task(self._check(knock.number, decision))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._decide(knock.number, decision, now)

    async def _check(self, number: int, question: Question) -> None:
        async with self._checks:
            fits = await self.loop.run_in_executor(
                None, password_fits, question.user.password, question.password
            )
        now = self.now()
        self._decide(number, self.doorkeeper.answer(question.user, fits=fits), now)
        self.carry_out(now)

    def _decide(self, number: int, decision: Admission | Refusal, now: float) -> None:
        if isinstance(decision, Refusal):
            self.core.refuse(number, decision.code, decision.text)
            if self.recording is not None:
                self.recording.note(REFUSED, now, number, int(decision.code), decision.text)
            return
        if self.recording is not None:
            self.recording.admitted(number, decision, now)
        if self.network is not None:
            self.network.admit(number, decision, now)
        else:
            self.core.admit(number, decision, now)

    # The journal -------------------------------------------------------------------------------------

    def _revive(self, store: str) -> None:
        """Come back as the journal leaves the broker, or begin one."""
        journal = Journal.open(store, broker=self.broker.name)
        recording = self.recording = Recording(journal)
        self.core, self.network, entries = recording.revive(self.core, self.network)
        self.core.state.limits = self.config.limits
        self.core.state.refusing = None
        self._effects = self.core.effects
        state = self.core.state
        self._last_number = max(state.connections, default=0)
        now = self.now()
        if self.network is not None:
            self.network.restarted(secrets.token_hex(8), now)
        for number in list(state.connections):
            self.core.lost(number, now)
        self._effects.touched.clear()
        self.core.take_kept()
        recording.keep(self.core, self.network)
        journal.reserve()
        self._safekeeping = Safekeeping(recording, self.core, self.network, self.loop)
        _log.info("revived", extra={"entries": entries, "sessions": len(state.sessions)})

    # The end -----------------------------------------------------------------------------------------

    async def stop(self, reference: str | None = None) -> None:
        """Tell all clients that the broker stops and where to go, and wait until they were told."""
        _log.info("stopping", extra={"clients": len(self.connections)})
        now = self.now()
        self.core.stop(reference, now)
        if self.recording is not None:
            self.recording.note(STOPPED, now, reference)
        self.carry_out(now)
        self.flush()
        if self.links is not None:
            self.links.flush()
            await self.links.stop()
        for task in self._tasks:
            task.cancel()
        if self.connections:
            self._emptied = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._emptied.wait(), LINGER_S)
        for client in list(self.connections.values()):
            client.abort()
        if self._timer is not None:
            self._timer.cancel()
        if self.recording is not None and self._safekeeping is not None:
            self._safekeeping.commit(self.now())
            self.recording.journal.close()
        if self.network is not None and self._tracer is not None:
            self._tracer.close(self.now(), ends_run=self.network.number == 0)
