"""Those who wait their turn: addresses in a circle, and those of one address in a circle of their own.

So a client waits behind one turn of each other address, however many clients that has. Where all have the
same address, as behind a proxy, it is one circle of clients.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator


class Turns:
    """Who waits, by address."""

    __slots__ = ("_addresses", "_lines", "count")

    def __init__(self) -> None:
        self._addresses: deque[str] = deque()
        """Those of whom somebody waits, each once, the next first."""
        self._lines: dict[str, deque[int]] = {}
        self.count = 0
        """How many wait."""

    def __len__(self) -> int:
        """Return how many wait."""
        return self.count

    def __iter__(self) -> Iterator[int]:
        """Yield who waits, address by address."""
        for address in self._addresses:
            yield from self._lines[address]

    def append(self, address: str, number: int) -> None:
        """Let somebody wait behind the others of its address."""
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = deque()
            self._addresses.append(address)
        line.append(number)
        self.count += 1

    def popleft(self) -> int:
        """Return whose turn it is; then it is that of the other addresses."""
        address = self._addresses.popleft()
        line = self._lines[address]
        number = line.popleft()
        self.count -= 1
        if line:
            self._addresses.append(address)
        else:
            del self._lines[address]
        return number

    def clear(self) -> None:
        """Let nobody wait."""
        self._addresses.clear()
        self._lines.clear()
        self.count = 0
