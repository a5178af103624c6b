"""What a live broker was told, told again to the same core without sockets, leads to the same effects."""

from __future__ import annotations

import asyncio
import pickle
import random
from typing import Any

from sojourn.broker.names import LiveInterests
from sojourn.broker.network import Network
from sojourn.broker.wire import Carried
from sojourn.interest import Filter
from sojourn.live.client.client import Client
from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.routing.effects import Effects
from tests.live.building import building, url
from tests.live.test_roaming import started, stop


def told(effects: Effects) -> list[Any]:
    """Effects as plain values that can be compared."""

    def plain(thing: Any) -> Any:
        if isinstance(thing, Carried):
            return ("event", thing.event.source, thing.event.sequence)
        if hasattr(thing, "publications"):
            return (type(thing).__name__, [plain(one) for one in thing.publications])
        if isinstance(thing, tuple):
            return tuple(plain(part) for part in thing)
        return repr(thing)

    return [
        [plain(one) for one in part]
        for part in (
            effects.sends,
            effects.deliveries,
            effects.timers,
            effects.cancels,
            effects.ready,
            effects.drops,
            effects.closes,
        )
    ]


class Recorded:
    """A core's door with a recorder beside it."""

    def __init__(self, network: Network) -> None:
        self.before = pickle.dumps((network.broker, network.interests))
        self.facts: list[tuple[bytes, float, list[Filter]]] = []
        """Each fact with its time, and the subscriptions that were numbered since the last one."""
        self.effects: list[list[Any]] = []
        self._core = network.broker
        self._interests = network.interests
        self._numbered = len(network.interests.subs)

    def handle(self, fact: facts.Fact, now: float) -> Effects:
        """Note the fact, pass it on, and note what it led to."""
        new = [wanted for number, wanted in self._interests.subs.items() if number >= self._numbered]
        self._numbered += len(new)
        self.facts.append((pickle.dumps(fact), now, new))
        effects = self._core.handle(fact, now)
        self.effects.append(told(effects))
        return effects

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)


def test_recorded_facts_lead_to_the_same_effects_in_another_core() -> None:
    """Six live brokers with moving clients: each broker's facts, fed to a fresh core, one by one."""

    async def scenario() -> list[Recorded]:
        config = building()
        servers = await started(config)
        recorded = []
        for server in servers:
            assert server.node is not None
            network = server.node.network
            assert network is not None
            recorder = Recorded(network)
            network.broker = recorder  # type: ignore[assignment]
            recorded.append(recorder)
        draw = random.Random(3)
        walkers = [Client(url(config, n % 6), client_id=f"w{n}") for n in range(6)]
        for n, walker in enumerate(walkers):
            await walker.connect()
            await walker.subscribe(f"n >= {n}")
        async with Client(url(config, 0), client_id="source") as source:
            for n in range(60):
                await source.publish("news", {"n": n})
                if n % 5 == 0:
                    await walkers[draw.randrange(6)].move_to(url(config, draw.randrange(6)))
        await asyncio.sleep(0.3)
        for walker in walkers:
            await walker.close()
        await stop(servers)
        return recorded

    recorded = asyncio.run(asyncio.wait_for(scenario(), 60))
    assert sum(len(one.facts) for one in recorded) > 500
    for one in recorded:
        core: Broker
        interests: LiveInterests
        core, interests = pickle.loads(one.before)  # noqa: S301 - our own
        for (fact, now, new), expected in zip(one.facts, one.effects, strict=True):
            for wanted in new:
                interests.subscription(wanted)
            effects = core.handle(pickle.loads(fact), now)  # noqa: S301 - our own
            assert told(effects) == expected
            effects.clear()
