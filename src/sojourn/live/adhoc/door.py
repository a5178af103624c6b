"""A device's own broker: any MQTT client that is near may use it, and sees nothing of devices.

What clients publish there is told to the core, and acknowledged to the broker once that is noted. What the
core shows is published there, under the number of the show, so that the broker knows it when it comes again
after a death. So an application gets each event once, whichever device it was published at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from sojourn.adhoc.election.messages import Fact, Published, Show, Shown
from sojourn.broker.settings import MobilityConfig
from sojourn.live.addresses import FolderBook
from sojourn.live.adhoc.carrying import is_carried, pack, unpack
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import Address, BrokerConfig, Config

FOR_EVER_S = 10 * 365 * 86_400
"""Sessions here end when their clients say so."""
PATIENCE_S = 3_600.0

Tell = Callable[[Fact], None]


class Door:
    """The broker of one device, and the client by which the device speaks with it."""

    def __init__(self, name: str, listen: Address, folder: Path, tell: Tell) -> None:
        place = BrokerConfig(name=name, listen=str(listen), store=str(folder / "store"))
        config = Config(brokers=[place], mobility=MobilityConfig(timeout_s=FOR_EVER_S))
        self.server = Server(config, name, FolderBook(folder))
        self._client_id = f"device-{name}"
        self._tell = tell
        self._client: Client | None = None
        self._shows: asyncio.Queue[Show] = asyncio.Queue()
        """As many as the core shows and was not told of: it keeps them itself."""
        self._tasks: list[asyncio.Task[None]] = []
        self.url = ""

    async def open(self) -> None:
        """Serve clients; returns when nothing that they say from now on is missed."""
        address = await self.server.start()
        self.url = f"mqtt://{address}"
        self._client = Client(
            self.url, client_id=self._client_id, session_expiry_s=0xFFFF_FFFE, patience_s=PATIENCE_S
        )
        await self._client.connect()
        await self._client.subscribe(topic="#", qos=1)
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._show())]

    async def close(self) -> None:
        """Stop in order."""
        for task in self._tasks:
            task.cancel()
        if self._client is not None:
            await self._client.close()
        await self.server.stop()

    def show(self, show: Show) -> None:
        """Let clients have an event."""
        self._shows.put_nowait(show)

    @property
    def failure(self) -> BaseException | None:
        """What ended the work of this door, if anything did."""
        for task in self._tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                return task.exception()
        return None

    async def _listen(self) -> None:
        assert self._client is not None
        while True:
            received, settle = await self._client.take()
            if not is_carried(received):
                event, body = pack(received)
                self._tell(Published(event, body, is_shown=True))
            settle()

    async def _show(self) -> None:
        assert self._client is not None
        while True:
            kept, number = await self._shows.get()
            topic, payload, properties = unpack(kept)
            await self._client.pass_on(topic, payload, properties, number=number)
            self._tell(Shown(number))
