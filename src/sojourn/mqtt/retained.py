"""The last retained message of each topic, found by topic filter, and in the end the same at every broker.

Brokers may retain messages of one topic at the same time and hear of one another's in any order. Of two
messages the one with the greater *key* stays, everywhere: its number, which is a date (`State.number`), and
where numbers are equal its source. An empty message leaves a *tombstone*, the key without a message, and so
does one whose time ran out: an older message that comes late is then known to be old. Tombstones take no
room from messages; they are forgotten when their date is a day ago, or earlier where there are too many.

A broker that has no room for a message that others kept asks them again when it has (`wants_again`). What one
party may have of the room is looked at where a message is published, before it is kept (`has_share_for`).

A tree of levels has the first `DEPTH_MAX` levels of topics; what is deeper is kept where the tree ends, and
compared. Otherwise every level of a topic would take memory that nobody counts, and time to pass by.

The times of very many messages may run out at one moment. They are buried a few at a time, whenever one
is kept or looked for, and more where there is no room. Those that wait to be buried are found by nobody.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import Message, new_message
from sojourn.mqtt.shares import Shares

TOMBSTONES_MAX: Final = 100_000
TOMBSTONE_BYTES_MAX: Final = 32 * 1_048_576
"""Bytes of all topics and sources that tombstones name, about."""
TOMBSTONE_S: Final = 86_400
"""How long a tombstone is kept, from the date of its key: all brokers forget it at the same time."""
ROOM_SHARE: Final = 0.9
"""What there was no room for is asked for again when no more than this share of the limits is used."""
DEPTH_MAX: Final = 8
"""Levels of topics that the tree has."""
SPARE_EXPIRIES: Final = 1_000
"""Times of messages that were replaced in the meantime, which may stay in the heap."""
BURIED_AT_ONCE: Final = 4
"""Messages whose time ran out that are buried at once; more than the one which may be kept instead."""
BURIED_FOR_ROOM: Final = 1_024
"""The same where there is no room without."""

_NUMBER: Final = attrgetter("sequence")
_IN_ORDER: Final = attrgetter("sequence", "source", "topic")

Key = tuple[int, str]
Place = tuple[int, str, str]
"""Of a message among all: its number, its source and its topic."""


class _Node:
    __slots__ = ("below", "deeper", "message")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.message: Message | None = None
        self.deeper: dict[str, Message] = {}
        """At the end of the tree: the messages of deeper topics."""

    @property
    def is_empty(self) -> bool:
        return not (self.below or self.deeper) and self.message is None


class Tombstone(NamedTuple):
    """What is left of a topic's message: its key."""

    sequence: int
    source: str

    def is_old(self, now: float) -> bool:
        """Whether it is time to forget it."""
        return self.sequence < _oldest(now)


def _oldest(now: float) -> float:
    """The number of a tombstone that is kept just yet."""
    return (now - TOMBSTONE_S) * 1e6


def _end(topic: str, tombstone: Tombstone, now: float) -> Message:
    """Return the empty message that leaves such a tombstone."""
    message = new_message(topic, b"", qos=0, now=now, retain=True)
    message.sequence, message.source = tombstone
    return message


def key_of(message: Message) -> Key:
    """What decides which of two messages of a topic stays."""
    return message.sequence, message.source


def place_of(message: Message) -> Place:
    """Where a message stands in the order in which messages are given."""
    return message.sequence, message.source, message.topic


