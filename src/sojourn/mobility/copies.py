"""The states of what a broker holds for a subscriber, as one table (paper 001, section 4.1 and Figure 1).

    ABSENT   the broker holds nothing
    PASSIVE  a copy of its subscriptions, which waits in case the subscriber comes here
    ACTIVE   a copy that stores its events, since the subscriber has left its broker; that broker controls it
    PRESENT  the subscriber is connected here
    AWAY     it was connected here last; its events are stored, and this broker controls the active copies
    LEAVING  it is with another broker, which waits for the events that this one itself still waits for

A turn is a fact or a request that was found to be in force: whether a request may act on a copy is decided
before, by the epoch and the broker in control (`Holding.yields_to`), and so is which of several holdings of
one subscriber it is about. A pair without a row is a mistake of ours; it raises and changes nothing.

The eight cases of section 4.1 are rows: 1 and 7 ABSENT+COPIED, 2 PRESENT+LOST with PASSIVE+ACTIVATED, 3
AWAY+ARRIVED with ACTIVE+DEACTIVATED, 4 AWAY+HANDED_OVER with ACTIVE+DELETED, 5 ACTIVE+ARRIVED or
ABSENT+ARRIVED, 6 PRESENT+GONE, 8 AWAY+EXPIRED.
"""

from enum import Enum, IntEnum, auto
from typing import NamedTuple

from sojourn.mobility.stays import IllegalTurnError


class State(IntEnum):
    """What the broker holds for a subscriber."""

    ABSENT = auto()
    PASSIVE = auto()
    ACTIVE = auto()
    PRESENT = auto()
    AWAY = auto()
    LEAVING = auto()


class Turn(IntEnum):
    """What happens to a holding."""

    ARRIVED = auto()
    LOST = auto()
    GONE = auto()
    COPIED = auto()
    ACTIVATED = auto()
    DEACTIVATED = auto()
    DELETED = auto()
    HANDED_OVER = auto()
    """All it has went to the broker that the subscriber is with."""
    ASKED_EARLY = auto()
    """That broker asked while this one waits itself."""
    EXPIRED = auto()


class Feed(Enum):
    """What becomes of the subscriptions in this broker's router."""

    AS_IS = auto()
    START = auto()
    """Enter them; nothing to do if they are."""
    STOP = auto()


class Wait(Enum):
    """What becomes of the holding's timer."""

    AS_IS = auto()
    STOP = auto()
    TIMEOUT = auto()
    """Start Timeout(S), or the time that the state has instead (`Shelf.rewind`)."""
    PATIENCE = auto()
    """Start the patience for the old broker's answer; of no consequence if nothing is waited for."""


class Next(NamedTuple):
    """The state that follows, and what goes with it."""

    state: State
    feed: Feed = Feed.AS_IS
    wait: Wait = Wait.AS_IS


_GONE = Next(State.ABSENT, Feed.STOP, Wait.STOP)

TABLE: dict[tuple[State, Turn], Next] = {
    (State.ABSENT, Turn.ARRIVED): Next(State.PRESENT, Feed.START, Wait.PATIENCE),
    (State.ABSENT, Turn.COPIED): Next(State.PASSIVE, wait=Wait.TIMEOUT),
    (State.ABSENT, Turn.ACTIVATED): Next(State.ACTIVE, Feed.START, Wait.TIMEOUT),
    (State.PASSIVE, Turn.ARRIVED): Next(State.PRESENT, Feed.START, Wait.PATIENCE),
    (State.PASSIVE, Turn.COPIED): Next(State.PASSIVE, wait=Wait.TIMEOUT),
    (State.PASSIVE, Turn.ACTIVATED): Next(State.ACTIVE, Feed.START, Wait.TIMEOUT),
    (State.PASSIVE, Turn.DEACTIVATED): Next(State.PASSIVE, wait=Wait.TIMEOUT),
    (State.PASSIVE, Turn.DELETED): Next(State.ABSENT, wait=Wait.STOP),
    (State.PASSIVE, Turn.EXPIRED): Next(State.ABSENT),
    (State.ACTIVE, Turn.ARRIVED): Next(State.PRESENT, Feed.START, Wait.PATIENCE),
    # A newer broker has the subscriber and says so before the old one can: the copy is passive again.
    (State.ACTIVE, Turn.COPIED): Next(State.PASSIVE, Feed.STOP, Wait.TIMEOUT),
    (State.ACTIVE, Turn.ACTIVATED): Next(State.ACTIVE, Feed.START, Wait.TIMEOUT),
    (State.ACTIVE, Turn.DEACTIVATED): Next(State.PASSIVE, Feed.STOP, Wait.TIMEOUT),
    (State.ACTIVE, Turn.DELETED): _GONE,
    (State.ACTIVE, Turn.EXPIRED): _GONE,
    (State.PRESENT, Turn.ARRIVED): Next(State.PRESENT, Feed.START, Wait.PATIENCE),
    (State.PRESENT, Turn.LOST): Next(State.AWAY, wait=Wait.TIMEOUT),
    (State.PRESENT, Turn.GONE): _GONE,
    (State.PRESENT, Turn.DELETED): _GONE,
    (State.PRESENT, Turn.HANDED_OVER): _GONE,
    (State.PRESENT, Turn.ASKED_EARLY): Next(State.LEAVING, Feed.STOP, Wait.TIMEOUT),
    (State.PRESENT, Turn.EXPIRED): Next(State.PRESENT),
    (State.AWAY, Turn.ARRIVED): Next(State.PRESENT, Feed.START, Wait.PATIENCE),
    (State.AWAY, Turn.GONE): _GONE,
    (State.AWAY, Turn.DELETED): _GONE,
    (State.AWAY, Turn.HANDED_OVER): _GONE,
    (State.AWAY, Turn.ASKED_EARLY): Next(State.LEAVING, Feed.STOP, Wait.TIMEOUT),
    (State.AWAY, Turn.EXPIRED): _GONE,
    (State.LEAVING, Turn.HANDED_OVER): _GONE,
    (State.LEAVING, Turn.DELETED): _GONE,
    (State.LEAVING, Turn.EXPIRED): _GONE,
}


def follow(state: State, turn: Turn) -> Next:
    """What follows from a turn in a state; an illegal pair raises."""
    try:
        return TABLE[state, turn]
    except KeyError:
        raise IllegalTurnError(
            f"A subscriber that is {state.name} cannot have {turn.name}; feed facts in their true order."
        ) from None
