"""The fixed network, as a device finds it: a broker's address that answers or does not.

The device is an ordinary client there. One session is for what it is told, with everything subscribed, and is
kept by the brokers while the device is away. What it offers goes in sessions named after the streams of the
events (`Custody`), so that brokers know an event that this or another device offered before. Two devices
that offer one stream at once take the session from each other; who lost it tries again later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from sojourn.adhoc.election.messages import Custody, Fact, FixedLost, FixedReached, FixedTold, FixedTook, Kept
from sojourn.errors import SojournError
from sojourn.live.adhoc.carrying import pack, unpack
from sojourn.live.client.client import Client

STREAMS_MAX = 16
"""Sessions for offers that are open at once."""
OFFER_S = 10.0
SESSION_S = 0xFFFF_FFFE

Tell = Callable[[Fact], None]
Stream = tuple[int, int]


class FixedNetwork:
    """One device's way to the fixed network."""

    def __init__(self, url: str, number: int, tell: Tell, *, every_s: float) -> None:
        self._url = url
        self._number = number
        self._tell = tell
        self._every_s = every_s
        self._offers: asyncio.Queue[Kept] = asyncio.Queue()
        """As many as the core keeps and has not been told of."""
        self._clients: dict[Stream, Client] = {}
        self._task: asyncio.Task[None] | None = None
        self.reached = False

    def open(self) -> None:
        """Begin to look for it."""
        self._task = asyncio.create_task(self._look())

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def offer(self, kept: Kept) -> None:
        """Give it an event, after those that were offered before."""
        self._offers.put_nowait(kept)

    async def _look(self) -> None:
        while True:
            with suppress(OSError, SojournError, TimeoutError):
                await self._visit()
            await asyncio.sleep(self._every_s)

    async def _visit(self) -> None:
        """Be there until it is out of reach."""
        client = Client(
            self._url, client_id=f"device-{self._number}", session_expiry_s=SESSION_S, patience_s=OFFER_S
        )
        lost = asyncio.Event()
        await client.connect(patient=False)
        client.on_change = lost.set
        try:
            await client.subscribe(topic="#", qos=1)
            self._offers = asyncio.Queue()  # the core offers again all that was not taken
            self.reached = True
            self._tell(FixedReached())
            work = [self._listen(client), self._offer_all(), lost.wait()]
            tasks = [asyncio.create_task(one) for one in work]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            if self.reached:
                self.reached = False
                self._tell(FixedLost())
            await self._close(client, *self._clients.values())
            self._clients.clear()

    async def _listen(self, client: Client) -> None:
        while True:
            received, settle = await client.take()
            self._tell(FixedTold(*pack(received)))
            settle()

    async def _offer_all(self) -> None:
        while True:
            kept = await self._offers.get()
            assert kept.custody is not None
            async with asyncio.timeout(OFFER_S):
                client = await self._client_for(kept.custody)
                topic, payload, properties = unpack(kept)
                await client.pass_on(topic, payload, properties, number=kept.custody.number)
            self._tell(FixedTook(kept.id))

    async def _client_for(self, custody: Custody) -> Client:
        stream = custody.broker, custody.term
        client = self._clients.get(stream)
        if client is None:
            name = f"device-{custody.broker}-{custody.term}"
            client = Client(self._url, client_id=name, session_expiry_s=SESSION_S, patience_s=OFFER_S)
            await client.connect()
            self._clients[stream] = client
            if len(self._clients) > STREAMS_MAX:
                await self._close(self._clients.pop(next(iter(self._clients))))
        return client

    async def _close(self, *clients: Client) -> None:
        for client in clients:
            with suppress(OSError, SojournError, TimeoutError):
                await client.close()
