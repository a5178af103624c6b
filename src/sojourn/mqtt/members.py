"""How brokers of a network address one member of a shared subscription.

A shared subscription is a *group*: its name and its topic filter. A *member* is one subscription of one
session to it, as long as that lasts. Its address is a topic that no client can subscribe or publish to, since
whatever begins with `$share/` is read as a group:

    $share/NAME/FILTER/CLIENT/SINCE/CONDITION        the member, wherever its session is
    $share/NAME/FILTER/CLIENT/SINCE/CONDITION/N      the same, while its client is connected to broker N

Brokers are interested in the addresses of the members that they have, as in any other topic. So every broker
knows all members, and an event that was addressed to one finds its way as every event does, also to a session
that moves. `SINCE`, when the subscription was made, tells a member that left and came back from one that
stayed: what was on its way to the first is not the second's.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from sojourn.errors import SojournError
from sojourn.interest import Filter
from sojourn.interest.events import TOPIC
from sojourn.interest.topicsets import TopicSet
from sojourn.mqtt.content import interest_of, parse_filter

if TYPE_CHECKING:
    from sojourn.mqtt.session import Session, Subscription

SHARE: Final = "$share/"
_NO_CONDITION = "-"
_SPECIAL = re.compile(r"[^A-Za-z0-9_:-]+")
_ESCAPED = re.compile(r"\.([0-9a-f]+)\.")
_MEMBER_LEVELS, _HERE_LEVELS = 6, 7
_KNOWN_MAX = 4_096


class Group(NamedTuple):
    """A shared subscription."""

    name: str
    pattern: str
    """Its topic filter."""

    @property
    def text(self) -> str:
        """What its members subscribe to."""
        return f"{SHARE}{self.name}/{self.pattern}"


class Member(NamedTuple):
    """A subscription of one session to a group."""

    group: Group
    client_id: str
    since: int
    """When it was made, in microseconds."""
    condition: Filter | None

    @property
    def wanted(self) -> Filter:
        """What it wants, as an interest in events."""
        return interest_of(self.group.pattern, self.condition)


def address_of(one: Subscription) -> str:
    """Return the address of a member, given its subscription."""
    condition = _NO_CONDITION if one.filter is None else _escaped(str(one.filter))
    levels = (_escaped(one.share), _escaped(one.pattern), _escaped(one.session.client_id))
    return f"{SHARE}{'/'.join(levels)}/{int(one.since_s * 1e6)}/{condition}"


def here_at(address: str, broker: int) -> str:
    """Return the topic that says at which broker a member's client is connected."""
    return f"{address}/{broker}"


@lru_cache(maxsize=_KNOWN_MAX)
def member_of(address: str) -> Member:
    """Return the member that an address stands for."""
    _, name, pattern, client_id, since, condition = address.split("/")
    return Member(
        Group(_read(name), _read(pattern)),
        _read(client_id),
        int(since),
        None if condition == _NO_CONDITION else parse_filter(_read(condition)),
    )


@lru_cache(maxsize=_KNOWN_MAX)
def group_of(address: str) -> Group:
    """Return the group of a member; its condition, which may be long, is not read for that."""
    _, name, pattern, _ = address.split("/", 3)
    return Group(_read(name), _read(pattern))


def client_of(address: str) -> str:
    """Return the client that is a member, likewise."""
    return _read(address.split("/", 4)[3])


@lru_cache(maxsize=_KNOWN_MAX)
def _prefix_for(address: str) -> str:
    group, since = group_of(address), address.split("/", 5)[4]
    return f"{group.name}/{group.pattern}/{since} of "


def source_for(address: str, source: str) -> str:
    """Return the source that an event has for one member, given that of the event.

    Each membership has its own: how far a client has come in one says nothing of another one that it had
    before. It may have left events there that this one never was sent.
    """
    return _prefix_for(address) + source


class Told(NamedTuple):
    """What brokers tell each other of a member."""

    address: str
    broker: int | None
    """Where its client is connected; None if this is about the member as such."""


def told_by(wanted: Filter) -> Told | None:
    """Return what an interest says of a member; None for one of the other interests, nearly all."""
    told = addressed_by(wanted)
    return told if told is not None and is_member(told.address) else None


def addressed_by(wanted: Filter) -> Told | None:
    """Return the same, where it is known that the address is a member's."""
    if len(wanted.conjunctions) != 1 or len(wanted.conjunctions[0].constraints) != 1:
        return None
    path, values = wanted.conjunctions[0].constraints[0]
    if path != TOPIC or not isinstance(values.strings, TopicSet) or len(values.strings.terms) != 1:
        return None
    pattern = values.strings.terms[0].pattern
    levels = [str(level) for level in pattern.levels] if pattern.is_exact else []
    if len(levels) not in (_MEMBER_LEVELS, _HERE_LEVELS) or levels[0] + "/" != SHARE:
        return None
    address = "/".join(levels[:_MEMBER_LEVELS])
    try:
        group_of(address)
        return Told(address, int(levels[-1]) if len(levels) == _HERE_LEVELS else None)
    except ValueError:
        return None  # only a broker gone mad says that


def is_member(address: str) -> bool:
    """Whether an address can be read; only a broker gone mad says another one."""
    try:
        member_of(address)
    except (ValueError, SojournError):
        return False
    return True


def addressee(session: Session, address: str) -> Subscription | None:
    """Return the subscription of a session that is a member; None if it is one no more."""
    one = session.subscriptions.get(group_of(address).text)
    return one if one is not None and address_of(one) == address else None


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f".{found[0].encode().hex()}.", text)


def _read(text: str) -> str:
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[1]).decode(), text)
