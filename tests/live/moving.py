"""Six brokers of a building with a page, in a thread, and clients that move through it until stopped."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from sojourn.errors import SojournError
from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.config import Address, Config, single_broker
from tests.live.building import building, url

START_S = 60


class Moving:
    """What a test needs to know of the brokers in the other thread."""

    def __init__(self, clients: int, pause_s: float) -> None:
        self.clients, self.pause_s = clients, pause_s
        self.page = ""
        """Where the page is, as a URL."""
        self.servers: list[Server] = []
        self.config: Config = with_page(building())
        self.moves = 0
        self._ready, self._done = threading.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._main, daemon=True)

    def start(self) -> None:
        """Start everything, and return when clients move."""
        self._thread.start()
        assert self._ready.wait(START_S), "the brokers did not start"
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stop everything; a failure in the other thread is raised here."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(START_S)
        if self._failure is not None:
            raise self._failure

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:  # noqa: BLE001 - it is raised in the test's thread
            self._failure = error
        finally:
            self._ready.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.servers = [Server(self.config, broker.name) for broker in self.config.brokers]
        for server in self.servers:
            await server.start()
        self.page = f"http://{self.servers[0].page}"
        walkers = [asyncio.create_task(self._walk(number)) for number in range(self.clients)]
        source = asyncio.create_task(self._publish())
        self._ready.set()
        await self._done.wait()
        for task in (*walkers, source):
            task.cancel()
        await asyncio.gather(*walkers, source, return_exceptions=True)
        await asyncio.gather(*(server.stop() for server in self.servers))

    def stop_broker(self, number: int) -> None:
        """Stop one broker, from the test's thread."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self.servers.pop(number).stop(), self._loop).result(START_S)

    def guarded_page(self, password: str) -> str:
        """Start one more broker, alone, whose page asks for a password; return where that is."""
        assert self._loop is not None
        config = single_broker(Address("127.0.0.1", 0))
        broker = msgspec.structs.replace(
            config.brokers[0], page="127.0.0.1:0", page_password=hash_password(password)
        )
        server = Server(msgspec.structs.replace(config, brokers=[broker]), broker.name)
        asyncio.run_coroutine_threadsafe(server.start(), self._loop).result(START_S)
        self.servers.append(server)
        return f"http://{server.page}"

    @contextmanager
    def client(self, name: str, broker: int, topic: str) -> Iterator[None]:
        """Let one more client be there that stays where it is, from the test's thread."""
        assert self._loop is not None
        client = Client(url(self.config, broker), client_id=name)

        async def come() -> None:
            await client.connect()
            await client.subscribe(topic=topic)

        asyncio.run_coroutine_threadsafe(come(), self._loop).result(START_S)
        try:
            yield
        finally:
            asyncio.run_coroutine_threadsafe(client.close(), self._loop).result(START_S)

    async def _walk(self, number: int) -> None:
        draw = random.Random(number)
        client = Client(url(self.config, number % 6), client_id=f"phone-{number:03d}")
        try:
            await client.connect()
            await client.subscribe(f"kind = {number % 5}", topic="news")
            reading = asyncio.create_task(_read(client))
            while True:
                await asyncio.sleep(draw.expovariate(1 / self.pause_s))
                with suppress(OSError, SojournError, TimeoutError):  # a test may stop a broker
                    await client.move_to(url(self.config, draw.randrange(6)))
                    self.moves += 1
        finally:
            reading.cancel()
            await client.close()

    async def _publish(self) -> None:
        async with Client(url(self.config, 0), client_id="source") as source:
            number = 0
            while True:
                await source.publish("news", {"n": number}, attributes={"kind": number % 5})
                number += 1
                await asyncio.sleep(0.05)


async def _read(client: Client) -> None:
    async for _ in client:
        pass


def with_page(config: Config) -> Config:
    """The same configuration, with a page at the first broker."""
    first, *rest = config.brokers
    return msgspec.structs.replace(
        config, brokers=[msgspec.structs.replace(first, page="127.0.0.1:0"), *rest]
    )


@contextmanager
def moving(clients: int = 30, pause_s: float = 2.0) -> Iterator[Moving]:
    """Six brokers and clients that move, stopped at the end."""
    world = Moving(clients, pause_s)
    world.start()
    try:
        yield world
    finally:
        world.stop()
