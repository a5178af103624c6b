"""Who should sit where: neighbours in the graph of links first, and only who is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

from sojourn.broker.seats.messages import Seat


class Order:
    """Which processes are nearest to a broker."""

    def __init__(self, names: Sequence[str], links: Sequence[tuple[str, str]]) -> None:
        self.names = tuple(names)
        near: dict[str, set[str]] = {name: set() for name in names}
        for one, other in links:
            near[one].add(other)
            near[other].add(one)
        self._orders = {name: self._ordered(name, near) for name in names}

    def _ordered(self, name: str, near: dict[str, set[str]]) -> list[str]:
        distances = {name: 0}
        waiting = deque([name])
        while waiting:
            one = waiting.popleft()
            for other in near[one] - distances.keys():
                distances[other] = distances[one] + 1
                waiting.append(other)
        place, count = self.names.index(name), len(self.names)

        # Among equally near ones the next in the list: so that not all follow at the same process.
        def rank(other: str) -> tuple[int, int]:
            return distances.get(other, count), (self.names.index(other) - place) % count

        return sorted((other for other in self.names if other != name), key=rank)

    def others(self, name: str) -> list[str]:
        """Return all other processes, the nearest first."""
        return self._orders[name]


def first_seat(order: Order, name: str, copies: int) -> Seat:
    """Return the first term of a seat, which needs no vote."""
    return Seat(name, 1, name, tuple(order.others(name)[: min(copies, len(order.names) - 1)]))


def next_seat(
    order: Order,
    seat: Seat,
    host: str,
    copies: int,
    *,
    there: Collection[str],
    kept: Collection[str],
) -> Seat | None:
    """Return the next term with a host, or None while there are not enough processes to follow it.

    `there` are the processes that can be reached; `kept` those that hold everything already, and stay.
    Members that are out of reach stay only if there is nobody else.
    """
    count = min(copies, len(order.names) - 1)
    others = [one for one in order.others(seat.name) if one != host]
    if seat.name != host:
        others.append(seat.name)
    chosen = [one for one in others if one in kept]
    chosen += [one for one in others if one in there and one not in chosen]
    chosen += [one for one in others if one in seat.members and one not in chosen]
    if len(chosen) < count:
        return None
    return Seat(seat.name, seat.term + 1, host, tuple(chosen[:count]))
