"""What happens to a live broker, as past-tense facts; those it must remember are also what its journal holds.

A driver tells a broker these, each with the time:

| about | facts |
| --- | --- |
| clients | `ClientOpened`, `ClientSent`, `ClientBlocked`, `ClientDrained`, `ClientLost`, `ClientDismissed` |
| admission | `ClientAdmitted`, `ClientRefused`: the answers to `LiveBroker.knocks` |
| rulings | `RightsChanged`, `OrderGiven` |
| settings | `PathsLearnt`: where clients go was learnt anew |
| the network | `RollTold`, `SessionsOffered`, `FarewellSaid`: brokers join and leave |
| neighbours | `PeerConnected`, `PeerSent`, `PeerLost` |
| itself | `Started`, `TimePassed`, `StoreFilled`, `StoreMended`, `Stopping`, `StatusMade`, `ReadyForMore` |

A journal does not hold bytes as they came but what was made of them: `PacketsTaken`, `FrameTaken`,
`PeerGreeted`, `PeerMet`, `LinkReset`, `LinkChanged`, `FramesAcknowledged`, `Overflowed`. A broker that is
told those again, and the others that it noted, at the same times, ends in the same state. `Entry` is a fact
with its time, as one line of a journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from sojourn.broker.settings import Settings
from sojourn.interest import Filter, TopicPattern
from sojourn.interest.values import Scalar
from sojourn.mobility.prediction import Foreseen
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.session import Permissions


class Remembered(msgspec.Struct, frozen=True, array_like=True, tag_field="kind"):
    """A fact that a journal may hold."""


# Clients ---------------------------------------------------------------------------------------------------


class ClientOpened(Remembered, frozen=True, array_like=True, tag=1):
    """A client's connection was accepted."""

    connection: int
    peer: str
    """The address it comes from."""
    fresh_id: str
    """The client identifier that it gets if it brings none."""


class ClientSent(NamedTuple):
    """Bytes came on a client's connection."""

    connection: int
    data: bytes


class PacketsTaken(Remembered, frozen=True, array_like=True, tag=2):
    """Packets of a client were taken in, each with the number of the last message before it."""

    connection: int
    packets: list[tuple[int, bytes]]


class ClientBlocked(Remembered, frozen=True, array_like=True, tag=3):
    """A client does not read."""

    connection: int


class ClientDrained(Remembered, frozen=True, array_like=True, tag=4):
    """A client reads again."""

    connection: int


class ClientLost(Remembered, frozen=True, array_like=True, tag=5):
    """A client's connection is gone."""

    connection: int


class Overflowed(Remembered, frozen=True, array_like=True, tag=6):
    """A client's connection was closed because more waited for it than may."""

    connection: int


class ClientAdmitted(Remembered, frozen=True, array_like=True, tag=7):
    """A client that knocked may come in; its permissions are given as texts."""

    connection: int
    username: str = ""
    attributes: dict[str, Scalar] = {}
    may_state: bool = True
    publish: list[str] | None = None
    subscribe: list[str] | None = None
    publish_if: str | None = None
    subscribe_if: str | None = None
    owner: str | None = None
    among_others: bool = False
    until_s: float | None = None

    @classmethod
    def of(cls, connection: int, admission: Admission) -> ClientAdmitted:
        """Return the fact that a doorkeeper let a client in."""
        return cls(
            connection,
            admission.username,
            dict(admission.attributes),
            admission.may_state,
            owner=admission.owner,
            among_others=admission.among_others,
            until_s=admission.until_s,
            **_as_texts(admission.permissions),
        )

    def admission(self) -> Admission:
        """Return what the session core is told."""
        return Admission(
            username=self.username,
            attributes=self.attributes,
            may_state=self.may_state,
            permissions=_permissions(self),
            owner=self.owner,
            among_others=self.among_others,
            until_s=self.until_s,
        )


