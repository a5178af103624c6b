"""A broker in another network than in its last life: what its clients have goes over, the rest begins anew.

Sessions are the session core's and stay. Stored events, and how far each client had come, are taken out of
the old network's mobility core and put into the new one's. Routing tables are not taken over: the links are
new, so neighbours tell each other everything again (`reconciling.py`). Events and sessions that were queued
for a neighbour go on (`requeueing.py`), and what waits for clients whose sessions have left waits on.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from sojourn.broker.carried import Carried
from sojourn.broker.effects import NOT_MISSED
from sojourn.broker.network import Network
from sojourn.broker.requeueing import requeue
from sojourn.broker.roamers import Roamer
from sojourn.broker.roll import merged, roll_of
from sojourn.broker.scheme import scheme_of
from sojourn.broker.settings import Settings
from sojourn.broker.sharing import NETWORK_LEFT
from sojourn.mobility import facts
from sojourn.mqtt.content import event_of
from sojourn.mqtt.core import Core
from sojourn.mqtt.members import address_of, source_for
from sojourn.mqtt.message import Message
from sojourn.mqtt.session import Delivery, Session
from sojourn.mqtt.topic_tree import pattern_matches
from sojourn.routing.messages import Publish


class _Kept(NamedTuple):
    """What is stored for one client."""

    epoch: int
    marks: dict[str, int]
    events: list[Publish]


class _Departed(NamedTuple):
    """What is stored for a client whose session was handed on, until its new broker asks for it."""

    client_id: str
    epoch: int
    wanted: list[str]
    """Its subscriptions, as texts."""
    marks: dict[str, int]
    events: list[Publish]
    party: str | None
    """On whose account they are stored."""


def is_another_network(old: Settings, new: Settings) -> bool:
    """Whether two settings differ in what a network is made of, and not only in limits and times."""
    if old.routes != new.routes:
        return True
    # Who routes nothing has no scheme, and an earlier build may have let numbers pass that make none.
    parts = (
        (one.founders, one.founding_links, one.routing, one.mobility, scheme_of(one) if one.routes else None)
        for one in (old, new)
    )
    return next(parts) != next(parts) or merged(roll_of(old), roll_of(new)) is None


def transplant(core: Core, old: Network | None, settings: Settings, life: str, now: float) -> Network | None:
    """Return the network of a broker that has other settings now; nobody is connected at this moment."""
    kept = _taken_out(core, old)
    core.state.shared_subscriptions = settings.shares
    if not settings.routes:
        core.effects.collects = False
        if old is not None:
            _count_losses(core, old)
        _put_into_sessions(core, kept)
        return None
    network = Network(settings, core, life)
    if old is not None:
        network.seen.update(old.seen)
        network.clients.drops.update(old.clients.drops)
        network.clients.shares.take_over(old.clients.shares)
        network.reconciling.remember(old.reconciling)
        requeue(old, network, now)
        for one in _departed(old):
            _keep_for(network, one, now)
    for client_id in list(core.state.sessions):
        _settle_in(network, client_id, kept.get(client_id), now)
    return network


def _taken_out(core: Core, old: Network | None) -> dict[str, _Kept]:
    if old is None:
        found = {}
        for client_id, session in core.state.sessions.items():
            events: list[Publish] = [Carried(_as_stored(session, one.message)) for one in session.queue]
            core.forget_queue(session)
            found[client_id] = _Kept(0, {}, events)
        return found
    subscribers = old.clients.broker.subscribers
    found = {}
    for client, roamer in old.clients.roamers.items():
        holding = subscribers.main.get(client)
        if holding is not None and holding.is_stay():
            events = [*holding.forwarded, *holding.queue]
            found[old.links.names.client_name(client)] = _Kept(roamer.epoch, dict(holding.marks), events)
        else:
            found[old.links.names.client_name(client)] = _Kept(roamer.epoch, {}, [])
    return found


def _as_stored(session: Session, message: Message) -> Message:
    """Return a message that waits in a session as it is stored in a network.

    There one that came by a shared subscription is addressed to that member. Nobody picked it, and nobody
    will pick it again: its broker ignores what it is told of that.
    """
    fits = [
        one
        for one in session.subscriptions.values()
        if pattern_matches(one.pattern, message.topic)
        and (one.filter is None or one.filter.matches(event_of(message)))
    ]
    if not fits or not all(one.share for one in fits):
        return message
    address = address_of(fits[0])
    return message.addressed(address, source_for(address, message.source), message.sequence, None)


def _departed(old: Network) -> list[_Departed]:
    """What is stored for clients without a session here: the last stay of each."""
    subscribers, names = old.clients.broker.subscribers, old.links.names
    found: list[_Departed] = []
    for client in sorted({*subscribers.main, *subscribers.older} - old.clients.roamers.keys()):
        latest = subscribers.main.get(client)
        stays = [*subscribers.older.get(client, ()), *([latest] if latest is not None else [])]
        stays = [one for one in stays if one.is_stay()]
        events = [event for one in stays for event in (*one.forwarded, *one.queue)]
        if stays and events:
            last = stays[-1]
            wanted = [names.subscription_text(number) for number in last.subscriptions]
            party = last.account.party if last.account is not None else None
            name, marks = names.client_name(client), dict(last.marks)
            found.append(_Departed(name, last.epoch, wanted, marks, events, party))
    return found


def _keep_for(network: Network, one: _Departed, now: float) -> None:
    """Store events on for a client whose session is on its way to another broker, or there."""
    names = network.links.names
    client = names.client_number(one.client_id)
    wanted = tuple(names.subscription_number(text) for text in one.wanted)
    arrived = facts.SubscriberArrived(client, one.epoch, wanted, None, None, stays_here=True, party=one.party)
    network.clients.tell(arrived, now)
    network.clients.tell(facts.SubscriberLost(client, one.epoch), now)
    network.clients.broker.subscribers.restore(client, one.events, one.marks)


def _count_losses(core: Core, old: Network) -> None:
    """Let a broker that is alone from now on remember what its network lost, and what it loses by leaving."""
    lost = old.clients.drops + Counter({NETWORK_LEFT: old.clients.shares.elsewhere()})
    core.state.counters.dropped.update({why: lost[why] for why in lost if why not in NOT_MISSED})


def _put_into_sessions(core: Core, kept: dict[str, _Kept]) -> None:
    """Let stored events wait in the sessions themselves, where nobody else stores them."""
    for client_id, one in kept.items():
        session = core.state.sessions.get(client_id)
        if session is None:
            continue
        on_their_way = {delivery.message for delivery in session.inflight.values() if delivery is not None}
        for event in one.events:
            assert isinstance(event, Carried), "live brokers carry MQTT messages"
            if event.message not in on_their_way:
                core.deliverer.hand(session, Delivery(event.message, event.message.qos), 0.0)


def _settle_in(network: Network, client_id: str, kept: _Kept | None, now: float) -> None:
    session = network.core.state.sessions[client_id]
    client = network.links.names.client_number(client_id)
    epoch = max(kept.epoch if kept is not None else 0, network.arrivals.next_epoch(client, now))
    roamer = network.clients.roamers[client] = Roamer(epoch, None, None, now)
    network.clients.arrive(client, session, roamer, now)
    network.clients.lost(client, roamer, now)
    if kept is not None and kept.events:
        network.clients.broker.subscribers.restore(client, kept.events, kept.marks)
