"""The specification of one task of the study: plain values, all it takes to repeat it; and what it tells."""

from typing import Literal

import msgspec

from sojourn.sim.edge.roaming import EdgeRoaming
from sojourn.sim.edge.workload import Workload
from sojourn.sim.election.history import History
from sojourn.studies.architectures import parameters

Kind = Literal["table1", "replicas", "quench", "offline", "scaling", "roam", "queues", "heal", "advice"]

Fact = tuple[str, str, int, float]
"""What, of which, of the how-manieth, and the number: a row of `observations`."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One task."""

    kind: Kind
    seed: int = 1
    block: int = 1
    """Seeds in this task, from `seed` on; where a task is one run, 1."""
    architecture: str = "central"
    brokers: int = 1
    subscriptions: int = 0
    sources: int = 1
    events: int = 0
    workload: Workload = Workload(areas=parameters.AREAS, event_bytes=parameters.EVENT_BYTES)
    quench: bool = False
    narrow_after: int = 1
    alternatives_max: int = 64
    churn: float = 0.0
    """Subscriptions replaced for each event."""
    moves: float = 0.0
    """Displayers that move for each event."""
    buffer_events: int = 1
    new_share: float = 0.0
    policy: str = "all"
    streams: int = 1
    loss: float = 0.0
    events_max: int = 5
    roaming: EdgeRoaming | None = None
    history: History | None = None
