"""`$SYS` topics: how a broker is doing, for whoever subscribes to them.

Each broker tells of itself alone, and only its own clients. The values are made when somebody asks: at
SUBSCRIBE, as if they were retained, and again every few seconds (`Telling`), in parts: many may want them. To
count sessions takes a while where there are many, so who subscribes is told what was found a moment before.
They are sent at QoS 0 and kept nowhere, so no journal tells how far that was. Who may subscribe to them is
decided like for any topic; `#` does not include them.
"""

from __future__ import annotations

from collections import deque
from itertools import chain

from sojourn import __version__
from sojourn.mqtt import costs
from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.message import Message, new_message
from sojourn.mqtt.session import Session, Subscription
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


class Telling:
    """Tells clients fresh values: those that want a topic in parts, one topic after the other."""

    __slots__ = ("_began_s", "_deliverer", "_message", "_owners", "_sessions", "_state", "left")

    def __init__(self, state: State, deliverer: Deliverer) -> None:
        self._state, self._deliverer = state, deliverer
        self._began_s = 0.0
        self.left: deque[tuple[int, str, str]] = deque()
        """The topics that are not told yet, or not to all, with their places and values."""
        self._message: Message | None = None
        """What is told at present, of the first of these."""
        self._owners: list[dict[Session, Subscription]] = []
        """The subscriptions to it."""
        self._sessions: deque[Session] = deque()
        """Those that are still to be told."""

    def begin(self, now: float) -> None:
        """Let values be told, unless earlier ones still are, or nobody wants them."""
        if self.left or not any(self._state.tree.owners(topic) for topic in TOPICS):
            return
        self._began_s = now
        self.left.extend((place, *found) for place, found in enumerate(values(self._state).items()))

    def go_on(self, now: float) -> None:
        """Tell some clients, about as many as take a slice."""
        room = costs.SLICE
        while room > 0 and self.left:
            if self._message is None:
                room -= self._take_next()
            while self._sessions and room > 0:
                room -= self._tell(self._sessions.popleft(), now)
            if not self._sessions:
                self.left.popleft()
                self._message = None

    def _take_next(self) -> int:
        """Find out whom the next topic is for; return what that costs."""
        place, topic, text = self.left[0]
        self._message = _message(self._state, topic, text, place, self._began_s)
        self._owners = self._state.tree.owners(topic)
        self._sessions.extend(dict.fromkeys(chain.from_iterable(self._owners)))
        return 1 + sum(map(len, self._owners)) // costs.PLACES

    def _tell(self, session: Session, now: float) -> int:
        """Tell a client, if it is here and still wants to know; return what that costs."""
        message = self._message
        if session.connection is None or message is None:
            return 1
        found = [one for owners in self._owners if (one := owners.get(session)) is not None]
        passes = self._state.filters.passes
        fitting = [one for one in found if one.filter is None or passes(message, one.filter)]
        self._deliverer.deliver_to(message, session, fitting, now)
        return 1 + len(found) + sum([len(one.filter_text or "") for one in found]) // costs.CONDITION_CHARS

    def stop(self) -> None:
        """Tell nobody any more."""
        self.left.clear()
        self._sessions.clear()
        self._message = None


def _message(state: State, topic: str, text: str, place: int, now: float) -> Message:
    message = new_message(topic, text.encode(), qos=0, now=now, publisher="")
    # A source of its own: whoever looks at numbers must not take one value for the other.
    message.source, message.sequence = f"{PREFIX}{state.origin}", int(now * 1e6) + place
    return message
