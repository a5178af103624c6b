"""Whether brokers of a configuration can keep copies of one another: one sentence on what is in the way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.live.config import Config

OURS = re.compile(r"votes(\.new)?|.*\.(copies|incoming|before|damaged|found-.*|seats)")
"""Names of what is beside stores, copies and address files, which have the names of brokers
(`seats/folders.py`, `seats/mesh.py`). Without copies there are none, and networks with such names go on."""

NEEDED = {"store": "a store", "seats": "an address for others (seats)"}


def why_no_copies(config: Config) -> str:
    """Say what keeps brokers from having the copies that are wanted; nothing if nothing does."""
    copies = config.mobility.copies
    others = len(config.brokers) - 1
    if not 0 <= copies <= max(1, others):
        return f"copies of [mobility] is from 0 to {others}, one for each other broker, and not {copies}."
    if copies and not others:
        return "copies of [mobility] needs other brokers; there is one, so let it be 0."
    if not copies:
        return ""
    for broker in config.brokers:
        if OURS.fullmatch(broker.name):
            return (
                f"With copies in [mobility] no broker is called {broker.name!r}, for files of copies are: "
                "give it a name other than votes, and without .copies, .incoming, .before, .damaged, "
                ".found-N or .seats at its end, or set copies to 0."
            )
        for key, what in NEEDED.items():
            if getattr(broker, key) is None:
                return (
                    f"With copies in [mobility] every broker has {what}, and {broker.name} has none: name "
                    "one in its [[brokers]] table, or set copies to 0."
                )
    return _shared_address(config)


def _shared_address(config: Config) -> str:
    """Say which address two brokers, or two keys of one, are to listen on for other processes."""
    seen: dict[str, str] = {}
    for broker in config.brokers:
        for key, place in (("peers", broker.peers), ("seats", broker.seats)):
            if place is None or place.endswith(":0"):
                continue
            where = f"{key} of {broker.name}"
            if place in seen and "seats" in where + seen[place]:
                return (
                    f"{seen[place]} and {where} are both {place}; others have to reach each of "
                    "them there, so give each its own port."
                )
            seen[place] = where
    return ""
