"""What is wrong with a journal, by what helps: damage stays, whatever is tried again."""

from __future__ import annotations

from sojourn.errors import SojournError


class JournalError(SojournError):
    """The journal cannot be opened, read or written."""


class DamagedError(JournalError):
    """What a store holds is not what was written to it."""
