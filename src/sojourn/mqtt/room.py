"""Who takes how much of the room for what waits for clients, is on its way to them, or is their will.

There are limits for a client, for all clients of an address, and for all clients. They are looked at when
something finds its way blocked already, or when all clients together hold more than one address may: the fast
way of a message only adds to the counts.

What an address takes is never stored, since it follows from the sessions, each of which knows the address
that its client came from last. So a client that leaves goes on taking part of that address's room, and brings
its part along to the address that it comes back from; so does its will, which is replaced when it comes back.
Subscriptions count while their client is here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sojourn.mqtt.conditions import Conditions
from sojourn.mqtt.parties import party_of

if TYPE_CHECKING:
    from sojourn.mqtt.connection import Connection
    from sojourn.mqtt.session import Delivery, Session, Subscription
    from sojourn.mqtt.state import State

FULL = "queue full"
ADDRESS_FULL = "queue full of the address"
QUOTA = "quota_exceeded"
"""Under which name it is counted that a client, or all together, have all that they may have."""
ADDRESS_QUOTA = "address_quota_exceeded"
"""Under which name it is counted that an address has all that it may have of something."""


LEVEL_CHARS, LEVEL_FILTER_CHARS = 64, 2
"""Characters of a topic filter that count for a further level, and of a filter over attributes. Of such a
filter each comparison takes some kilobytes at every broker, and is written and read when its client moves."""


def levels_of(text: str, filter_text: str | None = None) -> int:
    """How much a subscription takes of the room for topic filters, given its own text and its filter's."""
    levels = 1 + text.count("/") + len(text) // LEVEL_CHARS
    return levels if filter_text is None else levels + len(filter_text) // LEVEL_FILTER_CHARS


class AddressUse:
    """What the clients of one address take together."""

    __slots__ = (
        "bytes",
        "clients",
        "conditions",
        "groups",
        "levels",
        "messages",
        "sessions",
        "subscriptions",
        "will_bytes",
    )

    def __init__(self) -> None:
        self.sessions = 0
        """Of clients that came from there last, whether they are here or away."""
        self.clients = 0
        """Those that are here."""
        self.subscriptions = 0
        """Of clients that are here."""
        self.levels = 0
        """Of the topic filters of those."""
        self.bytes = 0
        """Of what waits for all of them, and of what they were sent and have not acknowledged."""
        self.messages = 0
        """That wait for all of them."""
        self.will_bytes = 0
        """Of the wills of all of them."""
        self.groups: Counter[str] = Counter()
        """By shared subscription: how many of all of them have it."""
        self.conditions = Conditions()
        """The filters over attributes of those."""

    def count_share(self, one: Subscription, change: int) -> None:
        """Count that one of them has a shared subscription more, or has it no more."""
        self.groups[one.text] += change
        if not self.groups[one.text]:
            del self.groups[one.text]
        if one.filter is not None:
            (self.conditions.add if change > 0 else self.conditions.remove)(one.text, one.filter)


