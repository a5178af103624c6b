"""What files have to do with the roll of those that vote: who may join, and those from before some did."""

from __future__ import annotations

from msgspec.structs import replace

from sojourn.broker.seats.messages import Seat
from sojourn.live.brokers.regrouped import NOT_KNOWN
from sojourn.live.config import BrokerConfig, Config


def who_joins(config: Config, name: str, roll: Seat) -> dict[str, tuple[str, ...]]:
    """Return the processes that a configuration lets join by a broker, with their links."""
    settings = config.settings(name)
    return {
        one: tuple(links)
        for one, *links in settings.joined
        if min(links, key=settings.brokers.index) == name
        and one not in (*roll.members, *roll.left, *settings.left)
    }


def on_roll(config: Config, roll: Seat) -> Config:
    """Return a configuration that has all brokers on a roll; its file may be from before some joined."""
    known = {broker.name for broker in config.brokers}
    fresh = [one for one in roll.joined if one.name in roll.members and one.name not in known]
    if not fresh:
        return config
    return replace(
        config,
        brokers=[*config.brokers, *(BrokerConfig(name=one.name, listen=NOT_KNOWN) for one in fresh)],
        links=[*config.links, *((link, one.name) for one in fresh for link in one.links)],
        network=replace(config.network, joined=[*config.network.joined, *(one.name for one in fresh)]),
    )
