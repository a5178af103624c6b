"""Which file a broker reads anew: an operator who names another one has changed nothing, and is told so.

asked = reload_of(path)             # who asks names the file, and what is in it
check_source(asked, own, "B1")      # the broker refuses, unless that is its own, or a copy of it
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from sojourn.live.brokers.control import ControlError


def reload_of(file: Path) -> dict[str, str]:
    """Return what a broker is asked that is to read a file anew."""
    asked = {"command": "reload", "file": str(file.resolve())}
    found = _content(file)
    return asked if found is None else asked | {"content": found}


def check_source(asked: Mapping[str, object], own: Path | None, name: str) -> None:
    """Refuse to read one file anew for somebody who means another; who names none means this one."""
    wanted = asked.get("file")
    if own is None or wanted is None or wanted == str(own.resolve()):
        return
    if asked.get("content") is None or asked["content"] != _content(own):
        raise ControlError(
            f"{name} was started with {own} and reads that anew, and {wanted} says something else: copy it "
            "to where the first one is, or stop the brokers and start them with it."
        )


def _content(file: Path) -> str | None:
    """Return what tells one content from another; None if it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None
