"""Whether the parts of a state that was read fit together.

Each value by itself is right (`state_shapes.py`). What one part says must also be what another one relies on:
whose session a subscription is of, which numbers have names, how often an event is stored. A state that was
written by a broker always fits; another one is refused before anything is done with it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sojourn.broker.state_kinds import StateError

if TYPE_CHECKING:
    from sojourn.broker.network import Network
    from sojourn.mqtt.core import Core
    from sojourn.mqtt.state import State


def check_sense(core: Core, network: Network | None) -> None:
    """Refuse a state whose parts contradict one another."""
    _check_sessions(core.state)
    if network is not None:
        _check_numbers(network)
        _check_interests(network)
        _check_stored(network)


def _demand(what: bool, text: str) -> None:  # noqa: FBT001 - a condition
    if not what:
        raise StateError(f"a state contradicts itself: {text}.")


def _check_sessions(state: State) -> None:
    owned = set()
    for client_id, session in state.sessions.items():
        connection = session.connection
        _demand(session.client_id == client_id, "a session has another name")
        _demand(
            connection is None
            or (connection.session is session and state.connections.get(connection.number) is connection),
            "a session has a connection that is not its own",
        )
        _demand(session.will_s is None or session.will is not None, "a will is due that there is not")
        for text, one in session.subscriptions.items():
            _demand(one.text == text and one.session is session, "a subscription is not its session's")
            owned.add(id(one))
    _demand(all(number == one.number for number, one in state.connections.items()), "a connection's number")
    entered = [id(one) for one in state.tree.subscriptions()]
    entered += [id(one) for share in state.tree.shares() for one in share.members.values()]
    _demand(sorted(owned) == sorted(entered), "other subscriptions are entered than sessions have")


def _check_numbers(network: Network) -> None:
    """Every number that something speaks of stands for something."""
    # Imported here: a single broker does without the kernels that routing brings along.
    from sojourn.mobility.references import references  # noqa: PLC0415 - only networks need it

    interests = network.links.interests
    clients, advertisements, subscriptions = references(network.clients.broker)
    subscriptions = subscriptions.union(*(one.held for one in network.clients.roamers.values()))
    clients.update(network.clients.roamers, network.arrivals.waiting, network.arrivals.finder.clients())
    names = network.links.names
    _demand(all(names.knows_client(one) for one in clients if one > 0), "a client has no name")
    _demand(advertisements <= interests.ads.keys(), "an advertisement is not known")
    _demand(subscriptions <= interests.subs.keys(), "a subscription is not known")


def _check_interests(network: Network) -> None:
    interests = network.links.interests
    _demand(interests.ads_of.keys() == interests.subs.keys(), "a subscription relates to nothing")
    _demand(interests.subs_of.keys() == interests.ads.keys(), "an advertisement relates to nothing")
    from sojourn.routing.neighbours import LOCAL  # noqa: PLC0415 - only networks need it

    router = network.clients.broker.router
    sources = router.neighbours.everyone | LOCAL
    for mask in (*router.ads.values(), *router.subs.values()):
        _demand(0 < mask == mask & sources, "something came from a neighbour that is none")
    _demand(0 <= router.untold == router.untold & sources, "a neighbour is none")


def _check_stored(network: Network) -> None:
    """Holdings stand under their own numbers, and every event is stored as often as it is spoken of."""
    subscribers = network.clients.broker.subscribers
    holdings = [*subscribers.main.values()]
    for client, holding in subscribers.main.items():
        _demand(holding.client == client, "what is stored is another client's")
    for client, older in subscribers.older.items():
        _demand(all(one.client == client for one in older), "what is stored is another client's")
        holdings += older
    _demand(all(key == one.key for key, one in subscribers.fed.items()), "what is fed has another key")
    spoken_of = Counter(event for holding in holdings for event in holding.queue)
    stored = subscribers.store
    enough = all(count <= stored.count_of(event) for event, count in spoken_of.items())
    _demand(enough, "an event waits and is not stored")
    accounts = subscribers.accounts.by_party
    for holding in holdings:
        account = holding.account
        _demand(account is None or accounts.get(account.party) is account, "an account is not known")
    for party, account in accounts.items():
        _demand(account.party == party and bool(account.holdings), "an account is nobody's")
        _demand(account.is_shared or len(account.holdings) == 1, "an account is shared and is not")
