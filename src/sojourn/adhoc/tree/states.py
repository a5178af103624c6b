"""The states of a node in SHOPPARENT, and every transition between them, as one table.

Alone: no parent. Joining: alone and asking one. Joined: has a parent. Switching: has one and asks another.
"""

from enum import Enum


class Attachment(Enum):
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


TRANSITIONS: dict[tuple[Attachment, Step], Attachment] = {
    (Attachment.ALONE, Step.ASKED): Attachment.JOINING,
    (Attachment.JOINING, Step.GRANTED): Attachment.JOINED,
    (Attachment.JOINING, Step.REFUSED): Attachment.ALONE,
    (Attachment.JOINED, Step.ASKED): Attachment.SWITCHING,
    (Attachment.JOINED, Step.LOST): Attachment.ALONE,
    (Attachment.SWITCHING, Step.GRANTED): Attachment.JOINED,
    (Attachment.SWITCHING, Step.REFUSED): Attachment.JOINED,
    (Attachment.SWITCHING, Step.LOST): Attachment.JOINING,
}


def after(state: Attachment, step: Step) -> Attachment:
    """The next state; a step that cannot happen in a state is a fault of ours."""
    assert (state, step) in TRANSITIONS, f"{step} cannot happen to a node that is {state}"
    return TRANSITIONS[state, step]
