"""Events over a tree: said once for all interested children, with the work counted (paper 002, section 2).

The root's events go down. Another node's event goes up along the tree towards the root, and on the way every
node lets it down the branches that want it: one broadcast names the parent and the interested children at
once. `Flooding` is what the tree is compared with: everybody says every event once.

Each event is handled once a node, however often it is heard; the last `REMEMBERED` are remembered.
"""

from collections import OrderedDict

from sojourn.adhoc.tree.cells import Interest
from sojourn.adhoc.tree.messages import Deliver, Effect, EventMessage, Published, Say
from sojourn.adhoc.tree.node import ShopParent
from sojourn.interest.measure import Bound

REMEMBERED = 4096


class Work:
    """How many events a node received, processed and forwarded (Table 2)."""

    __slots__ = ("forwarded", "processed", "received")

    def __init__(self) -> None:
        self.received = self.processed = self.forwarded = 0


class _Seen:
    """The ids of recent events."""

    def __init__(self) -> None:
        self._ids: OrderedDict[tuple[int, int], None] = OrderedDict()

    def is_new(self, source: int, sequence: int) -> bool:
        if (source, sequence) in self._ids:
            return False
        self._ids[source, sequence] = None
        if len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)
        return True


class Relay:
    """Passes events on along the tree that a `ShopParent` keeps."""

    def __init__(self, place: ShopParent) -> None:
        self._place = place
        self._seen = _Seen()
        self.work = Work()

    def publish(self, fact: Published) -> list[Effect]:
        """An event of this node's own application."""
        self._seen.is_new(self._place.node, fact.sequence)
        place = self._place
        # Section 2.1 counts events at the root as received by it too, if they concern it or its children.
        if not place.is_root or fact.value in place.effective:
            self.work.received += 1
        return self._handle(place.node, fact.sequence, fact.value, None, climbs=True)

    def hear(self, message: EventMessage) -> list[Effect]:
        """An event a neighbour said; nothing if it does not concern this node."""
        place = self._place
        from_below = message.up == place.node
        if not from_below and place.node not in message.down:
            return []
        if not self._seen.is_new(message.source, message.sequence):
            return []
        self.work.received += 1
        return self._handle(
            message.source, message.sequence, message.value, message.sender, climbs=from_below
        )

    def _handle(
        self, source: int, sequence: int, value: Bound, sender: int | None, *, climbs: bool
    ) -> list[Effect]:
        place = self._place
        effects: list[Effect] = []
        if value in place.inherent:
            self.work.processed += 1
            effects.append(Deliver(source=source, sequence=sequence))
        up = place.parent if climbs else None
        down = frozenset(
            child for child, asked in place.children.items() if child != sender and value in asked
        )
        if up is None and not down:
            return effects
        self.work.forwarded += 1
        said = EventMessage(
            tree=place.tree,
            sender=place.node,
            source=source,
            sequence=sequence,
            value=value,
            up=up,
            down=down,
        )
        return [*effects, Say(said)]


class Flooding:
    """Says every event once and delivers what the node wants."""

    def __init__(self, node: int, inherent: Interest) -> None:
        self._node = node
        self._inherent = inherent
        self._seen = _Seen()
        self.work = Work()
        self.heard_again = 0
        """Copies heard of events already had; radio hears them, but they are not counted as received."""

    def publish(self, fact: Published) -> list[Effect]:
        """An event of this node's own application."""
        self._seen.is_new(self._node, fact.sequence)
        self.work.received += 1
        return self._handle(self._node, fact.sequence, fact.value)

    def hear(self, message: EventMessage) -> list[Effect]:
        """An event a neighbour said."""
        if not self._seen.is_new(message.source, message.sequence):
            self.heard_again += 1
            return []
        self.work.received += 1
        return self._handle(message.source, message.sequence, message.value)

    def _handle(self, source: int, sequence: int, value: Bound) -> list[Effect]:
        effects: list[Effect] = []
        if value in self._inherent:
            self.work.processed += 1
            effects.append(Deliver(source=source, sequence=sequence))
        self.work.forwarded += 1
        said = EventMessage(
            tree=-1,
            sender=self._node,
            source=source,
            sequence=sequence,
            value=value,
            up=None,
            down=frozenset(),
        )
        return [*effects, Say(said)]