class Retained:
    """Messages by topic, within limits on their number and bytes."""

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._kept: dict[str, Message] = {}
        self._root = _Node()
        """The same messages by the levels of their topics."""
        self._expiring: list[tuple[float, str]] = []
        """A heap of when messages' times run out; some were replaced since."""
        self._tombstones: dict[str, Tombstone] = {}
        """By topic without a message, the earliest first."""
        self._tombstone_bytes = 0
        self.bytes = 0
        self.shares = Shares()
        """The same by who retained them."""
        self.changes = 0
        """How often a message came or went; for whoever remembers what there was."""
        self.lacks = False
        """Whether there was no room for a message that other brokers may have kept."""

    def rebuild(self) -> None:
        """Make the tree again of the messages that are kept, and count them, and whose they are."""
        self._root = _Node()
        self.bytes = sum(message.size for message in self._kept.values())
        self.shares.count(self._kept.values())
        for message in self._kept.values():
            self._place(message)

    def reconfigure(self, messages_max: int, bytes_max: int) -> None:
        """Take in other limits; what is kept stays, also where it is more than they allow."""
        self._messages_max, self._bytes_max = messages_max, bytes_max

    @property
    def count(self) -> int:
        """How many messages are kept."""
        return len(self._kept)

    def kept(self) -> Iterable[Message]:
        """Return all messages that take room, also those whose time has run out."""
        return self._kept.values()

    @property
    def tombstones(self) -> int:
        """How many topics without a message are remembered."""
        return len(self._tombstones)

    def is_news(self, message: Message) -> bool:
        """Whether a message is later than what is known of its topic."""
        known = self._kept.get(message.topic)
        if known is not None:
            return key_of(message) > key_of(known)
        tombstone = self._tombstones.get(message.topic)
        return tombstone is None or key_of(message) > tombstone

    def has_share_for(self, message: Message, limits: Limits) -> bool:
        """Whether a message that is published here, or its topic's end, is within its party's share."""
        now = message.arrived_s
        self._drop_expired(now, message.topic)
        is_end = len(message.frame) == message.payload_at
        if is_end or self.shares.allow(message, self._kept.get(message.topic), limits):
            return True
        is_left, shares = self._make_room(now, message.party), self.shares
        if is_left:  # these take no share either
            shares = Shares()
            shares.count(
                one for one in self._kept.values() if one.party == message.party and one.expires_s > now
            )
        return shares.allow(message, self._kept.get(message.topic), limits)

    def keep(self, message: Message) -> bool:
        """Keep a message in place of its topic's earlier one, or nothing if it is empty.

        Return whether there was room. Those whose time ran out before this one arrived take none.
        """
        self._drop_expired(message.arrived_s, message.topic)
        if len(message.frame) == message.payload_at:
            self._bury(message, message.arrived_s)
            return True
        if not self._has_room_for(message, message.arrived_s):
            self.lacks = True
            return False
        previous = self._kept.get(message.topic)
        self._forget_tombstone(message.topic)
        if previous is not None:
            self.bytes -= previous.size
            self.shares.remove(previous)
        self.bytes += message.size
        self.shares.add(message)
        self._kept[message.topic] = message
        self.changes += 1
        self._place(message)
        if message.expiry is not None:
            heapq.heappush(self._expiring, (message.expires_s, message.topic))
            if len(self._expiring) > 2 * self.count + SPARE_EXPIRIES:
                self._expiring = [
                    (one.expires_s, one.topic) for one in self._kept.values() if one.expiry is not None
                ]
                heapq.heapify(self._expiring)
        return True

    def _has_room_for(self, message: Message, now: float) -> bool:
        """Whether a message, in place of its topic's earlier one, is within the limits.

        What waits to be buried takes no room: whether a message is kept must not depend on how many do.
        """
        previous = self._kept.get(message.topic)
        size = self.bytes + message.size - (previous.size if previous is not None else 0)
        if self.count + (previous is None) <= self._messages_max and size <= self._bytes_max:
            return True
        if not self._has_expired(now):
            return False
        self._make_room(now)
        sizes = [one.size for one in self._kept.values() if one.expires_s > now and one is not previous]
        return len(sizes) < self._messages_max and sum(sizes) + message.size <= self._bytes_max

    def wants_again(self, now: float) -> bool:
        """Whether what there was no room for may be asked for now, as there is room; asked once."""
        if not self.lacks:
            return False
        count, size = self.count, self.bytes
        if self._has_expired(now):  # these take no room, and there may be many
            sizes = [one.size for one in self._kept.values() if one.expires_s > now]
            count, size = len(sizes), sum(sizes)
        is_time = count <= ROOM_SHARE * self._messages_max and size <= ROOM_SHARE * self._bytes_max
        self.lacks = not is_time
        return is_time

    def _place(self, message: Message) -> None:
        """Enter a message into the tree."""
        node = self._root
        levels, is_deeper = _levels(message.topic)
        for level in levels:
            below = node.below.get(level)
            if below is None:
                below = node.below[level] = _Node()
            node = below
        if is_deeper:
            node.deeper[message.topic] = message
        else:
            node.message = message

    def forget(self, topic: str) -> None:
        """Keep nothing for a topic, and remember nothing of it."""
        self._forget_tombstone(topic)
        message = self._kept.pop(topic, None)
        if message is None:
            return
        self.changes += 1
        self.bytes -= message.size
        self.shares.remove(message)
        levels, is_deeper = _levels(topic)
        path = [self._root]
        for level in levels:
            path.append(path[-1].below[level])
        if is_deeper:
            del path[-1].deeper[topic]
        else:
            path[-1].message = None
        for depth in range(len(levels), 0, -1):
            if not path[depth].is_empty:
                break
            del path[depth - 1].below[levels[depth - 1]]

    def end(self, message: Message) -> None:
        """Keep nothing for the topic of a message that is beyond its party's share, as if it were empty."""
        self._bury(message, message.arrived_s)

    def told(self, message: Message, now: float) -> Message:
        """Return a message as other brokers are told it: an empty one if it ended its topic here."""
        tombstone = self._tombstones.get(message.topic)
        return _end(message.topic, tombstone, now) if tombstone == key_of(message) else message

    def _bury(self, message: Message, now: float) -> None:
        """Keep nothing for a message's topic but the message's key."""
        self.forget(message.topic)
        tombstones = self._tombstones
        tombstones[message.topic] = Tombstone(*key_of(message))
        self._tombstone_bytes += len(message.topic) + len(message.source)
        while tombstones:
            earliest = next(iter(tombstones))
            if (
                len(tombstones) <= TOMBSTONES_MAX
                and self._tombstone_bytes <= TOMBSTONE_BYTES_MAX
                and not tombstones[earliest].is_old(now)
            ):
                break
            self._forget_tombstone(earliest)

    def _forget_tombstone(self, topic: str) -> None:
        tombstone = self._tombstones.pop(topic, None)
        if tombstone is not None:
            self._tombstone_bytes -= len(topic) + len(tombstone.source)

    def _drop_expired(self, now: float, topic: str = "") -> None:
        """Bury a topic's message if its time has run out, and the first few others."""
        message = self._kept.get(topic)
        if message is not None and message.expires_s <= now:
            self._bury(message, now)
        for _ in range(BURIED_AT_ONCE):
            if not self._has_expired(now):
                break
            _, topic = heapq.heappop(self._expiring)
            message = self._kept.get(topic)
            if message is not None and message.expires_s <= now:
                self._bury(message, now)

    def _has_expired(self, now: float) -> bool:
        """Whether there may be messages whose time has run out."""
        return bool(self._expiring) and self._expiring[0][0] <= now

    def _make_room(self, now: float, party: str | None = None) -> bool:
        """Bury many messages whose time has run out, of all or of one party; return whether some may be left.

        Many, so that all messages are looked at once for them, and not once for each.
        """
        if not self._has_expired(now):
            return False
        expired = (
            one
            for one in self._kept.values()
            if one.expires_s <= now and (party is None or one.party == party)
        )
        first = [*islice(expired, BURIED_FOR_ROOM)]
        for one in first:
            self._bury(one, now)
        return len(first) == BURIED_FOR_ROOM

    def get(self, topic: str) -> Message | None:
        """Return the message kept for a topic, also where its time has run out."""
        return self._kept.get(topic)

    def topics(self, now: float) -> list[str]:
        """Return all topics of which something is known that other brokers are to know (`value`)."""
        self._drop_expired(now)
        oldest = _oldest(now)
        return [*self._kept, *[topic for topic, one in self._tombstones.items() if one.sequence >= oldest]]

    def value(self, topic: str, now: float) -> Message | None:
        """Return a topic's message, an empty one where a tombstone is left; None where nothing is known."""
        message, tombstone = self._kept.get(topic), self._tombstones.get(topic)
        if message is not None and message.expires_s <= now:  # it waits to be buried
            tombstone, message = Tombstone(*key_of(message)), None
        if message is None and tombstone is not None and not tombstone.is_old(now):
            message = _end(topic, tombstone, now)
        return message

    def matching(self, pattern: str, now: float) -> list[Message]:
        """Return the messages whose topics meet a topic filter and whose time has not run out.

        They come in the order of their keys, whatever came before: a client's packet identifiers depend on
        it, and must be the same when the journal is told again.
        """
        self._drop_expired(now)
        if pattern == "#":
            return self._found([one for one in self._kept.values() if one.topic[:1] != "$"], now)
        nodes = [self._root]
        levels = pattern.split("/")
        for depth, level in enumerate(levels[: DEPTH_MAX + 1]):
            if depth == DEPTH_MAX and level != "#":
                return self._found(_deep(nodes, pattern), now)
            if level == "#":
                nodes += _all_below(nodes)
            elif level != "+":
                nodes = [node.below[level] for node in nodes if level in node.below]
            elif depth:
                nodes = [below for node in nodes for below in node.below.values()]
            else:
                nodes = [below for name, below in self._root.below.items() if not name.startswith("$")]
        found = [node.message for node in nodes if node.message is not None]
        if levels[-1] == "#":
            found += [one for node in nodes if node.deeper for one in node.deeper.values()]
        return self._found(found, now)

    def _found(self, messages: list[Message], now: float) -> list[Message]:
        """Sort what was found, but for those whose time has run out."""
        if self._has_expired(now):
            messages = [one for one in messages if one.expires_s > now]
        return _in_order(messages)


