"""What operators and changed configurations rule over clients: rights, kicks and bans.

Each is a fact that the journal holds (`facts.py`). Kicks and bans go to all brokers of the network as an
`Order`; bans are remembered, told to neighbours that have forgotten them, and hold after a restart.
"""

from __future__ import annotations

from typing import Any

from mqtt5 import DisconnectReasonCode as Reason

from sojourn.broker import facts
from sojourn.broker.links import Links
from sojourn.broker.messages import Order
from sojourn.mqtt import bans
from sojourn.mqtt.content import subscriber_event
from sojourn.mqtt.core import Core
from sojourn.mqtt.session import Session

KICK, BAN, UNBAN = "kick", "ban", "unban"
KICKED = "An operator has ended this connection."
BANNED = "An operator has banned you."


def rule(
    core: Core,
    links: Links | None,
    fact: facts.RightsChanged | facts.OrderGiven,
    now: float,
) -> None:
    """Do what follows from a ruling at this broker, and tell the others of it if they are concerned."""
    if isinstance(fact, facts.RightsChanged):
        change_rights(core, fact)
    else:
        order = Order(fact.verb, fact.scope, fact.whom, core.state.bans.next_stamp(now))
        if carry_out(core, order, now) and links is not None:
            links.flood(order, None, now)


def heard(core: Core, links: Links, order: Order, sender: int, now: float) -> None:
    """A neighbour passes on an order."""
    if carry_out(core, order, now):
        links.flood(order, sender, now)


def tell_bans(core: Core, links: Links, bit: int, now: float) -> None:
    """Tell a neighbour that has forgotten something of all bans."""
    for one in core.state.bans:
        links.send(bit, Order(BAN if one.banned else UNBAN, one.scope, one.whom, one.stamp), now)


def carry_out(core: Core, order: Order, now: float) -> bool:
    """Do what an order says; return whether others are to hear of it."""
    if order.verb == KICK:
        _send_away(core, order, KICKED, now)
        return True
    if order.verb not in (BAN, UNBAN):
        return False
    is_news = core.state.bans.take(bans.Order(order.scope, order.whom, order.stamp, order.verb == BAN))
    if is_news and order.verb == BAN:
        _send_away(core, order, BANNED, now)
    return is_news


def _send_away(core: Core, order: Order, why: str, now: float) -> None:
    concerned = [
        session.client_id
        for session in core.state.sessions.values()
        if session.connection is not None and _concerns(order, session, session.connection.peer)
    ]
    for client_id in concerned:
        core.custody.dismiss(client_id, Reason.ADMINISTRATIVE_ACTION, why, now)


def _concerns(order: Order, session: Session, address: str) -> bool:
    one = bans.Bans()
    one.take(bans.Order(order.scope, order.whom, 1, banned=True))
    return one.concerns(session.client_id, (session.username, session.owner), address)


def change_rights(core: Core, fact: facts.RightsChanged) -> None:
    """Give all sessions of an owner the rights that it has now, whether their clients are here or away."""
    permissions = fact.admission().permissions
    for session in list(core.state.sessions.values()):
        if session.owner != fact.owner:
            continue
        session.permissions = permissions
        stated: dict[str, Any] = {
            name: value for name, value in session.stated.items() if name not in fact.lost
        }
        session.stated = stated | fact.attributes
        session.attributes = subscriber_event(session.stated)
        core.handshake.reviewer.review(session)
