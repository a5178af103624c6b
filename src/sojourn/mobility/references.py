"""Which numbers a broker's core still speaks of, so that books outside may forget all others.

A core names clients, advertisements and subscriptions by numbers that somebody else gives. Everything that it
keeps from one fact to the next is looked through here. Effects are not: they are carried out and cleared
before the next fact. Nor are stored events: what they remember to have matched is only ever looked up.
"""

from typing import NamedTuple

from sojourn.mobility.broker import Broker
from sojourn.mobility.holdings import Holding


class References(NamedTuple):
    """The numbers in use."""

    clients: set[int]
    """Perhaps among others: holdings beside a client's first have keys of their own, below 0."""
    advertisements: set[int]
    subscriptions: set[int]


def references(broker: Broker) -> References:
    """All numbers that one broker's core speaks of."""
    router, subscribers = broker.router, broker.subscribers
    clients = {*broker.stays, *broker.enrolled, *subscribers.main, *subscribers.older, *subscribers.past}
    advertisements = {*router.ads, *router.local_ads}
    subscriptions = {*router.subs, *router.local_subs}
    for leaving in router.leaving.values():
        subscriptions.update(leaving)
    for holders in (*router.local_ads.values(), *router.local_subs.values()):
        clients.update(holders)
    for stay in broker.stays.values():
        advertisements.update(stay.advertisements)
    for holding in subscribers.main.values():
        subscriptions.update(_subscriptions(holding))
    for older in subscribers.older.values():
        for holding in older:
            subscriptions.update(_subscriptions(holding))
    return References(clients, advertisements, subscriptions)


def _subscriptions(holding: Holding) -> tuple[int, ...]:
    successor = holding.successor
    later = successor.subscriptions if successor is not None else ()
    return (*holding.subscriptions, *holding.fed, *later)
