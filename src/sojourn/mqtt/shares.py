"""How much of the retained messages is whose, so that no party has more than its share.

A *party* is the address that a message's publisher came from. It travels with the message, so that every
broker counts what a party has retained at all of them. What it may have is decided by the broker that a
message is published at, and by no other: brokers that hear of messages in another order must come to the same
values. So a party that publishes at many brokers at once, or in the parts of a divided network, can have more
until they have heard of it.

A message without a party is on nobody's account: it comes from a store, or a broker, that knew none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sojourn.mqtt.limits import Limits
from sojourn.mqtt.message import Message


class Share(NamedTuple):
    """What one party has."""

    messages: int = 0
    bytes: int = 0


NOTHING = Share()


class Shares:
    """What every party has; never stored, since it follows from the messages."""

    __slots__ = ("by_party",)

    def __init__(self) -> None:
        self.by_party: dict[str, Share] = {}

    def count(self, messages: Iterable[Message]) -> None:
        """Count everything anew."""
        self.by_party.clear()
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        """Count a message that is kept."""
        if message.party:
            had = self.by_party.get(message.party, NOTHING)
            self.by_party[message.party] = Share(had.messages + 1, had.bytes + message.size)

    def remove(self, message: Message) -> None:
        """Count a message no longer."""
        if message.party:
            had = self.by_party[message.party]
            if had.messages > 1:
                self.by_party[message.party] = Share(had.messages - 1, had.bytes - message.size)
            else:
                del self.by_party[message.party]

    def allow(self, message: Message, previous: Message | None, limits: Limits) -> bool:
        """Whether a message is within its party's share, once it has taken the place of the previous one.

        Whoever takes no more than before may go on, also where a limit was wider then.
        """
        if not message.party:
            return True
        had = self.by_party.get(message.party, NOTHING)
        is_own = previous is not None and previous.party == message.party
        more = message.size - (previous.size if previous is not None and is_own else 0)
        return (is_own or had.messages < limits.retained_messages_address_max) and (
            more <= 0 or had.bytes + more <= limits.retained_bytes_address_max
        )
