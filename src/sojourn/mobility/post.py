"""The way of messages about subscribers from one broker to another, and to itself."""

from collections import deque
from collections.abc import Callable, Iterator

from sojourn.routing.messages import Handoff
from sojourn.routing.overlay import NOWHERE
from sojourn.routing.router import Router


class Post:
    """Sends messages hop by hop; those to this broker itself wait until the present one is handled."""

    __slots__ = ("_effects", "_local", "_neighbours", "_next_hop", "number")

    def __init__(self, number: int, router: Router, next_hop: Callable[[int, int], int]) -> None:
        self.number = number
        """This broker's own."""
        self._neighbours = router.neighbours
        self._effects = router.effects
        self._next_hop = next_hop
        self._local: deque[Handoff] = deque()
        """Messages to this broker itself; they are handled before the next fact."""

    def send(self, message: Handoff) -> None:
        """Send a message towards its destination."""
        if message.destination == self.number:
            self._local.append(message)
            return
        hop = self._next_hop(self.number, message.destination)
        if hop == NOWHERE:
            return  # that broker has left
        self._effects.sends.append((self._neighbours.bit(hop), message))

    def local(self) -> Iterator[Handoff]:
        """Take out the messages to this broker, also those that are sent meanwhile."""
        while self._local:
            yield self._local.popleft()