class AddressUses:
    """The same of all addresses that sessions here are of."""

    __slots__ = ("by_address",)

    def __init__(self) -> None:
        self.by_address: dict[str, AddressUse] = {}

    def came(self, connection: Connection, session: Session) -> None:
        """Count what the session of a client has that is connected now."""
        if session.address_use is None or _party(session) != connection.party:
            self.ended(session)
            session.address = connection.peer
            self.kept(session)
        session.address = connection.peer
        use = session.address_use
        assert use is not None, "whoever is connected has an address"
        connection.address_use = use
        use.clients += 1
        use.subscriptions += len(session.subscriptions)
        use.levels += session.levels

    def left(self, connection: Connection, session: Session) -> None:
        """Count its client and its subscriptions no longer; what waits for it goes on to count."""
        use = connection.address_use
        use.clients -= 1
        use.subscriptions -= len(session.subscriptions)
        use.levels -= session.levels
        assert use.clients or not use.subscriptions, "subscriptions count while their client is here"

    def kept(self, session: Session) -> None:
        """Count what there is for the client of a session; nothing if nobody knows where it came from."""
        if session.address is not None:
            use = session.address_use = self.by_address.setdefault(_party(session), AddressUse())
            use.sessions += 1
            use.bytes += session.queued_bytes + session.inflight_bytes
            use.messages += len(session.queue)
            use.will_bytes += session.will_bytes
            for one in session.shares():
                use.count_share(one, 1)

    def ended(self, session: Session) -> None:
        """Count a session no longer, before anything of it is forgotten."""
        use = session.address_use
        if use is None:
            return
        session.address_use = None
        use.sessions -= 1
        use.bytes -= session.queued_bytes + session.inflight_bytes
        use.messages -= len(session.queue)
        use.will_bytes -= session.will_bytes
        for one in session.shares():
            use.count_share(one, -1)
        if not use.sessions:
            assert not use.bytes, "what clients take goes with their sessions"
            assert not use.messages, "what clients take goes with their sessions"
            assert not use.will_bytes, "what clients take goes with their sessions"
            assert not use.groups, "what clients take goes with their sessions"
            del self.by_address[_party(session)]

    def count(self, sessions: Iterable[Session]) -> None:
        """Count everything anew."""
        self.by_address.clear()
        for session in sessions:
            self.kept(session)
            if session.connection is not None:
                self.came(session.connection, session)


def change_queued(shared: State, session: Session, size: int, count: int) -> None:
    """Count that so many bytes, and messages, more wait for a client, or fewer."""
    session.queued_bytes += size
    shared.queued_bytes += size
    shared.queued += count
    if session.address_use is not None:
        session.address_use.bytes += size
        session.address_use.messages += count


def replace_queue(shared: State, session: Session, kept: Sequence[Delivery]) -> None:
    """Let just these messages wait for a client, of those that do."""
    size = sum(one.message.size for one in kept) - session.queued_bytes
    change_queued(shared, session, size, len(kept) - len(session.queue))
    session.queue.clear()
    session.queue.extend(kept)


def change_inflight(shared: State, session: Session, size: int) -> None:
    """Count that so many bytes more are on their way to a client, or fewer."""
    session.inflight_bytes += size
    shared.inflight_bytes += size
    if session.address_use is not None:
        session.address_use.bytes += size


def why_full(shared: State, session: Session, size: int, count: int = 1) -> str | None:
    """Why there is no room for messages of so many bytes beside what waits or is on its way, or None."""
    limits, use = shared.limits, session.address_use
    if (
        len(session.queue) + count > limits.queue_messages_max
        or session.queued_bytes + session.inflight_bytes + size > limits.queue_bytes_max
        or shared.queued_bytes + shared.inflight_bytes + size > limits.queue_bytes_max_all
        or shared.queued + count > limits.queue_messages_max_all
    ):
        return FULL
    if use is not None and (
        use.bytes + size > limits.queue_bytes_address_max
        or use.messages + count > limits.queue_messages_address_max
    ):
        return ADDRESS_FULL
    return None


class NoRoom(NamedTuple):
    """Why there is no room for something."""

    why: str
    """Under which name it is counted."""
    text: str


def no_room_for_subscription(
    shared: State, session: Session, use: AddressUse, count: int, levels: int
) -> NoRoom | None:
    """Why a client cannot have so many further subscriptions, 1 or 0, and levels; None if it can."""
    limits = shared.limits
    if (
        shared.subscriptions + count > limits.subscriptions_max_all
        or shared.levels + levels > limits.subscription_levels_max_all
    ):
        return NoRoom(QUOTA, "The broker has as many subscriptions as it may; try again later.")
    if len(session.subscriptions) + count > limits.subscriptions_max:
        return NoRoom(QUOTA, f"A client has at most {limits.subscriptions_max} subscriptions.")
    if session.levels + levels > limits.subscription_levels_max:
        most = limits.subscription_levels_max
        text = f"All topic filters of a client have at most {most} levels together"
        each = f"where {LEVEL_FILTER_CHARS} characters of a filter over attributes count for one"
        return NoRoom(QUOTA, f"{text}, {each}.")
    if use.subscriptions + count > limits.subscriptions_address_max:
        most = limits.subscriptions_address_max
        return NoRoom(ADDRESS_QUOTA, f"Clients of your address have {most} subscriptions already.")
    if use.levels + levels > limits.subscription_levels_address_max:
        most = limits.subscription_levels_address_max
        return NoRoom(ADDRESS_QUOTA, f"Topic filters of your address have at most {most} levels together.")
    return None


