"""One broker: the session core tied to its clients' connections, and the seams for everything else.

A node is driven by `ClientConnection`s (`connection.py`), which tell it what came and went, and carries out
the core's effects:

- output is written once a loop turn (`flush`), whatever came in during the turn, so that many small packets
  become few writes; whatever must be safe on disk first goes into `before_flush`;
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
from collections.abc import Callable
from typing import TYPE_CHECKING

from mqtt5 import ConnAckReasonCode

from sojourn.live.admission import Doorkeeper, Question, Refusal, password_fits
from sojourn.live.channel import Position
from sojourn.live.config import Config, parse_address
from sojourn.live.network import Network
from sojourn.live.peers import PeerAddress, PeerLinks
from sojourn.mqtt.connection import State
from sojourn.mqtt.core import Core
from sojourn.mqtt.effects import Knock
from sojourn.mqtt.handshake import Admission

if TYPE_CHECKING:
    from sojourn.live.connection import ClientConnection

LINGER_S = 5.0
"""How long a connection that is closed may take to read what it was told."""
CHECKS_AT_ONCE_MAX = 2
"""Passwords that are compared at the same time."""
TICK_S_MAX = 60.0

_log = logging.getLogger("sojourn.node")


class Node:
    """One broker of a configuration, at work."""

    def __init__(self, config: Config, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self.config = config
        self.broker = config.broker(name)
        self.loop = loop
        address = parse_address(self.broker.listen, "listen")
        self.core = Core(name, config.limits, shared_subscriptions=not config.neighbours(name))
        self.doorkeeper = Doorkeeper(config, on_loopback=address.is_loopback)
        self.connections: dict[int, ClientConnection] = {}
        self.before_flush: Callable[[], None] | None = None
        """Called before anything is written to anybody, for what must be safe first."""
        self.network: Network | None = None
        self.links: PeerLinks | None = None
        if config.neighbours(name):
            self._join(secrets.token_hex(8))
        self._effects = self.core.effects
        self._last_number = 0
        self._flushing = False
        self._to_pump: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = 0.0
        self._checks = asyncio.Semaphore(CHECKS_AT_ONCE_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._emptied: asyncio.Event | None = None
        self._epoch_s = time.time() - loop.time()

    def now(self) -> float:
        """Return the time in seconds since 1970; it never goes back."""
        return self._epoch_s + self.loop.time()

    # Facts -------------------------------------------------------------------------------------------

    def opened(self, client: ClientConnection, peer: str) -> int:
        """Take a new connection, and number it."""
        self._last_number += 1
        number = self._last_number
        self.connections[number] = client
        self.core.opened(number, peer, f"auto-{secrets.token_hex(12)}", self.now())
        self.carry_out()
        return number

    def received(self, number: int, data: bytes) -> None:
        """Take bytes of a client."""
        self.core.received(number, data, self._epoch_s + self.loop.time())
        effects = self._effects
        if effects.touched and not self._flushing:
            self._flushing = True
            self.loop.call_soon(self.flush)
        if effects.knocks or effects.collects or self._timer is None:
            self.carry_out()

    def blocked(self, number: int) -> None:
        """Note that a client does not read."""
        self.core.blocked(number)

    def drained(self, number: int) -> None:
        """Note that a client reads again."""
        self.core.drained(number, self.now())
        self.carry_out()

    def lost(self, number: int) -> None:
        """Note that a connection is gone."""
        del self.connections[number]
        if self._emptied is not None and not self.connections:
            self._emptied.set()
        self.core.lost(number, self.now())
        self.carry_out()

    # Effects -----------------------------------------------------------------------------------------

    def carry_out(self) -> None:
        """Do what the core asks for; writing waits for the end of the loop turn."""
        effects = self._effects
        while effects.knocks:
            self._answer(effects.knocks.pop(0))
        if self.network is not None:
            self.network.report(self.now())
        if (effects.touched or self.network is not None) and not self._flushing:
            self._flushing = True
            self.loop.call_soon(self.flush)
        self._set_timer()

    def _join(self, life: str) -> None:
        """Take the broker's place among its neighbours."""
        network = self.network = Network(self.config, self.broker.name, self.core, life)
        calls = {}
        for peer in network.channels:
            address = self.config.broker(peer).peers
            # Of two neighbours the first in the configuration calls the other.
            if address is not None and network.numbers[peer] > network.number:
                calls[peer] = PeerAddress(*parse_address(address, f"peers of {peer}"))
        self.links = PeerLinks(
            self.broker.name, network.channels, calls=calls, on_frame=self._on_frame, on_change=self._on_link
        )

    def _on_frame(self, peer: str, position: Position, body: bytes) -> None:
        assert self.network is not None
        self.network.frame_arrived(peer, position, body, self.now())
        self.carry_out()

    def _on_link(self, peer: str, up: bool) -> None:  # noqa: FBT001 - up or down
        _log.info("link", extra={"peer": peer, "up": up})

    def flush(self) -> None:
        """Write what the loop turn brought, each connection once."""
        if self.before_flush is not None:
            self.before_flush()
        self._flushing = False
        touched = self._effects.touched
        connections = self.connections
        for connection in touched:
            client = connections.get(connection.number)
            output = connection.output
            if client is not None and output:
                client.write(output[0] if len(output) == 1 else b"".join(output))
            output.clear()
            if connection.state is State.CLOSED:
                if client is not None:
                    client.close()
            elif not connection.direct and not connection.blocked:
                session = connection.session
                if session is not None and (session.queue or session.unsent):
                    self._to_pump.append(connection.number)
        touched.clear()
        if self.links is not None:
            self.links.flush()
        if self._to_pump:
            self.loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Go on with queues that were cut off because a connection had been given enough for a turn."""
        numbers, self._to_pump = self._to_pump, []
        now = self.now()
        for number in numbers:
            connection = self.core.state.connections.get(number)
            if connection is not None and not connection.blocked:
                self.core.drained(number, now)
        self.carry_out()

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
        self.core.time_passed(self.now())
        if self.network is not None:
            self.network.time_passed(self.now())
        self.carry_out()

    # Admission ---------------------------------------------------------------------------------------

    def _answer(self, knock: Knock) -> None:
        decision = self.doorkeeper.ask(knock.packet)
        if isinstance(decision, Question):
            task = self.loop.create_task(self._check(knock.number, decision))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._decide(knock.number, decision)

    async def _check(self, number: int, question: Question) -> None:
        async with self._checks:
            fits = await self.loop.run_in_executor(
                None, password_fits, question.user.password, question.password
            )
        self._decide(number, self.doorkeeper.answer(question.user, fits=fits))
        self.carry_out()

    def _decide(self, number: int, decision: Admission | Refusal) -> None:
        if isinstance(decision, Refusal):
            self.core.refuse(number, decision.code, decision.text)
        elif self.network is not None:
            self.network.admit(number, decision, self.now())
        else:
            self.core.admit(number, decision, self.now())

    def refuse(self, number: int, code: ConnAckReasonCode, text: str, reference: str | None = None) -> None:
        """Refuse a client that knocked, perhaps naming the server to use instead."""
        self.core.refuse(number, code, text, reference)
        self.carry_out()

    # The end -----------------------------------------------------------------------------------------

    async def stop(self, reference: str | None = None) -> None:
        """Tell all clients that the broker stops and where to go, and wait until they were told."""
        _log.info("stopping", extra={"clients": len(self.connections)})
        self.core.stop(reference, self.now())
        self.carry_out()
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