class RightsChanged(Remembered, frozen=True, array_like=True, tag=30):
    """Owners of sessions may do something else than before; their permissions are given as texts."""

    owner: str
    attributes: dict[str, Scalar] = {}
    lost: list[str] = []
    """Names of attributes that nobody vouches for any more."""
    publish: list[str] | None = None
    subscribe: list[str] | None = None
    publish_if: str | None = None
    subscribe_if: str | None = None
    also: list[str] = []
    """Further owners of whom the same is so."""
    clients: list[str] | None = None
    """Which of their sessions it is about; None for all, and for clients that wait to be let in."""
    is_for_waiting: bool = False
    """Whether those who wait to be let in come under it; in the journals of earlier builds they did not."""

    @classmethod
    def of(cls, owner: str, permissions: Permissions | None, **more: Any) -> RightsChanged:
        """Return the fact that an owner has these permissions now."""
        return cls(owner, is_for_waiting=True, **more, **_as_texts(permissions))

    @property
    def owners(self) -> frozenset[str]:
        """Whom it is about."""
        return frozenset((self.owner, *self.also))

    def permissions(self) -> Permissions | None:
        """Return what the owners may do now; None for everything."""
        return _permissions(self)

    def given_to(self, admission: ClientAdmitted) -> ClientAdmitted:
        """Return the fact that a client was let in, with the rights of now."""
        texts = {name: getattr(self, name) for name in ("publish", "subscribe", "publish_if", "subscribe_if")}
        return msgspec.structs.replace(admission, attributes=self.vouched(admission.attributes), **texts)

    def vouched(self, attributes: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return attributes with what somebody vouches for now, and without what nobody does any more."""
        return {name: value for name, value in attributes.items() if name not in self.lost} | self.attributes


class OrderGiven(Remembered, frozen=True, array_like=True, tag=32):
    """An operator kicks or bans clients, or ends a ban, at all brokers (`ruling.py`)."""

    verb: str
    scope: str
    whom: str


class PathsLearnt(Remembered, frozen=True, array_like=True, tag=33):
    """It was learnt anew where clients of this broker go next; what was learnt before counts no more."""

    rows: tuple[Foreseen, ...]


class ClientRefused(Remembered, frozen=True, array_like=True, tag=8):
    """A client that knocked may not come in."""

    connection: int
    code: int
    text: str


class ClientDismissed(Remembered, frozen=True, array_like=True, tag=9):
    """A client's connection was closed with this reason code: no journal holds why, or it may not stay."""

    connection: int
    code: int
    text: str


# Neighbours ------------------------------------------------------------------------------------------------


class PeerConnected(NamedTuple):
    """There is a connection to a neighbour; nothing was said on it yet."""

    peer: str


class PeerSent(NamedTuple):
    """Bytes came on the connection to a neighbour."""

    peer: str
    data: bytes


class PeerLost(NamedTuple):
    """The connection to a neighbour is gone."""

    peer: str


class PeerGreeted(Remembered, frozen=True, array_like=True, tag=10):
    """A neighbour said which life and which stream of frames this is; both sides go on where they were."""

    peer: str
    life: str
    stream: str


class LinkReset(Remembered, frozen=True, array_like=True, tag=11):
    """One of two neighbours has forgotten something: both begin anew and tell each other everything."""

    peer: str
    taken: int = 0
    """Up to which number the neighbour has the frames that were sent to it, or had and acknowledged them."""
    is_own_loss: bool = False
    """Whether this broker is, or may be, the one that has forgotten something."""
    is_told: bool = False
    """Whether all brokers were told so (`wire.Forgot`); in the journals of earlier builds they were not."""


class LinkChanged(Remembered, frozen=True, array_like=True, tag=12):
    """A link is in use, or no longer."""

    peer: str
    up: bool


class FrameTaken(Remembered, frozen=True, array_like=True, tag=13):
    """A frame of a neighbour was taken in."""

    peer: str
    number: int
    rank: int
    body: bytes


class PeerMet(Remembered, frozen=True, array_like=True, tag=14):
    """A neighbour said what its memory is called; another one than before means that all is forgotten."""

    peer: str
    memory: str


class FramesAcknowledged(Remembered, frozen=True, array_like=True, tag=15):
    """A neighbour has all frames up to a number."""

    peer: str
    number: int


# The broker itself -----------------------------------------------------------------------------------------


class Started(Remembered, frozen=True, array_like=True, tag=20):
    """The process began a new life with these settings and what its store held; no connection is left."""

    life: str
    settings: Settings
    hushes_banned: bool = False
    """Whether wills of who is banned are not published from now on; builds that do not say so did."""


class TimePassed(Remembered, frozen=True, array_like=True, tag=21):
    """Something may be due."""

    silent: list[int] | None = None
    """Connections closed, for their silence or another reason; given when this is told again, since a journal
    holds no pings."""
    sessions: list[str] | None = None
    """The sessions of which it was looked what is due; the others had their turn later. None for all."""
    timers: int | None = None
    """How many timers of the mobility core ran out; the same."""


class StoreFilled(Remembered, frozen=True, array_like=True, tag=22):
    """The store cannot be written: whatever would have to be promised is refused."""

    why: str


class StoreMended(Remembered, frozen=True, array_like=True, tag=23):
    """The store can be written again."""


class Stopping(Remembered, frozen=True, array_like=True, tag=24):
    """The process is about to end; clients are sent to another server if one is named."""

    reference: str | None = None


class NumbersGiven(Remembered, frozen=True, array_like=True, tag=25):
    """Events of QoS 0 were numbered, and nothing was noted since; a restart goes beyond those numbers."""


class SystemDue(NamedTuple):
    """Clients that subscribe to `$SYS` topics are to be told the values of now."""


class StatusMade(NamedTuple):
    """The broker's own report is to be told to all others."""

    report: bytes


class ReadyForMore(NamedTuple):
    """There is time for a slice of what waits its turn."""


class RollTold(Remembered, frozen=True, array_like=True, tag=34):
    """An operator says who has joined the network since it was founded, and who has left it (`roll.py`)."""

    joined: tuple[tuple[str, ...], ...] = ()
    left: tuple[str, ...] = ()


class SessionsOffered(Remembered, frozen=True, array_like=True, tag=35):
    """The broker is to leave: it has offered so many of its sessions to a neighbour."""

    to: str
    most: int


class FarewellSaid(Remembered, frozen=True, array_like=True, tag=36):
    """The broker leaves the network: its neighbour is told."""


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One line of a journal."""

    now: float
    sequence: int
    """The number of the last message before it: events of QoS 0, which no journal holds, are numbered too."""
    fact: (
        ClientOpened
        | PacketsTaken
        | ClientBlocked
        | ClientDrained
        | ClientLost
        | Overflowed
        | ClientAdmitted
        | ClientRefused
        | ClientDismissed
        | RightsChanged
        | OrderGiven
        | PathsLearnt
        | RollTold
        | SessionsOffered
        | FarewellSaid
        | PeerGreeted
        | LinkReset
        | LinkChanged
        | FrameTaken
        | PeerMet
        | FramesAcknowledged
        | Started
        | TimePassed
        | StoreFilled
        | StoreMended
        | Stopping
        | NumbersGiven
    )


Fact = Remembered | ClientSent | PeerConnected | PeerSent | PeerLost | StatusMade | SystemDue | ReadyForMore

write_entry: Callable[[tuple[float, int, Remembered]], bytes] = msgspec.msgpack.Encoder().encode
"""Returns the parts of an `Entry` as a line of a journal."""
read_entry: Callable[[bytes], Entry] = msgspec.msgpack.Decoder(Entry).decode
"""Returns the entry that a line of a journal holds."""


def _as_texts(permissions: Permissions | None) -> dict[str, Any]:
    given = permissions or Permissions()
    return {
        "publish": _texts(given.publish),
        "subscribe": _texts(given.subscribe),
        "publish_if": None if given.publish_if is None else str(given.publish_if),
        "subscribe_if": None if given.subscribe_if is None else str(given.subscribe_if),
    }


def _permissions(fact: ClientAdmitted | RightsChanged) -> Permissions | None:
    permissions = Permissions(
        _patterns(fact.publish),
        _patterns(fact.subscribe),
        None if fact.publish_if is None else Filter.parse(fact.publish_if),
        None if fact.subscribe_if is None else Filter.parse(fact.subscribe_if),
    )
    return permissions if any(part is not None for part in permissions) else None


def _texts(patterns: tuple[TopicPattern, ...] | None) -> list[str] | None:
    return None if patterns is None else [str(pattern) for pattern in patterns]


def _patterns(texts: list[str] | None) -> tuple[TopicPattern, ...] | None:
    return None if texts is None else tuple(TopicPattern.parse(text) for text in texts)
