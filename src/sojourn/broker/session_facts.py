"""Facts that concern the session core alone: each is one call of it.

Nothing follows from them at neighbours but by what the session core says of itself (`mqtt/effects.py`), and
all of them are noted once they were taken in. What clients send is not among them, nor that they are let in
or lost: of that others hear first, or in between (`live_broker.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqtt5 import ConnAckReasonCode

from sojourn.broker import facts
from sojourn.mqtt.core import Core


def tell(core: Core, fact: facts.Remembered, now: float) -> None:
    """Tell the session core one of `FACTS`."""
    _CALLS[type(fact)](core, fact, now)


def _opened(core: Core, fact: facts.ClientOpened, now: float) -> None:
    core.opened(fact.connection, fact.peer, fact.fresh_id, now)


def _refused(core: Core, fact: facts.ClientRefused, _now: float) -> None:
    core.refuse(fact.connection, ConnAckReasonCode(fact.code), fact.text)


def _blocked(core: Core, fact: facts.ClientBlocked, _now: float) -> None:
    core.blocked(fact.connection)


def _drained(core: Core, fact: facts.ClientDrained, now: float) -> None:
    core.drained(fact.connection, now)


def _overflowed(core: Core, fact: facts.Overflowed, now: float) -> None:
    core.overflowed(fact.connection, now)


def _dismissed(core: Core, fact: facts.ClientDismissed, now: float) -> None:
    core.close_for(fact.connection, fact.code, fact.text, now)


def _store_filled(core: Core, fact: facts.StoreFilled, _now: float) -> None:
    core.state.refusing = fact.why


def _stopping(core: Core, fact: facts.Stopping, now: float) -> None:
    core.stop(fact.reference, now)


def _numbers_given(_core: Core, _fact: facts.NumbersGiven, _now: float) -> None:
    """Do nothing: the line itself says which was the last number."""


_CALLS: dict[type, Callable[[Core, Any, float], None]] = {
    facts.ClientOpened: _opened,
    facts.ClientRefused: _refused,
    facts.ClientBlocked: _blocked,
    facts.ClientDrained: _drained,
    facts.Overflowed: _overflowed,
    facts.ClientDismissed: _dismissed,
    facts.StoreFilled: _store_filled,
    facts.Stopping: _stopping,
    facts.NumbersGiven: _numbers_given,
}
FACTS = frozenset(_CALLS)
"""The facts that are one call of the session core."""
