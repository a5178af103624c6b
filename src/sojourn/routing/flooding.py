"""Flooding: every event goes to every broker, and interests never leave the broker they were made at.

The strategy of paper 001, section 3: with many moves, telling the network of every subscription costs more
than sending every event everywhere. It has the interface of `Router`, so a broker does not know which of the
two it has; what a neighbour says of its interests is not expected and changes nothing.
"""

from sojourn.routing.effects import Deliver
from sojourn.routing.messages import NO_CAUSE, Advertise, Publish, Subscribe, Unadvertise, Unsubscribe
from sojourn.routing.neighbours import LOCAL
from sojourn.routing.router import Router


class FloodingRouter(Router):
    """A router that keeps local interests to itself and passes every event on."""

    __slots__ = ()

    def advertise(self, message: Advertise, bit: int) -> None:
        """Keep a local advertisement; nobody else need know it."""
        if bit == LOCAL:
            self.ads[message.interest] = LOCAL

    def unadvertise(self, message: Unadvertise, bit: int) -> None:
        """Forget a local advertisement."""
        if bit == LOCAL:
            self.ads.pop(message.interest, None)

    def subscribe(self, message: Subscribe, bit: int) -> None:
        """Keep a local subscription; nobody else need know it."""
        if bit == LOCAL and message.interest not in self.subs:
            self.subs[message.interest] = LOCAL
            self.interests.taken_up(message.interest)

    def unsubscribe(self, message: Unsubscribe, bit: int) -> None:
        """Forget a local subscription."""
        if bit == LOCAL and self.subs.pop(message.interest, None) is not None:
            self.interests.let_go(message.interest)

    def publish(self, message: Publish, bit: int) -> None:
        """Send an event on to all other neighbours, and to the local clients that want it."""
        towards = self._everyone & ~bit
        if towards:
            self._sends.append((towards, message))
        if message.version != self.interests.version:
            self._match(message)
        clients = self._local_clients(message.matched)
        if clients:
            self.effects.deliveries.append(Deliver(clients, message))

    def neighbour_gained(self, broker: int, cause: int = NO_CAUSE) -> None:  # noqa: ARG002  (as in `Router`)
        """Take in a new neighbour, which needs to know nothing."""
        self.neighbours.add(broker)
        self._everyone = self.neighbours.everyone
