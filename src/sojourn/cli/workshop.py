"""Commands that those need who work on Sojourn: they are in the sources, and not in an installed package.

`setup.py` says which modules a wheel leaves out.
"""

from __future__ import annotations

import importlib.util

from sojourn import __version__
from sojourn.errors import SojournError


class NotInstalledError(SojournError):
    """A command compares with peers, needs a checkout, or breaks brokers on purpose, and was left out."""


def is_here(module: str) -> bool:
    """Whether a module of the workshop is there."""
    return importlib.util.find_spec(module) is not None


def require(module: str, command: str) -> None:
    """Say where a command is to be had if its module is not there."""
    if not is_here(module):
        raise NotInstalledError(
            f"`sojourn {command}` is part of the sources, not of an installed package: unpack the source "
            f"archive of {__version__}, or clone the repository, and run it there after `make setup`."
        )
