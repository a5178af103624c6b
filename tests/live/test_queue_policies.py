"""Subscriptions that want only a part of what their client missed, at one broker and in a network."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sojourn import Client
from sojourn.mqtt.content import ContentError
from sojourn.mqtt.conventions import BUDGET, EXPIRY, KEEP
from sojourn.mqtt.queue_policies import THIN_AT, read_policy
from tests.live.building import url
from tests.live.raw_client import Raw
from tests.live.test_quenching import pair
from tests.live.test_roaming import started, stop


def test_properties_are_read_or_refused_with_a_sentence() -> None:
    """Each names itself and says what it may be."""
    assert read_policy([("filter", "x > 1")]) is None
    policy = read_policy([(KEEP, "last:room"), (EXPIRY, "1.5"), (BUDGET, "2000")])
    assert policy is not None
    assert (policy.keep, policy.key, policy.expiry_s, policy.reconnect_bytes_max) == (
        "last",
        "room",
        1.5,
        2000,
    )
    policy = read_policy([(KEEP, "lowest:price")])
    assert policy is not None
    assert (policy.keep, policy.value) == ("lowest", "price")
    for name, text in (
        (KEEP, "last"),
        (KEEP, "newest:room"),
        (KEEP, "highest:"),
        (EXPIRY, "soon"),
        (EXPIRY, "-1"),
        (EXPIRY, "nan"),
        (EXPIRY, "inf"),
        (BUDGET, "0"),
        (BUDGET, "much"),
    ):
        with pytest.raises(ContentError, match=name):
            read_policy([(name, text)])
    with pytest.raises(ContentError, match="one sojourn-budget"):
        read_policy([(BUDGET, "1"), (BUDGET, "2")])


def test_a_subscription_that_cannot_be_read_is_refused_and_the_session_goes_on(port: int) -> None:
    """With the reason code for what is our own."""
    with Raw(port) as client:
        client.connect("unclear")
        assert client.subscribe("t", user_properties=[(KEEP, "everything")]) == [0x83]
        assert client.subscribe("t", user_properties=[(KEEP, "last:k")]) == [2]
        client.publish("t", b"here", qos=1)
        assert client.message().payload == b"here"


async def _missed(reader: Client, source: Client, count: int = 30) -> None:
    """Publish while the reader is away: rooms in turn, temperatures that rise and fall."""
    await reader.close()
    await asyncio.sleep(0.2)  # until the broker knows: what is sent before then is on its way, not missed
    for n in range(count):
        await source.publish("rooms", {"n": n, "room": n % 3, "celsius": 20 - abs(n - 15)})


async def _read(client: Client) -> list[int]:
    got: list[Any] = []
    while not got or got[-1] != "end":
        got.append((await client.next(5)).attributes["n"])
    return [n for n in got if n != "end"]


CASES = [
    ({"keep": "last:room"}, [27, 28, 29]),
    ({"keep": "highest:celsius"}, [15]),
    ({"keep": "lowest:celsius"}, [0]),
    ({}, list(range(30))),
]


@pytest.mark.parametrize(("options", "expected"), CASES)
def test_one_broker_keeps_what_the_subscription_wants(
    port: int, options: dict[str, Any], expected: list[int]
) -> None:
    """What the client missed is thinned; what comes while it is there is not."""

    async def scenario() -> None:
        address = f"mqtt://127.0.0.1:{port}"
        name = f"reader-{options}"
        async with Client(address) as source:
            reader = Client(address, client_id=name)
            await reader.connect()
            await reader.subscribe(topic="rooms", **options)
            for n in (100, 103):
                await source.publish("rooms", {"n": n, "room": 1, "celsius": 0})
            assert [(await reader.next(5)).attributes["n"] for _ in range(2)] == [100, 103]
            await _missed(reader, source)
            async with Client(address, client_id=name) as back:
                await asyncio.sleep(0.1)
                await source.publish("rooms", {"n": "end", "room": 1, "celsius": 0})
                assert await _read(back) == expected

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_what_is_too_old_or_over_budget_is_not_sent(port: int) -> None:
    """The budget takes the newest; another subscription of the same client may want everything."""

    async def scenario() -> None:
        address = f"mqtt://127.0.0.1:{port}"
        async with Client(address) as source:
            readers: dict[str, dict[str, Any]] = {"old": {"expiry_s": 0.5}, "dear": {"budget_bytes": 400}}
            for name, options in readers.items():
                reader = Client(address, client_id=name)
                await reader.connect()
                await reader.subscribe(topic="rooms", **options)
                await reader.close()
            both = Client(address, client_id="both")
            await both.connect()
            await both.subscribe(topic="rooms", expiry_s=0.5)
            await both.subscribe(topic="#")
            await _missed(both, source)
            await asyncio.sleep(0.6)
            await source.publish("rooms", {"n": 30, "room": 1, "celsius": 0})
            got = {}
            for name in (*readers, "both"):
                async with Client(address, client_id=name) as back:
                    await asyncio.sleep(0.1)
                    await source.publish("rooms", {"n": "end", "room": 1, "celsius": 0})
                    got[name] = await _read(back)
            assert got["old"] == [30]
            assert got["both"] == list(range(31))
            assert 1 < len(got["dear"]) < 10
            assert got["dear"] == list(range(31))[-len(got["dear"]) :]

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_long_absence_does_not_fill_the_queue(port: int) -> None:
    """What would be dropped at the return is dropped before, so that the newest always finds room."""

    async def scenario() -> None:
        address = f"mqtt://127.0.0.1:{port}"
        count = 5 * THIN_AT
        async with Client(address) as source:
            reader = Client(address, client_id="long")
            await reader.connect()
            await reader.subscribe(topic="rooms", keep="last:room")
            await _missed(reader, source, count)
            async with Client(address, client_id="long") as back:
                await asyncio.sleep(0.1)
                await source.publish("rooms", {"n": "end", "room": 1})
                assert await _read(back) == [count - 3, count - 2, count - 1]

    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize(("options", "expected"), [*CASES, ({"expiry_s": 0.5}, [])])
def test_a_network_keeps_it_where_the_client_arrives(options: dict[str, Any], expected: list[int]) -> None:
    """Away from one broker, back at the other; and once more, where nothing old comes again."""

    async def scenario() -> None:
        config = pair()
        servers = await started(config)
        async with Client(url(config, 0)) as source:
            reader = Client(url(config, 0), client_id="reader")
            await reader.connect()
            await reader.subscribe(topic="rooms", **options)
            await _missed(reader, source)
            if "expiry_s" in options:
                await asyncio.sleep(0.6)
            for at in (1, 0):
                back = Client(url(config, at), client_id="reader")
                await back.connect()
                await asyncio.sleep(0.2)
                await source.publish("rooms", {"n": "end", "room": 1, "celsius": 0})
                assert await _read(back) == (expected if at == 1 else [])
                await back.close()
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_an_event_of_quality_0_leaves_nothing_to_wait_for_in_a_network() -> None:
    """Nobody acknowledges it, so that it must not be counted as on its way."""

    async def scenario() -> None:
        config = pair()
        servers = await started(config)
        async with Client(url(config, 0)) as source, Client(url(config, 1), client_id="reader") as reader:
            await reader.subscribe(topic="t", qos=0)
            await asyncio.sleep(0.1)
            for _ in range(5):
                await source.publish("t", b"")
                await reader.next(5)
            node = servers[1].node
            assert node is not None
            assert node.network is not None
            assert [dict(roamer.outstanding) for roamer in node.network.clients.roamers.values()] == [{}]
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 30))
