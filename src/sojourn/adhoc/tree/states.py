"""The states of a node in SHOPPARENT, and every transition between them, as one table.

Alone: no parent. Joining: alone and asking one. Joined: has a parent. Switching: has one and asks another.
"""

from enum import Enum


class State(Enum):
    """Where a node stands."""

    ALONE = "alone"
    JOINING = "joining"
    JOINED = "joined"
    SWITCHING = "switching"


class Step(Enum):
    """What can happen to it."""

    ASKED = "asked"
    """It asked a candidate whether it may hang there."""
    GRANTED = "granted"
    REFUSED = "refused"
    """The candidate said no, or nothing in time."""
    LOST = "lost"
    """Its parent was not heard of for too long, or lost its own route."""


TRANSITIONS: dict[tuple[State, Step], State] = {
    (State.ALONE, Step.ASKED): State.JOINING,
    (State.JOINING, Step.GRANTED): State.JOINED,
    (State.JOINING, Step.REFUSED): State.ALONE,
    (State.JOINED, Step.ASKED): State.SWITCHING,
    (State.JOINED, Step.LOST): State.ALONE,
    (State.SWITCHING, Step.GRANTED): State.JOINED,
    (State.SWITCHING, Step.REFUSED): State.JOINED,
    (State.SWITCHING, Step.LOST): State.JOINING,
}


def after(state: State, step: Step) -> State:
    """The next state; a step that cannot happen in a state is a fault of ours."""
    assert (state, step) in TRANSITIONS, f"{step} cannot happen to a node that is {state}"
    return TRANSITIONS[state, step]
