"""Two hundred people with phones in a building: real MQTT clients that move as paper 001's do.

Each is connected, loses its radio link without a word, and comes back at the same broker or at another one,
after exponential times; `pace` divides all of them. One publisher tells the news. Everybody wants one kind of
news in five, by content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sojourn.errors import SojournError
from sojourn.live.client.client import Client
from sojourn.sim.roaming.run import Roaming, Stays, building
from sojourn.sim.streams import Streams

STAYS = Stays(connect_s=60.0, disconnect_s=12.0, handoff_s=3.0)
"""Paper 001, Table 1."""
KINDS = 5
CONNECTS_AT_ONCE = 20
SETTLE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run of the demonstration."""

    urls: Sequence[str]
    clients: int
    seconds: float
    rate: float
    pace: float
    seed: int
    movement: str = "neighbour"


@dataclass(slots=True)
class Crowd:
    """What is seen of the clients while they move."""

    published: int = 0
    received: int = 0
    repeated: int = 0
    moves: int = 0
    connected: int = 0
    troubles: list[str] = field(default_factory=list)
    is_over: bool = False
    """Whether nobody walks any more, and what is under way is waited for."""


async def walk(plan: Plan, on_change: Callable[[Crowd], None]) -> Crowd:
    """Let everybody move while news is published; return what was seen once all is quiet."""
    crowd = Crowd()
    streams = Streams(plan.seed)
    paths = Roaming(plan.movement, building(), STAYS, streams)
    gate = asyncio.Semaphore(CONNECTS_AT_ONCE)
    ready: list[asyncio.Event] = [asyncio.Event() for _ in range(plan.clients)]
    start, end = asyncio.Event(), asyncio.Event()
    walkers = [
        asyncio.create_task(_walker(plan, number, paths, crowd, gate, ready[number], start, end))
        for number in range(plan.clients)
    ]
    for event in ready:
        await event.wait()
    await asyncio.sleep(1.0)  # until the last subscription has reached every broker
    start.set()
    ticker = asyncio.create_task(_tick(crowd, on_change))
    async with Client(plan.urls[0], client_id="news") as source:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while loop.time() - began < plan.seconds:
            number = crowd.published
            await source.publish("news", {"n": number}, attributes={"kind": number % KINDS}, qos=1)
            crowd.published += 1
            await asyncio.sleep(max(0.0, began + crowd.published / plan.rate - loop.time()))
    crowd.is_over = True
    end.set()
    await asyncio.gather(*walkers)
    ticker.cancel()
    on_change(crowd)
    return crowd


async def _tick(crowd: Crowd, on_change: Callable[[Crowd], None]) -> None:
    while True:
        on_change(crowd)
        await asyncio.sleep(0.25)


async def _walker(
    plan: Plan,
    number: int,
    paths: Roaming,
    crowd: Crowd,
    gate: asyncio.Semaphore,
    ready: asyncio.Event,
    start: asyncio.Event,
    end: asyncio.Event,
) -> None:
    path = paths.sojourns(number)
    here = next(path)
    client = Client(plan.urls[here.broker], client_id=f"phone-{number:03d}", patience_s=SETTLE_S)
    async with gate:
        await client.connect()
        await client.subscribe(f"kind = {number % KINDS}", topic="news")
    crowd.connected += 1
    got: list[int] = []
    reading = asyncio.create_task(_read(client, crowd, got))
    ready.set()
    await start.wait()
    loop = asyncio.get_running_loop()
    began = loop.time() - here.from_s / plan.pace
    while await _wait_until(began + here.to_s / plan.pace, end):
        client.vanish()
        crowd.connected -= 1
        there = next(path)
        if not await _wait_until(began + there.from_s / plan.pace, end):
            there = here  # the time is over while it is away: it comes back where it was
        if await _arrive(client, plan.urls[there.broker], crowd, gate):
            crowd.moves += there.broker != here.broker
        here = there
    await _wait_for_all(crowd, got, number % KINDS)
    await client.close()
    await reading
    crowd.repeated += client.repeated


async def _arrive(client: Client, url: str, crowd: Crowd, gate: asyncio.Semaphore) -> bool:
    """Connect at a broker; whether that succeeded."""
    for _ in range(5):
        try:
            async with gate:
                await client.move_to(url)
        except (OSError, SojournError, TimeoutError) as error:
            crowd.troubles.append(f"{client.client_id}: {error}")
            await asyncio.sleep(0.2)
        else:
            crowd.connected += 1
            return True
    return False


async def _read(client: Client, crowd: Crowd, got: list[int]) -> None:
    async for event in client:
        crowd.received += 1
        got.append(event.attributes["n"])


async def _wait_until(moment: float, end: asyncio.Event) -> bool:
    """Wait until a moment; say False if the end came before."""
    left = moment - asyncio.get_running_loop().time()
    if left <= 0:
        return not end.is_set()
    try:
        async with asyncio.timeout(left):
            await end.wait()
    except TimeoutError:
        return True
    return False


async def _wait_for_all(crowd: Crowd, got: list[int], kind: int) -> None:
    """Wait until a phone has all news of its kind, or until nothing has come to anybody for long."""
    wanted = len(range(kind, crowd.published, KINDS))
    since, seen = asyncio.get_running_loop().time(), crowd.received
    while len(got) < wanted and asyncio.get_running_loop().time() - since < SETTLE_S:
        await asyncio.sleep(0.2)
        if crowd.received != seen:
            since, seen = asyncio.get_running_loop().time(), crowd.received
