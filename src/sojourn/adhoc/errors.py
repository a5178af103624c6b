"""What is refused by all that is here; without the libraries that some of it needs."""

from sojourn.errors import SojournError


class AdhocError(SojournError):
    """An ad-hoc system cannot be built as described."""