def no_room_for_share(shared: State, one: Subscription) -> NoRoom | None:
    """Why a client cannot have a further shared subscription; None if it can.

    What an event costs grows with the groups that want it, each of which is sent it, and brokers know those
    of all others. So groups are few; members of a group may be many.
    """
    limits, session = shared.limits, one.session
    use = session.address_use
    if len(session.shares()) >= limits.shared_subscriptions_max:
        return NoRoom(QUOTA, f"A client has at most {limits.shared_subscriptions_max} shared subscriptions.")
    here, group = shared.tree.groups, (one.share, one.pattern)
    known = shared.effects.groups if shared.effects.collects else ()
    is_new = group not in here and group not in known
    if is_new and max(len(here), len(known)) >= limits.groups_max_all:
        most = limits.groups_max_all
        return NoRoom(QUOTA, f"There are {most} groups that share subscriptions, as many as may be.")
    if use is not None and one.text not in use.groups and len(use.groups) >= limits.groups_address_max:
        most = limits.groups_address_max
        return NoRoom(ADDRESS_QUOTA, f"Clients of your address are in {most} groups already.")
    return None


def no_room_for_condition(shared: State, one: Subscription) -> NoRoom | None:
    """Why a member of a group cannot have the filter that it asks for; None if it can, or has none.

    In a network an event is compared with all of them, at once, before it is known whom it fits: with those
    that several have once.
    """
    wanted, known = one.filter, shared.effects.conditions
    if wanted is None or known is None:
        return None
    limits, use = shared.limits, one.session.address_use
    further, most = known.further(one.text, wanted), limits.member_filter_chars_max_all
    if further and known.size + further > most:
        text = f"Filters of members of shared subscriptions have {most} characters, as many as may be."
        return NoRoom(QUOTA, text)
    further = 0 if use is None else use.conditions.further(one.text, wanted)
    if use is not None and further and use.conditions.size + further > limits.member_filter_chars_address_max:
        most = limits.member_filter_chars_address_max
        text = f"Filters of your address's members of shared subscriptions have at most {most} characters."
        return NoRoom(ADDRESS_QUOTA, text)
    return None


def _party(session: Session) -> str:
    """What the address that a client came from last counts as."""
    return party_of(session.address or "")


def no_room_for_will(shared: State, client_id: str, party: str, size: int) -> NoRoom | None:
    """Why a client whose address counts as a party cannot have a will of so many bytes; None if it can.

    It takes the place of the one that the client's session has.
    """
    limits = shared.limits
    session, use = shared.sessions.get(client_id), shared.address_uses.by_address.get(party)
    before = session.will_bytes if session is not None else 0
    if shared.will_bytes - before + size > limits.will_bytes_max_all:
        text = f"Wills of all clients have {limits.will_bytes_max_all} bytes at most; come without one."
        return NoRoom(QUOTA, text)
    taken = use.will_bytes if use is not None else 0
    if session is not None and session.address is not None and _party(session) == party:
        taken -= before
    if taken + size > limits.will_bytes_address_max:
        most = limits.will_bytes_address_max
        text = f"Wills of all clients of your address have {most} bytes at most; come without one."
        return NoRoom(ADDRESS_QUOTA, text)
    return None


def is_beyond_wills(shared: State, session: Session) -> bool:
    """Whether a session that came from another broker brought a will that there is no room for."""
    limits, use = shared.limits, session.address_use
    return session.will is not None and (
        shared.will_bytes > limits.will_bytes_max_all
        or (use is not None and use.will_bytes > limits.will_bytes_address_max)
    )
