"""What packets of clients cost, counted and not timed: how long a client is read before it is others' turn.

A *unit* is what a plain event takes that nobody gets, a few microseconds. `SLICE` of them are read of one
client at once (`input.py`). Whoever does the work says what a packet cost, or what it is going to cost where
the work is done later: in a network events are routed when the packets of a slice have been read. The figures
are rough, and rather too high: a slice that ends early costs some microseconds, one that ends late costs
everybody's time. They follow from the packet and from what the broker holds, never from a clock, so that a
simulated network which is run again takes the same slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.mqtt.session import Session

SLICE = 256
"""What is read of a client before it is others' turn. The packet that exceeds it is read to its end."""
UNSLICED_MAX = 1_024
"""What is read in a turn as it comes, before those that come next line up."""
SUBSCRIBE = SLICE
"""After a SUBSCRIBE, or a part of one, it is others' turn; the same with an UNSUBSCRIBE."""
ADVERTISE = UNSLICED_MAX
"""After a packet of advertisements, which may take some ten milliseconds, the turn is over."""
BURIED = 4
"""A retained message whose time ran out, and that is buried."""
RETAINED = 64
"""So many retained messages, which a SUBSCRIBE may look at, count for one."""
OUTPUT_BYTES, OUTPUT_A_TURN = 1_024, 4 << 20
"""So many bytes of retained messages that are sent count for one; and how many of them, and of what waited,
are sent to all clients before the turn is over: who is to get more gets it in the next one."""
SYSTEM = 4
"""A `$SYS` topic that a SUBSCRIBE is given."""
OTHER = 8
"""A ping and its like."""
LOSS, ENDING = 32, 8
"""The loss of a connection, but for its will's way; and each subscription of a session that ends with it."""
FORGOTTEN = 16
"""So many events that wait for a client which goes count for one."""
DECODED = 4
"""An event that is out of the ordinary: on a topic that is new, retained, or with properties."""
PROPERTIES = 2
"""So many user properties of such an event count for one."""
REFUSED = SLICE
"""An event that is refused: whether that took long is not looked at."""
POLICY, POLICY_ALTERNATIVES = 8, 4
"""An access policy, besides its length, and each of its alternatives."""
JUDGED = 4
"""So many alternatives of a policy make its event count once more for all subscriptions that may get it."""
PICK = 16
"""One of a shared subscription's members is chosen, and sent the event, in a network."""
CONDITION_CHARS = 512
"""So many characters of the conditions of members that an event may be compared with count for one."""
CONNECT_BYTES, POLICY_BYTES, INPUT_BYTES = 16, 16, 1_024
"""So many bytes of a CONNECT, a policy or whatever else count for one."""
RECIPIENTS, PLACES, TRIALS, LEVELS = 4, 16, 8, 4
"""So many subscriptions that may get an event count for one; and so many places of the tree of topics,
filters or levels of a topic that are looked at."""
INDEXED = 16
"""An event that is matched by the index of filters."""


def of_loss(session: Session | None) -> int:
    """What it costs that a connection is gone which a session has."""
    if session is None:
        return LOSS
    ending = 0 if session.expiry else ENDING * len(session.subscriptions)
    return LOSS + len(session.queue) // FORGOTTEN + ending


def of_decoded(properties: int, size: int) -> int:
    """What reading an event costs that is out of the ordinary, given its user properties and its bytes."""
    return DECODED + properties // PROPERTIES + size // INPUT_BYTES


def of_subscribe(retained: int, sent: int, told: int) -> int:
    """What a SUBSCRIBE costs, or a part, given how many retained messages there are, and what was sent.

    That is the bytes of retained messages, and the number of `$SYS` topics.
    """
    return min(UNSLICED_MAX, SUBSCRIBE + retained // RETAINED + sent // OUTPUT_BYTES + SYSTEM * told)


def of_policy(size: int, alternatives: int, way: int) -> int:
    """What a policy costs, given the bytes that it is in, its alternatives, and what its event's way costs.

    It is read once, and asked about everybody who may get the event.
    """
    asking = way * alternatives // JUDGED
    return POLICY + size // POLICY_BYTES + POLICY_ALTERNATIVES * alternatives + asking
