"""Shopping with a slowly falling readiness to accept a worse parent, to get out of poor local optima.

SP-COMBO stops where no single switch looks better. A node that knows its whole route knows exactly what a
switch does to the whole tree (metric `path`). If it chooses each parent with probability proportional to
exp(-increase / temperature), all nodes together walk over trees as simulated annealing does, though each
decides alone and from what its neighbours advertise. Adding independent Gumbel noise of that temperature to
every metric and taking the least is the same choice, which is how it is done here; at temperature 0 it is
plain shopping again. This goes beyond paper 002.

Noise is a pure function of a key, the round and the pair, so that the message-level core and the compiled
rounds of `whole_graph.py` draw the same.
"""

from typing import NamedTuple

import numpy as np

from sojourn.interest.index.compiling import compiled


class Cooling(NamedTuple):
    """How warm it is in which round."""

    temperature: float = 0.0
    """In units of work, in the first warm round; falls in a straight line."""
    rounds: int = 0
    """Warm rounds; the ones after them are cold."""
    key: int = 0
    """Which of all noises."""


COLD = Cooling()


@compiled
def temperature_in(cooling: Cooling, round_number: int) -> float:
    """The temperature of a round, counted from 0."""
    if round_number >= cooling.rounds:
        return 0.0
    return cooling.temperature * (1.0 - round_number / cooling.rounds)


@compiled
def _mixed(word: np.uint64) -> np.uint64:
    """One step of SplitMix64, a well-tried mixing of 64 bits."""
    word = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled
def handicap(cooling: Cooling, round_number: int, node: int, other: int) -> float:
    """What is added to the metric of `other` when `node` shops in a round."""
    temperature = temperature_in(cooling, round_number)
    if temperature <= 0.0:
        return 0.0
    word = _mixed(
        _mixed(_mixed(_mixed(np.uint64(cooling.key)) ^ np.uint64(round_number)) ^ np.uint64(node))
        ^ np.uint64(other)
    )
    # The upper 53 bits as a number strictly between 0 and 1.
    uniform = (np.float64(word >> np.uint64(11)) + 0.5) / 9007199254740992.0
    noise: float = np.log(-np.log(uniform))
    return temperature * noise
