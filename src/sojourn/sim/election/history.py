"""Random histories of partitions of an ad-hoc network, as `world.py` lives them, and their ends."""

import msgspec


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A random history of partitions."""

    seed: int = 1
    nodes: int = 10
    displayers: int = 6
    sources: int = 3
    """The last nodes; a node may be both displayer and source."""
    refresh_s: float = 2.0
    partitions: int = 5
    """How often the nodes are dealt anew before the network heals."""
    islands: int = 3
    """At most."""
    phase_s: float = 8.0
    """Mean time between two deals."""
    off_share: float = 0.1
    """Of the nodes, switched off in each phase."""
    publish_s: float = 2.0
    """Mean time between two events of a source."""
    loss: float = 0.0
    """Share of receptions that the radio loses."""
    meeting: str = "merge"
    """What brokers do that meet: `merge`, or `coordinate`."""
    fixed: bool = False
    """Whether some nodes come into reach of a fixed network now and then, and one at the end."""
    kills: int = 0
    """How many nodes die in each phase, between any two effects, and come back with what they noted."""


class Healed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a history."""

    healed_s: float | None
    """From the healing until there was one broker with all subscriptions, for good; None for never."""
    delivered_s: float | None
    """The same until all owed events were shown as well."""
    brokers: int
    """At the end."""
    missing: int
    """Live subscriptions that the broker lacks at the end."""
    owed: int
    lost: int
    duplicated: int
    unwanted: int
    brokers_before: int
    """When the network came together."""
    most_brokers: int
    """At once, during the history."""
    merges: int
    said: int
    offered: int = 0
    """Events of nodes that the fixed network has."""
    fixed_lost: int = 0
    """Events of nodes that it never got, and events of its own that some displayer lacks."""
    fixed_doubled: int = 0
    """Events that its subscriber was given twice; one that looks at publishers' numbers knows those."""
    deaths: int = 0
