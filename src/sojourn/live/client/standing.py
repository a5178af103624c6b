"""The connection that a client has, waits for, or gives up: what every call of its asks before it sends.

While somebody tries to make a connection, calls wait for it. Where nobody does, as after a move to a broker
that is not there, they wait for as long as the client has patience, since another task may move elsewhere;
then everything that waits is told, reading included, and so is every later call until `connect` or `move_to`.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from sojourn.live.client.answers import Answers
from sojourn.live.client.link import ANSWER_S, Address, ClientError, Link, UnreachableError
from sojourn.live.client.reading import Reading


class Standing(Reading):
    """A client as far as it has a connection, or none."""

    def __init__(self, client_id: str, address: Address, *, inbox: int, patience_s: float) -> None:
        super().__init__(inbox)
        self.client_id = client_id
        self.address = address
        self._patience_s = patience_s
        self._link: Link | None = None
        self._connected = asyncio.Event()
        self._answers = Answers()
        self._closing = False
        self._end_of_patience: asyncio.TimerHandle | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection at present."""
        return self._link is not None

    @property
    def gave_up(self) -> bool:
        """Whether it tries no more to have a connection, until somebody says `connect` or `move_to`."""
        return self._failure is not None

    async def _online(self, patience_s: float) -> None:
        """Wait for a connection, or say why there is none."""
        self._check_begun()
        try:
            async with asyncio.timeout(patience_s):
                while self._failure is None and not self._closing and not self._connected.is_set():
                    await self._connected.wait()
        except TimeoutError:
            raise self._unreachable() from None
        if self._failure is not None:
            raise self._failure
        if self._closing:
            raise ClientError("The client is closed; `await client.connect()` opens it again.")

    async def _ask(self, packet: Any, kind: str) -> Any:
        """Send a packet and wait for its answer, again on the next connection if this one breaks."""
        until = time.monotonic() + self._patience_s
        while True:
            await self._online(max(0.0, until - time.monotonic()))
            answer = self._expect(kind, packet.packet_id)
            if self._link is not None:
                self._link.send(packet)
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_S):
                    return await answer
            self._answers.drop(kind, packet.packet_id)
            if time.monotonic() > until:
                raise ClientError(f"{self.address} did not answer within {self._patience_s:.0f} s.")

    def _expect(self, kind: str, packet_id: int) -> asyncio.Future[Any]:
        if self._failure is not None:
            raise self._failure
        return self._answers.expect(kind, packet_id)

    def _unreachable(self) -> UnreachableError:
        return UnreachableError(
            f"{self.client_id!r} has had no connection for {self._patience_s:g} s, last tried at "
            f"{self.address}; `await client.move_to(url)` makes one elsewhere, or there again."
        )

    def _begin_to_lose_patience(self) -> None:
        """Nobody is making a connection: unless somebody begins to, tell everything that waits for one."""
        self._regain_patience()
        loop = asyncio.get_running_loop()
        self._end_of_patience = loop.call_later(self._patience_s, lambda: self._give_up(self._unreachable()))

    def _regain_patience(self) -> None:
        if self._end_of_patience is not None:
            self._end_of_patience.cancel()
            self._end_of_patience = None

    def _give_up(self, error: Exception) -> None:
        """There will be no connection before the application asks for one."""
        self._failure = error
        self._inbox.close()
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._answers.fail(error)
        self._connected.set()  # whoever waits for a connection learns that there will be none
