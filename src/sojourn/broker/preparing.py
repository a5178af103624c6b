"""Texts that something needs are read before it is taken in, in parts, so that others have their turn.

The session of a client that moves may have hundreds of filters over attributes, a CONNECT a hundred
advertisements, and to read one takes a millisecond or two. So the frame, or the client that has been let in,
waits, and with every slice (`slices.py`) some of the texts are read. What was read stands in the caches of
`mqtt/content.py`, and what may cover an interest in that of `routing/interests.py`; then all goes on as if
nobody had looked before. Nothing but caches has changed. So whoever is told a journal again reads everything
when it is needed and comes to the same, and what waits here is no part of any state: a frame that was not
taken in comes again, and a client that was not let in is gone with its connection.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
from mqtt5 import ConnectPacket

from sojourn.broker import facts
from sojourn.broker.frame_heads import Position
from sojourn.broker.links import Links
from sojourn.broker.messages import PART
from sojourn.broker.passing_on import destination_of
from sojourn.broker.wire import MESSAGES, kind_of
from sojourn.errors import SojournError
from sojourn.interest import Filter
from sojourn.mqtt.content import (
    ContentError,
    check_advertisements,
    interest_of,
    parse_advertisement,
    parse_filter,
    property_values,
)
from sojourn.mqtt.conventions import ADVERTISE
from sojourn.mqtt.core import Core
from sojourn.mqtt.packets import decode
from sojourn.mqtt.session_state import SessionState

FEW = 2
"""A frame, or the texts of a CONNECT, of no more than so many parts (`AtOnce.read`) is read as it comes."""


def _places(name: str) -> dict[int, int]:
    """By kind of message: the place of a field in its frame, behind the kind."""
    found: dict[int, int] = {}
    for cls in MESSAGES:
        names = [field.name for field in dataclasses.fields(cls)]
        if name in names:
            found[int(cls.kind)] = 1 + names.index(name)  # type: ignore[attr-defined]  # every message has a kind
    return found


_SUBSCRIPTIONS, _ADVERTISEMENTS, _STATE = map(_places, ("subscriptions", "advertisements", "state"))
_PLACE, _IS_LAST, _PIECE = (_places(name)[PART] for name in ("place", "is_last", "piece"))
_DEAR = frozenset({PART, *_SUBSCRIPTIONS, *_ADVERTISEMENTS, *_STATE})
"""Kinds of messages that may bring many texts."""


class PreparedFrames:
    """What is read ahead for frames of neighbours, the first that waits of each."""

    def __init__(self, links: Links, at_once: int) -> None:
        self._links, self._at_once = links, at_once
        self._begun: dict[str, tuple[Position, Iterator[int]]] = {}
        """By neighbour: the frame whose texts are being read, and how they are gone on with."""

    def is_dear(self, body: bytes) -> bool:
        """Whether a frame may bring so many texts that these are to be read before it is taken in."""
        if len(body) <= FEW * self._at_once or kind_of(body) not in _DEAR:
            return False
        return destination_of(body) in (None, self._links.number)  # others pass it on

    def is_ready(self, peer: str, position: Position, body: bytes) -> bool:
        """Read some of the texts of a frame; say whether none is left."""
        if not self.is_dear(body):
            return True
        begun = self._begun.get(peer)
        if begun is None or begun[0] != position:
            begun = self._begun[peer] = position, self._reading(peer, body)
        if _go_on(begun[1], self._at_once):
            return False
        del self._begun[peer]
        return True

    def forget(self, peer: str) -> None:
        """A connection broke: what it brought and was not taken in comes again."""
        self._begun.pop(peer, None)

    def _reading(self, peer: str, body: bytes) -> Iterator[int]:
        """Read the texts of a frame one by one, saying how long each was."""
        with suppress(msgspec.MsgspecError, LookupError, TypeError, UnicodeDecodeError):
            frame = msgspec.msgpack.decode(body)
            if frame[0] == PART:
                if not frame[_IS_LAST]:
                    return
                whole = self._links.would_be_whole(peer, frame[_PLACE], frame[_PIECE])
                if whole is None or kind_of(whole) not in _STATE:
                    return
                frame = msgspec.msgpack.decode(whole)
            yield from self._texts(frame)

    def _texts(self, frame: list[object]) -> Iterator[int]:
        kind = frame[0]
        assert isinstance(kind, int), "every frame begins with its kind"
        for places, read in ((_SUBSCRIPTIONS, self._subscription), (_ADVERTISEMENTS, _advertisement)):
            texts = frame[places[kind]] if kind in places else None
            for text in texts if isinstance(texts, list) else ():
                yield _read(read, text)
        data = frame[_STATE[kind]] if kind in _STATE else None
        if not isinstance(data, bytes):
            return
        state = msgspec.msgpack.decode(data, type=SessionState)
        for one in state.subscriptions:
            if one.filter is not None:
                yield _read(parse_filter, one.filter)
            if not one.share:
                with suppress(SojournError):
                    self._covering(interest_of(one.pattern, one.filter and parse_filter(one.filter)))
                yield len(one.pattern) + len(one.filter or "")
        for text in state.advertisements:
            yield _read(_advertisement, text)

    def _subscription(self, text: str) -> None:
        self._covering(parse_filter(text))

    def _covering(self, wanted: Filter) -> None:
        """Find what may cover an interest, if it is one that the broker knows: it becomes none by this."""
        number = self._links.interests.number_of(wanted)
        if number is not None:
            self._links.interests.sub_above[number]


class PreparedClients:
    """What is read ahead for clients that have been let in."""

    def __init__(self, core: Core, at_once: int) -> None:
        self._core, self._at_once = core, at_once
        self.waiting: deque[tuple[facts.ClientAdmitted, Iterator[int]]] = deque()
        """Who waits, and how its texts are gone on with."""
        self._ready: facts.ClientAdmitted | None = None

    def is_put_off(self, fact: facts.ClientAdmitted) -> bool:
        """Whether a client is let in later, since there is much to be read for it first."""
        if fact is self._ready:
            return False
        connection = self._core.state.connections.get(fact.connection)
        few = FEW * self._at_once
        if connection is None or connection.connect is None or len(connection.connect) <= few:
            return False
        packet = decode(connection.connect)
        assert isinstance(packet, ConnectPacket), "that is what was kept"
        texts = property_values(packet.user_properties, ADVERTISE)
        if sum(map(len, texts)) <= few:
            return False
        self.waiting.append((fact, self._reading(texts)))
        return True

    def next_ready(self) -> facts.ClientAdmitted | None:
        """Read some of the texts of the first who waits; return it if none is left."""
        fact, reading = self.waiting.popleft()
        if _go_on(reading, self._at_once) and fact.connection in self._core.state.connections:
            self.waiting.append((fact, reading))
            return None
        self._ready = fact
        return fact

    def change_rights(self, fact: facts.RightsChanged) -> None:
        """Let those in who wait with the rights that they have now."""
        owners = fact.owners
        for place, (waits, reading) in enumerate(self.waiting):
            if waits.owner in owners:
                self.waiting[place] = fact.given_to(waits), reading

    def _reading(self, texts: list[str]) -> Iterator[int]:
        in_network = self._core.effects.collects
        for text in texts:
            with suppress(ContentError):
                check_advertisements([text], in_network=in_network)
            yield len(text)


def _go_on(reading: Iterator[int], most: int) -> bool:
    """Read a part, its last text to the end; say whether there may be more."""
    for size in reading:
        most -= size
        if most <= 0:
            return True
    return False


def _read(read: Callable[[str], object], text: object) -> int:
    """Read one text; what is wrong with it is said when it is taken in. Return how long it is."""
    if not isinstance(text, str):
        return 1
    with suppress(SojournError):
        read(text)
    return len(text)


def _advertisement(text: str) -> None:
    parse_advertisement(text)
