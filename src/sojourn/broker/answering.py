"""Answers questions about a live broker (`questions.py`) by looking at it, and changes nothing.

An answer is made in steps: between two of them the driver serves clients, so a question holds nobody up
however many sessions there are. What is looked at in one step, and in all of them, has limits; an answer that
could not look at everything says so. Names are listed when a question comes, and looked up one by one: what
has gone meanwhile is left out.

"Who would get this?" asks what a publish asks: the tree of topic filters and the index of content filters,
then each session's own subscriptions and the sender's permission to be seen.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from sojourn.broker import questions as ask
from sojourn.mobility.copies import State as Keeping
from sojourn.mobility.holdings import Holding
from sojourn.mqtt.content import attributes_of, parse_policy
from sojourn.mqtt.message import Message, new_message
from sojourn.mqtt.session import NEVER, Session, Subscription

if TYPE_CHECKING:
    from sojourn.broker.network import Network
    from sojourn.mqtt.core import Core

STEP = 500
"""Sessions or subscriptions that are looked at before clients have their turn again."""
LOOKED_MAX = 200_000
"""Sessions or subscriptions that one question looks at."""
WAITING_LOOKED_MAX = 1_000
"""Waiting events whose topics are counted."""
TOPICS_TOLD = 5
SUBSCRIPTIONS_TOLD = 200

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Yields when others may have their turn, and returns the answer."""


def answer(question: ask.Question, core: Core, network: Network | None, now: float) -> Steps[ask.Found]:
    """Look for the answer to a question, step by step."""
    return _LOOKS[type(question)](question, core, network, now)


# Clients ---------------------------------------------------------------------------------------------------


def _clients(question: ask.AskClients, core: Core, network: Network | None, _now: float) -> Steps[ask.Found]:
    sessions = core.state.sessions
    names = list(sessions)
    rows = _rows(question.rows)
    needle = question.needle.casefold()
    wanted: list[str] = []
    count = 0
    for part in _in_steps(names[:LOOKED_MAX]):
        for name in part:
            session = sessions.get(name)
            if session is None or (needle and needle not in name.casefold()):
                continue
            if question.state and (question.state == "here") != (session.connection is not None):
                continue
            count += 1
            if name > question.after:
                wanted.append(name)
        if len(wanted) > STEP:
            wanted = heapq.nsmallest(rows, wanted)
        yield
    listed = [
        _client_row(session, network)
        for name in heapq.nsmallest(rows, wanted)
        if (session := sessions.get(name)) is not None
    ]
    return ask.ClientsFound(
        rows=listed, count=count, looked=min(len(names), LOOKED_MAX), sessions=len(sessions)
    )


def _client_row(session: Session, network: Network | None) -> ask.ClientRow:
    events, size, _ = _waiting(session, network)
    here = session.connection is not None
    return ask.ClientRow(
        client=session.client_id,
        here=here,
        since_s=_connected_since(session, network) if here else session.left_s,
        user=session.username[: ask.TEXT_MAX],
        subscriptions=len(session.subscriptions),
        waiting=events,
        waiting_bytes=size,
    )


def _client(question: ask.AskClient, core: Core, network: Network | None, _now: float) -> Steps[ask.Found]:
    session = core.state.sessions.get(question.client)
    holding = _holding(question.client, network)
    is_copy = holding is not None and (session is None or holding.state is Keeping.LEAVING)
    found = ask.ClientFound(
        session=None if session is None else _session(session, network),
        copy=holding.state.name.lower() if holding is not None and is_copy else "",
        copy_waiting=_wait((*holding.queue, *holding.forwarded), holding.bytes)
        if holding is not None and is_copy
        else None,
    )
    yield
    return found