def _levels(topic: str) -> tuple[list[str], bool]:
    """Return the first levels of a topic, and whether there are more than the tree has."""
    levels = topic.split("/", DEPTH_MAX)
    return levels[:DEPTH_MAX], len(levels) > DEPTH_MAX


def _deep(nodes: list[_Node], pattern: str) -> list[Message]:
    """Return the messages at the end of the tree that meet a topic filter, given where its first levels led.

    There may be very many, of very many levels: a level that may be anything is not looked at, and what is
    quick to see of a topic is looked at first.
    """
    wanted = pattern.split("/")
    if "+" not in wanted and wanted[-1] != "#":
        return [node.deeper[pattern] for node in nodes if pattern in node.deeper]
    found = [one for node in nodes for one in node.deeper.values()]
    if wanted[-1] == "#":
        wanted.pop()
        found = [one for one in found if one.topic.count("/") >= len(wanted) - 1]
    else:
        found = [one for one in found if one.topic.count("/") == len(wanted) - 1]
        if wanted[-1] != "+":
            end = "/" + wanted.pop()
            found = [one for one in found if one.topic.endswith(end)]
    places = [at for at in range(DEPTH_MAX, len(wanted)) if wanted[at] != "+"]
    if places and found:
        longest = "/" + max([wanted[at] for at in places], key=len)
        pick = itemgetter(*places)
        levels, cuts = pick(wanted), places[-1] + 1
        found = [one for one in found if longest in one.topic and pick(one.topic.split("/", cuts)) == levels]
    return found


def _all_below(nodes: list[_Node]) -> list[_Node]:
    """All nodes below some, level by level: there may be very many."""
    found: list[_Node] = []
    while nodes := [below for node in nodes for below in node.below.values()]:
        found += nodes
    return found


def _in_order(messages: list[Message]) -> list[Message]:
    """Sort messages by their keys, which nearly always differ in their numbers alone."""
    messages.sort(key=_NUMBER)
    if len({*map(_NUMBER, messages)}) < len(messages):
        messages.sort(key=_IN_ORDER)
    return messages
