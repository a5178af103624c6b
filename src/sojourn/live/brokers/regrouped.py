"""Brokers join and leave while this one runs: what its driver does about it (`broker/roll.py`).

A broker that is to join is *expected* by the one that it links to, once that one has read of it in its
configuration. When it calls, this one tells its core, which tells all others. So nobody waits for a broker
that does not come. All others learn of it from their neighbours; their own files may follow at leisure, for
what brokers were told is in their journals.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sojourn.broker import facts
from sojourn.broker.roll import by_whom, is_same_founding, merged, roll_of
from sojourn.errors import SojournError
from sojourn.live.config import BrokerConfig, Config

if TYPE_CHECKING:
    from sojourn.broker.settings import Settings
    from sojourn.live.brokers.node import Node

NOT_KNOWN = "127.0.0.1:0"
"""Stands for the address of a broker that only others' files name; pages show what it tells itself."""

_log = logging.getLogger("sojourn.network")


class Regrouping:
    """What one broker's driver knows of who joins and leaves."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._expected: dict[str, facts.RollTold] = {}
        """By broker that is to join by a link to this one: what the core is told when it calls."""
        self.listeners: list[Callable[[Config], None]] = []
        """Who is told of the brokers and links that there are, when these have changed."""

    def expect(self, config: Config) -> list[str]:
        """Let brokers join here that a configuration has and the network has not; return which these are."""
        node, network = self._node, self._node.network
        self._expected = {}
        if network is None or not may_follow(network.settings, config):
            return []
        wanted, known = config.settings(node.place.name), len(network.settings.joined)
        for place in range(known, len(wanted.joined)):
            name = wanted.joined[place][0]
            if by_whom(wanted, name) == node.place.name and name not in wanted.left:
                # Some before it may never have come, and were taken back: nobody waits for them.
                gone = {row[0] for row in wanted.joined[known:place]}.intersection(wanted.left)
                left = tuple(sorted(gone.union(network.settings.left)))
                self._expected[name] = facts.RollTold(wanted.joined[: place + 1], left)
        if node.links is not None:
            node.links.rearrange([*network.links.channels, *self._expected])
        return list(self._expected)

    def may_connect(self, peer: str) -> bool:
        """Whether a broker that calls, or is called, is a neighbour; one that is expected joins with this."""
        node, network = self._node, self._node.network
        assert network is not None, "only a broker with neighbours is called by one"
        if peer in self._expected:
            try:
                node.tell(self._expected[peer])
            except SojournError as error:
                _log.warning("%s cannot join: %s", peer, error)
        return peer in network.links.channels

    def regrouped(self, settings: Settings) -> None:
        """Brokers have joined or left: have other neighbours, and show others on pages."""
        node = self._node
        for name in settings.brokers:
            if name in self._expected and name in {row[0] for row in settings.joined}:
                del self._expected[name]
        node.config = following(node.config, settings)
        if node.links is not None and node.network is not None:
            node.links.rearrange([*node.network.links.channels, *self._expected])
        for listener in self.listeners:
            listener(node.config)
        _log.warning("%s is in a network of %s", settings.name, settings.drawn)


def stand_in(name: str) -> BrokerConfig:
    """Return what is known of a broker that only others' files name."""
    return BrokerConfig(name=name, listen=NOT_KNOWN)


def may_follow(settings: Settings, config: Config) -> bool:
    """Whether a configuration has the same network, but for brokers that joined and left."""
    name = settings.name
    if name not in {broker.name for broker in config.brokers}:
        return False
    wanted = config.settings(name)
    is_same = is_same_founding(settings, wanted) and settings.routing == wanted.routing
    return is_same and merged(roll_of(settings), roll_of(wanted)) is not None


def following(config: Config, settings: Settings, before: Config | None = None) -> Config:
    """Return a configuration with the brokers and links that settings have; some may be known from before."""
    known = {broker.name: broker for one in (before, config) if one is not None for broker in one.brokers}
    live = [name for name in settings.brokers if name not in settings.left]
    brokers = [known.get(name) or stand_in(name) for name in live]
    links = [link for link in settings.links if not {*settings.left}.intersection(link)]
    left = {
        name: sorted({one for link in settings.links if name in link for one in link if one != name})
        for name in settings.left
    }
    joined = [row[0] for row in settings.joined]
    return replace(
        config, brokers=brokers, links=links, network=replace(config.network, joined=joined, left=left)
    )
