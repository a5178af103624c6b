"""The error of every ad-hoc protocol, by itself, so that it can be caught without NumPy and Numba."""

from sojourn.errors import SojournError


class AdhocError(SojournError):
    """An ad-hoc system cannot be built as described."""
