"""What people look for on the page: clients, filters, topics, one client, who would get an event."""

from __future__ import annotations

import asyncio
import json
import urllib.parse
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from sojourn.broker import answering
from sojourn.broker.facts import StatusMade
from sojourn.broker.questions import AskClients
from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.page import asking, board
from sojourn.live.page.asking import Answered, Asked, is_talk
from sojourn.live.page.history import COARSE, FINE, STEP, History, Moment
from sojourn.live.page.views import PAGE_ROWS, QueryError, Views
from sojourn.mqtt import topic_counts
from sojourn.mqtt.topic_counts import TopicCounts
from tests.live.building import building, url
from tests.live.moving import with_page
from tests.live.test_page import get, report
from tests.live.test_roaming import started, stop

PATIENCE_S = 60
HOSTILE = "<img src=x onerror=alert(1)>\"'&"


def in_a_building(scenario: Callable[[list[Server], Views], Awaitable[None]]) -> None:
    """Run a scenario with six brokers, all of which are heard of."""

    async def run() -> None:
        servers = await started(with_page(building()))
        observer = servers[0].observer
        assert observer is not None
        assert observer.board is not None
        board = observer.board

        async def heard_of() -> int:
            return len(board.fresh(observer.node.now()))

        await until(heard_of, lambda heard: heard == len(servers))
        try:
            await scenario(servers, Views(observer))
        finally:
            await stop(servers)

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


