"""The options of the source and the sink: read once, checked, and said in one sentence where one is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sojourn.errors import SojournError
from sojourn.live.client.client import Client
from sojourn.live.client.trust import trusting

BATCH_MAX = 10_000
"""Rows of a batch by default; the brokers keep them until it is done."""
WEEK_S = 7 * 86_400
"""How long brokers keep a session that nobody is connected to, by default."""
YES, NO = ("true", "1", "yes"), ("false", "0", "no")


class SourceError(SojournError):
    """The source or sink cannot do what its options ask."""


class Options:
    """What `.option(…)` said; names do not care about case, as everywhere in Spark."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return Options, (self._given,)

    def text(self, name: str, default: str = "") -> str:
        """A text, or what it is by default."""
        return self._given.get(name.lower()) or default

    def needed(self, name: str) -> str:
        """A text that must be there."""
        value = self.text(name)
        if not value:
            raise SourceError(f"The option {name} is missing; add .option({name!r}, …).")
        return value

    def count(self, name: str, default: int, *, least: int = 1) -> int:
        """A whole number, no smaller than `least`."""
        value = self.text(name, str(default))
        if not value.isdecimal() or int(value) < least:
            raise SourceError(f"The option {name} is a whole number from {least} on, not {value!r}.")
        return int(value)

    def flag(self, name: str, *, default: bool) -> bool:
        """Yes or no."""
        value = self.text(name, str(default)).lower()
        if value not in YES + NO:
            raise SourceError(f"The option {name} is true or false, not {value!r}.")
        return value in YES

    def client(self, *, client_id: str, session_expiry_s: int, inbox: int = 1_000) -> Client:
        """A client of the brokers that the options name; it is not connected yet."""
        files = [self.text(name) or None for name in ("caFile", "certificate", "key")]
        return Client(
            self.needed("url"),
            client_id=client_id,
            session_expiry_s=session_expiry_s,
            inbox=inbox,
            username=self.text("username") or None,
            password=self.text("password") or None,
            tls=trusting(*files) if any(files) else None,
        )
