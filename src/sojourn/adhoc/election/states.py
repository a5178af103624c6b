"""How a node stands to the broker, as one table.

    SEARCHING --timed out--> CANDIDATE --timed out--> BROKER --senior--> MERGING --handed over--> ATTACHED

Of two candidates the one with the lower number stays; of two brokers the senior one, which was elected
earlier (the lower number among equals). However many meet, all hand over towards the same one. Who reaches
the fixed network is a broker at once, and senior to all that do not, so that everything comes to it; when
that is out of reach again, it is as senior as its election made it.
"""

from enum import Enum


class State(Enum):
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


class Turn(Enum):
    """What can happen to it."""

    BEACON = "a broker's beacon"
    SENIOR = "a senior broker's beacon"
    RIVAL = "a candidate with a lower number"
    TIMED_OUT = "timed out"
    SILENCE = "the broker fell silent"
    HANDED_OVER = "handed over"
    FIXED = "the fixed network is in reach"


TRANSITIONS: dict[tuple[State, Turn], State] = {
    (State.SEARCHING, Turn.BEACON): State.ATTACHED,
    (State.SEARCHING, Turn.SENIOR): State.ATTACHED,
    (State.SEARCHING, Turn.RIVAL): State.SEARCHING,
    (State.SEARCHING, Turn.TIMED_OUT): State.CANDIDATE,
    (State.CANDIDATE, Turn.BEACON): State.ATTACHED,
    (State.CANDIDATE, Turn.SENIOR): State.ATTACHED,
    (State.CANDIDATE, Turn.RIVAL): State.SEARCHING,
    (State.CANDIDATE, Turn.TIMED_OUT): State.BROKER,
    (State.ATTACHED, Turn.BEACON): State.ATTACHED,
    (State.ATTACHED, Turn.SENIOR): State.ATTACHED,
    (State.ATTACHED, Turn.RIVAL): State.ATTACHED,
    (State.ATTACHED, Turn.SILENCE): State.SEARCHING,
    (State.BROKER, Turn.BEACON): State.BROKER,
    (State.BROKER, Turn.SENIOR): State.MERGING,
    (State.BROKER, Turn.RIVAL): State.BROKER,
    (State.MERGING, Turn.BEACON): State.MERGING,
    (State.MERGING, Turn.SENIOR): State.MERGING,
    (State.MERGING, Turn.RIVAL): State.MERGING,
    (State.MERGING, Turn.SILENCE): State.BROKER,
    (State.MERGING, Turn.HANDED_OVER): State.ATTACHED,
    (State.SEARCHING, Turn.FIXED): State.BROKER,
    (State.CANDIDATE, Turn.FIXED): State.BROKER,
    (State.ATTACHED, Turn.FIXED): State.BROKER,
    (State.BROKER, Turn.FIXED): State.BROKER,
    (State.MERGING, Turn.FIXED): State.BROKER,
}

SERVING = frozenset({State.BROKER, State.MERGING})


class IllegalTurnError(AssertionError):
    """Something happened that cannot happen in this state."""


def follow(state: State, turn: Turn) -> State:
    """The next state; an illegal pair raises and changes nothing."""
    try:
        return TRANSITIONS[state, turn]
    except KeyError:
        raise IllegalTurnError(f"{turn.value} cannot come while {state.value}") from None
