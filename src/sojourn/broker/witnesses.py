"""Who may watch a broker at work: a trace that is audited later, a page that people look at now.

A witness is told and changes nothing; a broker without any does the same.
"""

from __future__ import annotations

from typing import Any, Protocol

from sojourn.broker.roamers import Handoff
from sojourn.mqtt.message import Message


class Watcher(Protocol):
    """Who wants to know what happens between brokers."""

    def heard(self, broker: str, report: bytes, now: float, /) -> None:
        """Another broker told how it is doing."""

    def handed_off(self, handoff: Handoff, /) -> None:
        """A client that was at another broker has all its events here."""

    def forgot(self, neighbour: str, now: float, /) -> None:
        """A neighbour has come back without its store."""

    def forgot_events(self, neighbour: str, events: int, now: float, /) -> None:
        """A neighbour has come back without the end of its store: so many events are not in it any more."""

    def gave_up(self, client: str, events: int, now: float, /) -> None:
        """So many events for a client were lost with a session of its that was out of reach for too long."""


class Tracer(Protocol):
    """Who records what happened to events and clients."""

    def published(self, message: Message, now: float, /) -> None:
        """A local client published an event."""

    def delivered(self, client: str, message: Message, now: float, /) -> None:
        """A client has an event."""

    def dropped(self, client: str, message: Message, reason: str, now: float, /) -> None:
        """A client will not get an event from this broker."""

    def came(self, client: str, attributes: dict[str, Any], now: float, /) -> None:
        """A client connected."""

    def went(self, client: str, now: float, /) -> None:
        """Its connection is gone."""

    def moved(
        self, client: str, origin: str, left_s: float | None, arrived_s: float, ready_s: float, how: str, /
    ) -> None:
        """A client that was at another broker has all its events here."""

    def wants(self, client: str, interest: str, since: float, until: float | None, /) -> None:
        """An interest was asked for, or has ended."""

    def awaits(self, client: str, connection: int, /) -> None:
        """A client is to be told that all it asked for is in force, when brokers know."""

    def in_force(self, connection: int, now: float, /) -> None:
        """A client was told so, of what it waited for longest."""