def _session(session: Session, network: Network | None) -> ask.SessionFound:
    connection = session.connection
    roamer = _roamer(session.client_id, network)
    events, size, oldest = _waiting(session, network)
    came_from = ""
    if network is not None and roamer is not None and roamer.previous is not None:
        came_from = network.links.names_of[roamer.previous]
    told = sorted(session.subscriptions.values(), key=lambda one: one.text)[:SUBSCRIPTIONS_TOLD]
    unanswered = sum(1 for one in session.inflight.values() if one is not None)
    return ask.SessionFound(
        here=connection is not None,
        since_s=_connected_since(session, network) if connection is not None else session.left_s,
        started_s=session.started_s,
        expiry_s=None if session.expiry == NEVER else session.expiry,
        expires_s=session.expires_s,
        user=session.username[: ask.TEXT_MAX],
        address="" if connection is None else connection.peer,
        heard_s=None if connection is None else connection.seen_s or None,
        keep_alive_s=0 if connection is None else connection.keep_alive_s,
        reads=connection is None or not connection.blocked,
        came_from=came_from,
        subscriptions=[_subscription(one) for one in told],
        subscriptions_count=len(session.subscriptions),
        advertisements=[text[: ask.TEXT_MAX] for text in session.advertisements[:SUBSCRIPTIONS_TOLD]],
        waiting=_wait(oldest, size, events, unanswered),
    )


def _subscription(one: Subscription) -> ask.SubscriptionRow:
    missed = "all"
    if one.policy is not None:
        parts: list[str] = [one.policy.keep]
        parts += [f"of each {one.policy.key}"] if one.policy.key else []
        parts += [f"not older than {one.policy.expiry_s:g} s"] if one.policy.expiry_s is not None else []
        missed = ", ".join(parts)
    return ask.SubscriptionRow(
        topic=one.text[: ask.TEXT_MAX],
        filter=(one.filter_text or "")[: ask.TEXT_MAX],
        qos=one.qos,
        since_s=one.since_s,
        missed=missed,
    )


def _waiting(session: Session, network: Network | None) -> tuple[int, int, Iterable[Any]]:
    """How many events wait for a client, their bytes, and the events, the oldest first.

    Where brokers keep events for clients that move, those are all: what is in the session is among them.
    """
    holding = _holding(session.client_id, network)
    roamer = _roamer(session.client_id, network)
    if holding is not None and roamer is not None and roamer.roams:
        forwarded = sum(one.size for one in holding.forwarded)
        events = len(holding.queue) + len(holding.forwarded)
        return events, holding.bytes + forwarded, _chain(holding.forwarded, holding.queue)
    sent = [one for one in session.inflight.values() if one is not None]
    events = len(sent) + len(session.queue)
    return events, session.queued_bytes + session.inflight_bytes, _chain(sent, session.queue)


def _chain(*lists: Iterable[Any]) -> Iterator[Any]:
    for each in lists:
        yield from each


def _wait(waiting: Iterable[Any], size: int, events: int | None = None, unanswered: int = 0) -> ask.Wait:
    """What waits, given deliveries or carried events with the messages that they are."""
    topics: Counter[str] = Counter()
    oldest_s: float | None = None
    looked = 0
    for one in islice(waiting, WAITING_LOOKED_MAX):
        message: Message = one.message
        looked += 1
        topics[message.topic[: ask.TEXT_MAX]] += 1
        oldest_s = message.arrived_s if oldest_s is None else min(oldest_s, message.arrived_s)
    return ask.Wait(
        events=looked if events is None else events,
        bytes=size,
        oldest_s=oldest_s,
        topics=topics.most_common(TOPICS_TOLD),
        unanswered=unanswered,
    )


def _roamer(client_id: str, network: Network | None) -> Any:
    number = None if network is None else network.links.names.known(client_id)
    return None if network is None or number is None else network.clients.roamers.get(number)


def _holding(client_id: str, network: Network | None) -> Holding | None:
    number = None if network is None else network.links.names.known(client_id)
    return None if network is None or number is None else network.clients.broker.subscribers.main.get(number)


def _connected_since(session: Session, network: Network | None) -> float | None:
    roamer = _roamer(session.client_id, network)
    return None if roamer is None else roamer.since


# Filters and topics ----------------------------------------------------------------------------------------


