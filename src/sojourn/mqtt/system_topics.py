"""`$SYS` topics: how a broker is doing, for whoever subscribes to them.

Each broker tells of itself alone, and only its own clients. The values are made when somebody asks: at
SUBSCRIBE, as if they were retained, and again every few seconds (`tell`). To count sessions takes a while
where there are many, so who subscribes is told what was found a moment before. They are sent at QoS 0 and
kept nowhere. Who may subscribe to them is decided like for any topic; `#` does not include them.
"""

from __future__ import annotations

from sojourn import __version__
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.message import Message, new_message
from sojourn.mqtt.state import State
from sojourn.mqtt.topic_tree import pattern_matches

PREFIX = "$SYS/"
NUMBERS = (
    "clients/connected",
    "clients/disconnected",
    "clients/total",
    "connections/count",
    "subscriptions/count",
    "retained messages/count",
    "messages/received",
    "messages/sent",
    "publish/messages/dropped",
    "refused/count",
    "store/messages/bytes",
)
RECENT_S = 1.0
"""How old values may be that somebody is given at SUBSCRIBE."""
TOPICS = tuple(f"{PREFIX}broker/{name}" for name in ("name", "version", *NUMBERS))


def _recent(state: State, now: float) -> dict[str, str]:
    """Every topic with its value at this moment, or shortly before."""
    found_s, found = state.system_values
    if not found_s <= now < found_s + RECENT_S:
        found = values(state)
        state.system_values = now, found
    return found


def values(state: State) -> dict[str, str]:
    """Every topic with its value at this moment."""
    counters = state.counters
    connected = sum(session.connection is not None for session in state.sessions.values())
    numbers = (
        connected,
        len(state.sessions) - connected,
        len(state.sessions),
        len(state.connections),
        state.subscriptions,
        state.retained.count,
        counters.received,
        counters.delivered,
        sum(counters.dropped.values()),
        sum(counters.refused.values()),
        state.queued_bytes,
    )
    texts = (state.name, f"sojourn {__version__}", *map(str, numbers))
    return dict(zip(TOPICS, texts, strict=True))


def messages(state: State, pattern: str, now: float) -> list[Message]:
    """Recent values of the topics that a topic filter asks for."""
    if not pattern.startswith(PREFIX):
        return []
    asked = [(place, topic) for place, topic in enumerate(TOPICS) if pattern_matches(pattern, topic)]
    if not asked:
        return []
    found = _recent(state, now)
    return [_message(state, topic, found[topic], place, now) for place, topic in asked]


def tell(state: State, deliverer: Deliverer, now: float) -> None:
    """Send fresh values to the clients that are here and want them."""
    if not any(state.tree.route(topic).by_session for topic in TOPICS):
        return
    for place, (topic, text) in enumerate(values(state).items()):
        here = [one for one in state.tree.route(topic).by_session if one.connection is not None]
        if here:
            deliverer.deliver_to_each(_message(state, topic, text, place, now), here, now)


def _message(state: State, topic: str, text: str, place: int, now: float) -> Message:
    message = new_message(topic, text.encode(), qos=0, now=now, publisher="")
    # A source of its own: whoever looks at numbers must not take one value for the other.
    message.source, message.sequence = f"{PREFIX}{state.origin}", int(now * 1e6) + place
    return message
