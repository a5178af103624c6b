"""Which of a run's moves ended at a proxy of the publisher itself, where no tree is built (section 4.3)."""

from sojourn.sim.publishers.world import World
from sojourn.sim.results import RunResult
from sojourn.sim.scenario import Scenario


def to_own_proxy(result: RunResult, scenario: Scenario) -> list[bool]:
    """By counted move: whether it ended at a proxy of its publisher."""
    moves = result.moves
    if "proxy" not in scenario.policies:
        return [False] * len(moves)
    movement = World(scenario).movement  # as in the run: it follows from the seed
    own = [frozenset(movement.proxies(publisher)) for publisher in range(scenario.publishers)]
    return [to in own[publisher] for publisher, to in zip(moves.publisher, moves.to_broker, strict=True)]
