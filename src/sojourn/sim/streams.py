"""Named random streams grown from one root seed.

Two rules. A stream depends on the seed, its name and its index only, never on the order in which streams
are asked for; so a new factor that draws numbers leaves every other stream as it was. And nobody draws
from a global generator.
"""

import zlib

import numpy as np


class Streams:
    """The random streams of one run; `get("movement", 7)` is publisher 7's own movement stream."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._made: dict[tuple[str, int], np.random.Generator] = {}

    def get(self, name: str, index: int = 0) -> np.random.Generator:
        """The stream of that name and index; asked for again, it continues where it stood."""
        key = (name, index)
        generator = self._made.get(key)
        if generator is None:
            generator = self._made[key] = self.fresh(name, index)
        return generator

    def fresh(self, name: str, index: int = 0) -> np.random.Generator:
        """The same stream from its beginning, apart from whoever else draws from it."""
        # The name enters by a stable checksum: Python's own hash of a string differs between processes.
        sequence = np.random.SeedSequence(self._seed, spawn_key=(zlib.crc32(name.encode()), index))
        return np.random.Generator(np.random.PCG64(sequence))
