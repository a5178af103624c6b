"""Where copies of brokers are, and which sessions would be lost, or wait, if something happened now.

A session, and all that waits for it, is where its broker's journal is: with the process that plays the broker
and with those that keep copies (`live/seats/`). So what is told of a broker holds for each of its sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from sojourn.live.brokers.node import Node


class Kept(msgspec.Struct, frozen=True):
    """Where the journal of a broker is."""

    host: str
    """The process that plays the broker."""
    followers: list[str]
    """The processes that keep copies."""
    whole: int
    """How many of these hold everything."""
    wanted: int
    """How many copies there should be."""
    turns: int = 0
    """Turns of the broker that wait for copies before they leave."""
    voters: list[str] = []
    """Processes in reach of the host that remember what they voted for, itself among them."""
    not_voting: list[str] = []
    """The others."""
    voters_needed: int = 0
    """How many decide who plays a broker."""
    unplayed: list[str] = []
    """Brokers that nobody plays, as far as the host knows."""

    @property
    def is_at_risk(self) -> bool:
        """Whether the loss of the disks that copies are to make up for would lose something."""
        return self.whole < self.wanted


def kept_of(node: Node) -> Kept | None:
    """Where the journal of a broker is; None where nobody keeps copies."""
    if node.outbox is None:
        return None
    state = node.outbox.copying.state()
    wanted = node.config.mobility.copies
    here, missing, needed = state.voters
    return Kept(
        state.host,
        list(state.followers),
        state.whole,
        wanted,
        node.outbox.turns,
        list(here),
        list(missing),
        needed,
        list(state.unplayed),
    )


def in_words(broker: str, kept: Kept | None) -> str:
    """Where copies of a broker are, in a few words; nothing if there are to be none."""
    if kept is None:
        return ""
    where = "" if kept.host == broker else f"played by {kept.host}; "
    followers = ", ".join(kept.followers) or "nobody"
    if not kept.is_at_risk:
        return f"{where}copies at {followers}"
    return f"{where}{kept.whole} of {kept.wanted} copies whole ({followers})"


def risk_of(
    broker: str, sessions: int, kept: Kept | None, *, is_silent: bool, is_played: bool | None = None
) -> dict[str, Any] | None:
    """What is not as it should be with the copies of a broker that is known to have had so many sessions."""
    if kept is None:
        return None
    if is_played is False:
        where = ", ".join(one for one in kept.followers) or "nobody"
        why = f"{broker} is away and not yet played by another; copies were last said to be at {where}"
    elif is_silent and is_played:
        why = f"{broker} tells nothing of itself, though the process that plays it is in reach"
    elif is_silent:
        why = f"{broker} is silent, and nobody is known to play it"
    elif kept.is_at_risk:
        why = f"{broker} has {kept.whole} of {kept.wanted} copies whole: what is promised waits"
    elif kept.host != broker:
        return {
            "broker": broker,
            "sessions": sessions,
            "waits": False,
            "why": f"{broker} is played by {kept.host}, as its own process is away",
        }
    else:
        return None
    return {"broker": broker, "sessions": sessions, "waits": True, "why": why}


def votes_at_risk(kept: Kept | None) -> str:
    """Say that not one more process may go, if that is so; nothing while one may."""
    if kept is None or not kept.not_voting or len(kept.voters) > kept.voters_needed:
        return ""
    here, total = len(kept.voters), len(kept.voters) + len(kept.not_voting)
    missing = ", ".join(kept.not_voting)
    if here < kept.voters_needed:
        return (
            f"{here} of {total} processes are here and remember their votes, and {kept.voters_needed} have "
            f"to: nothing is decided before {missing} are back; if disks were lost, all of them"
        )
    return (
        f"{here} of {total} processes are here and remember their votes, which is just enough: if one more "
        f"goes, nothing is decided before {missing} are back"
    )
