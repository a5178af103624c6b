"""The situations that the table "which architecture when" is measured in, and the architectures compared.

A situation is what a designer knows beforehand: how many brokers there could be, how many subscriptions, how
much of what is published somebody wants, how often subscriptions change and displayers move. All of it is
measured in the same world; only these factors differ.
"""

from typing import NamedTuple

ARCHITECTURES = {
    "central": ("central", False),
    "central, quenched": ("central", True),
    "broadcast": ("broadcast", False),
    "multicast": ("multicast", False),
    "multicast, quenched": ("multicast", True),
}
"""By name in the table: the routing, and whether sources are quenched."""


class Situation(NamedTuple):
    """What a designer knows."""

    name: str
    brokers: int
    subscriptions: int
    width: int
    """Values of a thousand that a subscription wants, in one area of ten."""
    wanted_share: float = 1.0
    churn: float = 0.0
    """Subscriptions replaced for each event."""
    moves: float = 0.0
    """Displayers that move for each event."""
    sources: int = 4


SITUATIONS = (
    Situation("few subscriptions, most events unwanted", 8, 20, 100, 0.3),
    Situation("the same, subscriptions change with every event", 8, 20, 100, 0.3, churn=1.0),
    Situation("many subscriptions, nearly everything wanted", 8, 200, 200),
    Situation("many narrow subscriptions, many brokers", 24, 200, 20),
    Situation("many wide subscriptions, many brokers", 24, 200, 400),
    Situation("narrow subscriptions that change now and then", 12, 100, 20, churn=0.1),
    Situation("narrow subscriptions that change with every event", 12, 100, 20, churn=1.0),
    Situation("narrow subscriptions that change five times an event", 12, 100, 20, churn=5.0),
    Situation("displayers that move now and then", 12, 100, 50, moves=0.1),
    Situation("displayers that move with every event", 12, 100, 50, moves=1.0),
    Situation("displayers that move five times an event", 12, 100, 50, moves=5.0),
    Situation("wide subscriptions that change five times an event", 12, 100, 400, churn=5.0),
    Situation("wide subscriptions, displayers that move five times an event", 12, 100, 400, moves=5.0),
    Situation(
        "a source at each broker, subscriptions change with every event", 12, 100, 50, churn=1.0, sources=12
    ),
)
