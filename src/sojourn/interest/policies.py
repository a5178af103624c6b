"""Access policies: who may see an event.

A policy is a filter over the attributes of the subscriber, carried by the event (paper 004, section 2).
An event is delivered only where its topic, its content and its policy all agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from sojourn.interest.events import Event
from sojourn.interest.filters import Filter


@dataclass(frozen=True, slots=True)
class Policy:
    """A condition that a subscriber's attributes must satisfy."""

    condition: Filter

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Read SQL such as `role = 'medic' OR clearance >= 3`, or refuse it with its position."""
        return cls(Filter.parse(text))

    def __str__(self) -> str:
        return str(self.condition)

    def permits(self, subscriber: Event) -> bool:
        """Whether a subscriber with these attributes may see the event."""
        return self.condition.matches(subscriber)


def may_receive(event: Event, policy: Policy | None, subscription: Filter, subscriber: Event) -> bool:
    """Whether an event is for a subscriber: it matches, and its policy, if it has one, permits it."""
    return subscription.matches(event) and (policy is None or policy.permits(subscriber))
