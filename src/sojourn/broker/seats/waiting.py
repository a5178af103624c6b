"""What a broker waits for that is not played at home, and how far the network is from waiting, in words."""

from __future__ import annotations

from typing import NamedTuple

from sojourn.broker.seats.desk import Desk
from sojourn.broker.seats.register import majority


class Electorate(NamedTuple):
    """Which processes can vote now, as one of them sees it."""

    here: tuple[str, ...]
    """Those that are in reach and remember what they voted for."""
    missing: tuple[str, ...]
    """The others: away, or they have not been told yet what they may have voted for."""
    needed: int
    """How many decide who plays a broker."""

    @property
    def total(self) -> int:
        """How many processes there are."""
        return len(self.here) + len(self.missing)

    @property
    def spare(self) -> int:
        """How many more may go before nothing is decided; negative if nothing is."""
        return len(self.here) - self.needed


def electorate(desk: Desk) -> Electorate:
    """Return who can vote now, and how many have to."""
    here = [name for name in desk.names if _remembers(desk, name)]
    missing = [name for name in desk.names if name not in here]
    return Electorate(tuple(here), tuple(missing), majority(len(desk.names)))


def _remembers(desk: Desk, name: str) -> bool:
    if name == desk.me:
        return desk.register.may_vote
    return desk.is_up(name) and desk.peers[name].votes is True


def why_not(desk: Desk, name: str) -> str:
    """Say in a few words what a broker that is to be played at home waits for."""
    entry = desk.register.entries[name]
    seat, away = entry.seat, [one for one, peer in desk.peers.items() if not peer.is_up]
    if not desk.register.may_vote:
        return _why_it_does_not_vote(desk, away)
    if seat.host != desk.me:
        return _who_plays_it(desk, name)
    if entry.whole < seat.term:
        return _who_gives_it_back(desk, name)
    away = [one for one in seat.followers if one in away]
    if away:
        return f"{', '.join(away)} should keep {_are_away(away)}; {_who_is_asked(desk)}"
    return "its copies are brought up to date."


def _why_it_does_not_vote(desk: Desk, away: list[str]) -> str:
    """Say whom a process that does not remember its votes waits for."""
    remember = [one for one, peer in desk.peers.items() if peer.is_up and peer.votes]
    if away:
        known = f"{', '.join(remember)} remembers" if remember else "nobody in reach remembers"
        return (
            f"it does not remember what was voted about copies, {known}, and {', '.join(away)} cannot be "
            "reached. The first time all have to meet, and after the disks of most were lost: start all, "
            "those without their disk too. Otherwise it goes on with enough of those who remember."
        )
    if remember:
        return f"it is told by {', '.join(remember)} what was voted about copies."
    return (
        "all others can be reached, but none of them remembers what was voted about copies. If that lasts, "
        "their folders `.copies` were lost: the guide to copies says how to begin anew with what is left."
    )


def _who_plays_it(desk: Desk, name: str) -> str:
    """Say what becomes of a broker that another process was last known to play."""
    seat = desk.register.entries[name].seat
    if desk.is_up(seat.host) and not desk.may_be_whole(seat.host, name, seat.term):
        return _who_gives_it_back(desk, name)
    if not desk.is_up(seat.host):
        said = f"{seat.host} played it last, in term {seat.term}, and is away. "
        others = [one for one in seat.followers if one != desk.me and desk.whole(one, name) >= seat.term]
        takes = f"{' or '.join(others)} has a copy, and takes over. {_votes(desk)}"
        return (said + (takes if others else "Nobody in reach has a copy.")).rstrip()
    return (
        f"{seat.host} plays it, in term {seat.term}, and gives it back once this process has a copy."
        f"{_room(desk)}"
    )


def _room(desk: Desk) -> str:
    """Say that a copy finds no room here, if that is so."""
    if desk.has_room:
        return ""
    return " There is no room for that on the disk of this process: make some, and it goes on by itself."


def _who_gives_it_back(desk: Desk, name: str) -> str:
    """Say who has a copy of a broker whose store is not complete."""
    seat = desk.register.entries[name].seat
    others = [one for one in seat.members if one != desk.me]
    whole = [one for one in others if desk.is_up(one) and desk.whole(one, name) >= seat.term]
    if whole:
        gives = "gives" if len(whole) == 1 else "give"
        said = f"its store is not complete; {', '.join(whole)} {gives} it back.{_room(desk)}"
        return f"{said} {_votes(desk)}".rstrip()
    away = [one for one in others if not desk.is_up(one)]
    if away:
        return f"its store is not complete; {', '.join(away)} should have {_are_away(away)}."
    return (
        f"its store is not complete, and what {', '.join(others)} had of it is lost too: more disks were "
        "lost than there are copies. The guide to copies says how to begin anew with what is left."
    )


def _are_away(names: list[str]) -> str:
    return "a copy, and is away" if len(names) == 1 else "copies, and are away"


def _who_is_asked(desk: Desk) -> str:
    if len(desk.names) <= desk.terms.copies + 1:
        return "there is nobody else to keep one."
    return _votes(desk) or "others are asked soon."


def _votes(desk: Desk) -> str:
    """Say that too few can vote; nothing if enough can."""
    found = electorate(desk)
    if found.spare >= 0 or found.total == 2:
        return ""
    return (
        f"{len(found.here)} of {found.total} processes are here to vote about that, and {found.needed} have "
        f"to: start {', '.join(found.missing)}."
    )
