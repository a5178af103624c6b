"""A configuration that was read anew, at a process that keeps copies.

It holds for brokers that the process plays as guests, and for those that it will play: what a broker was
promised by the rights of today is kept by them, and what they forbid is not done, whoever plays it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.live.brokers.node import Node
from sojourn.live.brokers.reloading import apply, in_force, prepared_for_guest
from sojourn.live.config import Config
from sojourn.live.links.knowing import proof_of
from sojourn.live.seats.mesh import for_seats

if TYPE_CHECKING:
    from sojourn.live.seats.chamber import Chamber


async def renew(chamber: Chamber, config: Config, served: Node | None) -> list[str]:
    """Let a configuration hold for all but the broker that has its doors here; return their names."""
    proof = for_seats(proof_of(config, chamber.name))
    others = [node for node in chamber.nodes if node is not served and node.failure is None]
    process = chamber.name
    found = [(node, prepared_for_guest(node.config, config, node.place.name, process)) for node in others]
    # Nothing was awaited: who is being revived looks later whether this has changed (`revivals.py`).
    chamber.config = in_force(chamber.config, config)
    for node, reload in found:
        apply(node, reload)
    await chamber.mesh.renew(proof)
    for node, reload in found:
        if node.links is not None and node.failure is None:
            await node.links.renew(reload.proof)
    return sorted(node.place.name for node in others)
