"""A way round a link that is cut, between two brokers that both run.

Links carry what the tree of brokers says, and the tree does not change. But whose bytes a link carries does
not matter to it: what travels is proved, numbered and kept by the two brokers at its ends. So when a broker
cannot reach a neighbour for `gone_s`, its process asks others, one after the other, to pass on its calls:

    P -> R: Detour(P, Q)       R tries whether it reaches Q itself
    R -> P: DetourAt(P, Q, …)  and listens for one caller, for a while
    P calls there instead, says the word that it was told, and R passes on bytes both ways, unread, until
    either side ends

For P and Q this is a connection like any other, which may be lost at any time; nothing that is queued takes
another way, and nothing is told twice. A process that passes on learns nothing where links are encrypted, and
cannot pose as anybody where they are not. It does this for the brokers that the asker plays, so many for each
process; and whoever else comes to its port and does not know the word is cut off, while the caller is waited
for. While a link is on its detour its caller tries now and then whether the direct way is back; then the
detour is ended, and the next call goes directly. One that does not last is tried less and less often.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from sojourn.broker.seats.messages import Detour, DetourAt, Message
from sojourn.live.config import Address, ConfigError, parse_address
from sojourn.live.links.calling import WORD_BYTES, Doorway
from sojourn.live.seldom import Seldom

ASK_S = 1.0
"""After how long the next process is asked."""
DIAL_S = 5.0
"""How long a connection may take to be made."""
OFFER_S = 20.0
"""How long a caller is waited for, and may rely on being waited for."""
LASTED_S = 8.0
"""Calls to a neighbour that cannot be reached follow sooner; after a longer while there was a connection."""
PASSED_MAX = 32
"""Links that one process passes on at once."""
PASSED_EACH_MAX = 8
"""Those of them that one other process asked for."""
WORD_S = 5.0
"""How long who comes may take to say the word."""
STRANGERS_MAX = 16
"""Who may be there at once that has not said it; the one that has taken longest makes room."""
CHUNK_BYTES = 65_536
DIRECT_S, DIRECT_LONGEST_S = 10.0, 320.0
"""How often a link on a detour is tried directly: at first, and after several returns that did not last."""
DIRECT_LASTED_S = 600.0
"""A return that was so long ago has lasted."""

_log = logging.getLogger("sojourn.seats")

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Trouble:
    """A neighbour that is called, and does not answer."""

    def __init__(self, now: float) -> None:
        self.since_s = self.called_s = now
        self.asked_s = 0.0
        self.asked = 0
        """How many processes were asked."""
        self.offer: tuple[float, str, Address] | None = None
        """Until when somebody waits for a call, who, and where."""


class _Door:
    """Where one caller is waited for, who knows the word."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.word = secrets.token_bytes(WORD_BYTES)
        self.came: asyncio.Future[Ends] = loop.create_future()
        self._strangers: dict[asyncio.StreamWriter, None] = {}

    async def opened(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody came: hear what it says, and cut it off unless that is the word."""
        self._strangers[writer] = None
        if len(self._strangers) > STRANGERS_MAX:
            next(iter(self._strangers)).transport.abort()
        said = b""
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(WORD_S):
                said = await reader.readexactly(WORD_BYTES)
        is_welcome = not self.came.done() and hmac.compare_digest(said, self.word)
        self._strangers.pop(writer, None)
        if is_welcome:
            self.came.set_result((reader, writer))
        else:
            writer.transport.abort()

    def close(self) -> None:
        """Wait for nobody any more."""
        for writer in list(self._strangers):
            writer.transport.abort()


class Surroundings(NamedTuple):
    """What a process knows of the others."""

    host: str
    """At which address it listens for those whose calls it passes on."""
    patience_s: float
    where: Callable[[str], Address | None]
    """Where a broker listens for its neighbours, as far as known."""
    others: Callable[[str], list[str]]
    """Which processes are there besides this one and that of a broker."""
    plays: Callable[[str, str], bool]
    """Whether a process plays a broker, as far as known."""
    tell: Callable[[str, Message], None]
    end: Callable[[str, str], None] = lambda _caller, _name: None
    """Ends the connection of a broker that is played here to a neighbour."""


class Detours:
    """What one process asks of others, and does for them."""

    def __init__(self, around: Surroundings, loop: asyncio.AbstractEventLoop) -> None:
        self._around, self._loop = around, loop
        self._troubles: dict[tuple[str, str], _Trouble] = {}
        """By broker that is played here and neighbour."""
        self.passed: dict[tuple[str, str], asyncio.Task[None]] = {}
        """By broker that calls and broker that is called: what is passed on."""
        self._askers: dict[tuple[str, str], str] = {}
        """Likewise: which process asked for it."""
        self._seldom = Seldom(_log)
        self._looks: dict[tuple[str, str], asyncio.Task[None]] = {}
        """By broker that is played here and neighbour: what looks whether the direct way is back."""
        self._returns: dict[tuple[str, str], tuple[float, float]] = {}
        """Likewise: when it last was, and after how long it was tried."""

    # Who needs one ---------------------------------------------------------------------------------------

    def way(self, caller: str, name: str, direct: Address | None) -> Address | None:
        """Return where a broker calls a neighbour now: directly, unless that has failed for a while."""
        now = self._loop.time()
        looks = self._looks.pop((caller, name), None)
        if looks is not None:
            looks.cancel()
        trouble = self._troubles.get((caller, name))
        if trouble is None or now - trouble.called_s > LASTED_S:
            trouble = self._troubles[caller, name] = _Trouble(now)
        trouble.called_s = now
        if now - trouble.since_s < self._around.patience_s:
            return direct
        offer, trouble.offer = trouble.offer, None
        if offer is not None and now < offer[0]:
            self._seldom.warning((caller, name), "%s calls %s by way of %s", caller, name, offer[1])
            if direct is not None:
                self._looks[caller, name] = self._loop.create_task(self._return(caller, name, direct))
            return offer[2]
        if now - trouble.asked_s >= ASK_S:
            others = self._around.others(name)
            if others:
                trouble.asked_s = now
                self._around.tell(others[trouble.asked % len(others)], Detour(caller, name))
                trouble.asked += 1
        return direct

    async def _return(self, caller: str, name: str, direct: Address) -> None:
        """End a detour once the neighbour can be reached directly."""
        returned_s, tried_s = self._returns.get((caller, name), (0.0, 0.0))
        is_first = not tried_s or self._loop.time() - returned_s > DIRECT_LASTED_S
        pause_s = DIRECT_S if is_first else min(2 * tried_s, DIRECT_LONGEST_S)
        while True:
            await asyncio.sleep(pause_s)
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(DIAL_S):
                    _, writer = await asyncio.open_connection(direct.host, direct.port)
                writer.transport.abort()
                break
        self._returns[caller, name] = self._loop.time(), pause_s
        self._troubles.pop((caller, name), None)
        self._looks.pop((caller, name), None)
        self._around.end(caller, name)

    # Who gives one ---------------------------------------------------------------------------------------

    def heard(self, peer: str, message: Detour | DetourAt) -> None:
        """A process asks for a detour, or offers one."""
        if isinstance(message, DetourAt):
            trouble = self._troubles.get((message.caller, message.name))
            if trouble is not None:
                with suppress(ConfigError):
                    address = parse_address(message.address, f"the place where {peer} passes on")
                    if message.word:
                        address = Doorway(address, message.word)
                    trouble.offer = self._loop.time() + OFFER_S / 2, peer, address
            return
        key = message.caller, message.name
        if not self._around.plays(peer, message.caller):
            self._seldom.warning(key, "%s asks for a detour of %s, which it does not play", peer, key[0])
            return
        before = self.passed.pop(key, None)
        if before is not None:
            before.cancel()  # who asks again is not connected any more
            del self._askers[key]
        share = sum(asker == peer for asker in self._askers.values())
        if len(self.passed) < PASSED_MAX and share < PASSED_EACH_MAX:
            task = self.passed[key] = self._loop.create_task(self._pass_on(peer, message))
            self._askers[key] = peer
            task.add_done_callback(lambda done: self._done(key, done))

    def _done(self, key: tuple[str, str], task: asyncio.Task[None]) -> None:
        if self.passed.get(key) is task:
            del self.passed[key], self._askers[key]

    async def _pass_on(self, peer: str, asked: Detour) -> None:
        """Wait for one call, and pass it on to a broker that is in reach."""
        name = asked.name
        door = _Door(self._loop)
        try:
            (await self._dialled(name))[1].transport.abort()
            server = await asyncio.start_server(door.opened, self._around.host, 0)
            try:
                address = str(Address(self._around.host, server.sockets[0].getsockname()[1]))
                self._around.tell(peer, DetourAt(asked.caller, name, address, door.word))
                async with asyncio.timeout(OFFER_S):
                    here = await door.came
            finally:
                server.close()
                door.close()
            there: Ends | None = None
            try:
                there = await self._dialled(name)
            finally:
                if there is None:
                    here[1].transport.abort()
        except (OSError, TimeoutError) as error:
            _log.info("%s cannot be reached from here for %s: %s", name, asked.caller, error)
            return
        await _joined(here, there)

    async def _dialled(self, name: str) -> Ends:
        address = self._around.where(name)
        if address is None:
            raise OSError("nobody knows where it is")
        async with asyncio.timeout(DIAL_S):
            return await asyncio.open_connection(address.host, address.port)

    def stop(self) -> None:
        """Pass on nothing any more."""
        for task in (*self.passed.values(), *self._looks.values()):
            task.cancel()


async def _joined(one: Ends, other: Ends) -> None:
    """Pass on bytes both ways until either side ends."""
    ways = [
        asyncio.ensure_future(_copied(one[0], other[1])),
        asyncio.ensure_future(_copied(other[0], one[1])),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        for _, writer in (one, other):
            writer.transport.abort()
    await asyncio.gather(*ways, return_exceptions=True)


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
