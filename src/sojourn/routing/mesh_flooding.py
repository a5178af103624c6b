"""Flooding over a graph with cycles: every broker passes an event on once, whoever sends it copies.

Where `FloodingRouter` needs a forwarding tree, this one takes the graph as it is: an event reaches a broker
over its fastest way, and every further copy is dropped. It costs a copy a link and direction instead of one
a broker, and survives the loss of any links that leave the graph connected.

An event is told by its source and number. The newest `remembered_max` are remembered; a copy that comes later
than that would go round again, so the limit is far above what can be on the way at once.
"""

from collections import OrderedDict

from sojourn.routing.effects import Effects
from sojourn.routing.flooding import FloodingRouter
from sojourn.routing.interests import Interests
from sojourn.routing.messages import Publish
from sojourn.routing.neighbours import Neighbours

REMEMBERED_MAX = 100_000


class MeshFloodingRouter(FloodingRouter):
    """A router that passes every event on, the first time it comes."""

    __slots__ = ("_seen", "copies", "remembered_max")

    def __init__(self, neighbours: Neighbours, interests: Interests, effects: Effects) -> None:
        super().__init__(neighbours, interests, effects)
        self._seen: OrderedDict[tuple[str, int], None] = OrderedDict()
        self.remembered_max = REMEMBERED_MAX
        self.copies = 0
        """Events that had come before."""

    def has_seen(self, message: Publish) -> bool:
        """Whether an event has come before, as far as is remembered."""
        return (message.source, message.sequence) in self._seen

    def publish(self, message: Publish, bit: int) -> None:
        """Send a new event on to all other neighbours, and to the local clients that want it."""
        event = message.source, message.sequence
        if event in self._seen:
            self.copies += 1
            return
        self._seen[event] = None
        if len(self._seen) > self.remembered_max:
            self._seen.popitem(last=False)
        super().publish(message, bit)
