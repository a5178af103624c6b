"""Who has joined a network since it was founded, and who has left it, while brokers run.

A network is founded by a configuration. After that brokers join one by one, each linked to one that is
there, and brokers leave that are at the end of a branch. So the tree between all others stays what it was, a
broker's number is its own for good, and nothing that is under way has to take another way.

    roll = merged(roll_of(one), roll_of(other))     # None if the two contradict each other
    settings = with_roll(settings, roll)

The roll is told like an event: whoever learns of a change notes it, goes by it, and passes it on in order
with all that it says later (`messages.Roll`). Hence nobody hears of a broker's number before it knows the
broker. A roll only grows, so it does not matter who hears of it how often, or from whom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from sojourn.broker.settings import Settings
from sojourn.broker.tree import overlay_of
from sojourn.errors import SojournError

JOINED_MAX = 10_000
"""Brokers that join one network, those that left again included."""


class RollError(SojournError):
    """A broker cannot join, or cannot leave, or two rolls contradict each other."""


class Roll(NamedTuple):
    """What has become of a network."""

    joined: tuple[tuple[str, ...], ...] = ()
    """In order: the name of each broker that joined, and those that it is linked to, which were there."""
    left: tuple[str, ...] = ()
    """The names of brokers that have left, in alphabetical order; they do not come back."""


def roll_of(settings: Settings) -> Roll:
    """Return the roll of a broker's network."""
    return Roll(settings.joined, settings.left)


def merged(one: Roll, other: Roll) -> Roll | None:
    """Return the roll that knows of all that either knows; None if two brokers joined in one place."""
    shorter, longer = sorted((one.joined, other.joined), key=len)
    if longer[: len(shorter)] != shorter:
        return None
    return Roll(longer, tuple(sorted({*one.left, *other.left})))


def with_roll(settings: Settings, roll: Roll) -> Settings:
    """Return the settings of a broker whose network has this roll, or refuse a roll that no network has."""
    founders = settings.founders
    names = list(founders)
    if len(roll.joined) > JOINED_MAX or not all(roll.joined):
        raise RollError(f"{JOINED_MAX:,} brokers may join a network, each with its name.")
    links = list(settings.founding_links)
    for name, *others in roll.joined:
        if name in names or not name:
            raise RollError(f"{name!r} cannot join: there is, or was, a broker of that name.")
        strangers = [one for one in others if one not in names]
        if strangers or not others:
            raise RollError(f"{name} joins by links to brokers that are there, and not to {strangers}.")
        names.append(name)
        links += [(min(name, one), max(name, one)) for one in others]
    unknown = sorted({*roll.left} - {*names})
    if unknown:
        raise RollError(f"{', '.join(unknown)} cannot leave: there is no such broker.")
    return replace(
        settings, brokers=tuple(names), links=tuple(sorted(links)), joined=roll.joined, left=roll.left
    )


def by_whom(settings: Settings, name: str) -> str | None:
    """Return the broker by whose link one joins; None for one that was there from the start."""
    links = next((others for one, *others in settings.joined if one == name), None)
    return None if links is None else min(links, key=settings.brokers.index)


def behind(settings: Settings, name: str) -> list[str]:
    """Return those that join by one, or by one of these, and have not left: the last first."""
    found = [name]
    for one, *others in settings.joined:
        if min(others, key=settings.brokers.index) in found and one not in settings.left:
            found.append(one)
    return found[:0:-1]


def is_same_founding(one: Settings, other: Settings) -> bool:
    """Whether two brokers' networks were founded alike, whoever joined and left since."""
    return (one.founders, one.founding_links) == (other.founders, other.founding_links)


def enrolled(
    names: Sequence[str],
    links: Sequence[tuple[str, str]],
    joined: Sequence[str],
    left: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Return the fields of settings that say which brokers there are, given what a file says.

    The file has the brokers that are there and their links, who joined in which order, and by broker that
    left those that it was linked to.
    """
    founders = sorted({*names}.union(left).difference(joined))
    gone = [(one, other) for one, others in left.items() for other in others]
    every = sorted({(min(link), max(link)) for link in (*links, *gone)})
    rows = []
    for place, name in enumerate(joined):
        near = {one for link in every if name in link for one in link}
        rows.append((name, *sorted(near & {*founders, *joined[:place]})))
    return {
        "brokers": (*founders, *joined),
        "links": tuple(every),
        "joined": tuple(rows),
        "left": tuple(sorted(left)),
    }


def check_roll(
    names: Sequence[str],
    joined: Sequence[str],
    left: Mapping[str, Sequence[str]],
    settings: Callable[[str], Settings],
) -> None:
    """Refuse a file in which a broker has left and is there, or has joined without a link."""
    if not joined and not left:
        return
    both = sorted({*left}.intersection(names))
    if both:
        raise RollError(f"{both[0]} has left the network, and is among [[brokers]]: give it a new name.")
    if {*joined}.difference(names, left) or len({*joined}) < len(joined):
        raise RollError(f"joined of [network] names each broker that joined, once: not {list(joined)}.")
    found = settings(names[0])
    for name, *others in found.joined:
        if not others:
            raise RollError(f"{name} has joined, as [network] says, without a link to one that was there.")
    overlay_of(found)
