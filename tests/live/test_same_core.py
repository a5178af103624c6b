"""What a live broker was told, told again to the same core without sockets, leads to the same effects."""

from __future__ import annotations

import asyncio
import random
from typing import Any, NamedTuple

import pytest

from sojourn.broker import facts
from sojourn.broker.effects import Turn
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import Settings
from sojourn.live.brokers import node
from sojourn.live.client.client import Client
from tests.live.building import building, url
from tests.live.test_roaming import started, stop


def told(turn: Turn) -> list[Any]:
    """What a turn asks for, as plain values that can be compared."""
    kinds = [note.kind for note in turn.notes]
    lists = (turn.writes, turn.closes, turn.peer_writes, turn.peer_closes, turn.holds, turn.releases, kinds)
    return [list(one) for one in lists]


class Call(NamedTuple):
    """One call of a broker: a fact that it was told, or what a turn led to."""

    now: float
    fact: facts.Fact | None
    effects: list[Any]


class Recorded(LiveBroker):
    """A broker with a recorder at its door."""

    made: list[Recorded] = []  # noqa: RUF012 - all of a test's, which empties it

    def __init__(self, settings: Settings, life: str, *, remembers: bool = False) -> None:
        super().__init__(settings, life, remembers=remembers)
        self.calls: list[Call] = []
        self._is_inside = False
        self.made.append(self)

    def handle(self, fact: facts.Fact, now: float) -> None:
        """Note the fact unless it is the broker's own, and pass it on."""
        if not self._is_inside:
            self.calls.append(Call(now, fact, []))
        super().handle(fact, now)

    def turn(self, now: float) -> Turn:
        """Note what the turn leads to."""
        self._is_inside = True
        turn = super().turn(now)
        self._is_inside = False
        self.calls.append(Call(now, None, told(turn)))
        return turn


def test_recorded_facts_lead_to_the_same_effects_in_another_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six live brokers with moving clients: each broker's facts, fed to a fresh one, turn by turn."""
    monkeypatch.setattr(node, "LiveBroker", Recorded)
    monkeypatch.setattr(Recorded, "made", [])

    async def scenario() -> None:
        config = building()
        servers = await started(config)
        draw = random.Random(3)
        walkers = [Client(url(config, n % 6), client_id=f"w{n}") for n in range(6)]
        for n, walker in enumerate(walkers):
            await walker.connect()
            await walker.subscribe(f"n >= {n}")
        async with Client(url(config, 0), client_id="source") as source:
            for n in range(60):
                await source.publish("news", {"n": n}, qos=n % 2)
                if n % 5 == 0:
                    await walkers[draw.randrange(6)].move_to(url(config, draw.randrange(6)))
        for walker in walkers:
            await walker.close()
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert len(Recorded.made) == 6
    assert sum(call.fact is not None for one in Recorded.made for call in one.calls) > 500
    for one in Recorded.made:
        fresh = LiveBroker(one.settings, one.life)
        for now, fact, effects in one.calls:
            if fact is not None:
                fresh.handle(fact, now)
                fresh.knocks.clear()  # what they were answered is among the facts
            else:
                assert told(fresh.turn(now)) == effects
