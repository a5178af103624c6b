"""The states of a publisher's stay at one broker, as one table.

A stay is what a broker knows of a publisher whose advertisements it holds. The table is all there is to the
five protocols of paper 000, section 4; policies only decide which facts come about and when timers end.

    ABSENT     the broker knows nothing of the client
    PRESENT    the client is connected here
    LINGERING  it left; its tree is kept for a while (delayed)
    EXPECTED   it is announced; its tree is built already (prefetching)
    KEPT       this broker is its proxy, and it is elsewhere
    HOME       this broker is its proxy, and it is here

Facts can cross: a prefetch may overtake nobody but can well arrive after the client has come, or even left
again, and a timer may fire while its cancellation is under way. Every such pair has a row. A pair without a
row is a driver's mistake; it raises and changes nothing.

A proxy is released by the broker that enrolled it and by nobody else: both messages then take the same way,
and a release can't overtake the enrolment it undoes. So even a client that says goodbye at a proxy leaves
its tree KEPT until that release comes.

Where the client is, its own word counts: an enrolment may come after it, from a broker that it has said
goodbye to since, with advertisements that it has replaced.
"""

from enum import Enum, IntEnum, auto
from typing import NamedTuple

from sojourn.errors import SojournError


class State(IntEnum):
    """What the broker knows of a client."""

    ABSENT = auto()
    PRESENT = auto()
    LINGERING = auto()
    EXPECTED = auto()
    KEPT = auto()
    HOME = auto()


class Turn(IntEnum):
    """What happens to a stay."""

    ARRIVED = auto()
    LEFT = auto()
    ANNOUNCED = auto()
    ENROLLED = auto()
    RELEASED = auto()
    EXPIRED = auto()
    GONE = auto()


class Tree(Enum):
    """What becomes of the client's tree at this broker."""

    AS_IS = auto()
    BUILD = auto()
    """Hold exactly the advertisements that came with the fact; nothing to do if they are held."""
    TEAR_DOWN = auto()


class Wait(Enum):
    """What becomes of the stay's timer."""

    AS_IS = auto()
    STOP = auto()
    DELAY = auto()
    """Start the unadvertisement delay."""
    PATIENCE = auto()
    """Start the patience for an expected client."""


class Next(NamedTuple):
    """The state that follows, and what goes with it."""

    state: State
    tree: Tree = Tree.AS_IS
    wait: Wait = Wait.AS_IS


class IllegalTurnError(SojournError):
    """A fact that cannot be true of a client in that state."""


TABLE: dict[tuple[State, Turn], Next] = {
    (State.ABSENT, Turn.ARRIVED): Next(State.PRESENT, Tree.BUILD),
    (State.ABSENT, Turn.ANNOUNCED): Next(State.EXPECTED, Tree.BUILD, Wait.PATIENCE),
    (State.ABSENT, Turn.ENROLLED): Next(State.KEPT, Tree.BUILD),
    (State.ABSENT, Turn.RELEASED): Next(State.ABSENT),
    (State.PRESENT, Turn.ARRIVED): Next(State.PRESENT, Tree.BUILD),
    (State.PRESENT, Turn.LEFT): Next(State.LINGERING, wait=Wait.DELAY),
    (State.PRESENT, Turn.ANNOUNCED): Next(State.PRESENT),
    (State.PRESENT, Turn.ENROLLED): Next(State.HOME),
    (State.PRESENT, Turn.RELEASED): Next(State.PRESENT),
    (State.PRESENT, Turn.GONE): Next(State.ABSENT, Tree.TEAR_DOWN),
    (State.LINGERING, Turn.ARRIVED): Next(State.PRESENT, Tree.BUILD, Wait.STOP),
    (State.LINGERING, Turn.ANNOUNCED): Next(State.EXPECTED, Tree.BUILD, Wait.PATIENCE),
    (State.LINGERING, Turn.ENROLLED): Next(State.KEPT, Tree.BUILD, Wait.STOP),
    (State.LINGERING, Turn.RELEASED): Next(State.LINGERING),
    (State.LINGERING, Turn.EXPIRED): Next(State.ABSENT, Tree.TEAR_DOWN),
    (State.EXPECTED, Turn.ARRIVED): Next(State.PRESENT, Tree.BUILD, Wait.STOP),
    (State.EXPECTED, Turn.ANNOUNCED): Next(State.EXPECTED, Tree.BUILD, Wait.PATIENCE),
    (State.EXPECTED, Turn.ENROLLED): Next(State.KEPT, Tree.BUILD, Wait.STOP),
    (State.EXPECTED, Turn.RELEASED): Next(State.EXPECTED),
    (State.EXPECTED, Turn.EXPIRED): Next(State.ABSENT, Tree.TEAR_DOWN),
    (State.KEPT, Turn.ARRIVED): Next(State.HOME, Tree.BUILD),
    (State.KEPT, Turn.ANNOUNCED): Next(State.KEPT),
    (State.KEPT, Turn.ENROLLED): Next(State.KEPT, Tree.BUILD),
    (State.KEPT, Turn.RELEASED): Next(State.ABSENT, Tree.TEAR_DOWN),
    (State.HOME, Turn.ARRIVED): Next(State.HOME, Tree.BUILD),
    (State.HOME, Turn.LEFT): Next(State.KEPT),
    (State.HOME, Turn.ANNOUNCED): Next(State.HOME),
    (State.HOME, Turn.ENROLLED): Next(State.HOME),
    (State.HOME, Turn.RELEASED): Next(State.PRESENT),
    (State.HOME, Turn.GONE): Next(State.KEPT),
}


def follow(state: State, turn: Turn) -> Next:
    """What follows from a fact in a state; an illegal pair raises."""
    try:
        return TABLE[state, turn]
    except KeyError:
        raise IllegalTurnError(
            f"A client that is {state.name} cannot have {turn.name}; feed facts in their true order."
        ) from None