async def until(look: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> Any:
    """Look until what is found is as wanted; the scenario's time is the limit."""
    while True:
        found = await look()
        if holds(found):
            return found
        await asyncio.sleep(0.05)


def test_clients_of_all_brokers_come_in_pages() -> None:
    """A hundred and twenty clients at six brokers: each once, in order; searching finds parts of names."""

    async def scenario(servers: list[Server], views: Views) -> None:
        config = servers[0].config
        clients = [Client(url(config, n % 6), client_id=f"Phone-{n:03d}") for n in range(120)]
        await asyncio.gather(*(client.connect() for client in clients))
        names: list[str] = []
        after: str | None = ""
        pages = 0
        while after is not None:
            found = await views.clients({"after": after})
            assert len(found["rows"]) <= PAGE_ROWS
            assert (found["count"], found["missing"]) == (120, [])
            names += [row["client"] for row in found["rows"]]
            after, pages = found["next"], pages + 1
        assert names == [f"Phone-{n:03d}" for n in range(120)]
        assert pages == 3
        found = await views.clients({"q": "phone-11", "state": "here"})
        assert [row["client"] for row in found["rows"]] == [f"Phone-11{n}" for n in range(10)]
        assert {row["broker"] for row in found["rows"]} == {f"B{n}" for n in range(1, 7)}
        found = await views.clients({"broker": "B2"})
        assert (found["count"], {row["broker"] for row in found["rows"]}) == (20, {"B2"})
        assert (await views.clients({"state": "away"}))["count"] == 0
        for client in clients:
            await client.close()

    in_a_building(scenario)


def test_one_client_is_followed() -> None:
    """Where it is and was, what it wants, and what waits for it and since when, while it is away."""

    async def scenario(servers: list[Server], views: Views) -> None:
        config = servers[0].config
        client = Client(url(config, 0), client_id=HOSTILE)
        await client.connect()
        await client.subscribe("kind = 3", topic="news")

        async def look() -> Any:
            return await views.client({"id": HOSTILE})

        await client.move_to(url(config, 2))
        await until(look, lambda found: len(found["trail"]) == 1)  # it has all its events there
        await client.move_to(url(config, 4))
        found = await until(look, lambda found: len(found["trail"]) == 2)
        assert [(move["origin"], move["broker"]) for move in found["trail"]] == [("B1", "B3"), ("B3", "B5")]
        (session,) = found["sessions"]
        assert (session["broker"], session["here"], session["came_from"]) == ("B5", True, "B3")
        assert session["address"].startswith("127.0.0.1")
        (subscription,) = session["subscriptions"]
        assert (subscription.topic, subscription.filter) == ("news", "kind = 3")
        client.vanish()
        async with Client(url(config, 0), client_id="source") as source:
            for _ in range(3):
                await source.publish("news", {"text": "hush-hush"}, attributes={"kind": 3})
        found = await until(look, lambda found: found["sessions"][0]["waiting"].events == 3)
        session = found["sessions"][0]
        assert not session["here"]
        waiting = session["waiting"]
        assert waiting.topics == [("news", 3)]
        assert waiting.bytes > 0
        assert 0 <= found["at_s"] - waiting.oldest_s < PATIENCE_S
        assert "hush-hush" not in msgspec.json.encode(found).decode(), "payloads are nobody's business"
        await client.connect()
        await client.close()

    in_a_building(scenario)


def test_who_would_get_this_is_who_gets_it() -> None:
    """The tester names exactly the clients that an event reaches then, and publishes nothing itself."""

    async def scenario(servers: list[Server], views: Views) -> None:
        config = servers[0].config
        clients = [Client(url(config, n % 6), client_id=f"phone-{n:02d}") for n in range(12)]
        for number, client in enumerate(clients):
            await client.connect()
            await client.subscribe(f"kind = {number % 3}", topic="news/+")
        clients[0].vanish()
        question = {"topic": "news/local", "event": '{"kind": 0, "text": "x"}'}

        async def look() -> Any:
            return await views.who(question)

        found = await until(look, lambda found: found["counts"].get("kept") == 1)
        assert found["counts"] == {"now": 3, "kept": 1}
        assert [(row["client"], row["broker"]) for row in found["rows"]] == [
            ("phone-00", "B1"), ("phone-03", "B4"), ("phone-06", "B1"), ("phone-09", "B4"),
        ]  # fmt: skip
        assert found["rows"][0]["filter"] == "kind = 0"
        assert found["attributes"] == ["kind", "text", "topic"]
        assert (await views.who(question | {"qos": "0"}))["counts"] == {"now": 3, "missed": 1}
        assert (await views.who({"topic": "sport"}))["rows"] == []
        assert sum(broker.core.state.counters.received for broker in _nodes(servers)) == 0
        await clients[0].connect()
        async with Client(url(config, 2), client_id="source") as source:
            await source.publish("news/local", {"text": "x"}, attributes={"kind": 0})
        for number in (0, 3, 6, 9):
            assert (await clients[number].next(timeout_s=PATIENCE_S)).topic == "news/local"
        delivered = sum(broker.core.state.counters.delivered for broker in _nodes(servers))
        assert delivered == 4
        for client in clients:
            await client.close()

    in_a_building(scenario)


def _nodes(servers: list[Server]) -> list[Any]:
    return [server.node for server in servers]


def test_a_policy_keeps_an_event_from_strangers() -> None:
    """Who may not see an event is named as such."""

    async def scenario(servers: list[Server], views: Views) -> None:
        config = servers[0].config
        nurse = Client(url(config, 0), client_id="nurse", attributes={"role": "nurse"})
        guest = Client(url(config, 1), client_id="guest")
        for client in (nurse, guest):
            await client.connect()
            await client.subscribe(topic="ward")
        found = await views.who({"topic": "ward", "policy": "role = 'nurse'"})
        assert {row["client"]: row["how"] for row in found["rows"]} == {"nurse": "now", "guest": "policy"}
        for client in (nurse, guest):
            await client.close()

    in_a_building(scenario)


def test_filters_and_topics_are_summed_over_brokers() -> None:
    """Equal filters are one row with their subscribers; topics are counted where they are published."""

    async def scenario(servers: list[Server], views: Views) -> None:
        config = servers[0].config
        clients = [Client(url(config, n), client_id=f"phone-{n}") for n in range(6)]
        for number, client in enumerate(clients):
            await client.connect()
            await client.subscribe(f"kind > {number % 2}", topic="news/#")
        found = await views.filters({})
        assert [(row["topic"], row["filter"], row["subscribers"]) for row in found["rows"]] == [
            ("news/#", "kind > 0", 3),
            ("news/#", "kind > 1", 3),
        ]
        assert found["rows"][0]["brokers"] == ["B1", "B3", "B5"]
        assert (await views.filters({"q": "KIND > 1"}))["rows"][0]["filter"] == "kind > 1"
        after = "news/#\x00kind > 0"
        assert [row["filter"] for row in (await views.filters({"after": after}))["rows"]] == ["kind > 1"]
        for number in (0, 1):
            await clients[number].publish("news/a", b"1")
        await clients[0].publish("news/b", b"22", retain=True)
        topics = (await views.topics({}))["rows"]
        assert [(row["topic"], row["events"]) for row in topics] == [("news/a", 2), ("news/b", 1)]
        assert topics[0]["brokers"] == ["B1", "B2"]
        assert [row["retained_bytes"] for row in topics] == [None, 2]
        assert [row["topic"] for row in (await views.topics({"q": "/B"}))["rows"]] == ["news/b"]
        for client in clients:
            await client.close()

    in_a_building(scenario)


def test_who_does_not_answer_is_named() -> None:
    """A broker that is down is missing from the answer; the others' answers are shown."""

    async def scenario(servers: list[Server], views: Views) -> None:
        gone = servers.pop()
        await gone.stop()

        async def look() -> Any:
            return await views.clients({})

        found = await until(look, lambda found: found["missing"] == ["B6"])
        assert found["rows"] == []
        found = await until(lambda: views.clients({"broker": "B6"}), lambda found: found["missing"] == ["B6"])
        assert found["rows"] == []

    in_a_building(scenario)


def test_questions_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many at once are refused with a sentence, nonsense and over-long answers are let go."""
    monkeypatch.setattr(asking, "ASKING_MAX", 1)

    async def scenario(servers: list[Server], views: Views) -> None:
        observer = servers[0].observer
        assert observer is not None
        first = asyncio.ensure_future(views.clients({}))
        await asyncio.sleep(0)
        with pytest.raises(asking.BusyError, match="ask again"):
            await views.clients({})
        await first
        encode = msgspec.msgpack.encode
        wrong = Answered("B1", 0, 99, msgspec.Raw(encode({})), [])
        for body in (b"\x93\x01\x02\x03", encode(wrong), b"\x90" * (asking.TALK_BYTES_MAX + 1)):
            observer.heard("B2", body, 0.0)
        assert servers[1].node is not None
        servers[1].node.tell(StatusMade(encode(Asked(1, ["B3"], AskClients()))))
        assert (await views.clients({}))["missing"] == []

    in_a_building(scenario)


def test_requests_are_answered_or_refused_in_a_sentence() -> None:
    """Over HTTP: JSON where it is understood, 400 and why where it is not."""

    async def scenario(servers: list[Server], _views: Views) -> None:
        page = f"http://{servers[0].page}"

        async def ask(path: str, **given: str) -> tuple[int, Any]:
            query = urllib.parse.urlencode(given)
            status, body = await asyncio.to_thread(get, f"{page}{path}?{query}")
            return status, json.loads(body)

        for path in ("/clients", "/filters", "/topics", "/history"):
            assert (await ask(path))[0] == 200, path
        for path, given, why in [
            ("/clients", {"state": "gone"}, "state is here, away"),
            ("/clients", {"broker": HOSTILE}, "There is no broker"),
            ("/clients", {"q": "x" * 201}, "at most 200"),
            ("/client", {}, "id names the client"),
            ("/who", {"topic": "a/#"}, "wildcard"),
            ("/who", {}, "at least one character"),
            ("/who", {"topic": "a", "event": "{kind: 3}"}, "no JSON"),
            ("/who", {"topic": "a", "event": "[1]"}, "no JSON object"),
            ("/who", {"topic": "a", "qos": "3"}, "qos is 0, 1 or 2"),
            ("/who", {"topic": "a", "policy": "role ="}, "The filter ends"),
            ("/history", {"broker": "B9"}, "no broker"),
        ]:
            status, found = await ask(path, **given)
            assert (status, list(found)) == (400, ["error"]), (path, given)
            assert why in found["error"], found
        status, _ = await asyncio.to_thread(get, page + "/clients?q=%ff")
        assert status == 400
        assert (await asyncio.to_thread(get, page + "/client?id=nobody"))[0] == 200
        for path in ("/../page.py", "/page.py", "/views.py"):
            assert (await asyncio.to_thread(get, page + path))[0] == 404

    in_a_building(scenario)


def test_a_long_list_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are made in steps of so many sessions, no more than a limit are looked at, and it is said."""
    monkeypatch.setattr(answering, "STEP", 10)
    monkeypatch.setattr(answering, "LOOKED_MAX", 40)

    async def scenario(servers: list[Server], _views: Views) -> None:
        node = servers[0].node
        assert node is not None
        clients = [Client(url(servers[0].config, 0), client_id=f"c{n:02d}") for n in range(60)]
        await asyncio.gather(*(client.connect() for client in clients))
        steps = answering.answer(AskClients(rows=5), node.core, node.network, 0.0)
        turns = 0
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found = end.value
                break
            turns += 1
        assert turns == 4
        assert (found.looked, found.sessions, len(found.rows)) == (40, 60, 5)
        for client in clients:
            await client.close()

    in_a_building(scenario)


def test_an_hour_takes_the_same_room_however_long_it_lasts() -> None:
    """The last minutes one by one, the hour in steps with mean rates and the worst of the rest."""
    history = History()
    for second in range(5_000):
        p99_s = 0.5 if second % STEP == 3 else None
        history.add(Moment(float(second), second % 2, 0.0, 0.0, second % STEP, second, None, p99_s))
    assert len(history.minutes()) == FINE
    assert len(history.hour()) == COARSE
    last = history.hour()[-1]
    assert (last.at_s, last.published_rate, last.queue_bytes, last.clients) == (4_999.0, 0.5, 9, 4_999)
    assert (last.p50_s, last.p99_s) == (None, 0.5)
    history.add(Moment(5_000.0, 8.0, 0.0, 0.0, 0, 1, None, None))
    assert history.hour()[-1].published_rate == 8.0, "the step that is not over is shown"


def test_a_report_is_told_from_a_question() -> None:
    """Reports are maps, questions and answers arrays: a broker without questions reads no report in them."""
    assert not is_talk(msgspec.msgpack.encode(report(1.0)))
    assert not is_talk(b"")
    assert is_talk(msgspec.msgpack.encode(Asked(1, [], AskClients())))
    with pytest.raises(QueryError):
        raise QueryError("as the page says it")


def test_topics_beyond_the_limit_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of topics takes no more room; who looks now and then forgets the least busy ones."""
    monkeypatch.setattr(topic_counts, "TOPICS_MAX", 4)
    counts = TopicCounts()
    for number in range(6):
        counts.begin(f"t{number}", 10.0 + number)
    assert (list(counts.rows), counts.beyond, counts.since_s) == (["t0", "t1", "t2", "t3"], 2, 10.0)
    counts.rows["t3"][0] = 9
    counts.rows["t1"][0] = 5
    counts.make_room()
    assert set(counts.rows) == {"t1", "t3"}
    counts.make_room()
    assert set(counts.rows) == {"t1", "t3"}, "there is room"


def test_events_on_very_long_topics_are_counted_together() -> None:
    """Nobody who publishes on such topics takes memory by that."""
    counts = TopicCounts()
    counts.begin("x" * topic_counts.COUNTED_CHARS_MAX, 1.0)
    counts.begin("x" * (topic_counts.COUNTED_CHARS_MAX + 1), 2.0)
    assert [len(topic) for topic in counts.rows] == [topic_counts.COUNTED_CHARS_MAX]
    assert counts.beyond == 1


def test_a_broker_answers_so_many_questions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond that it is silent, and whoever asked says so."""
    monkeypatch.setattr(asking, "ANSWERING_MAX", 0)
    monkeypatch.setattr(asking, "ANSWER_S", 0.2)

    async def scenario(_servers: list[Server], views: Views) -> None:
        found = await views.clients({})
        assert found["missing"] == [f"B{number}" for number in range(1, 7)]

    in_a_building(scenario)


def test_the_map_shows_a_bounded_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many clients the same few are shown every time, whichever broker they are at; numbers are of all."""
    monkeypatch.setattr(board, "DOTS_MAX", 10)
    shown: list[set[str]] = []
    for shift in (0, 7):
        shows = board.Board(building(), "B1")
        for number in range(6):
            names = [(f"c{n}", 1.0) for n in range(100) if (n + shift) % 6 == number]
            shows.take(f"B{number + 1}", report(1.0, clients=len(names), present=names), 1.0)
        state = shows.state(1.0)
        assert sum(broker["report"].clients for broker in state["brokers"]) == 100
        shown.append({client for broker in state["brokers"] for client, _ in broker["report"].present})
    assert len(shown[0]) == 10
    assert shown[0] == shown[1]


def test_a_page_with_a_password_shows_nothing_without_it() -> None:
    """Views and the page's own files ask for it like the rest."""

    async def scenario() -> None:
        config = building()
        first, *rest = config.brokers
        kept = msgspec.structs.replace(first, page="127.0.0.1:0", page_password=hash_password("hush"))
        server = Server(msgspec.structs.replace(config, brokers=[kept, *rest]), "B1")
        await server.start()
        page = f"http://{server.page}"
        for path in ("/", "/main.js", "/page.css", "/clients", "/client?id=x", "/who?topic=a", "/history"):
            assert (await asyncio.to_thread(get, page + path))[0] == 401, path
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