def _filters(question: ask.AskFilters, core: Core, _network: Network | None, _now: float) -> Steps[ask.Found]:
    sessions = core.state.sessions
    names = list(sessions)
    needle = question.needle.casefold()
    found: dict[tuple[str, str], list[Any]] = {}
    looked = since_step = 0
    for name in names:
        session = sessions.get(name)
        if session is None or looked >= LOOKED_MAX:
            continue
        for one in session.subscriptions.values():
            key = one.text, one.filter_text or ""
            if not needle or needle in key[0].casefold() or needle in key[1].casefold():
                row = found.setdefault(key, [0, one.since_s])
                row[0] += 1
                row[1] = min(row[1], one.since_s)
        looked += max(1, len(session.subscriptions))
        since_step += max(1, len(session.subscriptions))
        if since_step >= STEP:
            since_step = 0
            yield
    later = (key for key in found if key > tuple(question.after))
    rows = [
        ask.FilterRow(
            topic=topic[: ask.TEXT_MAX],
            filter=text[: ask.TEXT_MAX],
            subscribers=found[topic, text][0],
            since_s=found[topic, text][1],
        )
        for topic, text in heapq.nsmallest(_rows(question.rows), later)
    ]
    return ask.FiltersFound(rows=rows, count=len(found), looked=looked, sessions=len(names))


def _topics(question: ask.AskTopics, core: Core, _network: Network | None, now: float) -> Steps[ask.Found]:
    counts = core.state.topics
    needle = question.needle.casefold()
    found = [
        (row[0], topic) for topic, row in counts.rows.items() if not needle or needle in topic.casefold()
    ]
    yield
    rows = []
    for events, topic in heapq.nlargest(_rows(question.rows), found):
        kept = core.state.retained.get(topic)
        is_kept = kept is not None and kept.expires_s > now
        row = counts.rows.get(topic)
        rows.append(
            ask.TopicRow(
                topic=topic[: ask.TEXT_MAX],
                events=int(events),
                last_s=0.0 if row is None else row[1],
                retained_bytes=len(kept.payload) if kept is not None and is_kept else None,
            )
        )
    return ask.TopicsFound(rows=rows, count=len(found), beyond=counts.beyond, since_s=counts.since_s)


# Who would get this? ---------------------------------------------------------------------------------------


def _who(question: ask.AskWho, core: Core, _network: Network | None, now: float) -> Steps[ask.Found]:
    policy = parse_policy(question.policy) if question.policy else None
    message = new_message(question.topic, question.payload.encode(), qos=question.qos, now=now, policy=policy)
    route = core.state.tree.find(question.topic)
    passed = set(core.state.filters.passed(message, route.filters, route.tests)) if route.filters else set()
    yield
    counts: Counter[str] = Counter()
    found: list[ask.Receiver] = []
    rows = _rows(question.rows)
    for part in _in_steps(list(_fitting(route, passed))):
        for one, qos, share in part:
            if one.session.ended:
                continue
            how = _how(message, one.session, qos)
            counts[how] += 1
            found.append(
                ask.Receiver(
                    client=one.session.client_id,
                    how=how,
                    topic=one.text[: ask.TEXT_MAX],
                    filter=(one.filter_text or "")[: ask.TEXT_MAX],
                    qos=qos,
                    share=share,
                )
            )
        found = heapq.nsmallest(rows, found, key=lambda row: row.client)
        yield
    names = sorted(attributes_of(message)[0])[: ask.ROWS_MAX]
    return ask.WhoFound(rows=found, counts=dict(counts), attributes=names)


def _fitting(route: Any, passed: Any) -> Iterator[tuple[Subscription, int, str]]:
    """By session the first subscription that fits, with the best QoS of those that do; then shares."""
    for several in route.by_session.values():
        fitting = [one for one in several if one.filter is None or one.filter in passed]
        if fitting:
            yield fitting[0], max(one.qos for one in fitting), ""
    for share in route.shares:
        for one in share.members.values():
            if one.filter is None or one.filter in passed:
                yield one, one.qos, one.share


def _how(message: Message, session: Session, qos: int) -> str:
    """How a session that an event is for would get it."""
    if message.policy is not None and not message.policy.permits(session.attributes):
        return "policy"
    if session.connection is not None:
        return "now"
    return "kept" if min(message.qos, qos) and session.expiry else "missed"


def _in_steps(things: list[T]) -> Iterator[list[T]]:
    return (things[start : start + STEP] for start in range(0, len(things), STEP))


def _rows(asked: int) -> int:
    return max(1, min(asked, ask.ROWS_MAX))


_LOOKS: dict[type, Callable[..., Steps[ask.Found]]] = {
    ask.AskClients: _clients,
    ask.AskClient: _client,
    ask.AskFilters: _filters,
    ask.AskTopics: _topics,
    ask.AskWho: _who,
}
