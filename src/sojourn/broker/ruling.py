"""What operators and changed configurations rule over clients: rights, kicks and bans.

Each is a fact that the journal holds (`facts.py`). Kicks and bans go to all brokers of the network as an
`Order`; bans are remembered, told to neighbours that have forgotten them, and hold after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
from mqtt5 import DisconnectReasonCode as Reason

from sojourn.broker import facts
from sojourn.broker.links import Links
from sojourn.broker.messages import Order
from sojourn.broker.preparing import PreparedClients
from sojourn.mqtt import bans
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.content import subscriber_event
from sojourn.mqtt.core import Core
from sojourn.mqtt.session import Session

if TYPE_CHECKING:
    from sojourn.broker.network import Network
    from sojourn.broker.roamers import Waiting

Rights = Callable[[Iterable[Session | Admission]], Iterable[facts.RightsChanged]]
"""Says which owners, of these sessions and of clients that wait, may do something else than these may."""

KICK, BAN, UNBAN = "kick", "ban", "unban"
KICKED = "An operator has ended this connection."
BANNED = "An operator has banned you."


class Ruling:
    """What is ruled over the clients of one broker, those included that wait to be let in."""

    def __init__(self, core: Core, prepared: PreparedClients) -> None:
        self._core, self._prepared = core, prepared
        self.rights: Rights = lambda _: ()
        """What owners may do today, by the configuration that the driver knows."""

    def rule(self, network: Network | None, fact: facts.RightsChanged | facts.OrderGiven, now: float) -> None:
        """Do what follows at this broker, and tell the others of it if they are concerned."""
        core = self._core
        if isinstance(fact, facts.RightsChanged):
            change_rights(core, fact)
            if fact.is_for_waiting and fact.clients is None:
                change_waiting({} if network is None else network.arrivals.waiting, fact)
                self._prepared.change_rights(fact)
            return
        whom = bans.spelled(fact.scope, fact.whom)
        order = Order(fact.verb, fact.scope, whom, core.state.bans.next_stamp(now))
        if carry_out(core, order, now) and network is not None:
            network.links.flood(order, None, now)

    def entitled(self, network: Network | None) -> Iterator[Session | Admission]:
        """Whoever has rights: sessions, and clients that wait to be let in, whatever for."""
        yield from self._core.state.sessions.values()
        if network is not None:
            yield from (one.admission for one in network.arrivals.waiting.values())
        yield from (fact.admission() for fact, _ in self._prepared.waiting)

    def of_adopted(self) -> list[facts.RightsChanged]:
        """Say what those may do whose sessions came without them: no broker hands rights on."""
        effects = self._core.effects
        adopted, effects.adopted = effects.adopted, []
        found = []
        for fact in self.rights(adopted):
            owners = fact.owners
            clients = [one.client_id for one in adopted if one.owner in owners]
            found.append(msgspec.structs.replace(fact, clients=clients))
        return found


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
    """Give sessions of owners the rights that these have now, whether their clients are here or away."""
    permissions, sessions = fact.permissions(), core.state.sessions
    named = sessions if fact.clients is None else fact.clients
    found = [sessions[client_id] for client_id in named if client_id in sessions]
    owners = fact.owners
    for session in found:
        if session.owner not in owners:
            continue
        session.permissions = permissions
        session.stated = fact.vouched(session.stated)
        session.attributes = subscriber_event(session.stated)
        core.handshake.reviewer.review(session)


def change_waiting(waiting: dict[int, Waiting], fact: facts.RightsChanged) -> None:
    """Give clients that wait for their sessions the rights of now."""
    permissions, owners = fact.permissions(), fact.owners
    for client, one in list(waiting.items()):
        admission = one.admission
        if admission.owner in owners:
            attributes = fact.vouched(admission.attributes)
            admission = replace(admission, permissions=permissions, attributes=attributes)
            waiting[client] = one._replace(admission=admission)
