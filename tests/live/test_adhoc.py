"""Devices that meet without a broker: real processes, real clients, and nothing lost or doubled."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sojourn.cli.demo_adhoc import Application, Found, judge
from sojourn.live.adhoc.group import Gate, Group
from sojourn.live.client.client import Client

OPTIONS = ("--refresh-s", "0.5")
LIMIT_S = 240.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where devices keep what must not be lost."""
    return tmp_path / "devices"


@pytest.fixture
def groups() -> Iterator[list[Group]]:
    """Groups that are stopped at the end, whatever happens."""
    made: list[Group] = []
    yield made
    for group in made:
        group.stop()


@asynccontextmanager
async def _applications(group: Group, *names: str) -> AsyncIterator[list[Application]]:
    found = []
    try:
        for name in names:
            client = Client(group.sure(name).door, client_id=f"app-{name}", patience_s=LIMIT_S)
            found.append(Application(name, client))
            await found[-1].open()
        yield found
    finally:
        for one in found:
            await one.close()


async def _say(one: Application, times: int) -> None:
    for _ in range(times):
        await one.client.publish(f"talk/{one.name}", {"n": one.published}, qos=1)
        one.published += 1


async def _until(is_so: object, what: str) -> None:
    assert callable(is_so)
    async with asyncio.timeout(LIMIT_S):
        while not is_so():  # noqa: ASYNC110 - counts that other tasks raise
            await asyncio.sleep(0.05)
    assert is_so(), what


def _have_all(applications: list[Application]) -> bool:
    return not any(row["lost"] for row in judge(applications).values())


async def _wait(group: Group, is_so: object, what: str) -> None:
    assert callable(is_so)
    await asyncio.to_thread(group.wait, is_so, what, LIMIT_S)


def test_a_group_whose_broker_is_killed_loses_and_doubles_nothing(folder: Path, groups: list[Group]) -> None:
    """Three devices elect one; it is killed with what it keeps, another is elected, and it comes back."""
    group = Group(folder, ["ann", "bob", "cleo"], options=OPTIONS)
    groups.append(group)
    found = asyncio.run(_kill_the_elected_one(group))
    assert {row["lost"] for row in found.values()} == {0}
    assert {row["doubled"] for row in found.values()} == {0}


async def _kill_the_elected_one(group: Group) -> Found:
    await asyncio.to_thread(group.wait_until_ready)
    everybody = ("ann", "bob", "cleo")
    group.part(everybody)
    await _wait(group, lambda: group.agree(*everybody), "one is elected")
    async with _applications(group, *everybody) as applications:
        for one in applications:
            await _say(one, 10)
        await _until(lambda: _have_all(applications), "everybody has everything")
        killed = group.brokers()[0]
        # What nobody else has yet when it dies is in its log.
        away = next(one for one in applications if one.name == killed)
        await _say(away, 5)
        await asyncio.to_thread(group.kill, killed)
        rest = [name for name in everybody if name != killed]
        await _wait(group, lambda: group.agree(*rest), "the others elect another one")
        for one in applications:
            if one.name != killed:
                await _say(one, 10)
        group.start(killed)
        await _wait(group, lambda: group.agree(*everybody), "all have one broker again")
        for one in applications:
            await _say(one, 10)
        await _until(lambda: _have_all(applications), "everybody has everything again")
        await asyncio.sleep(2.0)  # what would come twice has time to come
        return judge(applications)


@pytest.mark.parametrize("meeting", ["merge", "coordinate"])
def test_two_groups_that_meet_and_reach_a_fixed_broker_lose_and_double_nothing(
    folder: Path, groups: list[Group], port: int, meeting: str
) -> None:
    """What was published apart reaches the others when they meet, and the fixed network when one is there."""
    found = asyncio.run(_meet_and_reach(folder, groups, port, meeting))
    assert {row["lost"] for row in found.values()} == {0}
    assert {row["doubled"] for row in found.values()} == {0}


async def _meet_and_reach(folder: Path, groups: list[Group], port: int, meeting: str) -> Found:
    gate = Gate("127.0.0.1", port)
    await gate.start()
    group = Group(
        folder, ["ann", "bob", "dan", "eve"], fixed=gate.url, options=(*OPTIONS, "--meeting", meeting)
    )
    groups.append(group)
    await asyncio.to_thread(group.wait_until_ready)
    group.part(("ann", "bob"), ("dan", "eve"))
    await _wait(group, lambda: group.agree("ann", "bob") and group.agree("dan", "eve"), "both elect a broker")
    everybody = ("ann", "bob", "dan", "eve")
    fixed = Application(
        "fixed", Client(f"mqtt://127.0.0.1:{port}", client_id="app-fixed", patience_s=LIMIT_S)
    )
    await fixed.open()
    async with _applications(group, *everybody) as applications:
        for one in applications:
            await _say(one, 10)
        assert not fixed.got
        group.part(everybody)
        await _until(lambda: _have_all(applications), "what was said apart has come")
        if meeting == "merge":
            await _wait(group, lambda: group.agree(*everybody), "one broker is left")
        else:
            assert len(group.brokers()) == 2, "both stay, and coordinate"
        gate.open()
        await _wait(group, lambda: any(group.sure(one).reaches_fixed for one in everybody), "reached")
        both = [*applications, fixed]
        for one in both:
            await _say(one, 5)
        await _until(lambda: _have_all(both), "everybody has everything, also in the fixed network")
        gate.shut()  # and again: what is offered or told a second time is known
        await _wait(
            group, lambda: not any(group.sure(one).reaches_fixed for one in everybody), "out of reach"
        )
        for one in both:
            await _say(one, 5)
        gate.open()
        await _until(lambda: _have_all(both), "everybody has everything once more")
        await asyncio.sleep(2.0)
        found = judge(both)
    await fixed.close()
    gate.stop()
    return found
