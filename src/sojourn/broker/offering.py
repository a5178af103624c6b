"""A broker that is to leave the network gives its sessions away.

It offers them to a neighbour, a few at a time. The neighbour asks for each as if its client had come there
and gone again, so the session and all that is stored for it come by the way that sessions take. A client that
comes meanwhile, wherever that is, has a later epoch and is right. What came to nothing is offered again.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from sojourn.broker.messages import Offer
from sojourn.broker.roamers import Waiting
from sojourn.mqtt.admission import Admission

if TYPE_CHECKING:
    from sojourn.broker.arrivals import Arrivals
    from sojourn.broker.network import Network

NO_CONNECTION = -1
"""The number of no connection: that of a client which is not there."""


def offer(arrivals: Arrivals, to: str, most: int, now: float) -> None:
    """Ask a neighbour to take sessions, so many at the most, of clients that are not here."""
    sessions, links = arrivals.core.state.sessions, arrivals.links
    absent = [name for name, session in sessions.items() if session.connection is None]
    for client_id in islice(absent, most):
        client = arrivals.clients.names.client_number(client_id)
        links.forward(Offer(links.numbers[to], links.number, client, sessions[client_id].owner), now)


def offered(arrivals: Arrivals, message: Offer, now: float) -> None:
    """A broker that leaves has a session: ask for it, unless that is done already."""
    if message.destination != arrivals.links.number:
        arrivals.links.forward(message, now)
        return
    client, finder = message.client, arrivals.finder
    has_session = arrivals.clients.names.client_name(client) in arrivals.core.state.sessions
    if has_session or client in arrivals.waiting or finder.seeks(client) or not arrivals.clients.follows:
        return
    epoch = arrivals.next_epoch(client, now)
    admission = Admission(owner=message.owner)
    arrivals.waiting[client] = Waiting(NO_CONNECTION, admission, epoch, message.sender, None)
    finder.out_of_reach = arrivals.missing(now)
    finder.seek(client, epoch, message.sender, now)
    arrivals.follow_finder(now)


def left_behind(network: Network) -> dict[str, int]:
    """What would be lost, or not be answered, if this broker were gone now; nothing if nothing is named."""
    core, clients = network.core, network.clients
    subscribers = clients.broker.subscribers
    stays = (*subscribers.main.values(), *(one for some in subscribers.older.values() for one in some))
    frames = sum(channel.waiting for channel in network.links.channels.values())
    found = {
        "clients connected": sum(one.connection is not None for one in core.state.sessions.values()),
        "sessions": len(core.state.sessions),
        "clients whose events are being fetched": sum(one.is_stay() for one in stays),
        "sessions looked for": network.arrivals.finder.expects,
        "events of groups that members have not acknowledged": clients.shares.elsewhere(),
        "frames for neighbours": frames,
        "retained values for neighbours": sum(map(len, network.reconciling.telling.values())),
    }
    return {what: count for what, count in found.items() if count}
