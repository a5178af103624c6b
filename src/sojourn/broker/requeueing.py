"""What was queued for neighbours in a broker's last network goes into the queues of the next.

Events do, and what else only these frames hold: sessions on their way, and events handed to a client's next
broker. Brokers, clients and subscriptions have other numbers in another network, so such messages are read
with the old numbers and written with the new. Of what is for a neighbour or a broker that is no more, events
and sessions are counted; questions and answers are let go, for whoever waits for them asks again.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from sojourn.broker.frame_events import events_in
from sojourn.broker.messages import PART, RUN, SETTLED, SPREAD
from sojourn.broker.network import Network
from sojourn.broker.regrouping import REMOVED
from sojourn.broker.wire import kind_of
from sojourn.mobility.finding_messages import FOUND
from sojourn.routing.messages import Kind

CUT = "a piece was sent already"
"""Why the rest of a large message is lost."""
SESSIONS = "session for a broker that was removed"
_BROKERS = frozenset({"destination", "sender", "holder", "held_at", "controller"})
_BROKER_LISTS = frozenset({"others", "holders", "waits_for"})


def requeue(old: Network, network: Network, now: float) -> None:
    """Put what neighbours have not acknowledged into the queues of the new links."""
    for peer, channel in old.links.channels.items():
        into = network.links.channels.get(peer)
        for body in _whole(old, peer, channel.reset(), network, now):
            kept = _rewritten(old, network, body, now)
            if kept is not None and into is not None:
                network.links.put(into, kept, now)
            elif kept is not None:
                network.clients.drops[REMOVED] += max(1, events_in(kept))


def _whole(old: Network, peer: str, bodies: list[bytes], network: Network, now: float) -> list[bytes]:
    """Put messages together that went in pieces; one whose first pieces are gone cannot be."""
    old.links.forget_pieces(peer)
    found: list[bytes] = []
    for body in bodies:
        if kind_of(body) != PART:
            found.append(body)
            continue
        part = old.links.wire.decode(body, now)
        whole = old.links.whole(peer, part)
        if whole is not None:
            found.append(whole)
        elif part.is_last:
            network.clients.drops[CUT] += 1
    return found


def _rewritten(old: Network, network: Network, body: bytes, now: float) -> bytes | None:
    """Return a frame with the numbers of the new network; None for one that nobody needs, or can be sent."""
    kind = kind_of(body)
    if kind in (Kind.PUBLISH, SPREAD, RUN):
        return body  # there are no numbers in it
    if kind not in (FOUND, Kind.FORWARD, Kind.FORWARD_END, SETTLED):
        return None
    message: Any = old.links.wire.decode(body, now)
    if kind == FOUND and message.state is None:
        return None
    try:
        renumbered = _renumbered(message, old, network)
    except LookupError:
        if kind in (FOUND, Kind.FORWARD):
            network.clients.drops[SESSIONS if kind == FOUND else REMOVED] += 1
        return None
    return network.links.wire.encode(renumbered, now)


def _renumbered(message: Any, old: Network, network: Network) -> Any:
    """Return a message with the numbers of the new network; LookupError for a broker that is no more."""
    before, after = old.links, network.links

    def broker(number: int) -> int:
        return after.numbers[before.names_of[number]]

    changes: dict[str, Any] = {}
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if field.name in _BROKERS:
            changes[field.name] = broker(value)
        elif field.name in _BROKER_LISTS:
            changes[field.name] = tuple(broker(number) for number in value)
        elif field.name == "client":
            changes[field.name] = after.names.client_number(before.names.client_name(value))
        elif field.name == "subscriptions" and value is not None:
            texts = [before.names.subscription_text(number) for number in value]
            changes[field.name] = tuple(after.names.subscription_number(text) for text in texts)
    return dataclasses.replace(message, **changes)
