"""How a node stands to the broker, as one table.

    SEARCHING --timed out--> CANDIDATE --timed out--> BROKER --senior--> MERGING --handed over--> ATTACHED

Of two candidates the one with the lower number stays; of two brokers the senior one, which was elected
earlier (the lower number among equals). However many meet, all hand over towards the same one. Who reaches
the fixed network is a broker at once, and senior to all that do not, so that everything comes to it; when
that is out of reach again, it is as senior as its election made it.
"""

from enum import Enum


class Role(Enum):
    """What a node is at present."""

    SEARCHING = "searching"
    """It knows no broker and asks."""
    CANDIDATE = "candidate"
    """Nobody answered; it offers to be the broker."""
    ATTACHED = "attached"
    """It knows a broker."""
    BROKER = "broker"
    MERGING = "merging"
    """It is a broker that met a senior one and hands over."""


class Occasion(Enum):
    """What can happen to it."""

    BEACON = "a broker's beacon"
    SENIOR = "a senior broker's beacon"
    RIVAL = "a candidate with a lower number"
    TIMED_OUT = "timed out"
    SILENCE = "the broker fell silent"
    HANDED_OVER = "handed over"
    FIXED = "the fixed network is in reach"


TRANSITIONS: dict[tuple[Role, Occasion], Role] = {
    (Role.SEARCHING, Occasion.BEACON): Role.ATTACHED,
    (Role.SEARCHING, Occasion.SENIOR): Role.ATTACHED,
    (Role.SEARCHING, Occasion.RIVAL): Role.SEARCHING,
    (Role.SEARCHING, Occasion.TIMED_OUT): Role.CANDIDATE,
    (Role.CANDIDATE, Occasion.BEACON): Role.ATTACHED,
    (Role.CANDIDATE, Occasion.SENIOR): Role.ATTACHED,
    (Role.CANDIDATE, Occasion.RIVAL): Role.SEARCHING,
    (Role.CANDIDATE, Occasion.TIMED_OUT): Role.BROKER,
    (Role.ATTACHED, Occasion.BEACON): Role.ATTACHED,
    (Role.ATTACHED, Occasion.SENIOR): Role.ATTACHED,
    (Role.ATTACHED, Occasion.RIVAL): Role.ATTACHED,
    (Role.ATTACHED, Occasion.SILENCE): Role.SEARCHING,
    (Role.BROKER, Occasion.BEACON): Role.BROKER,
    (Role.BROKER, Occasion.SENIOR): Role.MERGING,
    (Role.BROKER, Occasion.RIVAL): Role.BROKER,
    (Role.MERGING, Occasion.BEACON): Role.MERGING,
    (Role.MERGING, Occasion.SENIOR): Role.MERGING,
    (Role.MERGING, Occasion.RIVAL): Role.MERGING,
    (Role.MERGING, Occasion.SILENCE): Role.BROKER,
    (Role.MERGING, Occasion.HANDED_OVER): Role.ATTACHED,
    (Role.SEARCHING, Occasion.FIXED): Role.BROKER,
    (Role.CANDIDATE, Occasion.FIXED): Role.BROKER,
    (Role.ATTACHED, Occasion.FIXED): Role.BROKER,
    (Role.BROKER, Occasion.FIXED): Role.BROKER,
    (Role.MERGING, Occasion.FIXED): Role.BROKER,
}

SERVING = frozenset({Role.BROKER, Role.MERGING})


class IllegalOccasionError(AssertionError):
    """Something happened that cannot happen in this state."""


def follow(state: Role, turn: Occasion) -> Role:
    """The next state; an illegal pair raises and changes nothing."""
    try:
        return TRANSITIONS[state, turn]
    except KeyError:
        raise IllegalOccasionError(f"{turn.value} cannot come while {state.value}") from None
